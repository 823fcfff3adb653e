//! The octets of a stream that an endpoint keeps itself.

use alloc::vec::Vec;

use crate::Payload;

/// Piece of a stream. Octets are added at its end and released from its beginning.
#[derive(Clone, Debug, Default)]
pub(super) struct Octets {
    held: Vec<u8>,
    /// Number of octets of `held` that are released already.
    dead: usize,
    /// Offset in the stream of the first octet that is not released.
    first: u64,
}

impl Octets {
    /// Appends to the end.
    pub(super) fn extend(&mut self, octets: &[u8]) {
        self.held.extend_from_slice(octets);
    }

    /// Puts `octets` at their offset in the stream, behind a gap if need be.
    pub(super) fn store(&mut self, offset: u64, octets: &[u8]) {
        let Some(start) = offset.checked_sub(self.first) else { return };
        let start = self.dead + start as usize;
        let end = start + octets.len();
        if self.held.len() < end {
            self.held.resize(end, 0);
        }
        self.held[start..end].copy_from_slice(octets);
    }

    /// Returns the octets held, gaps included.
    pub(super) fn all(&self) -> &[u8] {
        &self.held[self.dead..]
    }

    /// Returns the octets of `payload`, if all of them are held.
    pub(super) fn of(&self, payload: Payload) -> Option<&[u8]> {
        let start = usize::try_from(payload.offset.checked_sub(self.first)?).ok()?;
        self.all().get(start..start.checked_add(usize::from(payload.len))?)
    }

    /// Releases everything before `offset`.
    pub(super) fn release(&mut self, offset: u64) {
        let octets = offset.saturating_sub(self.first).min(self.all().len() as u64);
        self.first += octets;
        self.dead += octets as usize;
        // Live octets move only when they are the smaller part: each octet moves once on average.
        if 2 * self.dead >= self.held.len() {
            self.held.drain(..self.dead);
            self.dead = 0;
        }
    }

    /// Returns the offset behind the last octet.
    pub(super) fn end(&self) -> u64 {
        self.first + self.all().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farcast_core::random::RandomStream;

    fn payload(offset: u64, len: u16) -> Payload {
        Payload { offset, len }
    }

    #[test]
    fn octets_keep_their_place_until_they_are_given_up() {
        let mut octets = Octets::default();
        for (round, stream) in [b"abcdef", b"ghijkl"].into_iter().enumerate() {
            octets.extend(stream);
            octets.release(round as u64 * 4 + 1);
        }
        assert_eq!((octets.all(), octets.end()), (&b"fghijkl"[..], 12));
        assert_eq!(octets.of(payload(6, 3)), Some(&b"ghi"[..]));
        assert_eq!(octets.of(payload(4, 3)), None);
        assert_eq!(octets.of(payload(10, 3)), None);
        octets.release(u64::MAX);
        assert_eq!((octets.all(), octets.end()), (&b""[..], 12));
    }

    #[test]
    fn octets_arrive_in_any_order() {
        let stream: Vec<u8> = (0..=255).collect();
        for seed in 0..50 {
            let mut random = RandomStream::derive(seed, &[]);
            let mut octets = Octets::default();
            octets.store(0, &stream[..8]);
            octets.release(8);
            let mut pieces: Vec<usize> = (8..256).step_by(7).collect();
            while !pieces.is_empty() {
                let at = pieces.swap_remove(random.below(pieces.len() as u64) as usize);
                octets.store(at as u64, &stream[at..(at + 7 + random.below(5) as usize).min(256)]);
            }
            assert_eq!(octets.all(), &stream[8..]);
        }
    }
}
