//! Sets of object numbers, stored as runs.

use alloc::vec::Vec;

use farcast_core::Run;

/// Maximum number of runs. Beyond it the lowest run is forgotten. A sender must send something for each run.
const MOST: usize = 1 << 16;

/// Set of object numbers as sorted runs that do not touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    /// Returns `true` if the set is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if the set has `number`.
    pub(super) fn contains(&self, number: u32) -> bool {
        self.place(number).is_ok()
    }

    /// Returns the number of members.
    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|run| run.count()).fold(0, u32::saturating_add)
    }

    /// Adds a run, of which the set has all numbers or none.
    pub(super) fn insert(&mut self, run: Run) {
        let Err(at) = self.place(run.first()) else { return };
        let before = at.checked_sub(1).filter(|&before| self.0[before].end() == run.first());
        let behind = self.0.get(at).filter(|behind| behind.first() == run.end());
        let end = behind.map_or(run.end(), |behind| behind.end());
        let replaced = before.unwrap_or(at)..at + usize::from(behind.is_some());
        let first = before.map_or(run.first(), |before| self.0[before].first());
        self.0.splice(replaced, Run::new(first, end - first));
        if self.0.len() > MOST {
            self.0.remove(0);
        }
    }

    /// Removes `number`. Returns `true` if the set had it.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        let Ok(at) = self.place(number) else { return false };
        let run = self.0[at];
        let parts = [run.clip(0, number), run.clip(number + 1, u32::MAX)];
        self.0.splice(at..=at, parts.into_iter().flatten());
        true
    }

    /// Removes all numbers before `number`.
    pub(super) fn remove_before(&mut self, number: u32) {
        self.0.retain_mut(|run| run.clip(number, u32::MAX).map(|rest| *run = rest).is_some());
    }

    /// Removes all numbers.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the numbers before `end`, in order.
    pub(super) fn before(&self, end: u32) -> impl Iterator<Item = u32> + '_ {
        let runs = self.0.iter().map_while(move |run| run.clip(0, end));
        runs.flat_map(Run::segments)
    }

    /// Returns the place of the run that has `number`, or the place where a run of it would go.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.0.binary_search_by(|run| {
            if run.contains(number) { core::cmp::Ordering::Equal } else { run.first().cmp(&number) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(of: &Runs) -> Vec<(u32, u32)> {
        of.0.iter().map(|run| (run.first(), run.count())).collect()
    }

    #[test]
    fn neighbours_become_one() {
        let mut set = Runs::default();
        for number in [3, 5, 4, 9, 8, 4] {
            set.insert(Run::one(number));
        }
        assert_eq!(runs(&set), [(3, 3), (8, 2)]);
        set.insert(Run::new(6, 2).unwrap());
        assert_eq!((runs(&set), set.count()), (alloc::vec![(3, 7)], 7));
        assert!(set.remove(5) && !set.remove(5) && set.contains(6) && !set.contains(5));
        assert_eq!(set.before(8).collect::<Vec<_>>(), [3, 4, 6, 7]);
        set.remove_before(7);
        assert_eq!(runs(&set), [(7, 3)]);
        set.insert(Run::one(u32::MAX - 1));
        assert_eq!(runs(&set), [(7, 3), (u32::MAX - 1, 1)]);
    }

    #[test]
    fn what_lies_apart_has_an_end() {
        let mut set = Runs::default();
        (0..=MOST as u32).for_each(|n| set.insert(Run::one(2 * n)));
        assert_eq!((set.0.len(), set.contains(0), set.contains(2)), (MOST, false, true));
    }
}
