//! What travels over the edges of a tree.

use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::sync::Arc;

use farcast_core::engine::Message;

use super::shape::{EVERYONE, NEAR};
use crate::star;
use crate::traffic::FlowMessage;

/// A message of the transfer, or a run of them, and its IP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carried<M> {
    /// The address that it comes from.
    pub source: SocketAddrV4,
    /// The address that it goes to.
    pub destination: SocketAddrV4,
    /// How many nodes may yet send it on.
    pub ttl: u8,
    /// Whether routers must look at it.
    pub alert: bool,
    /// Whether nobody is done before it has arrived: the sender or a node on the way has said it.
    pub awaited: bool,
    /// The octets of its first datagram without UDP and IP: every edge and every stage asks for them.
    len: u32,
    /// What is said. It lies still: each edge that it passes, each queue and each of those whom it reaches has its own
    /// packet, and all have one message.
    message: Arc<M>,
}

impl<M: Message> Carried<M> {
    /// Of a message that nobody has yet.
    pub(super) fn new(
        (source, destination): (SocketAddrV4, SocketAddrV4),
        (ttl, alert, awaited): (u8, bool, bool),
        message: M,
    ) -> Self {
        let len = message.wire_len(0) as u32;
        Self { source, destination, ttl, alert, awaited, len, message: Arc::new(message) }
    }

    /// What is said.
    pub fn message(&self) -> &M {
        &self.message
    }

    /// Octets of datagram `segment` without UDP and IP.
    pub(super) fn wire_len(&self, segment: u32) -> usize {
        if segment == 0 { self.len as usize } else { self.message.wire_len(segment) }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        if count >= self.message.segments() {
            return (self, None);
        }
        let Self { source, destination, ttl, alert, awaited, message, .. } = self;
        let carried = |message| Self::new((source, destination), (ttl, alert, awaited), message);
        let (head, tail) = Arc::unwrap_or_clone(message).split(count);
        (carried(head), tail.map(carried))
    }
}

/// What a packet is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body<M> {
    /// Of the multicast transfer.
    Transfer(Carried<M>),
    /// Of a flow.
    Flow {
        /// The flow's number.
        flow: u32,
        /// What its IP header is told apart by: flows count the packets of each direction.
        identification: u16,
        /// What it says; it lies still.
        message: Arc<FlowMessage>,
    },
}

/// A packet, or a run of them, on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<M> {
    /// The node that it goes to, or [`EVERYONE`].
    to: u32,
    /// The terminal of the edge at which it entered, or [`NEAR`].
    pub(super) entered: u32,
    /// The end of the edge at which it leaves, or [`EVERYONE`].
    pub(super) leaves: u32,
    /// What it is.
    pub body: Body<M>,
}

impl<M> Packet<M> {
    /// One that goes to a node, or to everyone.
    pub(super) const fn new(to: u32, body: Body<M>) -> Self {
        Self { to, entered: NEAR, leaves: EVERYONE, body }
    }

    /// The node that it goes to; `None` if it goes to everyone.
    pub(super) fn target(&self) -> Option<u32> {
        (self.to != EVERYONE).then_some(self.to)
    }

    /// Whether it is of the transfer and the end of that waits for it.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(&self.body, Body::Transfer(carried) if carried.awaited)
    }
}

impl<M: Message> Message for Packet<M> {
    fn segments(&self) -> NonZeroU32 {
        match &self.body {
            Body::Transfer(carried) => carried.message.segments(),
            Body::Flow { .. } => NonZeroU32::MIN,
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self { to, entered, leaves, body } = self;
        let packet = |body| Self { to, entered, leaves, body };
        match body {
            Body::Transfer(carried) => {
                let (head, tail) = carried.split(count);
                (packet(Body::Transfer(head)), tail.map(|tail| packet(Body::Transfer(tail))))
            }
            flow @ Body::Flow { .. } => (packet(flow), None),
        }
    }

    fn wire_len(&self, segment: u32) -> usize {
        match &self.body {
            Body::Transfer(carried) => carried.wire_len(segment),
            Body::Flow { message, .. } => message.wire_len(segment),
        }
    }

    /// Of a flow's segment: as a star's.
    fn headers(&self, segment: u32, out: &mut Vec<u8>) {
        if let Body::Flow { flow, identification, message } = &self.body {
            let (flow, identification, message) = (*flow, *identification, **message);
            star::Packet::<M>::Flow { flow, identification, message }.headers(segment, out);
        }
    }
}
