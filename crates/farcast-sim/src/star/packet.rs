//! What travels over the links of a world.

use std::net::IpAddr;
use std::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_tcp::{Segment, wire};

use super::{SealMessage, hub_address, receiver_address};
use crate::traffic::FlowMessage;

/// Who says a message of the transfer, or whom it is for. One number, so that packets stay small: receivers are fewer
/// than the numbers that stand for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Party(u32);

impl Party {
    /// The sender, at the hub.
    pub const HUB: Self = Self(u32::MAX);
    /// Everyone: the receivers, and what a receiver says to them the sender as well.
    pub const GROUP: Self = Self(u32::MAX - 1);

    /// Everyone who has the key of content, where that has one of its own.
    pub const APART: Self = Self(u32::MAX - 2);

    /// Receiver `n`.
    pub const fn receiver(n: u32) -> Self {
        Self(n)
    }

    /// The number of the receiver that it is, if it is one.
    pub fn as_receiver(self) -> Option<u32> {
        (self.0 < Self::APART.0).then_some(self.0)
    }

    /// Whether it is the receivers together.
    pub(crate) fn is_group(self) -> bool {
        self == Self::GROUP || self == Self::APART
    }
}

/// A message of the transfer, or a run of them, and between whom it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Addressed<M> {
    /// Who says it.
    pub from: Party,
    /// Whom it is for.
    pub to: Party,
    /// What is said.
    pub message: M,
}

impl<M: Message> Message for Addressed<M> {
    fn segments(&self) -> NonZeroU32 {
        self.message.segments()
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self { from, to, message } = self;
        let (head, tail) = message.split(count);
        (Self { from, to, message: head }, tail.map(|message| Self { from, to, message }))
    }

    fn wire_len(&self, segment: u32) -> usize {
        self.message.wire_len(segment)
    }
}

/// A packet, or a run of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<M> {
    /// What the sender of the multicast transfer and its receivers say.
    Transfer(Addressed<M>),
    /// What only the seal of the transfer sends.
    Seal(SealMessage),
    /// What an end of a flow says to the other.
    Flow {
        /// The flow's number.
        flow: u32,
        /// What its IP header is told apart by: flows count the packets of each direction.
        identification: u16,
        /// What it says.
        message: FlowMessage,
    },
}

impl<M: Message> Message for Packet<M> {
    fn segments(&self) -> NonZeroU32 {
        match self {
            Self::Transfer(message) => message.segments(),
            Self::Seal(message) => message.segments(),
            Self::Flow { message, .. } => message.segments(),
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        match self {
            Self::Transfer(message) => {
                let (head, tail) = message.split(count);
                (Self::Transfer(head), tail.map(Self::Transfer))
            }
            Self::Seal(_) | Self::Flow { .. } => (self, None),
        }
    }

    fn wire_len(&self, segment: u32) -> usize {
        match self {
            Self::Transfer(message) => message.wire_len(segment),
            Self::Seal(message) => message.wire_len(segment),
            Self::Flow { message, .. } => message.wire_len(segment),
        }
    }

    /// Of a flow's segment.
    fn headers(&self, _segment: u32, out: &mut Vec<u8>) {
        if let Self::Flow { flow, identification, message: FlowMessage::Tcp(segment) } = self {
            append_ip_header(*flow, *identification, segment, out);
            wire::append_header(segment, out);
        }
    }
}

/// Octets of an IPv4 header without options.
const IP_HEADER: u16 = 20;

/// Appends the IPv4 header that Linux would give a segment: not to be fragmented, but numbered all the same. Both
/// directions of flow `flow` have the same addresses here: nothing on a link compares one with the other.
fn append_ip_header(flow: u32, identification: u16, segment: &Segment, out: &mut Vec<u8>) {
    let Ok(len) = u16::try_from(segment.wire_len(0) + usize::from(IP_HEADER)) else { return };
    let (IpAddr::V4(hub), IpAddr::V4(terminal)) = (hub_address(), receiver_address(flow).ip()) else {
        return;
    };
    let (hub, terminal) = (hub.octets(), terminal.octets());
    let start = out.len();
    out.extend([0x45, 0]);
    out.extend(len.to_be_bytes());
    out.extend(identification.to_be_bytes());
    out.extend([0x40, 0, 64, wire::PROTOCOL, 0, 0]);
    out.extend(hub);
    out.extend(terminal);
    let words = out[start..].chunks_exact(2);
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}
