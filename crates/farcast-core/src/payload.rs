//! Payloads of a lower layer: cut into pieces on one side, joined on the other.
//!
//! Layers that segment (UMTS RLC, multilink PPP) know nothing of their payload but its length. In simulation a payload
//! is a [`Piece`]: the number of a packet, and a range of its octets. In emulation it is the octets themselves. A
//! payload that was cut re-emerges whole or not at all: [`Payload::is_whole`] tells a layer's tests, and the receiver
//! of the payload, that nothing is missing.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::ops::Range;

/// Octets in a row that can be cut and joined.
pub trait Payload: Clone + Debug {
    /// Returns the number of octets.
    fn len(&self) -> usize;

    /// Returns `true` if there are no octets.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and returns the first `count` octets; all, if there are fewer.
    #[must_use]
    fn split_to(&mut self, count: usize) -> Self;

    /// Appends `tail`. It never panics, even if a peer or a fault of ours mixes pieces: pieces that do not belong
    /// together are joined, and the result is not whole.
    fn join(&mut self, tail: Self);

    /// Returns `true` if this may be a packet from its first octet to its last. Plain octets cannot tell, and return
    /// `true`.
    fn is_whole(&self) -> bool {
        true
    }

    /// Returns the octets, if they are available.
    fn octets(&self) -> Option<&[u8]> {
        None
    }
}

/// A part of a packet that is stored elsewhere: in simulation nothing needs its octets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// Number of the packet, given by the owner of the packets.
    packet: u64,
    /// Length of the packet, in octets.
    whole: u32,
    /// Range of its octets.
    range: Range<u32>,
    /// All joined parts belonged together.
    intact: bool,
}

impl Piece {
    /// Creates the piece of all `octets` octets of packet number `packet`.
    pub const fn whole(packet: u64, octets: u32) -> Self {
        Self { packet, whole: octets, range: 0..octets, intact: true }
    }

    /// Returns the number of the packet.
    pub const fn packet(&self) -> u64 {
        self.packet
    }

    /// Returns the range of the packet's octets.
    pub const fn range(&self) -> &Range<u32> {
        &self.range
    }
}

impl Payload for Piece {
    fn len(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }

    fn split_to(&mut self, count: usize) -> Self {
        let count = count.min(self.len()) as u32;
        let cut = self.range.start + count;
        let head = Self { range: self.range.start..cut, ..self.clone() };
        self.range.start = cut;
        head
    }

    fn join(&mut self, tail: Self) {
        let fits = tail.packet == self.packet && tail.range.start == self.range.end;
        self.intact &= tail.intact && fits;
        let len = tail.range.end - tail.range.start;
        self.range.end = self.range.end.saturating_add(len);
    }

    fn is_whole(&self) -> bool {
        self.intact && self.range == (0..self.whole)
    }
}

/// The octets themselves. Cutting and joining copy: this serves tests and code that is not hot.
impl Payload for Vec<u8> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn split_to(&mut self, count: usize) -> Self {
        let tail = self.split_off(count.min(self.as_slice().len()));
        core::mem::replace(self, tail)
    }

    fn join(&mut self, mut tail: Self) {
        self.append(&mut tail);
    }

    fn octets(&self) -> Option<&[u8]> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// Cuts `payload` into pieces of 7, joins them again, and hands over both ends.
    fn cut_and_join<P: Payload>(mut payload: P) -> P {
        let mut joined = payload.split_to(7);
        assert_eq!(joined.len(), 7);
        while !payload.is_empty() {
            joined.join(payload.split_to(7));
        }
        joined
    }

    #[test]
    fn what_was_cut_re_emerges_whole() {
        let whole = Piece::whole(3, 100);
        assert_eq!(cut_and_join(whole.clone()), whole);
        let octets: Vec<u8> = (0..100).collect();
        assert_eq!(cut_and_join(octets.clone()), octets);
        assert_eq!(vec![1, 2, 3].split_to(9), [1, 2, 3]);
    }

    #[test]
    fn a_piece_knows_that_something_is_missing_or_does_not_belong() {
        let mut rest = Piece::whole(3, 100);
        let mut head = rest.split_to(10);
        assert!(!head.is_whole() && !rest.is_whole());
        let _lost = rest.split_to(1);
        head.join(rest);
        assert!(!head.is_whole());
        // As many octets as the packet has, but another's.
        let mut mixed = Piece::whole(3, 100).split_to(50);
        let mut other = Piece::whole(4, 100);
        let _head = other.split_to(50);
        mixed.join(other);
        assert_eq!((mixed.len(), mixed.is_whole()), (100, false));
    }

    #[test]
    fn an_empty_packet_is_whole() {
        assert!(Piece::whole(1, 0).is_whole() && Piece::whole(1, 0).is_empty());
    }
}
