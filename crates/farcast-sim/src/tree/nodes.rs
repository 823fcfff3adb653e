//! Nodes: what they send on, and what is for them.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine as _, Message, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::{ElementEngine, SenderEngine as _};

use super::shape::{EVERYONE, NEAR, Step};
use super::{Body, Carried, Event, OnTree, Packet, TTL, Tree, v4};
use crate::star::Cut;
use crate::star::config::FIRST_RECEIVER;

/// A node as it stands.
pub(super) struct Node<P: OnTree> {
    pub(super) name: String,
    /// Its receivers.
    pub(super) group: Option<u32>,
    element: Option<Box<Station<P>>>,
}

/// An element, and when it wants to be woken.
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

impl<P: OnTree> Tree<P> {
    /// What a node is called.
    pub fn name(&self, node: u32) -> &str {
        &self.nodes[node as usize].name
    }

    /// The element at a node, if there is one.
    pub fn element(&self, node: u32) -> Option<&P::Element> {
        self.nodes[node as usize].element.as_ref().map(|station| &station.engine)
    }

    /// Who stands where.
    pub fn shape(&self) -> &super::Shape {
        &self.shape
    }

    /// The node that has an address; everyone for one of the groups that all listen to. What receivers say to another
    /// group goes no further than the sender.
    pub(super) fn target(&self, address: IpAddr, is_receiver: bool) -> Option<u32> {
        if address.is_multicast() {
            let routes = &self.routes;
            let heard = [routes.answers, routes.content, routes.announcements];
            let all = !is_receiver || heard.iter().any(|group| group.ip() == address);
            return Some(if all { EVERYONE } else { self.seat });
        }
        if address == self.routes.source.ip() {
            return self.sender.as_ref().map(|_| self.seat);
        }
        let IpAddr::V4(v4) = address else { return None };
        if let Some(receiver) = v4.to_bits().checked_sub(FIRST_RECEIVER).filter(|&n| n < self.receivers) {
            let group = self.groups.partition_point(|group| group.first() <= receiver) - 1;
            let seat = self.seats[group];
            return Some(self.shape.node_at(seat.edge, seat.place));
        }
        self.shape.node_with(v4)
    }

    /// The address of a node by which it speaks over one of its edges.
    fn address(&self, node: u32, interface: u32) -> SocketAddr {
        if node == self.seat && self.sender.is_some() {
            return self.routes.source;
        }
        let at = interface.saturating_sub(1) as usize;
        let address = self.shape.addresses(node).nth(at);
        SocketAddr::new(
            IpAddr::V4(address.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED)),
            self.routes.source.port(),
        )
    }

    /// A packet of its own leaves a node: by `interface`, or where that is 0 by all, or the one that leads there.
    pub(super) fn depart(&mut self, node: u32, interface: u32, frame: Frame<Packet<P::Message>>) {
        match frame.message.target() {
            Some(target) if target == node => self.tally.unheard += 1,
            Some(target) => {
                let step = self.shape.step(node, target);
                self.step_on(step, frame);
            }
            None => self.flood(node, Some(interface).filter(|&one| one != 0), None, &frame),
        }
    }

    /// A packet takes one step.
    fn step_on(&mut self, step: Step, mut frame: Frame<Packet<P::Message>>) {
        frame.message.entered = self.edges[step.edge as usize].terminal(step.from);
        self.enter_edge(step, frame);
    }

    /// A packet for everyone leaves a node by `interface`, or by all but that of the edge by which it `came`: there,
    /// too, where the near end sends on what a far one has said.
    fn flood(
        &mut self,
        node: u32,
        interface: Option<u32>,
        came: Option<(u32, u32)>,
        frame: &Frame<Packet<P::Message>>,
    ) {
        let ports = self.shape.ports_of(node).len();
        for at in 0..ports {
            let port = self.shape.ports_of(node)[at];
            if interface.is_some_and(|interface| interface != at as u32 + 1) {
                continue;
            }
            let mut frame = frame.clone();
            frame.message.entered = self.edges[port.edge as usize].terminal(port.place);
            if let Some((edge, entered)) = came.filter(|(edge, _)| *edge == port.edge) {
                if port.place != NEAR || !self.shape.is_relayed(edge) {
                    continue;
                }
                // Who has said it does not hear it again.
                frame.message.entered = entered;
                if let Body::Transfer(carried) = &mut frame.message.body {
                    carried.awaited = true;
                }
            }
            self.enter_edge(Step { edge: port.edge, from: port.place, to: EVERYONE }, frame);
        }
    }

    /// A frame has reached the node at an end of an edge, and is not lost.
    pub(super) fn pass(&mut self, edge: u32, place: u32, frame: Frame<Packet<P::Message>>) {
        let node = self.shape.node_at(edge, place);
        let Body::Transfer(carried) = &frame.message.body else {
            return self.pass_flow(node, frame);
        };
        let target = frame.message.target();
        let for_it = target == Some(node);
        let element = self.nodes[node as usize].element.as_ref();
        let stops = for_it || element.is_some() && carried.alert;
        let overhears = element.is_some_and(|station| target.is_none() && station.engine.overhears());
        let is_sender = self.is_sender(node);
        let hears = stops || overhears || is_sender && target.is_none();
        if hears && frame.segments() > 1 {
            // Engines are given datagrams one by one.
            let later = self.now + frame.spacing;
            let (head, tail) = frame.split(NonZeroU32::MIN);
            if let Some(tail) = tail {
                self.pass_later(later, edge, place, tail);
            }
            return self.pass(edge, place, head);
        }
        if stops {
            let (carried, spacing) = (carried.clone(), frame.spacing);
            return self.take(node, edge, &carried, spacing);
        }
        let local = hears.then(|| (carried.clone(), frame.spacing));
        if local.is_some() && is_sender {
            // As in a star: what the sender itself does at an instant goes before what arrives then.
            self.wake_sender_if_due();
        }
        self.go_on(node, edge, frame);
        if let Some((carried, spacing)) = local {
            self.take(node, edge, &carried, spacing);
        }
    }

    /// Whether the sender is at a node.
    fn is_sender(&self, node: u32) -> bool {
        node == self.seat && self.sender.is_some()
    }

    /// A node sends on what came to it by an edge.
    fn go_on(&mut self, node: u32, edge: u32, mut frame: Frame<Packet<P::Message>>) {
        let segments = frame.segments();
        let Body::Transfer(carried) = &mut frame.message.body else { return };
        if carried.ttl <= 1 {
            // At a leaf there is nobody to whom it could go.
            self.tally.expired += u64::from(self.shape.ports_of(node).len() > 1) * u64::from(segments);
            return;
        }
        carried.ttl -= 1;
        if let Some(target) = frame.message.target() {
            self.step_on(self.shape.step(node, target), frame);
        } else {
            let came = (edge, frame.message.entered);
            self.flood(node, None, Some(came), &frame);
        }
    }

    /// Whoever is at a node hears a datagram.
    fn take(&mut self, node: u32, edge: u32, carried: &Carried<P::Message>, spacing: Span) {
        let interface = self.shape.interface(node, edge);
        let (source, destination) = (carried.source.into(), carried.destination.into());
        let from = Arrival { interface, spacing, ..Arrival::new(source, destination) };
        if self.is_sender(node) {
            return self.sender_hears(&from, carried.message());
        }
        let Some(station) = &mut self.nodes[node as usize].element else {
            self.tally.unheard += 1;
            return;
        };
        // Timers that are due go before what arrives at the same instant.
        if station.engine.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
            station.engine.handle_timeout(self.now);
            self.drain_element(node);
        }
        if let Some(station) = &mut self.nodes[node as usize].element {
            // What an element turns down is counted there.
            let _ = station.engine.handle(self.now, &from, carried.message());
            self.drain_element(node);
        }
    }

    /// An element was to be woken now; its timer may have moved since.
    pub(super) fn wake_element(&mut self, node: u32) {
        let Some(station) = &mut self.nodes[node as usize].element else { return };
        if station.wake == self.now {
            station.wake = Time::NEVER;
            station.engine.handle_timeout(self.now);
            self.drain_element(node);
        }
    }

    /// Sends what an element says, and notes when it wants to be woken. Nothing is kept for it: here content has no
    /// octets.
    fn drain_element(&mut self, node: u32) {
        loop {
            let answered = self.queue.next_at().min(self.now + self.lookahead);
            let beyond = self.beyond();
            let Some(station) = &mut self.nodes[node as usize].element else { return };
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
        let Some(station) = &mut self.nodes[node as usize].element else { return };
        let due = station.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != station.wake {
            station.wake = due;
            self.queue.push_unless_never(due, Event::ElementWake { node });
        }
    }

    /// Elements that want to be woken before anything has happened are.
    pub(super) fn start_elements(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            self.drain_element(node);
        }
    }

    fn element_says(&mut self, node: u32, transmit: Transmit<P::Message>) {
        let target = self.target(transmit.destination.ip(), false);
        let Some(to) = target else {
            self.tally.unheard += 1;
            return;
        };
        let interface = match to {
            EVERYONE => transmit.interface,
            to if to == node => 0,
            to => self.shape.interface(node, self.shape.step(node, to).edge),
        };
        let source = transmit.source.unwrap_or_else(|| self.address(node, interface.max(1)));
        let frame = self.packet(to, source, transmit, true);
        if let Some(frame) = frame {
            self.depart(node, interface, frame);
        }
    }

    /// What somebody sends, as a packet; `None` where an address is not one that there is here.
    pub(super) fn packet(
        &self,
        to: u32,
        source: SocketAddr,
        transmit: Transmit<P::Message>,
        awaited: bool,
    ) -> Option<Frame<Packet<P::Message>>> {
        let spacing = transmit.spacing;
        let message = Packet::new(to, Body::Transfer(carried(source, transmit, awaited)?));
        Some(Frame { message, overhead: self.overhead, spacing })
    }

    /// The first instant that is no longer simulated.
    pub(super) fn beyond(&self) -> Time {
        self.limit + Span::from_nanos(1)
    }

    pub(super) fn sender_hears(&mut self, from: &Arrival, message: &P::Message) {
        self.wake_sender_if_due();
        let Some(sender) = &mut self.sender else { return };
        let taken = sender.handle(self.now, from, message).is_ok();
        self.note_asked(taken);
        self.drain_sender();
    }

    /// Notes what became of NAKs that the sender has just taken or turned down, if it heard any.
    pub(super) fn note_asked(&mut self, taken: bool) {
        use farcast_delivery::NakFate;
        let Some(asked) = self.sender.as_ref().and_then(P::Sender::asked) else { return };
        match asked.fate {
            NakFate::Late => self.tally.naks_late += asked.count,
            NakFate::Used | NakFate::Known if taken => self.tally.naks_used += asked.count,
            NakFate::Used | NakFate::Known => {}
        }
    }
}

/// What is said with a transmit's header.
pub(super) fn carried<M: Message>(
    source: SocketAddr,
    transmit: Transmit<M>,
    awaited: bool,
) -> Option<Carried<M>> {
    let header = (transmit.ttl.unwrap_or(TTL), transmit.router_alert, awaited);
    Some(Carried::new((v4(source)?, v4(transmit.destination)?), header, transmit.message))
}
