//! Bottleneck link that several senders share: a drop-tail queue, then a delay to all receivers of each sender.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine as _, Message as _};
use farcast_core::{BitRate, Bitmap, Span, Time};
use farcast_delivery::SenderEngine as _;
use farcast_norm::{Body, Message, NodeId, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig};

use crate::common::group;

/// Octets of UDP and IP.
const HEADERS: u64 = 28;

/// Settings of the link.
#[derive(Clone, Copy)]
pub(crate) struct Bottleneck {
    pub(crate) rate: BitRate,
    /// Longest time that a datagram waits in the queue.
    pub(crate) queue: Span,
    pub(crate) delay: Span,
}

/// Message under way: to the receivers of a sender, or back to it.
enum Flying {
    There(usize, Message),
    Back(usize, SocketAddr, Message),
}

/// Senders on the link, and their counters.
pub(crate) struct World {
    link: Bottleneck,
    free: Time,
    pub(crate) now: Time,
    flying: BTreeMap<(Time, u64), Flying>,
    number: u64,
    flows: Vec<Flow>,
}

/// Sender with its receiver.
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    receiver: Receiver,
    /// Datagrams that entered the link, and those that it dropped.
    pub(crate) entered: u64,
    pub(crate) dropped: u64,
    /// Octets that left the link.
    pub(crate) carried: u64,
}

fn address(flow: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, flow as u8 + 1], port))
}

impl World {
    pub(crate) fn new(link: Bottleneck) -> Self {
        let (free, now, flying) = (Time::ZERO, Time::ZERO, BTreeMap::new());
        Self { link, free, now, flying, number: 0, flows: Vec::new() }
    }

    /// Adds a sender that opens now.
    pub(crate) fn add(&mut self, config: SenderConfig) {
        let flow = self.flows.len();
        let node = NodeId(100 + flow as u32);
        let source = address(flow, 1);
        let mut sender = Sender::new(SenderConfig { node, source, ..config }).expect("valid");
        sender.open(self.now);
        let config = ReceiverConfig { seed: flow as u64, ..ReceiverConfig::new(NodeId(2), group()) };
        let receiver = Receiver::new(config).expect("valid");
        self.flows.push(Flow { sender, receiver, entered: 0, dropped: 0, carried: 0 });
    }

    pub(crate) fn flow(&self, flow: usize) -> &Flow {
        &self.flows[flow]
    }

    /// Lets time pass.
    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            self.settle();
            let own =
                self.flows.iter().flat_map(|flow| [flow.sender.poll_timeout(), flow.receiver.poll_timeout()]);
            let own = own.flatten().map(|deadline| deadline.at).min().unwrap_or(Time::NEVER);
            let next = self.flying.keys().next().map_or(Time::NEVER, |&(at, _)| at).min(own);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            match self.flying.first_entry().filter(|entry| entry.key().0 <= next) {
                Some(entry) => {
                    let flying = entry.remove();
                    self.arrive(flying);
                }
                None => {
                    for flow in &mut self.flows {
                        flow.sender.handle_timeout(self.now);
                        flow.receiver.handle_timeout(self.now);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, flying: Flying) {
        match flying {
            Flying::There(at, message) => {
                let flow = &mut self.flows[at];
                flow.carried += message.wire_len(0) as u64 + HEADERS;
                let _ = flow.receiver.handle(self.now, &Arrival::new(address(at, 1), group()), &message);
            }
            Flying::Back(at, from, message) => {
                let _ = self.flows[at].sender.handle(self.now, &Arrival::new(from, group()), &message);
            }
        }
    }

    /// Handles the events and messages of all engines.
    fn settle(&mut self) {
        for at in 0..self.flows.len() {
            self.own(at);
            while let Some(said) =
                self.flows[at].sender.poll_transmit(self.now, self.now + Span::from_nanos(1))
            {
                let (message, more) = said.message.split(NonZeroU32::MIN);
                assert!(more.is_none() && matches!(message.body, Body::Sender(..)));
                self.enter(at, message);
            }
            while let Some(said) = self.flows[at].receiver.poll_transmit(self.now, self.now) {
                let flying = Flying::Back(at, address(at, 2), said.message);
                self.fly(self.now + self.link.delay, flying);
            }
        }
    }

    fn own(&mut self, at: usize) {
        let Flow { sender, receiver, .. } = &mut self.flows[at];
        while sender.poll_event().is_some() {}
        while let Some(event) = receiver.poll_event() {
            match event {
                ReceiverEvent::Offered(offer) => {
                    receiver.accept(self.now, offer.object, &Bitmap::new(offer.geometry.segments()));
                }
                ReceiverEvent::Decode { object, block } => receiver.decoded(object, block, true),
                ReceiverEvent::Complete(object) => receiver.verified(self.now, object),
                _ => {}
            }
        }
    }

    fn enter(&mut self, at: usize, message: Message) {
        let flow = &mut self.flows[at];
        flow.entered += 1;
        let start = self.free.max(self.now);
        if start.since(self.now) > self.link.queue {
            flow.dropped += 1;
            return;
        }
        self.free = start + self.link.rate.time_of_bytes(message.wire_len(0) as u64 + HEADERS);
        self.fly(self.free + self.link.delay, Flying::There(at, message));
    }

    fn fly(&mut self, at: Time, flying: Flying) {
        self.number += 1;
        self.flying.insert((at, self.number), flying);
    }
}
