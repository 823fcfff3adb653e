//! Runs that have left recently. A request that was under way meanwhile cannot know of them.

use alloc::collections::VecDeque;

use farcast_core::{Span, Time};

/// Number of runs that are remembered. An older request counts as knowing all runs before these.
const REMEMBERED: usize = 64;

/// Consecutive symbols of a block.
#[derive(Clone, Copy, Debug)]
struct Left {
    block: u32,
    first: Time,
    spacing: Span,
    count: u32,
}

impl Left {
    /// Returns the number of these symbols that left after `at`.
    fn after(&self, at: Time) -> u32 {
        if at < self.first {
            return self.count;
        }
        // Without spacing, all of them left at once.
        let before = at.since(self.first).as_nanos().checked_div(self.spacing.as_nanos());
        let before = before.and_then(|before| u32::try_from(before).ok()).unwrap_or(u32::MAX);
        self.count.saturating_sub(before.saturating_add(1))
    }
}

/// The latest runs of an object that have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(VecDeque<Left>);

impl Recent {
    /// Notes that `count` symbols of `block` leave from `first` on.
    pub(super) fn note(&mut self, block: u32, first: Time, spacing: Span, count: u32) {
        // Parts of a run that was cut count as one run.
        let goes_on = |last: &&mut Left| {
            last.block == block
                && last.spacing == spacing
                && last.first + spacing * u64::from(last.count) == first
        };
        if let Some(last) = self.0.back_mut().filter(goes_on) {
            last.count = last.count.saturating_add(count);
            return;
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Left { block, first, spacing, count });
    }

    /// Returns the number of symbols of `block` that left after `at`.
    pub(super) fn since(&self, block: u32, at: Time) -> u32 {
        let later = self.0.iter().filter(|left| left.block == block).map(|left| left.after(at));
        later.fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_counted_one_by_one_however_runs_are_cut() {
        let (ms, at) = (Span::from_millis, |n| Time::ZERO + Span::from_millis(n));
        let mut recent = Recent::default();
        recent.note(3, at(100), ms(10), 2);
        recent.note(3, at(120), ms(10), 3);
        recent.note(4, at(150), ms(10), 1);
        recent.note(3, at(900), ms(10), 1);
        assert_eq!(recent.0.len(), 3, "the first two are one");
        let of_3 = [0, 99, 100, 109, 110, 140, 899, 900].map(|n| recent.since(3, at(n)));
        assert_eq!(of_3, [6, 6, 5, 5, 4, 1, 1, 0], "what left at that instant was heard");
        assert_eq!((recent.since(4, at(0)), recent.since(5, at(0))), (1, 0));
        for n in 0..100 {
            recent.note(5, at(1000 + n * 7), ms(1), 1);
        }
        assert_eq!((recent.since(5, at(0)), recent.since(3, at(0))), (64, 0), "memory is bounded");
        assert_eq!(Left { block: 0, first: at(1), spacing: Span::ZERO, count: 9 }.after(at(1)), 0);
    }
}
