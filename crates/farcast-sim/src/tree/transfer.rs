//! Messages of the transfer in a tree: from the sender's node, to groups of receivers, and from them.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::Delivery as _;

use super::nodes::carried;
use super::packet::Header;
use super::shape::{EVERYONE, Step};
use super::{Answer, Body, Carried, Event, OnTree, Packet, Tree};
use crate::world::{Addresses, Incoming, Party, SealMessage, receiver_address};

impl<P: OnTree> Tree<'_, P> {
    pub(super) fn send(&mut self, transmit: Transmit<P::Message>) {
        // A message to an address outside the tree is lost on links that are not simulated.
        let Some(to) = self.target(transmit.destination.ip(), false) else { return };
        let source = transmit.source.unwrap_or(self.routes.source);
        let interface = transmit.interface;
        let set_up = self.given && transmit.message.is_set_up();
        let party = Party::at(transmit.destination.ip(), self.receivers).unwrap_or(Party::GROUP);
        let sealed = self.seal_for(&transmit.message, transmit.destination, party);
        let Some((grows, party)) = sealed else { return };
        let overhead = self.overhead.saturating_add(grows);
        let transmit = if set_up { transmit } else { self.watch_sent(transmit, overhead) };
        let Some(mut frame) = Self::packet(to, source, transmit, overhead) else { return };
        if let Body::Transfer(carried) = &mut frame.message.body {
            carried.apart = party == Party::APART;
        }
        if set_up {
            self.tell(&frame);
        } else {
            self.depart(self.layout.seat, interface, frame);
        }
    }

    /// Reports a transmission of the sender to the observer, and returns it.
    fn watch_sent(&mut self, transmit: Transmit<P::Message>, overhead: u16) -> Transmit<P::Message> {
        let Some(observer) = &mut self.observer else { return transmit };
        let frame = Frame { message: transmit.message, overhead, spacing: transmit.spacing };
        observer.sent(self.now, transmit.destination, &frame);
        Transmit { message: frame.message, ..transmit }
    }

    /// Reports a message of a receiver to the observer.
    fn watch_answer(&mut self, receiver: u32, carried: &Carried<P::Message>, overhead: u16) {
        let Some(observer) = &mut self.observer else { return };
        let Header { source, destination, .. } = carried.header;
        let addresses = Addresses { source: source.into(), destination: destination.into() };
        let frame = Frame::new(carried.message().clone(), overhead);
        observer.answered_to(self.now, receiver, addresses, &frame);
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
        let everyone = if carried.apart { Party::APART } else { Party::GROUP };
        let to = Party::at(destination.ip(), self.receivers).filter(|_| !carried.apart).unwrap_or(everyone);
        let octets = carried.wire_len(0) as u64 + u64::from(overhead);
        let arrival = Arrival { spacing, interface: 1, ..Arrival::new(source, destination) };
        (arrival, Incoming { from, to, message: carried.message(), octets, overhead })
    }

    /// Delivers a frame to the node of a group.
    pub(super) fn reach_receivers(&mut self, node: u32, group: usize, frame: Frame<Packet<P::Message>>) {
        match frame.message.body {
            Body::Flow { .. } => self.flow_at_group(node, group, frame),
            Body::Seal(message) => self.unseal(group, message),
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
            return self.sender_hears(&from, carried.message(), self.overhead);
        }
        let seat = self.layout.seats[group as usize];
        let node = self.node_of(group as usize);
        let step = match to {
            EVERYONE => Step { edge: seat.edge, from: seat.place, to: EVERYONE },
            to if to == node => return self.among_themselves(group as usize, &carried),
            to => self.layout.shape.step(node, to),
        };
        let number = self.groups[group as usize].first() + receiver;
        let overhead = self.overhead.saturating_add(self.seal_answer(number));
        self.watch_answer(number, &carried, overhead);
        let mut packet = Packet::new(to, Body::Transfer(carried));
        packet.entered = self.layout.edges[seat.edge as usize].terminal(seat.place) + receiver;
        self.enter_edge(step, Frame::new(packet, overhead));
    }

    /// Sends a datagram that only the seal sends, from the sender or from the receiver that asks for its key.
    pub(super) fn leave_sealed(&mut self, message: SealMessage) {
        let (seat, body) = (self.layout.seat, Body::Seal(message));
        let to = match message {
            SealMessage::Keys { .. } => EVERYONE,
            SealMessage::Key(receiver) => self.node_of(self.group_of(receiver)),
            SealMessage::Ask(receiver) => return self.leave_request(receiver, Packet::new(seat, body)),
        };
        self.depart(seat, 0, Frame::new(Packet::new(to, body), self.overhead));
    }

    /// Enters a receiver's request for the content key into its edge.
    fn leave_request(&mut self, receiver: u32, mut packet: Packet<P::Message>) {
        let group = self.group_of(receiver);
        let place = self.layout.seats[group];
        let step = self.layout.shape.step(self.node_of(group), self.layout.seat);
        let first = self.layout.edges[place.edge as usize].terminal(place.place);
        packet.entered = first + receiver - self.groups[group].first();
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
