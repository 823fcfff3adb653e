//! MDP on the wire: messages to bytes and back (draft §3.3). All integers are big-endian and nothing is aligned.
//!
//! [`decode`] checks everything that it uses and allocates nothing by a length that a message claims: lists are as long
//! as the octets that are there. The payload stays in the datagram, in the range [`Packet::payload`].

mod receiver;
mod sender;
mod vouched;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::Stamp;

use crate::message::{Body, Message};
use farcast_delivery::octets::{Counter, Reader, Sink, Truncated};
pub(crate) use receiver::{FROM_RECEIVER, NACK_HEADER, nack_len, request_len};
pub use vouched::LEN as VOUCHED_LEN;
pub(crate) use vouched::info_len;

/// Version of the protocol: that of the toolkit's last packets.
pub const VERSION: u8 = 9;

/// Octets of the header of a datagram with a full segment.
pub const DATA_HEADER: usize = 24;

/// A decoded datagram: the message (DATA and PARITY are runs of one), and the range of its payload in the datagram.
pub type Packet = farcast_delivery::Packet<Message>;

/// Reason for which a datagram is not an MDP message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The datagram ends within a field.
    #[error("message is cut short")]
    Truncated,
    /// The version is not 9.
    #[error("version {0} is not 9")]
    Version(u8),
    /// The message type is unknown, or carries nothing for the engines, as REPORT, which only tells a node's state.
    #[error("unknown message type {0}")]
    Type(u8),
    /// The command is not one of draft §3.3.
    #[error("unknown command {0}")]
    Command(u8),
    /// The acknowledgement is not one of draft §3.3.
    #[error("unknown acknowledgement {0}")]
    Ack(u8),
    /// The repair request is not one of draft §3.3.
    #[error("unknown repair request {0}")]
    Request(u8),
    /// The payload does not have the length that the object requires there.
    #[error("a payload of {0} octets")]
    Payload(usize),
    /// The offset is not the beginning of a segment or block, or lies behind the object's end.
    #[error("nothing begins at offset {0}")]
    Offset(u32),
    /// The block has no symbol of this number.
    #[error("{0} is no symbol")]
    Symbol(u8),
    /// The blocks of the object have no segments.
    #[error("blocks without segments")]
    Block,
    /// The requests for an object do not have the length that they announce.
    #[error("{0} octets of repair requests")]
    RequestLength(u16),
    /// The list ends within an entry.
    #[error("a list of {0} octets")]
    ListLength(usize),
}

impl From<Truncated> for DecodeError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Message types.
mod kind {
    pub(super) const INFO: u8 = 2;
    pub(super) const DATA: u8 = 3;
    pub(super) const PARITY: u8 = 4;
    pub(super) const CMD: u8 = 5;
    pub(super) const NACK: u8 = 6;
    pub(super) const ACK: u8 = 7;
}

/// Reads one datagram.
///
/// # Errors
/// The reason for which the datagram is invalid. Nothing is allocated beyond the size of the datagram.
pub fn decode(datagram: &[u8]) -> Result<Packet, DecodeError> {
    let mut reader = Reader::new(datagram);
    let (kind, version) = (reader.u8()?, reader.u8()?);
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let source = NodeId(reader.u32()?);
    let (body, payload_len) = match kind {
        kind::INFO => (sender::info(reader)?, 0),
        kind::DATA | kind::PARITY => sender::data(kind == kind::PARITY, reader)?,
        kind::CMD => (sender::command(reader)?, 0),
        kind::NACK | kind::ACK => (Body::Receiver(receiver::decode(kind, reader)?), 0),
        other => return Err(DecodeError::Type(other)),
    };
    let payload = datagram.len() - payload_len..datagram.len();
    Ok(Packet { message: Message { source, body }, payload })
}

/// Appends a message, or datagram `segment` (from 0) of a run as far as its payload, to `out`.
pub fn encode(message: &Message, segment: u32, out: &mut Vec<u8>) {
    write(message, segment, out);
}

/// Returns the length in octets of datagram `segment` of `message`, payload included.
pub fn encoded_len(message: &Message, segment: u32) -> usize {
    let mut counter = Counter(0);
    write(message, segment, &mut counter);
    counter.0 + message.data().map_or(0, |data| data.len.into())
}

fn write<S: Sink>(message: &Message, segment: u32, out: &mut S) {
    out.u8(match &message.body {
        Body::Sender(_, said) => sender::kind_of(said),
        Body::Receiver(said) => receiver::kind_of(said),
    });
    out.u8(VERSION);
    out.u32(message.source.0);
    match &message.body {
        Body::Sender(head, said) => sender::encode(*head, said, segment, out),
        Body::Receiver(said) => receiver::encode(said, out),
    }
}

fn put_stamp<S: Sink>(stamp: Stamp, out: &mut S) {
    out.u32(stamp.seconds);
    out.u32(stamp.micros);
}

fn stamp(reader: &mut Reader<'_>) -> Result<Stamp, DecodeError> {
    Ok(Stamp { seconds: reader.u32()?, micros: reader.u32()? })
}

/// Reads the rest of a datagram as numbers of 32 bits.
fn numbers(reader: &mut Reader<'_>) -> Result<Vec<u32>, DecodeError> {
    let octets = reader.take(reader.rest().len())?;
    let (numbers, []) = octets.as_chunks::<4>() else { return Err(DecodeError::ListLength(octets.len())) };
    Ok(numbers.iter().map(|number| u32::from_be_bytes(*number)).collect())
}
