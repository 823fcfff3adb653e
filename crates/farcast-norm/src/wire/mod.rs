//! Wire format of NORM: messages to bytes and back (RFC 5740 §4). All integers are big-endian.
//!
//! A message is a header, which has its own length in words of four octets, and content behind it. The header ends with
//! extensions; unknown ones are skipped. [`decode`] checks everything that it uses, and allocates nothing by a length
//! that a message claims: lists are as long as the octets that are there. Payload stays in the datagram, at
//! [`Packet::payload`].

mod extension;
mod fec;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::ops::Range;

use crate::message::{Body, Message, NodeId};
use farcast_delivery::octets::{Counter, Reader, Sink, Truncated};

/// Version of the protocol.
pub const VERSION: u8 = 1;

/// Decoded datagram: the message (DATA is a run of one), and the range of its payload in the datagram.
pub type Packet = farcast_delivery::Packet<Message>;

/// Reason for which a datagram is not a NORM message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The datagram ends before a field of it ends.
    #[error("message is cut short")]
    Truncated,
    /// The version is not 1.
    #[error("version {0} is not 1")]
    Version(u8),
    /// The type is not one of the message types of RFC 5740 §4.1.
    #[error("unknown message type {0}")]
    Type(u8),
    /// The header is shorter than its type needs, or longer than the datagram.
    #[error("a header of {0} words does not hold what the message has")]
    HeaderLength(u8),
    /// An extension has a length of 0, a length beyond the header, or one that its type cannot have.
    #[error("header extension {0} has a wrong length")]
    ExtensionLength(u8),
    /// An extension comes twice.
    #[error("header extension {0} comes twice")]
    Repeated(u8),
    /// A command is not one of RFC 5740 §4.2.3.
    #[error("unknown command {0}")]
    Command(u8),
    /// An FEC Encoding ID is not one of those spoken.
    #[error("unknown FEC Encoding ID {0}")]
    Fec(u8),
    /// The transmission information has an invalid field size.
    #[error("a field of 2^{0} elements: m must be 2 to 16")]
    FieldSize(u8),
    /// A symbol cannot have this number in a run.
    #[error("symbol without a number")]
    Symbol,
    /// The payload is longer than a datagram's can be, or empty where it must not be.
    #[error("a payload of {0} octets")]
    Payload(usize),
    /// A repair request lists neither items, nor ranges, nor erasures.
    #[error("unknown form of repair request {0}")]
    Form(u8),
    /// The length of a repair request is not that of whole items, or of pairs of them.
    #[error("a repair request of {0} octets")]
    RequestLength(u16),
    /// A list of nodes or objects ends within an entry.
    #[error("a list of {0} octets")]
    ListLength(usize),
}

impl From<Truncated> for DecodeError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Message types (RFC 5740 §4.1).
mod kind {
    pub(super) const INFO: u8 = 1;
    pub(super) const DATA: u8 = 2;
    pub(super) const CMD: u8 = 3;
    pub(super) const NACK: u8 = 4;
    pub(super) const ACK: u8 = 5;
}

/// Decodes one datagram. `field_bits` is the m of objects of FEC Encoding ID 2 where the datagram does not have it, 2
/// to 16 (RFC 5510: 8).
///
/// # Errors
/// The reason for which the datagram is not a message. Nothing has been allocated beyond what the datagram itself
/// holds.
pub fn decode(datagram: &[u8], field_bits: u8) -> Result<Packet, DecodeError> {
    let mut reader = Reader::new(datagram);
    let (first, words) = (reader.u8()?, reader.u8()?);
    if first >> 4 != VERSION {
        return Err(DecodeError::Version(first >> 4));
    }
    let header_len = usize::from(words) * 4;
    if header_len > datagram.len() {
        return Err(DecodeError::HeaderLength(words));
    }
    let (sequence, source) = (reader.u16()?, NodeId(reader.u32()?));
    let parts = Parts { datagram, header_len, words, field_bits };
    let (body, payload) = match first & 0xF {
        kind @ (kind::INFO | kind::DATA | kind::CMD) => sender::decode(kind, reader, &parts)?,
        kind @ (kind::NACK | kind::ACK) => (Body::Receiver(receiver::decode(kind, reader, &parts)?), 0..0),
        other => return Err(DecodeError::Type(other)),
    };
    Ok(Packet { message: Message { source, sequence, body }, payload })
}

/// Input of a decoder of one type of message.
struct Parts<'a> {
    datagram: &'a [u8],
    /// Octets of the header, no more than the datagram has.
    header_len: usize,
    /// Length of the header in words, for errors.
    words: u8,
    field_bits: u8,
}

impl<'a> Parts<'a> {
    /// Decodes the extensions, which begin where the reader stands.
    fn extensions(&self, reader: &Reader<'a>) -> Result<extension::Found<'a>, DecodeError> {
        let octets = self.datagram.get(reader.at()..self.header_len);
        extension::find(octets.ok_or(DecodeError::HeaderLength(self.words))?)
    }

    /// Returns the octets behind the header.
    fn content(&self) -> &'a [u8] {
        &self.datagram[self.header_len..]
    }

    /// Returns a reader of the octets behind the header.
    fn rest(&self) -> Reader<'a> {
        Reader::new(self.content())
    }

    fn payload(&self) -> Range<usize> {
        self.header_len..self.datagram.len()
    }
}

/// Appends a message to `out`. Of a DATA run, datagram `segment` (from 0) is appended, up to its payload.
pub fn encode(message: &Message, segment: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let header_len = write(message, segment, out);
    // No header of ours comes near 255 words.
    out[start + 1] = ((header_len - start) / 4) as u8;
}

/// Returns the length in octets of datagram `segment` of `message`, including payload.
pub fn encoded_len(message: &Message, segment: u32) -> usize {
    let mut counter = Counter(0);
    write(message, segment, &mut counter);
    counter.0 + message.data().map_or(0, |data| data.payload_len(segment))
}

/// Writes a message with a header length of 0. Returns the position in `out` at which the header ends.
fn write<S: Sink>(message: &Message, segment: u32, out: &mut S) -> usize {
    let kind = match &message.body {
        Body::Sender(_, said) => sender::kind_of(said),
        Body::Receiver(said) => receiver::kind_of(said),
    };
    out.u8(VERSION << 4 | kind);
    out.u8(0);
    out.u16(message.sequence.wrapping_add(segment as u16));
    out.u32(message.source.0);
    match &message.body {
        Body::Sender(terms, said) => sender::encode(*terms, said, segment, out),
        Body::Receiver(said) => receiver::encode(said, out),
    }
}
