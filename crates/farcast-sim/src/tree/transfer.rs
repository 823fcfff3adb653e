//! Messages of the transfer in a tree: from the sender's node, to groups of receivers, and from them.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::Delivery as _;

use super::nodes::carried;
use super::shape::{EVERYONE, Step};
use super::{Answer, Body, Carried, Event, OnTree, Packet, Tree};
use crate::world::{Incoming, Party, receiver_address};

impl<P: OnTree> Tree<'_, P> {
    pub(super) fn send(&mut self, transmit: Transmit<P::Message>) {
        // A message to an address outside the tree is lost on links that are not simulated.
        let Some(to) = self.target(transmit.destination.ip(), false) else { return };
        let source = transmit.source.unwrap_or(self.routes.source);
        let interface = transmit.interface;
        let set_up = self.given && transmit.message.is_set_up();
        let Some(frame) = self.packet(to, source, transmit, true) else { return };
        if set_up {
            self.tell(&frame);
        } else {
            self.depart(self.layout.seat, interface, frame);
        }
    }

    /// Returns a message to receivers in the form in which a group hears it, with its addresses.
    pub(super) fn incoming<'a>(
        &self,
        carried: &'a Carried<P::Message>,
        overhead: u16,
        spacing: Span,
    ) -> (Arrival, Incoming<'a, P::Message>) {
        let (source, destination) =
            (SocketAddr::from(carried.header.source), SocketAddr::from(carried.header.destination));
        // Elements send from the address of the source, so a sender that is no receiver counts as the hub.
        let from = Party::at(source.ip(), self.receivers).unwrap_or(Party::HUB);
        let to = Party::at(destination.ip(), self.receivers).unwrap_or(Party::GROUP);
        let octets = carried.wire_len(0) as u64 + u64::from(overhead);
        let arrival = Arrival { spacing, interface: 1, ..Arrival::new(source, destination) };
        (arrival, Incoming { from, to, message: carried.message(), octets, overhead })
    }

    /// Delivers a frame to the node of a group.
    pub(super) fn reach_receivers(&mut self, node: u32, group: usize, frame: Frame<Packet<P::Message>>) {
        match frame.message.body {
            Body::Flow { .. } => self.flow_at_group(node, group, frame),
            Body::Transfer(_) => self.arrive_at_group(group, frame),
        }
    }

    /// Schedules for `at` a receiver's message.
    pub(super) fn answer(&mut self, at: Time, group: usize, receiver: u32, transmit: Transmit<P::Message>) {
        let own = receiver_address(self.groups[group].first() + receiver);
        let Some(to) = self.target(transmit.destination.ip(), true) else {
            self.layout.tally.unheard += 1;
            return;
        };
        let source = transmit.source.unwrap_or(own);
        let Some(carried) = carried(source, transmit, false) else { return };
        self.queue.push(at, Event::Answer(Answer { group: group as u32, receiver, to, carried }));
    }

    /// Enters a receiver's message into its edge.
    pub(super) fn enter_answer(&mut self, answer: Answer<P::Message>) {
        let Answer { group, receiver, to, carried } = answer;
        if self.given && carried.message().is_set_up() {
            let from = Arrival::new(carried.header.source.into(), carried.header.destination.into());
            return self.sender_hears(&from, carried.message());
        }
        let seat = self.layout.seats[group as usize];
        let node = self.node_of(group as usize);
        let step = match to {
            EVERYONE => Step { edge: seat.edge, from: seat.place, to: EVERYONE },
            to if to == node => return self.among_themselves(group as usize, &carried),
            to => self.layout.shape.step(node, to),
        };
        let mut packet = Packet::new(to, Body::Transfer(carried));
        packet.entered = self.layout.edges[seat.edge as usize].terminal(seat.place) + receiver;
        self.enter_edge(step, Frame::new(packet, self.overhead));
    }

    /// Delivers a receiver's message to another receiver of its group. The message passes no edge, because both are at
    /// one node.
    fn among_themselves(&mut self, group: usize, carried: &Carried<P::Message>) {
        let (from, incoming) = self.incoming(carried, self.overhead, Span::ZERO);
        let mut feedback = Vec::new();
        self.groups[group].tell(self.now, &from, &incoming, &mut feedback);
        self.schedule_feedback(group, &mut feedback);
    }
}
