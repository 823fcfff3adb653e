//! Packets on the edges of a tree.

use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::sync::Arc;

use farcast_core::engine::Message;

use super::shape::{EVERYONE, NEAR};
use crate::star;
use crate::traffic::FlowMessage;
use crate::world::SealMessage;

/// Fields of a message's IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Source address.
    pub source: SocketAddrV4,
    /// Destination address.
    pub destination: SocketAddrV4,
    /// Time to live: the number of nodes that may still forward the message.
    pub ttl: u8,
    /// Router alert: `true` if routers must examine the message.
    pub alert: bool,
    /// `true` if the transfer is not over before the message has arrived: the sender or an element has sent it.
    pub awaited: bool,
}

/// Message of the transfer, or a run of messages, with its IP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carried<M> {
    /// IP header.
    pub header: Header,
    /// `true` if receivers need the content key, where content has a key of its own.
    pub(super) apart: bool,
    /// Octets of the first datagram without UDP and IP. It is kept because every edge and every stage reads it.
    len: u32,
    /// Message. It is shared and never copied: each edge, queue and destination has its own packet, and all packets
    /// have one message.
    message: Arc<M>,
}

impl<M: Message> Carried<M> {
    /// Wraps a message that nothing else shares yet.
    pub(super) fn new(header: Header, message: M) -> Self {
        let len = message.wire_len(0) as u32;
        Self { header, apart: false, len, message: Arc::new(message) }
    }

    /// Returns the message.
    pub fn message(&self) -> &M {
        &self.message
    }

    /// Returns the octets of datagram `segment` without UDP and IP.
    pub(super) fn wire_len(&self, segment: u32) -> usize {
        if segment == 0 { self.len as usize } else { self.message.wire_len(segment) }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        if count >= self.message.segments() {
            return (self, None);
        }
        let Self { header, apart, message, .. } = self;
        let carried = |message| Self { apart, ..Self::new(header, message) };
        let (head, tail) = Arc::unwrap_or_clone(message).split(count);
        (carried(head), tail.map(carried))
    }
}

/// Content of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body<M> {
    /// Message of the multicast transfer.
    Transfer(Carried<M>),
    /// Datagram that only the seal of the transfer sends.
    Seal(SealMessage),
    /// Packet of a flow.
    Flow {
        /// Number of the flow.
        flow: u32,
        /// Identification in the IP header. Each flow counts the packets of each direction.
        identification: u16,
        /// Content of the packet, which is shared and not copied.
        message: Arc<FlowMessage>,
    },
}

/// Packet, or a run of packets, under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<M> {
    /// Node that the packet goes to, or [`EVERYONE`].
    to: u32,
    /// Terminal of the edge at which the packet entered, or [`NEAR`].
    pub(super) entered: u32,
    /// End of the edge at which the packet leaves, or [`EVERYONE`].
    pub(super) leaves: u32,
    /// Content.
    pub body: Body<M>,
}

impl<M> Packet<M> {
    /// Makes a packet that goes to a node, or to everyone.
    pub(super) const fn new(to: u32, body: Body<M>) -> Self {
        Self { to, entered: NEAR, leaves: EVERYONE, body }
    }

    /// Returns the node that the packet goes to; `None` if it goes to everyone.
    pub(super) fn target(&self) -> Option<u32> {
        (self.to != EVERYONE).then_some(self.to)
    }

    /// Returns `true` if the packet belongs to the transfer and the transfer is not over before it has arrived.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(&self.body, Body::Transfer(carried) if carried.header.awaited)
    }
}

impl<M: Message> Message for Packet<M> {
    fn segments(&self) -> NonZeroU32 {
        match &self.body {
            Body::Transfer(carried) => carried.message.segments(),
            Body::Seal(_) | Body::Flow { .. } => NonZeroU32::MIN,
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
            single @ (Body::Seal(_) | Body::Flow { .. }) => (packet(single), None),
        }
    }

    fn wire_len(&self, segment: u32) -> usize {
        match &self.body {
            Body::Transfer(carried) => carried.wire_len(segment),
            Body::Seal(message) => message.wire_len(segment),
            Body::Flow { message, .. } => message.wire_len(segment),
        }
    }

    /// Appends the headers of a flow's TCP segment, as a star's packet does.
    fn headers(&self, segment: u32, out: &mut Vec<u8>) {
        if let Body::Flow { flow, identification, message } = &self.body {
            let (flow, identification, message) = (*flow, *identification, **message);
            star::Packet::<M>::Flow { flow, identification, message }.headers(segment, out);
        }
    }
}
