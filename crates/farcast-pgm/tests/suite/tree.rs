//! Hosts, routers and elements on the edges of a tree, in virtual time. Each router hands its element the messages that
//! the seam specifies.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use farcast_core::engine::{Arrival, Engine, Message as _, Transmit};
use farcast_core::{Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::{Content, Delivery, ElementEngine, ElementRequest};
use farcast_pgm::message::{DataKind, NakKind};
use farcast_pgm::{
    Body, Element, ElementConfig, Message, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig,
};

use farcast_testkit::Owner;

use crate::common::{group, source};

/// Node of a tree, by kind.
enum Kind {
    Source(Box<Sender>),
    Receiver(Box<Receiver>),
    Element(Box<Element>),
    /// A router that forwards, and knows nothing of PGM.
    Router,
}

struct Node {
    kind: Kind,
    /// The edge and the address of each port.
    ports: Vec<(usize, SocketAddr)>,
    complete: u32,
    ended: bool,
    /// Keys of the contents that a repairer asks its owner to keep.
    kept: BTreeSet<u64>,
    /// Data that a receiver asks its owner to keep.
    owner: Owner,
}

struct Edge {
    ends: [(usize, usize); 2],
    delay: Span,
}

#[derive(Clone)]
struct Packet {
    message: Message,
    source: SocketAddr,
    destination: SocketAddr,
    router_alert: bool,
    ttl: Option<u8>,
}

/// A message that entered an edge.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) at: Time,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) message: Message,
}

impl Hop {
    pub(crate) fn is(&self, kind: DataKind) -> bool {
        self.message.data().is_some_and(|data| data.kind == kind)
    }

    /// Returns the number of a data message of this kind.
    pub(crate) fn sqn(&self, kind: DataKind) -> Option<u32> {
        self.message.data().filter(|data| data.kind == kind).map(|data| data.sqn.0)
    }

    /// Returns the numbers in a message about repair of this kind.
    pub(crate) fn named(&self, kind: NakKind) -> Vec<u32> {
        match &self.message.body {
            Body::Nak(nak) if nak.kind == kind => nak.sqns().map(|sqn| sqn.0).collect(),
            _ => Vec::new(),
        }
    }
}

type Lose = Box<dyn FnMut(&Hop) -> bool>;

pub(crate) struct Tree {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    flying: BTreeMap<(Time, u64), (usize, usize, Packet)>,
    number: u64,
    now: Time,
    lose: Lose,
    pub(crate) hops: Vec<Hop>,
    deaths: Vec<(Time, usize)>,
}

impl Tree {
    /// Creates a tree with a source, which is node 0.
    pub(crate) fn new(config: SenderConfig, lose: impl FnMut(&Hop) -> bool + 'static) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            flying: BTreeMap::new(),
            number: 0,
            now: Time::ZERO,
            lose: Box::new(lose),
            hops: Vec::new(),
            deaths: Vec::new(),
        };
        tree.node(Kind::Source(Box::new(Sender::new(config).unwrap())));
        tree
    }

    fn node(&mut self, kind: Kind) -> usize {
        let (ports, kept) = (Vec::new(), BTreeSet::new());
        self.nodes.push(Node { kind, ports, complete: 0, ended: false, kept, owner: Owner::default() });
        self.nodes.len() - 1
    }

    fn join(&mut self, above: usize, below: usize, delay: Span) {
        let edge = self.edges.len();
        let ends = [above, below].map(|node| {
            let port = self.nodes[node].ports.len();
            let own = SocketAddr::from(([10, node as u8, port as u8, 1], 3056));
            self.nodes[node].ports.push((edge, if node == 0 { source() } else { own }));
            (node, port)
        });
        self.edges.push(Edge { ends, delay });
    }

    /// Adds a receiver below `above`.
    pub(crate) fn receiver(&mut self, above: usize, delay: Span, config: ReceiverConfig) -> usize {
        let node = self.node(Kind::Receiver(Box::new(Receiver::new(config).unwrap())));
        self.join(above, node, delay);
        node
    }

    /// Adds a router below `above`. Once all of its ports are known, it may be made an element.
    pub(crate) fn router(&mut self, above: usize, delay: Span) -> usize {
        let node = self.node(Kind::Router);
        self.join(above, node, delay);
        node
    }

    /// Makes a router an element.
    pub(crate) fn element(&mut self, node: usize, set: impl FnOnce(&mut ElementConfig)) {
        let ports = self.nodes[node].ports.iter().map(|(_, address)| address.ip()).collect();
        let mut config = ElementConfig::new(ports);
        set(&mut config);
        self.nodes[node].kind = Kind::Element(Box::new(Element::new(config).unwrap()));
    }

    /// Replaces the source at node 0.
    pub(crate) fn source(&mut self, config: SenderConfig) {
        self.nodes[0].kind = Kind::Source(Box::new(Sender::new(config).unwrap()));
    }

    /// Ends an element's program at this time; the node remains as a router.
    pub(crate) fn dies(&mut self, at: Span, node: usize) {
        self.deaths.push((Time::ZERO + at, node));
    }

    pub(crate) fn engine(&self, node: usize) -> &Element {
        match &self.nodes[node].kind {
            Kind::Element(element) => element,
            _ => panic!("node {node} is no element"),
        }
    }

    pub(crate) fn complete(&self, node: usize) -> u32 {
        self.nodes[node].complete
    }

    /// Returns `true` if the source has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.nodes[0].ended
    }

    /// Returns the values that `pick` takes from the messages on the edge from one node to another.
    pub(crate) fn passed<T>(&self, from: usize, to: usize, pick: impl Fn(&Hop) -> Option<T>) -> Vec<T> {
        self.hops.iter().filter(|hop| (hop.from, hop.to) == (from, to)).filter_map(pick).collect()
    }

    /// Returns the numbers in messages about repair from one node to another.
    pub(crate) fn named(&self, from: usize, to: usize, kind: NakKind) -> Vec<u32> {
        self.passed(from, to, |hop| Some(hop.named(kind))).concat()
    }

    /// Returns the numbers of RDATA from one node to another.
    pub(crate) fn repairs(&self, from: usize, to: usize) -> Vec<u32> {
        self.passed(from, to, |hop| hop.sqn(DataKind::Repair))
    }

    /// Runs until the source has ended, which must take less than `seconds`.
    pub(crate) fn run(mut self, seconds: u64) -> Self {
        let limit = Time::ZERO + Span::from_secs(seconds);
        if let Kind::Source(sender) = &mut self.nodes[0].kind {
            sender.open(Time::ZERO);
        }
        self.drain(0);
        while !self.is_over() {
            let flying = self.flying.keys().next().map(|&(at, _)| at);
            let due = (0..self.nodes.len()).filter_map(|node| Some((self.deadline(node)?, node))).min();
            let death = self.deaths.iter().map(|&(at, _)| at).min();
            let next = [flying, due.map(|(at, _)| at), death].into_iter().flatten().min();
            let next = next.expect("the source ends");
            assert!(next <= limit, "it hangs at {next:?}");
            self.now = self.now.max(next);
            if death == Some(next) {
                let at = self.deaths.iter().position(|&(at, _)| at == next).unwrap();
                let (_, node) = self.deaths.swap_remove(at);
                self.nodes[node].kind = Kind::Router;
            } else if flying == Some(next) {
                let (_, (node, port, packet)) = self.flying.pop_first().unwrap();
                self.arrive(node, port, packet);
            } else if let Some((_, node)) = due {
                self.wake(node);
            }
        }
        self
    }

    fn deadline(&self, node: usize) -> Option<Time> {
        let deadline = match &self.nodes[node].kind {
            Kind::Source(engine) => engine.poll_timeout(),
            Kind::Receiver(engine) => engine.poll_timeout(),
            Kind::Element(engine) => engine.poll_timeout(),
            Kind::Router => None,
        };
        deadline.map(|deadline| deadline.at)
    }

    fn wake(&mut self, node: usize) {
        let now = self.now;
        match &mut self.nodes[node].kind {
            Kind::Source(engine) => engine.handle_timeout(now),
            Kind::Receiver(engine) => engine.handle_timeout(now),
            Kind::Element(engine) => engine.handle_timeout(now),
            Kind::Router => {}
        }
        self.drain(node);
    }

    /// Handles all events and messages of an engine.
    fn drain(&mut self, node: usize) {
        let now = self.now;
        let until = now + Span::from_nanos(1);
        loop {
            let Node { kind, complete, ended, kept, owner, .. } = &mut self.nodes[node];
            let sent = match kind {
                Kind::Source(engine) => {
                    while let Some(event) = engine.poll_event() {
                        *ended |= matches!(event, farcast_pgm::SenderEvent::Ended(_));
                    }
                    engine.poll_transmit(now, until)
                }
                Kind::Receiver(engine) => {
                    while let Some(event) = engine.poll_event() {
                        owner.serve(engine.as_mut(), now, &event);
                        let whole = matches!(event, ReceiverEvent::Ended(_, Outcome::Complete(_)));
                        *complete += u32::from(whole);
                    }
                    engine.poll_transmit(now, until)
                }
                Kind::Element(engine) => {
                    while let Some(event) = engine.poll_event() {
                        match Element::request(&event) {
                            Some(ElementRequest::Keep { keys, .. }) => {
                                assert!(keys.into_iter().all(|key| kept.insert(key)), "a key is used once");
                            }
                            Some(ElementRequest::Forget { keys }) => kept.retain(|key| !keys.contains(key)),
                            None => {}
                        }
                    }
                    let sent = engine.poll_transmit(now, until);
                    let content = sent.as_ref().map(|transmit| transmit.message.content());
                    if let Some(Content::Kept { key }) = content {
                        assert!(kept.contains(&key), "what is sent is kept");
                    }
                    sent
                }
                Kind::Router => None,
            };
            let Some(sent) = sent else { return };
            assert_eq!(sent.message.segments().get(), 1, "one at a time");
            self.leave(node, sent);
        }
    }

    fn leave(&mut self, node: usize, sent: Transmit<Message>) {
        let Transmit { message, destination, source, interface, ttl, router_alert, .. } = sent;
        let port = match interface {
            0 if destination.ip().is_multicast() => 0,
            0 => self.route(node, destination.ip()),
            port => port as usize - 1,
        };
        let source = source.unwrap_or(self.nodes[node].ports[port].1);
        self.carry(node, port, Packet { message, source, destination, router_alert, ttl });
    }

    fn carry(&mut self, node: usize, port: usize, packet: Packet) {
        let edge = &self.edges[self.nodes[node].ports[port].0];
        let (to, to_port) = if edge.ends[0].0 == node { edge.ends[1] } else { edge.ends[0] };
        let hop = Hop { at: self.now, from: node, to, message: packet.message.clone() };
        let lost = (self.lose)(&hop);
        self.hops.push(hop);
        if !lost {
            self.number += 1;
            self.flying.insert((self.now + edge.delay, self.number), (to, to_port, packet));
        }
    }

    /// Returns the port by which `to` is reached; the first port if no node has that address.
    fn route(&self, node: usize, to: IpAddr) -> usize {
        let owns = |node: usize| self.nodes[node].ports.iter().any(|(_, address)| address.ip() == to);
        let leads = |port: &usize| {
            let mut seen = BTreeSet::from([node]);
            let mut look = vec![self.neighbour(node, *port)];
            while let Some(node) = look.pop().filter(|_| true) {
                if !seen.insert(node) {
                    continue;
                }
                if owns(node) {
                    return true;
                }
                look.extend((0..self.nodes[node].ports.len()).map(|port| self.neighbour(node, port)));
            }
            false
        };
        (0..self.nodes[node].ports.len()).find(leads).unwrap_or(0)
    }

    fn neighbour(&self, node: usize, port: usize) -> usize {
        let [one, other] = self.edges[self.nodes[node].ports[port].0].ends;
        if one.0 == node { other.0 } else { one.0 }
    }

    fn arrive(&mut self, node: usize, port: usize, packet: Packet) {
        let Packet { message, source, destination, router_alert, ttl } = &packet;
        let is_group = destination.ip().is_multicast();
        let is_own = self.nodes[node].ports.iter().any(|(_, address)| address.ip() == destination.ip());
        let from = Arrival { interface: port as u32 + 1, ..Arrival::new(*source, *destination) };
        let now = self.now;
        let (hears, forwards) = match &mut self.nodes[node].kind {
            Kind::Source(engine) => {
                let _ = engine.handle(now, &from, message);
                (true, false)
            }
            Kind::Receiver(engine) if is_group || is_own => {
                let _ = engine.handle(now, &from, message);
                (true, false)
            }
            Kind::Receiver(_) => (false, false),
            Kind::Element(engine) => {
                let is_handed = is_own || (is_group && *router_alert);
                let hears = is_handed || (is_group && engine.overhears());
                if hears {
                    let _ = engine.handle(now, &from, message);
                }
                (hears, !is_handed)
            }
            Kind::Router => (false, !is_own),
        };
        if hears {
            self.drain(node);
        }
        if !forwards || *ttl == Some(1) {
            return;
        }
        if is_group {
            assert_eq!(*destination, group());
            for other in (0..self.nodes[node].ports.len()).filter(|&other| other != port) {
                self.carry(node, other, packet.clone());
            }
        } else {
            let out = self.route(node, destination.ip());
            if out != port {
                self.carry(node, out, packet);
            }
        }
    }
}
