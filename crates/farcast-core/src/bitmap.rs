//! A fixed-length set of small integers, one bit each, that counts its members.

use alloc::vec;
use alloc::vec::Vec;

use crate::Run;

const WORD: u32 = u64::BITS;

/// A set of integers in `0..len`, stored as bits in 64-bit words, with its count kept current.
///
/// Searches skip whole words, so walking the runs of a sparse or a dense set costs `len / 64` steps.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bitmap {
    words: Vec<u64>,
    len: u32,
    count: u32,
}

impl Bitmap {
    /// Creates the empty set over `0..len`. Its memory is `len / 8` bytes, zeroed lazily by the allocator.
    pub fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(WORD) as usize], len, count: 0 }
    }

    /// Creates the full set over `0..len`.
    pub fn full(len: u32) -> Self {
        let mut map = Self::new(len);
        if let Some(run) = Run::new(0, len) {
            map.insert_run(run);
        }
        map
    }

    /// Creates the set whose words are `words`, least significant bit first. Returns `None` if the number of words is
    /// wrong, or a bit at or past `len` is set.
    pub fn from_words(words: Vec<u64>, len: u32) -> Option<Self> {
        let spare = (words.len() as u64 * u64::from(WORD)).checked_sub(u64::from(len))?;
        if spare >= u64::from(WORD)
            || words.last().is_some_and(|last| spare > 0 && last >> (u64::from(WORD) - spare) != 0)
        {
            return None;
        }
        let count = words.iter().map(|word| word.count_ones()).sum();
        Some(Self { words, len, count })
    }

    /// Returns the words, least significant bit first; bits at or past [`len`](Self::len) are zero.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns one past the largest integer that the set could hold.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns the number of integers in the set.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns `true` if every integer in `0..len` is in the set.
    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    /// Returns `true` if `index` is in the set; `false` at or past `len`.
    pub fn contains(&self, index: u32) -> bool {
        index < self.len && self.words[(index / WORD) as usize] >> (index % WORD) & 1 == 1
    }

    /// Adds `index`. Returns `true` if it was new. At or past `len` nothing happens.
    pub fn insert(&mut self, index: u32) -> bool {
        if index >= self.len {
            return false;
        }
        let word = &mut self.words[(index / WORD) as usize];
        let bit = 1 << (index % WORD);
        let new = *word & bit == 0;
        *word |= bit;
        self.count += u32::from(new);
        new
    }

    /// Removes `index`. Returns `true` if it was in the set.
    pub fn remove(&mut self, index: u32) -> bool {
        if index >= self.len {
            return false;
        }
        let word = &mut self.words[(index / WORD) as usize];
        let bit = 1 << (index % WORD);
        let there = *word & bit != 0;
        *word &= !bit;
        self.count -= u32::from(there);
        there
    }

    /// Adds the part of `run` below `len`. Returns the number of integers that were new.
    pub fn insert_run(&mut self, run: Run) -> u32 {
        self.change_run(run, |word, mask| *word |= mask)
    }

    /// Removes `run`. Returns the number of integers that were in the set.
    pub fn remove_run(&mut self, run: Run) -> u32 {
        self.change_run(run, |word, mask| *word &= !mask)
    }

    fn change_run(&mut self, run: Run, change: impl Fn(&mut u64, u64)) -> u32 {
        let before = self.count;
        for (index, mask) in masks(run, self.len) {
            let word = &mut self.words[index];
            let old = word.count_ones();
            change(word, mask);
            self.count = self.count - old + word.count_ones();
        }
        before.abs_diff(self.count)
    }

    /// Returns the number of integers of `run` that are in the set.
    pub fn count_in(&self, run: Run) -> u32 {
        masks(run, self.len).map(|(index, mask)| (self.words[index] & mask).count_ones()).sum()
    }

    /// Adds every member of `other`, which must have the same `len`. Returns the number of integers that were new.
    ///
    /// Members of `other` at or past this set's `len` are left out.
    pub fn union(&mut self, other: &Self) -> u32 {
        let before = self.count;
        for index in other.iter_runs() {
            self.insert_run(index);
        }
        self.count - before
    }

    /// Returns the first member at or after `from`.
    pub fn next_set(&self, from: u32) -> Option<u32> {
        self.search(from, self.len, |word| word)
    }

    /// Returns the first integer below `len`, at or after `from`, that is not in the set.
    pub fn next_clear(&self, from: u32) -> Option<u32> {
        self.search(from, self.len, |word| !word)
    }

    /// Returns the first integer in `from .. limit` whose bit is set in the viewed words; `limit` is at most `len`.
    fn search(&self, from: u32, limit: u32, view: impl Fn(u64) -> u64) -> Option<u32> {
        if from >= limit {
            return None;
        }
        let mut index = from / WORD;
        let mut word = view(self.words[index as usize]) & (u64::MAX << (from % WORD));
        while word == 0 {
            index += 1;
            if index > (limit - 1) / WORD {
                return None;
            }
            word = view(self.words[index as usize]);
        }
        let found = index * WORD + word.trailing_zeros();
        (found < limit).then_some(found)
    }

    /// Returns the first run of members at or after `from`, cut to `from`.
    pub fn next_run(&self, from: u32) -> Option<Run> {
        let first = self.next_set(from)?;
        let end = self.next_clear(first).unwrap_or(self.len);
        Run::new(first, end - first)
    }

    /// Returns the first run of integers that are not members, at or after `from`, cut to `from`.
    pub fn next_gap(&self, from: u32) -> Option<Run> {
        let first = self.next_clear(from)?;
        let end = self.next_set(first).unwrap_or(self.len);
        Run::new(first, end - first)
    }

    /// Returns the first run of integers in `run` that are not members. Looks no further than `run`, even if the gap is
    /// longer.
    pub fn next_gap_in(&self, run: Run) -> Option<Run> {
        let end = run.end().min(self.len);
        let first = self.search(run.first(), end, |word| !word)?;
        let next = self.search(first, end, |word| word).unwrap_or(end);
        Run::new(first, next - first)
    }

    /// Returns the runs of integers in `run` that are not members, in order.
    pub fn gaps_in(&self, run: Run) -> impl Iterator<Item = Run> + '_ {
        let after =
            move |gap: &Run| self.next_gap_in(Run::new(gap.end(), run.end().checked_sub(gap.end())?)?);
        core::iter::successors(self.next_gap_in(run), after)
    }

    /// Returns the members, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.words).flat_map(|(index, &word)| {
            let rest = |&word: &u64| Some(word & (word - 1)).filter(|&rest| rest != 0);
            let words = core::iter::successors(Some(word).filter(|&word| word != 0), rest);
            words.map(move |word| index * WORD + word.trailing_zeros())
        })
    }

    /// Returns the maximal runs of members, in order.
    pub fn iter_runs(&self) -> impl Iterator<Item = Run> + '_ {
        core::iter::successors(self.next_run(0), |run| self.next_run(run.end()))
    }

    /// Returns the maximal runs of integers below `len` that are not members, in order.
    pub fn iter_gaps(&self) -> impl Iterator<Item = Run> + '_ {
        core::iter::successors(self.next_gap(0), |run| self.next_gap(run.end()))
    }

    /// Removes every member.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }
}

/// Returns the words that `run` touches below `len`, each with the mask of its bits.
fn masks(run: Run, len: u32) -> impl Iterator<Item = (usize, u64)> {
    let (first, end) = (run.first(), run.end().min(len));
    let words = if first < end { first / WORD..(end - 1) / WORD + 1 } else { 0..0 };
    words.map(move |index| {
        let low = first.saturating_sub(index * WORD);
        let high = (end - index * WORD).min(WORD);
        (index as usize, (u64::MAX << low) & (u64::MAX >> (WORD - high)))
    })
}

#[cfg(test)]
mod tests;
