//! Arrived ranges of the peer's stream, and their report in SACK blocks (RFC 2018, RFC 2883).

use alloc::vec::Vec;

/// Most separate ranges kept beyond the first gap. A segment that would add another is dropped, and sent again in time.
const MOST_ISLANDS: usize = 1 << 12;
/// Number of ranges remembered as the last that changed.
const RECENT: usize = 8;

/// The receiving side's view of the sequence space.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    /// RCV.NXT.
    next: u64,
    /// Disjoint ranges beyond it, in order.
    islands: Vec<(u64, u64)>,
    /// Position in each of the islands that changed last, the latest first.
    recent: [u64; RECENT],
    /// Range that arrived a second time with the last segment.
    duplicate: Option<(u64, u64)>,
}

/// Effect of a segment's octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentEffect {
    /// The octets were there already.
    Old,
    /// The octets move RCV.NXT; `filled` if a gap was closed or remains.
    InOrder { filled: bool },
    /// The octets lie behind a gap.
    OutOfOrder,
    /// There is no room for another piece.
    TooMany,
}

impl Reassembly {
    pub(crate) const fn new(next: u64) -> Self {
        Self { next, islands: Vec::new(), recent: [0; RECENT], duplicate: None }
    }

    /// Returns RCV.NXT.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns `true` if octets have arrived behind a gap.
    pub(crate) fn has_gap(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Returns `true` if an octet at or behind `position` has arrived.
    pub(crate) fn has_beyond(&self, position: u64) -> bool {
        self.next > position || self.islands.last().is_some_and(|island| island.1 > position)
    }

    /// Takes octets `left..right` that arrive.
    pub(crate) fn take(&mut self, left: u64, right: u64) -> SegmentEffect {
        self.duplicate = self.first_overlap(left, right);
        if right <= self.next {
            return SegmentEffect::Old;
        }
        let left = left.max(self.next);
        if left > self.next {
            return self.set_aside(left, right);
        }
        self.next = right;
        let covered = self.islands.iter().take_while(|island| island.0 <= self.next).count();
        if covered > 0 {
            self.next = self.next.max(self.islands[covered - 1].1);
            self.islands.drain(..covered);
        }
        SegmentEffect::InOrder { filled: covered > 0 || self.has_gap() }
    }

    /// Returns the first range of `left..right` that is here already (RFC 2883 section 4).
    fn first_overlap(&self, left: u64, right: u64) -> Option<(u64, u64)> {
        if left < self.next {
            return Some((left, right.min(self.next)));
        }
        let index = self.islands.partition_point(|island| island.1 <= left);
        let island = self.islands.get(index).filter(|island| island.0 < right)?;
        Some((island.0.max(left), island.1.min(right)))
    }

    fn set_aside(&mut self, left: u64, right: u64) -> SegmentEffect {
        let begin = self.islands.partition_point(|island| island.1 < left);
        let end = begin + self.islands[begin..].iter().take_while(|island| island.0 <= right).count();
        if let Some(&island) = self.islands.get(begin).filter(|island| island.0 <= left && right <= island.1)
        {
            self.remember(island.0);
            return SegmentEffect::Old;
        }
        if begin == end {
            if self.islands.len() >= MOST_ISLANDS {
                return SegmentEffect::TooMany;
            }
            self.islands.insert(begin, (left, right));
        } else {
            let (from, to) = (self.islands[begin].0.min(left), self.islands[end - 1].1.max(right));
            self.islands[begin] = (from, to);
            self.islands.drain(begin + 1..end);
        }
        self.remember(left);
        SegmentEffect::OutOfOrder
    }

    /// Marks the island that holds `position` as the one that changed last.
    fn remember(&mut self, position: u64) {
        let Some(island) = self.island(position) else { return };
        let mut kept = [0; RECENT];
        kept[0] = position;
        let others = self.recent.iter().copied().filter(|&other| other < island.0 || other >= island.1);
        for (slot, other) in kept[1..].iter_mut().zip(others) {
            *slot = other;
        }
        self.recent = kept;
    }

    fn island(&self, position: u64) -> Option<(u64, u64)> {
        let index = self.islands.partition_point(|island| island.1 <= position);
        self.islands.get(index).copied().filter(|island| island.0 <= position)
    }

    /// Returns the ranges to report. First comes the duplicate that the last segment brought, if `duplicates` is set,
    /// then the islands, the latest changed first.
    pub(crate) fn report(&mut self, duplicates: bool) -> impl Iterator<Item = (u64, u64)> + '_ {
        let duplicate = self.duplicate.take().filter(|_| duplicates);
        let mut told: [u64; RECENT] = [0; RECENT];
        let islands = self.recent.into_iter().enumerate().filter_map(move |(n, position)| {
            let island = self.island(position)?;
            let again = told[..n].contains(&island.0);
            told[n] = island.0;
            (!again).then_some(island)
        });
        duplicate.into_iter().chain(islands)
    }

    /// Checks that the islands are disjoint and in order, and panics if not: for tests.
    pub(crate) fn check(&self) {
        let mut at = self.next;
        for &(left, right) in &self.islands {
            assert!(at < left && left < right);
            at = right;
        }
        assert!(self.islands.len() <= MOST_ISLANDS);
    }

    /// Returns `true` if there is a range to report.
    pub(crate) fn has_report(&self, duplicates: bool) -> bool {
        self.has_gap() || (duplicates && self.duplicate.is_some())
    }
}

#[cfg(test)]
mod tests;
