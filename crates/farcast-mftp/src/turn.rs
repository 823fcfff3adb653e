//! Turns of receivers, so that thousands of them share a thin return channel (farcast's own).
//!
//! Each receiver has a place among 2^32, a hash of its id, which is another in each round. The sender calls a range of
//! places at a time, in its announcements, Completions and status requests. Receivers in the range speak; the others
//! wait for a later range. So the sender decides how much comes back, whoever and however many they are. It also
//! estimates their number by the part that it has called.

use farcast_core::Run;

use crate::message::ClientId;

/// Number of places.
pub(crate) const PLACES: u64 = 1 << 32;

/// Number of segments at the beginning of a block that a receiver does not lose by chance.
pub(crate) const LOST_BY_CHANCE: u32 = 16;

/// Call to the receivers at some places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Number of the round, on which the places depend.
    pub round: u16,
    /// Time in milliseconds over which the called receivers spread what they say.
    pub spread_ms: u16,
    /// First place that is called.
    pub first: u32,
    /// Last place that is called, which is not before the first.
    pub last: u32,
}

impl Turn {
    /// Returns `true` if the receiver `client` of this transmission is called.
    pub fn calls(&self, transmission: u32, client: ClientId) -> bool {
        let place = place(transmission, self.round, client);
        (self.first..=self.last).contains(&place)
    }

    /// Returns the time over which the called receivers spread what they say.
    pub fn spread(&self) -> farcast_core::Span {
        farcast_core::Span::from_millis(self.spread_ms.into())
    }
}

/// Returns the place of a receiver in a round. No two receivers have the same place: each step can be undone.
pub(crate) fn place(transmission: u32, round: u16, client: ClientId) -> u32 {
    let mut place = client.0 ^ transmission.rotate_left(16) ^ u32::from(round).wrapping_mul(0x9E37_79B9);
    // The finalizer of MurmurHash3.
    place = (place ^ place >> 16).wrapping_mul(0x85EB_CA6B);
    place = (place ^ place >> 13).wrapping_mul(0xC2B2_AE35);
    place ^ place >> 16
}

/// Losses that a receiver reports when it registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeardData {
    /// Number of DTUs that the first pass had sent before the receiver heard the first of them.
    pub missed: u32,
    /// Number of DTUs that it sent from that one to the last one that the receiver heard.
    pub sent: u32,
    /// Number of these that the receiver did not get when they were sent.
    pub lost: u32,
}

impl HeardData {
    /// Returns `true` if the receiver came after the beginning of `block`, the segments of one of several blocks. If many
    /// come at once, all of them lack the same segments of it. Their registrations tell the sender, so they do not answer
    /// a request for this block alone in the first pass.
    pub(crate) fn came_after(&self, block: Run) -> bool {
        self.sent == 0 || self.missed >= block.first() + LOST_BY_CHANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spread_evenly_and_differ_by_round() {
        let quarter = |round: u16| {
            let turn = Turn { round, spread_ms: 0, first: 0, last: u32::MAX / 4 };
            (0..10_000).filter(|&id| turn.calls(7, ClientId(0x0A00_0000 + id))).count()
        };
        for round in 0..5 {
            // Four deviations of a binomial count are 173.
            assert!((2_327..=2_673).contains(&quarter(round)), "{}", quarter(round));
        }
        let of = |round| place(7, round, ClientId(1));
        assert!(of(0) != of(1) && of(1) != of(2));
    }
}
