//! Flows in a star: the way of their packets.

use farcast_core::Time;
use farcast_core::engine::Message as _;
use farcast_core::stage::{Fate, Frame, Port};
use farcast_delivery::Protocol;
use farcast_link::chain::Entry;

use super::{Event, Flight, FlowEvent, Packet, Star};
use crate::traffic::{End, FlowMessage};
use crate::world::direction;

impl<P: Protocol> Star<'_, P> {
    /// Delivers a packet that has passed the links to `end`.
    pub(super) fn reach_flow(&mut self, number: u32, end: End, packet: Flight) {
        let taken = self.reach_end(number, end, packet);
        self.layout.flights.end(packet);
        if taken {
            self.drain_flow(number);
        }
    }

    /// Delivers a packet to `end`, unless it is lost there. Returns `true` if it was delivered.
    fn reach_end(&mut self, number: u32, end: End, packet: Flight) -> bool {
        let state = &mut self.flows[number as usize];
        let message = self.layout.flights.of(packet);
        let octets = message.wire_len(0) as u64 + u64::from(state.overhead);
        if state.directions[direction(end)].loses(self.now, octets, &mut self.lost) {
            return false;
        }
        self.wake_flow_if_due(number);
        if self.observer.is_some() {
            let message = *self.layout.flights.of(packet);
            self.watch_flow(number, end, &message, true);
        }
        self.flows[number as usize].flow.handle(self.now, end, self.layout.flights.of(packet));
        true
    }

    /// Sends a packet into the links at `from`.
    pub(super) fn depart(&mut self, number: u32, from: End, message: &FlowMessage) {
        let state = &mut self.flows[number as usize];
        state.directions[direction(from.other())].passage.entered += 1;
        let octets = message.wire_len(0) as u64 + u64::from(state.overhead);
        let refused = state.local_congestion && !self.has_room(number, from, octets);
        self.layout.traffic.count(from.other(), 1, octets);
        self.enter_links(number, from, message, octets);
        if refused {
            self.flows[number as usize].flow.refused(self.now, from, message);
        }
    }

    /// Returns the port at which packets from `from` enter the links.
    fn port_at(&self, number: u32, from: End) -> Port {
        match from {
            End::Hub => Port::Hub,
            End::Terminal => Port::Terminal(self.receivers + number),
        }
    }

    /// Sends a packet of `octets` into the links. The packet passes in one go where its fate is known at once, and as a
    /// frame otherwise.
    fn enter_links(&mut self, number: u32, from: End, message: &FlowMessage, octets: u64) {
        let (port, end) = (self.port_at(number, from), from.other());
        match self.layout.links.pass(self.now, port, end, octets) {
            Some(Fate::Leaves(at)) => self.leave_links(at, number, end, message),
            Some(Fate::Dropped) => {}
            None => {
                let frame = self.flow_frame(number, end, *message);
                self.enter(Entry::new(end, frame));
            }
        }
    }

    /// Returns the frame of a packet to `end` that has just been counted.
    fn flow_frame(&self, number: u32, end: End, message: FlowMessage) -> Frame<Packet<P::Message>> {
        let state = &self.flows[number as usize];
        let identification = state.passage(end).entered as u16;
        Frame::new(Packet::Flow { flow: number, identification, message }, state.overhead)
    }

    /// Returns `true` if the first stage would take a packet from `from`.
    fn has_room(&mut self, number: u32, from: End, octets: u64) -> bool {
        let port = self.port_at(number, from);
        self.layout.links.has_room(self.now, port, from.other(), octets)
    }

    /// Schedules the arrival of a packet that leaves the last stage at `at`.
    pub(super) fn leave_links(&mut self, at: Time, flow: u32, end: End, message: &FlowMessage) {
        self.flows[flow as usize].directions[direction(end)].passage.left += 1;
        let at = if end == End::Hub { at + self.layout.back.delay.unwrap_or_default() } else { at };
        self.layout
            .flow_queue
            .push(at, FlowEvent::Reach { flow, end, packet: self.layout.flights.begin(*message) });
    }

    /// Counts packets that are in a stage or between two at the end of the replication: they were not dropped.
    pub(super) fn count_flows_under_way(&mut self) {
        for event in self.queue.iter() {
            let Event::Enter(entry) = event else { continue };
            if let Packet::Flow { flow, .. } = entry.message() {
                self.flows[*flow as usize].directions[direction(entry.to())].passage.left += 1;
            }
        }
        let flows = &mut self.flows;
        self.layout.links.chains().each_held(|end, packet| {
            if let Packet::Flow { flow, .. } = packet {
                flows[*flow as usize].directions[direction(end)].passage.left += 1;
            }
        });
    }
}
