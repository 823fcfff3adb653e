//! Sliding windows of counters that were seen.

/// Maximum age of a datagram for the group, in counters.
pub const GROUP_WINDOW: u64 = 64 * (GROUP_WORDS as u64 - 1);
/// Maximum age of a datagram between sender and one receiver, in counters.
pub const PAIR_WINDOW: u64 = 64 * (PAIR_WORDS as u64 - 1);

/// Words of a window: one more than its length needs, so that the word of the highest counter can be partly empty.
const GROUP_WORDS: usize = 4096 / 64 + 1;
const PAIR_WORDS: usize = 256 / 64 + 1;

/// Window for a key of the group.
pub(crate) type GroupWindow = Window<GROUP_WORDS>;
/// Window for a key between sender and one receiver.
pub(crate) type PairWindow = Window<PAIR_WORDS>;

/// Window of the last counters that were seen. Its length is the number of bits in all words but one.
#[derive(Clone, Debug)]
pub(crate) struct Window<const WORDS: usize> {
    highest: u64,
    words: [u64; WORDS],
}

impl<const WORDS: usize> Window<WORDS> {
    const LEN: u64 = 64 * (WORDS as u64 - 1);

    /// Creates a window in which all counters up to `highest` count as seen, and no later one.
    pub(crate) fn from(highest: u64) -> Self {
        // Counters begin at 1, and 0 counts as seen.
        Self { highest, words: [u64::MAX; WORDS] }
    }

    /// Returns the highest counter that was seen.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns `true` if `counter` was not seen and is not older than the window.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        if counter > self.highest {
            return true;
        }
        self.highest - counter < Self::LEN
            && counter > 0
            && self.words[Self::word(counter)] & bit(counter) == 0
    }

    /// Returns `true` if `counter` is known to have been seen; `false` if it is older than the window.
    pub(crate) fn has_seen(&self, counter: u64) -> bool {
        !self.is_new(counter) && self.highest - counter < Self::LEN
    }

    /// Marks `counter` as seen, unless it is older than the window.
    pub(crate) fn mark(&mut self, counter: u64) {
        if counter > self.highest {
            // The counters behind the highest in its own word were not seen either.
            self.words[Self::word(self.highest)] &= bit(self.highest) | (bit(self.highest) - 1);
            let passed = (counter / 64 - self.highest / 64).min(WORDS as u64);
            for step in 1..=passed {
                self.words[Self::word(self.highest + 64 * step)] = 0;
            }
            self.highest = counter;
        }
        if self.highest - counter < Self::LEN {
            self.words[Self::word(counter)] |= bit(counter);
        }
    }

    fn word(counter: u64) -> usize {
        (counter / 64 % WORDS as u64) as usize
    }
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges() {
        const WINDOW: u64 = GROUP_WINDOW;
        let mut window = GroupWindow::from(0);
        assert!(!window.is_new(0));
        window.mark(1);
        assert!(!window.is_new(1));
        window.mark(5000);
        assert!(!window.is_new(5000 - WINDOW), "just behind the window");
        assert!(window.is_new(5000 - WINDOW + 1), "the last in it");
        window.mark((1 << 48) - 1);
        assert!(!window.is_new(5000));
        assert_eq!((GROUP_WINDOW, PAIR_WINDOW), (4096, 256));
    }

    #[test]
    fn it_goes_on_where_it_was() {
        let mut window = PairWindow::from(1000);
        assert!((1..=1000).all(|counter| !window.is_new(counter)));
        assert!((1001..1100).all(|counter| window.is_new(counter)));
        window.mark(1020);
        assert!(!window.is_new(1000) && window.is_new(1001) && window.is_new(1019));
        assert!(!window.is_new(1020) && window.is_new(1021));
    }

    proptest! {
        #[test]
        fn as_a_set(steps in prop::collection::vec(
            prop_oneof![0..200i64, (-600..600i64), (-70..70i64)], 1..600)) {
            let (mut window, mut seen, mut highest) = (PairWindow::from(0), BTreeSet::new(), 0u64);
            let mut at = 1i64;
            for step in steps {
                at = (at + step).max(0);
                let counter = at as u64;
                let expected = counter > 0 && !seen.contains(&counter) && counter + PAIR_WINDOW > highest;
                prop_assert_eq!(window.is_new(counter), expected, "{} of {}", counter, highest);
                if expected {
                    window.mark(counter);
                    seen.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }
}
