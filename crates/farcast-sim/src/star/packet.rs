//! Packets on the links of a star.

use std::net::IpAddr;
use std::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_tcp::{Segment, wire};

use super::{Party, SealMessage, hub_address, receiver_address};
use crate::traffic::FlowMessage;

/// Message of the transfer, or a run of messages, with its sender and addressee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Addressed<M> {
    /// Party that sends the message.
    pub from: Party,
    /// Party that the message is for.
    pub to: Party,
    /// Message.
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

/// Packet, or a run of packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<M> {
    /// Message of the multicast transfer, from the sender or a receiver.
    Transfer(Addressed<M>),
    /// Datagram that only the seal of the transfer sends.
    Seal(SealMessage),
    /// Packet from one end of a flow to the other.
    Flow {
        /// Number of the flow.
        flow: u32,
        /// Identification in the IP header. Each flow counts the packets of each direction.
        identification: u16,
        /// Content of the packet.
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

    /// Appends the IP and TCP headers of a flow's TCP segment; other packets append nothing.
    fn headers(&self, _segment: u32, out: &mut Vec<u8>) {
        if let Self::Flow { flow, identification, message: FlowMessage::Tcp(segment) } = self {
            append_ip_header(*flow, *identification, segment, out);
            wire::append_header(segment, out);
        }
    }
}

/// Octets of an IPv4 header without options.
const IP_HEADER: u16 = 20;

/// Appends the IPv4 header that Linux would give a segment: not to be fragmented, but with an identification all the
/// same. Both directions of flow `flow` have the same addresses here, because nothing on a link compares the addresses
/// of the two.
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
