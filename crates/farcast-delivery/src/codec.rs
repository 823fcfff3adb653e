//! Encoding of messages as bytes.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Decoded datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<M> {
    /// Message of the datagram; one with content is a run of one segment.
    pub message: M,
    /// Byte range of the content in the datagram; empty without content.
    pub payload: Range<usize>,
}

/// Layer that carries a protocol's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// UDP.
    #[default]
    Udp,
    /// IP itself, with this protocol number. There are no ports: addresses have port 0, and programs on one host tell
    /// their datagrams apart by the content of the messages.
    Ip(u8),
}

/// Wire format of a protocol's messages.
pub trait Codec {
    /// Message type.
    type Message;
    /// Reason for which a datagram cannot be decoded.
    type Error: fmt::Display;

    /// Returns the layer that carries the datagrams; UDP by default.
    fn transport(&self) -> Transport {
        Transport::Udp
    }

    /// Returns the header length, in octets, of most datagrams with content.
    fn header_len(&self) -> usize;

    /// Returns the length, in octets, of a datagram with `payload` octets of content, padding included.
    fn datagram_len(&self, payload: usize) -> usize;

    /// Appends datagram `segment` (from 0) of `message` to `out`. Of a datagram with content, only the header is
    /// appended.
    fn encode(&self, message: &Self::Message, segment: u32, out: &mut Vec<u8>);

    /// Completes a whole datagram, content and padding in place, with fields that depend on all of its octets, such as
    /// a checksum. Does nothing by default.
    fn finish(&self, _datagram: &mut [u8]) {}

    /// Decodes one datagram, which may come from anybody. Nothing is allocated beyond the size of the datagram.
    ///
    /// # Errors
    /// Returns the reason if the datagram is malformed.
    fn decode(&self, datagram: &[u8]) -> Result<Packet<Self::Message>, Self::Error>;
}
