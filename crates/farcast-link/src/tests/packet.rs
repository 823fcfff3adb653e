//! A packet with contents, for tests of stages that carry octets.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::random::RandomStream;
use farcast_core::stage::Frame;

/// A packet with a number, which shows its octets to links or keeps them to itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    pub(crate) number: u32,
    octets: Vec<u8>,
    shows: bool,
    /// Octets that a link has put in place of its own.
    carried: Option<Vec<u8>>,
}

impl Packet {
    /// Creates packet `number` of `len` octets, each random, or all the same: in one of four all need escapes, or none.
    pub(crate) fn new(number: u32, len: usize, shows: bool) -> Self {
        let mut random = RandomStream::derive(u64::from(number), &[77]);
        let octets = match random.below(8) {
            0 => alloc::vec![0x7E; len],
            1 => alloc::vec![0x41; len],
            _ => (0..len).map(|_| random.bits() as u8).collect(),
        };
        Self { number, octets, shows, carried: None }
    }

    pub(crate) fn frame(self) -> Frame<Self> {
        Frame::new(self, 0)
    }

    pub(crate) fn contents(&self) -> &[u8] {
        &self.octets
    }

    /// Checks a packet that has left a stage: one that shows its octets must have got the same, and just those; the
    /// other must have been left alone.
    pub(crate) fn assert_arrived(&self) {
        let expected = self.shows.then_some(&self.octets);
        assert!(self.carried.as_ref() == expected, "packet {} of {} octets", self.number, self.octets.len());
    }
}

impl Message for Packet {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    fn wire_len(&self, _segment: u32) -> usize {
        self.octets.len()
    }

    fn octets(&self, _segment: u32) -> Option<&[u8]> {
        self.shows.then_some(&self.octets)
    }

    fn put_octets(&mut self, _segment: u32, octets: &[u8]) {
        assert_eq!(self.carried, None, "once");
        self.carried = Some(octets.to_vec());
    }
}
