//! Virtual time: what happens next, and to whom.

use farcast_core::Time;
use farcast_core::stage::Frame;
use farcast_delivery::{Merged, Phase, SenderEngine as _};

use super::{Event, OnTree, Packet, Tree, TreeTally};
use crate::star::Pulse;
use crate::star::pulse::EVERY;

/// How a run stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    GoesOn,
    Over,
    Stopped,
}

impl<P: OnTree> Tree<P> {
    /// Runs until nothing is under way, or the limit. Where something has no end but the transfer or a flow has one, it
    /// is over when everything that has an end has reached it.
    pub fn run(&mut self) {
        self.run_while(&Pulse::default());
    }

    /// The same, unless `pulse` is stopped meanwhile; whether it was over. If not, what has happened so far is no
    /// replication.
    pub fn run_while(&mut self, pulse: &Pulse) -> bool {
        self.run_with_look(pulse, self.limit, |_| {})
    }

    /// The same, with `look` at how it stands when everything until `at` has happened; not if it was over before that.
    pub fn run_with_look(&mut self, pulse: &Pulse, at: Time, look: impl FnOnce(&Self)) -> bool {
        self.open_transfer();
        self.schedule_flows();
        let mut standing = self.run_until(at.min(self.limit), pulse);
        if standing == Standing::GoesOn {
            look(self);
            standing = self.run_until(self.limit, pulse);
        }
        if standing == Standing::Stopped {
            return false;
        }
        if !self.flows.is_empty() {
            self.count_under_way();
        }
        true
    }

    /// What happens until an instant.
    fn run_until(&mut self, until: Time, pulse: &Pulse) -> Standing {
        while self.queue.next_at() <= until
            && let Some((at, event)) = self.queue.pop()
        {
            self.now = at;
            self.tally.events += 1;
            self.happen(event);
            if self.tally.events.is_multiple_of(EVERY) && !pulse.beat(at) {
                return Standing::Stopped;
            }
            if self.stops_early && self.is_over() {
                self.end = at;
                return Standing::Over;
            }
        }
        Standing::GoesOn
    }

    /// When it was over: at the limit, unless it is over earlier because everything that has an end has reached it.
    pub fn end(&self) -> Time {
        self.end
    }

    /// What has passed.
    pub fn tally(&self) -> &TreeTally {
        &self.tally
    }

    /// Whether everything that has an end has reached it; the transfer, when its sender has and nothing that it or an
    /// element sent is under way.
    fn is_over(&self) -> bool {
        let ended = |sender: &P::Sender| sender.phase() == Phase::Ended;
        let over = self.unended == 0 && self.sender.as_ref().is_none_or(ended) && self.under_way == 0;
        over && !self.is_held()
    }

    /// Whether a stage holds something that the end waits for.
    fn is_held(&self) -> bool {
        let mut held = false;
        for edge in &self.edges {
            edge.each_held(|_, packet| held |= packet.is_awaited());
        }
        held
    }

    fn happen(&mut self, event: Event<P::Message, Merged<P>>) {
        match event {
            Event::Wake => self.wake_sender_now(),
            Event::Answer(said) => self.enter_answer(said),
            Event::Merged(naks) => self.reach_merged(&naks),
            Event::Enter { edge, entry } => {
                self.under_way -= u32::from(entry.message().is_awaited());
                self.enter(edge, entry);
            }
            Event::StageWake { edge, stage } => self.wake_stage(edge, stage),
            Event::Leave { edge, frame } => {
                self.arrives(&frame);
                self.leave(edge, frame);
            }
            Event::Reach { edge, to, place, frame } => {
                self.arrives(&frame);
                self.reached(edge, to, place, frame);
            }
            Event::Pass { edge, place, frame } => {
                self.arrives(&frame);
                self.pass(edge, place, frame);
            }
            Event::GroupWake { group, station } => self.wake_group(group as usize, station),
            Event::ElementWake { node } => self.wake_element(node),
            Event::FlowStart(flow) => self.start_flow(flow),
            Event::FlowStop(flow) => self.stop_flow(flow),
            Event::FlowWake(flow) => self.wake_flow(flow),
        }
    }

    /// A frame has waited for its event.
    fn arrives(&mut self, frame: &Frame<Packet<P::Message>>) {
        self.under_way -= u32::from(frame.message.is_awaited());
    }
}
