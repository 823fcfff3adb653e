//! Set of the numbers of packets with a record.

use std::collections::BTreeMap;

/// Most stretches kept. A stretch ends at a packet that is still inside, or that has no record.
const MOST_STRETCHES: usize = 1 << 20;

/// A set of numbers, as the stretches that they fill: its size grows with its gaps, not with its numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberSet {
    /// Last number of each stretch, by its first.
    stretches: BTreeMap<u64, u64>,
}

impl NumberSet {
    /// Adds a number. Returns `true` if it is new. Beyond [`MOST_STRETCHES`] the lowest gap counts as filled.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        let behind = number.checked_add(1).and_then(|next| self.stretches.get(&next).copied());
        let last = behind.unwrap_or(number);
        match self.stretches.range_mut(..=number).next_back() {
            Some((_, end)) if *end >= number => return false,
            Some((_, end)) if *end + 1 == number => *end = last,
            _ => drop(self.stretches.insert(number, last)),
        }
        if behind.is_some() {
            self.stretches.remove(&(number + 1));
        }
        if self.stretches.len() > MOST_STRETCHES {
            self.close_lowest_gap();
        }
        true
    }

    fn close_lowest_gap(&mut self) {
        if let (Some((first, _)), Some((_, last))) = (self.stretches.pop_first(), self.stretches.pop_first())
        {
            self.stretches.insert(first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use farcast_core::random::RandomStream;

    use super::*;

    #[test]
    fn it_is_a_set() {
        for seed in 0..50 {
            let mut stream = RandomStream::derive(seed, &[1]);
            let (mut numbers, mut witness) = (NumberSet::default(), BTreeSet::new());
            for _ in 0..2000 {
                let number = match stream.below(20) {
                    0 => u64::MAX - stream.below(4),
                    1 => stream.below(4),
                    _ => stream.below(1500),
                };
                assert_eq!(numbers.insert(number), witness.insert(number), "{number}");
            }
            let stretches =
                witness.iter().filter(|number| !witness.contains(&number.wrapping_sub(1)) || **number == 0);
            assert_eq!(numbers.stretches.len(), stretches.count());
        }
    }

    #[test]
    fn it_is_no_larger_than_its_bound() {
        let mut numbers = NumberSet::default();
        for number in 0..=MOST_STRETCHES as u64 {
            assert!(numbers.insert(2 * number));
        }
        assert_eq!(numbers.stretches.len(), MOST_STRETCHES);
        // The lowest gap has gone, the next has not.
        assert!(!numbers.insert(1) && numbers.insert(3));
    }
}
