//! Event loop in virtual time.

use farcast_core::Time;
use farcast_delivery::{Merged, Phase, Protocol, SenderEngine as _};

use super::links::is_sent;
use super::pulse::{EVERY, Pulse};
use super::{Event, FlowEvent, Group, Packet, Star, Tally};
use crate::traffic::End;

impl<P: Protocol> Star<'_, P> {
    /// Runs until no event is left, or until the limit. Where a flow has no end but the transfer or another flow has
    /// one, the replication is over when everything that has an end has reached it.
    pub fn run(&mut self) {
        self.run_while(&Pulse::default());
    }

    /// Runs like [`run`](Self::run), unless `pulse` is stopped meanwhile. Returns `true` if the replication was
    /// completed; else the events until then are not a replication.
    pub fn run_while(&mut self, pulse: &Pulse) -> bool {
        self.open_transfer();
        self.schedule_flows();
        while self.next_at() <= self.limit
            && let Some(at) = self.happen_next()
        {
            self.tally.events += 1;
            if self.tally.events.is_multiple_of(EVERY) && !pulse.beat(at) {
                return false;
            }
            if self.stops_early && self.is_over() {
                self.end = at;
                break;
            }
        }
        if !self.flows.is_empty() {
            self.count_under_way();
        }
        self.tell_completed();
        true
    }

    /// Returns the end of the replication: the limit, or the earlier time at which everything that has an end had
    /// reached it.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns the counters of packets.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns `true` if everything that has an end has reached it. The transfer has when its sender has ended and no
    /// frame of it is under way.
    fn is_over(&self) -> bool {
        let ended = |sender: &P::Sender| sender.phase() == Phase::Ended;
        let over = self.unended == 0 && self.sender.as_ref().is_none_or(ended) && self.under_way == 0;
        over && !self.is_held()
    }

    /// Returns `true` if a stage holds a frame that the sender has sent.
    fn is_held(&self) -> bool {
        let mut held = false;
        self.links
            .chains()
            .each_held(|to, packet| held |= to == End::Terminal && matches!(packet, Packet::Transfer(_)));
        held
    }

    /// Reports the completion times of receivers to the observer, those of one instant in the order of the receivers.
    fn tell_completed(&mut self) {
        let Some(observer) = &mut self.observer else { return };
        let each = |group: &Group<P>| {
            (0..group.receivers).map(|n| (group.completed(n), group.first + n)).collect::<Vec<_>>()
        };
        let mut completed: Vec<(Time, u32)> = self.groups.iter().flat_map(each).collect();
        completed.retain(|&(at, _)| at != Time::NEVER);
        completed.sort_unstable();
        for (at, receiver) in completed {
            observer.completed(at, receiver);
        }
    }

    /// Returns the time of the next event.
    pub(super) fn next_at(&self) -> Time {
        self.queue.next_at().min(self.flow_queue.next_at())
    }

    /// Handles the next event and returns its time. Flow events come last in their instant.
    fn happen_next(&mut self) -> Option<Time> {
        if self.flow_queue.next_at() < self.queue.next_at() {
            let (at, event) = self.flow_queue.pop()?;
            self.now = at;
            self.happen_to_flow(event);
            return Some(at);
        }
        let (at, event) = self.queue.pop()?;
        self.now = at;
        self.happen(event);
        Some(at)
    }

    fn happen_to_flow(&mut self, event: FlowEvent) {
        match event {
            FlowEvent::Start(flow) => self.start_flow(flow),
            FlowEvent::Stop(flow) => self.stop_flow(flow),
            FlowEvent::Wake(flow) => self.wake_flow(flow),
            FlowEvent::Reach { flow, end, packet } => self.reach_flow(flow, end, packet),
        }
    }

    fn happen(&mut self, event: Event<P::Message, Merged<P>>) {
        match event {
            Event::Wake => {
                if self.wake == self.now {
                    self.wake_sender();
                }
            }
            Event::Reach(frame) => {
                let loses = |n| self.back.loses(self.now, frame.octets(0), n);
                if !frame.message.from.as_receiver().is_some_and(loses) {
                    self.reach(&frame);
                }
            }
            Event::Arrive(frame) => self.reach(&frame),
            Event::Merged(naks) => self.reach_merged(&naks),
            Event::Enter(entry) => {
                self.under_way -= u32::from(is_sent(&entry));
                self.enter(entry);
            }
            Event::StageWake(stage) => self.wake_stage(stage),
            Event::FanOut { group, frame } => {
                self.under_way -= 1;
                self.fan_out(group as usize, frame);
            }
            Event::GroupWake { group, station } => self.wake_group(group as usize, station),
            Event::Answer(message) => self.enter_return(message),
            Event::Keys => {
                let began = !self.lacks_keys();
                self.send_keys();
                if !began {
                    self.open_sender();
                }
            }
            Event::Owed => self.wake_owed(),
            Event::Unseal { group, message } => self.unseal(group as usize, message),
            Event::Ask(receiver) => self.ask(receiver),
            Event::ReachAsk(receiver) => {
                if !self.loses_ask(self.now, receiver) {
                    self.reach_ask(receiver);
                }
            }
            Event::ArriveAsk(receiver) => self.reach_ask(receiver),
        }
    }
}
