//! The fragments that are held, in the order of their numbers.

use alloc::collections::VecDeque;

use farcast_core::Payload;

/// A fragment and its number, counted from the start of the bundle.
#[derive(Clone, Debug)]
pub(super) struct Fragment<P> {
    pub(super) sequence: u64,
    pub(super) begins: bool,
    pub(super) ends: bool,
    pub(super) payload: P,
}

/// Fragments from the first undecided number on. Gaps cost nothing: numbers that a peer claims to have left out take no
/// memory.
#[derive(Clone, Debug)]
pub(super) struct HeldFragments<P> {
    fragments: VecDeque<Fragment<P>>,
    octets: u64,
    /// The first number that is not decided.
    first: u64,
    /// Number of fragments at the front that follow `first` without a gap.
    filled: usize,
    /// One past the lowest end that is known, of the packets from `first` on.
    end: Option<u64>,
}

impl<P: Payload> HeldFragments<P> {
    pub(super) const fn new() -> Self {
        Self { fragments: VecDeque::new(), octets: 0, first: 0, filled: 0, end: None }
    }

    pub(super) fn len(&self) -> usize {
        self.fragments.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.fragments.capacity()
    }

    pub(super) const fn octets(&self) -> u64 {
        self.octets
    }

    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    pub(super) const fn end(&self) -> Option<u64> {
        self.end
    }

    /// Returns the number of fragments with a lower number than `sequence`. Most fragments come near the end.
    fn below(&self, sequence: u64) -> usize {
        match self.fragments.back() {
            Some(last) if last.sequence >= sequence => {
                self.fragments.partition_point(|fragment| fragment.sequence < sequence)
            }
            _ => self.fragments.len(),
        }
    }

    pub(super) fn contains(&self, sequence: u64) -> bool {
        self.fragments.get(self.below(sequence)).is_some_and(|fragment| fragment.sequence == sequence)
    }

    /// Adds a fragment whose number is not below the first and not held.
    pub(super) fn insert(&mut self, fragment: Fragment<P>) {
        let place = self.below(fragment.sequence);
        let end = self.known_end(&fragment);
        self.end = [self.end, end].into_iter().flatten().min();
        self.octets += fragment.payload.len() as u64;
        self.fragments.insert(place, fragment);
        self.fill();
    }

    /// Returns the end that a fragment reveals: its own, or that of the packet before it.
    fn known_end(&self, fragment: &Fragment<P>) -> Option<u64> {
        if fragment.begins && fragment.sequence > self.first {
            return Some(fragment.sequence);
        }
        fragment.ends.then_some(fragment.sequence + 1)
    }

    /// Extends the count over the fragments that now follow without a gap.
    fn fill(&mut self) {
        let follows = |fragment: &Fragment<P>, filled| fragment.sequence == self.first + filled as u64;
        let mut filled = self.filled;
        while self.fragments.get(filled).is_some_and(|fragment| follows(fragment, filled)) {
            filled += 1;
        }
        self.filled = filled;
    }

    /// Takes the first packet off, if all of it is there. Returns the packet and the number of its fragments.
    pub(super) fn take_complete(&mut self) -> Option<(P, u64)> {
        let end = self.end?;
        let count = usize::try_from(end - self.first).ok().filter(|&count| count <= self.filled)?;
        let last = self.fragments.get(count.checked_sub(1)?)?;
        if !(last.ends && self.fragments.front()?.begins) {
            return None;
        }
        let mut fragments = self.fragments.drain(..count).map(|fragment| fragment.payload);
        let mut packet = fragments.next()?;
        fragments.for_each(|fragment| packet.join(fragment));
        self.octets -= packet.len() as u64;
        self.filled -= count;
        self.begin_at(end);
        Some((packet, count as u64))
    }

    /// Discards the fragments before the lowest known end, or all if no end is known. Returns their number.
    pub(super) fn give_up(&mut self) -> u64 {
        let next = self.fragments.back().map_or(self.first, |last| last.sequence + 1);
        let end = self.end.unwrap_or(next);
        let count = self.below(end);
        let octets: usize = self.fragments.drain(..count).map(|fragment| fragment.payload.len()).sum();
        self.octets -= octets as u64;
        self.filled = 0;
        self.begin_at(end);
        self.fill();
        count as u64
    }

    /// Sets the first undecided number: all numbers below `first` are decided.
    fn begin_at(&mut self, first: u64) {
        self.first = first;
        self.end = self.fragments.iter().find_map(|fragment| self.known_end(fragment));
    }
}
