//! Runs: consecutive segments in one message.

use core::num::NonZeroU32;

/// Consecutive segments `first .. first + count` of one object or block.
///
/// The unit that flows between engines. On a network a run is one `UDP_SEGMENT` send; in simulation it is one
/// event. A run of one is a packet. `count` is at least one and `first + count` does not exceed `u32::MAX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Run {
    first: u32,
    count: NonZeroU32,
}

impl Run {
    /// Creates the run `first .. first + count`; `None` if it is empty or passes `u32::MAX`.
    pub const fn new(first: u32, count: u32) -> Option<Self> {
        match (NonZeroU32::new(count), first.checked_add(count)) {
            (Some(count), Some(_)) => Some(Self { first, count }),
            _ => None,
        }
    }

    /// Creates a run of one segment. `segment` must be below `u32::MAX`, which saturates to the number below.
    pub const fn one(segment: u32) -> Self {
        let first = if segment == u32::MAX { u32::MAX - 1 } else { segment };
        Self { first, count: NonZeroU32::MIN }
    }

    /// Returns the first segment.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// Returns the number of segments, at least one.
    pub const fn count(self) -> u32 {
        self.count.get()
    }

    /// Returns one past the last segment.
    pub const fn end(self) -> u32 {
        self.first + self.count.get()
    }

    /// Returns the last segment.
    pub const fn last(self) -> u32 {
        self.end() - 1
    }

    /// Returns the segments, in order.
    pub fn segments(self) -> core::ops::Range<u32> {
        self.first..self.end()
    }

    /// Returns `true` if `segment` is in the run.
    pub const fn contains(self, segment: u32) -> bool {
        self.first <= segment && segment < self.end()
    }

    /// Cuts after `count` segments. Returns the head, and the tail if anything is left.
    ///
    /// `count` is bounded by the run, so the head may be the whole run.
    pub fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let taken = count.min(self.count);
        let head = Self { first: self.first, count: taken };
        (head, Self::new(self.first + taken.get(), self.count.get() - taken.get()))
    }

    /// Returns the part of this run that lies in `low .. high`.
    pub fn clip(self, low: u32, high: u32) -> Option<Self> {
        let first = self.first.max(low);
        Self::new(first, self.end().min(high).checked_sub(first)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn refuses_what_has_no_end() {
        assert_eq!(Run::new(0, 0), None);
        assert_eq!(Run::new(u32::MAX, 1), None);
        assert!(Run::new(u32::MAX - 1, 1).is_some());
    }

    proptest! {
        #[test]
        fn a_cut_loses_nothing(first in 0u32..1000, count in 1u32..1000, cut in 1u32..2000) {
            let run = Run::new(first, count).expect("in range");
            let (head, tail) = run.split(NonZeroU32::new(cut).expect("positive"));
            let joined: Vec<u32> = head.segments().chain(tail.into_iter().flat_map(Run::segments)).collect();
            prop_assert_eq!(joined, run.segments().collect::<Vec<_>>());
        }

        #[test]
        fn clip_is_intersection(first in 0u32..100, count in 1u32..100, low in 0u32..200, high in 0u32..200) {
            let run = Run::new(first, count).expect("in range");
            let expected: Vec<u32> = run.segments().filter(|s| (low..high).contains(s)).collect();
            let clipped: Vec<u32> = run.clip(low, high).into_iter().flat_map(Run::segments).collect();
            prop_assert_eq!(clipped, expected);
        }
    }
}
