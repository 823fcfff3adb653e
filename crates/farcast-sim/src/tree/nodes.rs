//! Nodes: forwarding, and delivery to engines.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine as _, Message, Transmit};
use farcast_core::stage::Frame;
use farcast_delivery::ElementEngine;

use super::packet::Header;
use super::shape::{EVERYONE, NEAR, Step};
use super::{Body, Carried, Event, OnTree, Packet, TTL, Tree, TreeTally, v4};
use crate::world::{Addresses, Cut, Party, SealMessage};

/// State of a node.
pub(super) struct Node<P: OnTree> {
    pub(super) name: String,
    /// Index of the node's group of receivers.
    pub(super) group: Option<u32>,
    element: Option<Box<Station<P>>>,
}

/// Element, with the time at which it wants to be woken.
struct Station<P: OnTree> {
    engine: P::Element,
    wake: Time,
}

impl<P: OnTree> Node<P> {
    pub(super) fn new(name: String) -> Self {
        Self { name, group: None, element: None }
    }

    pub(super) fn set_element(&mut self, engine: P::Element) {
        self.element = Some(Box::new(Station { engine, wake: Time::NEVER }));
    }
}

impl<P: OnTree> Tree<'_, P> {
    /// Returns the name of a node.
    pub fn name(&self, node: u32) -> &str {
        &self.layout.nodes[node as usize].name
    }

    /// Returns the element at a node, if there is one.
    pub fn element(&self, node: u32) -> Option<&P::Element> {
        self.layout.nodes[node as usize].element.as_ref().map(|station| &station.engine)
    }

    /// Returns the tree's shape.
    pub fn shape(&self) -> &super::Shape {
        &self.layout.shape
    }

    /// Returns the counters of the tree's nodes.
    pub fn tally(&self) -> &TreeTally {
        &self.layout.tally
    }

    /// Returns the node of a group of receivers.
    pub fn node_of(&self, group: usize) -> u32 {
        self.layout.node_of(group)
    }

    /// Returns the number of a receiver's group.
    pub(super) fn group_of(&self, receiver: u32) -> usize {
        self.groups.partition_point(|group| group.first() <= receiver) - 1
    }

    /// Returns the node that has an address, or [`EVERYONE`] for a group that all nodes listen to. A receiver's message
    /// to another group goes no further than the sender.
    pub(super) fn target(&self, address: IpAddr, is_receiver: bool) -> Option<u32> {
        if address.is_multicast() {
            let routes = &self.routes;
            let heard = [routes.answers, routes.content, routes.announcements];
            let all = !is_receiver || heard.iter().any(|group| group.ip() == address);
            return Some(if all { EVERYONE } else { self.layout.seat });
        }
        if address == self.routes.source.ip() {
            return self.sender.as_ref().map(|_| self.layout.seat);
        }
        if let Some(receiver) = Party::at(address, self.receivers).and_then(Party::as_receiver) {
            return Some(self.node_of(self.group_of(receiver)));
        }
        let IpAddr::V4(address) = address else { return None };
        self.layout.shape.node_with(address)
    }

    /// Returns the address that a node sends from over one of its interfaces.
    fn address(&self, node: u32, interface: u32) -> SocketAddr {
        if node == self.layout.seat && self.sender.is_some() {
            return self.routes.source;
        }
        let at = interface.saturating_sub(1) as usize;
        let address = self.layout.shape.addresses(node).nth(at);
        SocketAddr::new(
            IpAddr::V4(address.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED)),
            self.routes.source.port(),
        )
    }

    /// Sends a packet of a node's own. A packet to everyone leaves by `interface`, or by all interfaces if that is 0; a
    /// packet to one node leaves by the interface that leads there.
    pub(super) fn depart(&mut self, node: u32, interface: u32, frame: Frame<Packet<P::Message>>) {
        match frame.message.target() {
            Some(target) if target == node => self.layout.tally.unheard += 1,
            Some(target) => {
                let step = self.layout.shape.step(node, target);
                self.step_on(step, frame);
            }
            None => self.flood(node, Some(interface).filter(|&one| one != 0), None, &frame),
        }
    }

    /// Sends a packet over one edge.
    fn step_on(&mut self, step: Step, mut frame: Frame<Packet<P::Message>>) {
        frame.message.entered = self.layout.edges[step.edge as usize].terminal(step.from);
        self.enter_edge(step, frame);
    }

    /// Sends a packet for everyone by `interface`, or by all interfaces but that of the edge by which it `came`. On a
    /// relayed edge, the near end also sends a far end's packet back into that edge.
    fn flood(
        &mut self,
        node: u32,
        interface: Option<u32>,
        came: Option<(u32, u32)>,
        frame: &Frame<Packet<P::Message>>,
    ) {
        let ports = self.layout.shape.ports_of(node).len();
        for at in 0..ports {
            let port = self.layout.shape.ports_of(node)[at];
            if interface.is_some_and(|interface| interface != at as u32 + 1) {
                continue;
            }
            let mut frame = frame.clone();
            frame.message.entered = self.layout.edges[port.edge as usize].terminal(port.place);
            if let Some((edge, entered)) = came.filter(|(edge, _)| *edge == port.edge) {
                if port.place != NEAR || !self.layout.shape.is_relayed(edge) {
                    continue;
                }
                // The receiver that sent the packet does not hear it again.
                frame.message.entered = entered;
                if let Body::Transfer(carried) = &mut frame.message.body {
                    carried.header.awaited = true;
                }
            }
            self.enter_edge(Step { edge: port.edge, from: port.place, to: EVERYONE }, frame);
        }
    }

    /// Handles a frame that has reached the node at an end of an edge and is not lost: takes it there, forwards it, or
    /// both.
    pub(super) fn pass(&mut self, edge: u32, place: u32, frame: Frame<Packet<P::Message>>) {
        let node = self.layout.shape.node_at(edge, place);
        let carried = match &frame.message.body {
            Body::Transfer(carried) => carried,
            Body::Seal(message) => {
                let message = *message;
                return self.pass_sealed(node, edge, message, &frame);
            }
            Body::Flow { .. } => return self.pass_flow(node, frame),
        };
        let target = frame.message.target();
        let for_it = target == Some(node);
        let element = self.layout.nodes[node as usize].element.as_ref();
        let stops = for_it || element.is_some() && carried.header.alert;
        let overhears = element.is_some_and(|station| target.is_none() && station.engine.overhears());
        let is_sender = self.is_sender(node);
        let hears = stops || overhears || is_sender && target.is_none();
        if hears && frame.segments() > 1 {
            // Engines get datagrams one by one.
            let later = self.now + frame.spacing;
            let (head, tail) = frame.split(NonZeroU32::MIN);
            if let Some(tail) = tail {
                self.pass_later(later, edge, place, tail);
            }
            return self.pass(edge, place, head);
        }
        if stops {
            return self.take(node, edge, &frame);
        }
        let local = hears.then(|| frame.clone());
        if local.is_some() && is_sender {
            // As in a star, the sender's own events come before arrivals of the same instant.
            self.wake_sender_if_due();
        }
        self.go_on(node, edge, frame);
        if let Some(frame) = local {
            self.take(node, edge, &frame);
        }
    }

    /// Takes a datagram of the seal at the sender's node, or forwards it at any other.
    fn pass_sealed(&mut self, node: u32, edge: u32, message: SealMessage, frame: &Frame<Packet<P::Message>>) {
        match (frame.message.target(), message) {
            (Some(target), SealMessage::Ask(receiver)) if target == node => self.hear_key_request(receiver),
            (Some(target), _) if target == node => self.layout.tally.unheard += 1,
            (Some(target), _) => self.step_on(self.layout.shape.step(node, target), frame.clone()),
            (None, _) => self.flood(node, None, Some((edge, frame.message.entered)), frame),
        }
    }

    /// Returns `true` if the sender is at a node.
    fn is_sender(&self, node: u32) -> bool {
        node == self.layout.seat && self.sender.is_some()
    }

    /// Forwards a frame that came to a node by an edge.
    fn go_on(&mut self, node: u32, edge: u32, mut frame: Frame<Packet<P::Message>>) {
        let segments = frame.segments();
        let Body::Transfer(carried) = &mut frame.message.body else { return };
        if carried.header.ttl <= 1 {
            // A leaf has no node to forward to.
            self.layout.tally.expired +=
                u64::from(self.layout.shape.ports_of(node).len() > 1) * u64::from(segments);
            return;
        }
        carried.header.ttl -= 1;
        if let Some(target) = frame.message.target() {
            self.step_on(self.layout.shape.step(node, target), frame);
        } else {
            let came = (edge, frame.message.entered);
            self.flood(node, None, Some(came), &frame);
        }
    }

    /// Delivers a datagram to the sender or the element at a node.
    fn take(&mut self, node: u32, edge: u32, frame: &Frame<Packet<P::Message>>) {
        let Body::Transfer(carried) = &frame.message.body else { return };
        let spacing = frame.spacing;
        let interface = self.layout.shape.interface(node, edge);
        let (source, destination) = (carried.header.source.into(), carried.header.destination.into());
        let from = Arrival { interface, spacing, ..Arrival::new(source, destination) };
        if self.is_sender(node) {
            return self.sender_hears(&from, carried.message(), frame.overhead);
        }
        let Some(station) = &mut self.layout.nodes[node as usize].element else {
            self.layout.tally.unheard += 1;
            return;
        };
        // Due timers come before arrivals of the same instant.
        if station.engine.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
            station.engine.handle_timeout(self.now);
            self.drain_element(node);
        }
        if let Some(station) = &mut self.layout.nodes[node as usize].element {
            // The element counts what it refuses.
            let _ = station.engine.handle(self.now, &from, carried.message());
            self.drain_element(node);
        }
    }

    /// Wakes an element if its timer is due; the timer may have moved since the event was scheduled.
    pub(super) fn wake_element(&mut self, node: u32) {
        let Some(station) = &mut self.layout.nodes[node as usize].element else { return };
        if station.wake == self.now {
            station.wake = Time::NEVER;
            station.engine.handle_timeout(self.now);
            self.drain_element(node);
        }
    }

    /// Sends the messages of an element, and schedules its next timer. The simulation stores nothing for the element,
    /// because simulated content has no octets.
    fn drain_element(&mut self, node: u32) {
        loop {
            let answered = self.unanswered_until();
            let beyond = self.beyond();
            let Some(station) = &mut self.layout.nodes[node as usize].element else { return };
            if station.engine.poll_event().is_some() {
                continue;
            }
            let until = match self.cut {
                Cut::One => self.now,
                Cut::Whole | Cut::Random(_) => station.engine.settled_until().max(answered).min(beyond),
            };
            let Some(transmit) = station.engine.poll_transmit(self.now, until) else { break };
            self.element_says(node, transmit);
        }
        let Some(station) = &mut self.layout.nodes[node as usize].element else { return };
        let due = station.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != station.wake {
            station.wake = due;
            self.queue.push_unless_never(due, Event::ElementWake { node });
        }
    }

    /// Sends the first messages of elements, and schedules their first timers.
    pub(super) fn start_elements(&mut self) {
        for node in 0..self.layout.nodes.len() as u32 {
            self.drain_element(node);
        }
    }

    fn element_says(&mut self, node: u32, transmit: Transmit<P::Message>) {
        let target = self.target(transmit.destination.ip(), false);
        let Some(to) = target else {
            self.layout.tally.unheard += 1;
            return;
        };
        let interface = match to {
            EVERYONE => transmit.interface,
            to if to == node => 0,
            to => self.layout.shape.interface(node, self.layout.shape.step(node, to).edge),
        };
        let source = transmit.source.unwrap_or_else(|| self.address(node, interface.max(1)));
        let transmit = self.watch_element(source, transmit);
        let frame = Self::packet(to, source, transmit, self.overhead);
        if let Some(frame) = frame {
            self.depart(node, interface, frame);
        }
    }

    /// Reports a transmission of an element to the observer, and returns it.
    fn watch_element(&mut self, source: SocketAddr, transmit: Transmit<P::Message>) -> Transmit<P::Message> {
        let Some(observer) = &mut self.observer else { return transmit };
        let addresses = Addresses { source, destination: transmit.destination };
        let frame = Frame { message: transmit.message, overhead: self.overhead, spacing: transmit.spacing };
        observer.element_sent(self.now, addresses, &frame);
        Transmit { message: frame.message, ..transmit }
    }

    /// Returns a transmission as a packet; `None` where an address is not IPv4.
    pub(super) fn packet(
        to: u32,
        source: SocketAddr,
        transmit: Transmit<P::Message>,
        overhead: u16,
    ) -> Option<Frame<Packet<P::Message>>> {
        let spacing = transmit.spacing;
        let message = Packet::new(to, Body::Transfer(carried(source, transmit, true)?));
        Some(Frame { message, overhead, spacing })
    }

    /// Delivers a message to the sender, with `overhead` octets besides the message.
    pub(super) fn sender_hears(&mut self, from: &Arrival, message: &P::Message, overhead: u16) {
        self.wake_sender_if_due();
        let receiver = Party::at(from.source.ip(), self.receivers).and_then(Party::as_receiver);
        if let Some(observer) = &mut self.observer {
            let addresses = Addresses { source: from.source, destination: from.destination };
            observer.reached_from(self.now, receiver, addresses, message);
        }
        if let Some(receiver) = receiver {
            self.open_answer(receiver, overhead);
        }
        self.deliver_to_sender(from, message);
    }
}

/// Returns a message with the IP header that its transmission asks for; `None` where an address is not IPv4.
pub(super) fn carried<M: Message>(
    source: SocketAddr,
    transmit: Transmit<M>,
    awaited: bool,
) -> Option<Carried<M>> {
    let header = Header {
        source: v4(source)?,
        destination: v4(transmit.destination)?,
        ttl: transmit.ttl.unwrap_or(TTL),
        alert: transmit.router_alert,
        awaited,
    };
    Some(Carried::new(header, transmit.message))
}
