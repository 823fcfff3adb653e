//! Event loop in virtual time.

use farcast_core::Time;
use farcast_core::stage::Frame;
use farcast_delivery::{Merged, Phase, SenderEngine as _};

use super::{Event, OnTree, Packet, Tree, TreeTally};
use crate::star::Pulse;
use crate::star::pulse::EVERY;

/// Result of running a part of a replication.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    GoesOn,
    Over,
    Stopped,
}

impl<P: OnTree> Tree<P> {
    /// Runs until no event is left, or until the limit. Where something has no end but the transfer or a flow has one,
    /// the replication is over when everything that has an end has reached it.
    pub fn run(&mut self) {
        self.run_while(&Pulse::default());
    }

    /// Runs like [`run`](Self::run), unless `pulse` is stopped meanwhile. Returns `true` if the replication was
    /// completed; else the events until then are not a replication.
    pub fn run_while(&mut self, pulse: &Pulse) -> bool {
        self.run_with_look(pulse, self.limit, |_| {})
    }

    /// Runs like [`run_while`](Self::run_while), and calls `look` with the state after all events until `at`, unless
    /// the replication was over before.
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

    /// Handles all events until an instant.
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

    /// Returns the end of the replication: the limit, or the earlier time at which everything that has an end had
    /// reached it.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns the counters of the replication.
    pub fn tally(&self) -> &TreeTally {
        &self.tally
    }

    /// Returns `true` if everything that has an end has reached it. The transfer has when its sender has ended and no
    /// frame of the sender or an element is under way.
    fn is_over(&self) -> bool {
        let ended = |sender: &P::Sender| sender.phase() == Phase::Ended;
        let over = self.unended == 0 && self.sender.as_ref().is_none_or(ended) && self.under_way == 0;
        over && !self.is_held()
    }

    /// Returns `true` if a stage holds a frame that the end of the transfer waits for.
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

    /// Notes that a frame no longer waits for its event.
    fn arrives(&mut self, frame: &Frame<Packet<P::Message>>) {
        self.under_way -= u32::from(frame.message.is_awaited());
    }
}
