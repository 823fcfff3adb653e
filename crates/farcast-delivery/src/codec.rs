//! Messages as bytes.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// A datagram that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<M> {
    /// What it says; of one with content, a run of one.
    pub message: M,
    /// Where in the datagram its content lies; empty without content.
    pub payload: Range<usize>,
}

/// What carries a protocol's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// UDP.
    #[default]
    Udp,
    /// IP itself, under this protocol number. There are no ports: in addresses they are 0, and who shares a host tells
    /// apart what is whose by what messages say.
    Ip(u8),
}

/// How a protocol's messages look on the wire.
pub trait Codec {
    /// What it writes and reads.
    type Message;
    /// What can be wrong with a datagram.
    type Error: fmt::Display;

    /// What carries its datagrams; UDP unless it says otherwise.
    fn transport(&self) -> Transport {
        Transport::Udp
    }

    /// Octets of the header of most datagrams with content.
    fn header_len(&self) -> usize;

    /// Octets of a datagram with `payload` octets of content, padding included.
    fn datagram_len(&self, payload: usize) -> usize;

    /// Appends datagram `segment` (from 0) of `message` to `out`: of one with content its header.
    fn encode(&self, message: &Self::Message, segment: u32, out: &mut Vec<u8>);

    /// The last step over a whole datagram, its content and padding in place: what depends on all of it, such as a
    /// checksum. By default nothing does.
    fn finish(&self, _datagram: &mut [u8]) {}

    /// Reads one datagram, which anybody may have sent. Nothing is allocated beyond what the datagram itself holds.
    ///
    /// # Errors
    /// What is wrong with it.
    fn decode(&self, datagram: &[u8]) -> Result<Packet<Self::Message>, Self::Error>;
}
