//! Numbers of a sender's objects. Numbers on the wire wrap around; these do not.

use alloc::vec::Vec;

use farcast_core::Run;

use crate::config::Sync;

/// Maximum distance of objects: half of what numbers on the wire can distinguish.
const WINDOW: u32 = 1 << 15;

/// Number of the object that is heard first. Behind it there is room for all later objects, before it for those that
/// were missed.
const FIRST: u32 = 2 * WINDOW;

/// Objects of a sender that are known, and those among them of which nothing has come.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// Number on the wire of number 0.
    origin: u16,
    /// First number that is wanted.
    low: u32,
    /// Number behind the last one that is known.
    next: u32,
    /// Runs of objects that are wanted, known, and neither at hand nor through: in order and disjoint.
    unheard: Vec<Run>,
    /// Last object that was missed and cannot be had.
    refused: Option<u32>,
}

impl Numbers {
    /// Makes the numbers of a sender of which object `id` is the first known one, without content.
    pub(super) fn new(id: u16, sync: Sync) -> Self {
        let number = FIRST;
        let missed = if sync == Sync::All { u32::from(id).min(WINDOW - 1) } else { 0 };
        let low = number - missed;
        let mut numbers = Self {
            origin: id.wrapping_sub(number as u16),
            low,
            next: low,
            unheard: Vec::new(),
            refused: None,
        };
        numbers.reach(number);
        numbers
    }

    /// Returns the number of the object with this number on the wire that is nearest to the last known one. `None` if
    /// it lies before all wanted objects, or if numbers have come to their end.
    pub(super) fn of(&self, id: u16) -> Option<u32> {
        let last = self.next - 1;
        let ahead = id.wrapping_sub(self.id(last)).cast_signed();
        let number = last.checked_add_signed(ahead.into())?;
        (number >= self.low && number < u32::MAX - WINDOW).then_some(number)
    }

    /// Returns the number on the wire.
    pub(super) fn id(&self, number: u32) -> u16 {
        self.origin.wrapping_add(number as u16)
    }

    /// Returns `true` if the object is known and wanted.
    pub(super) fn knows(&self, number: u32) -> bool {
        (self.low..self.next).contains(&number)
    }

    /// Makes all objects up to `number` known. Returns the last of those that now lie too far back to be distinguished.
    pub(super) fn reach(&mut self, number: u32) -> Option<u32> {
        if let Some(new) = number.checked_sub(self.next).and_then(|more| Run::new(self.next, more + 1)) {
            self.next = new.end();
            match self.unheard.last_mut().filter(|last| last.end() == new.first()) {
                Some(last) => *last = Run::new(last.first(), last.count() + new.count()).unwrap_or(new),
                None => self.unheard.push(new),
            }
        }
        let least = self.next - WINDOW.min(self.next);
        if self.low >= least {
            return None;
        }
        self.low = least;
        self.unheard.retain_mut(|run| run.clip(least, u32::MAX).map(|rest| *run = rest).is_some());
        Some(least - 1)
    }

    /// Returns `true` if the object is wanted and known, but nothing has come of it.
    pub(super) fn is_unheard(&self, number: u32) -> bool {
        self.place(number).is_ok()
    }

    /// Notes that something of the object has come, or cannot come.
    pub(super) fn take(&mut self, number: u32) {
        let Ok(at) = self.place(number) else { return };
        let run = self.unheard[at];
        let parts = [run.clip(0, number), run.clip(number + 1, u32::MAX)];
        self.unheard.splice(at..=at, parts.into_iter().flatten());
    }

    /// Notes that everything that has come of the object is lost.
    pub(super) fn give_back(&mut self, number: u32) {
        if let Err(at) = self.place(number)
            && self.knows(number)
        {
            // Adjacent runs are not merged; no user of the list minds.
            self.unheard.insert(at, Run::one(number));
        }
    }

    /// Returns the number of objects sent since the sender was first heard of which nothing is here.
    pub(super) fn missed(&self) -> u32 {
        let heard_of = self.unheard(u32::MAX).filter_map(|run| run.clip(FIRST, u32::MAX));
        heard_of.map(Run::count).sum()
    }

    /// Drops objects before `number` of which nothing has come, because they cannot be had. Returns the first of them
    /// that was not missed.
    pub(super) fn let_go(&mut self, number: u32) -> Option<u32> {
        let gone: Vec<Run> = self.unheard(number).collect();
        let missed = gone.iter().filter_map(|run| run.clip(0, FIRST)).next_back();
        self.refused = self.refused.max(missed.map(Run::last));
        self.unheard.retain_mut(|run| run.clip(number, u32::MAX).map(|rest| *run = rest).is_some());
        gone.into_iter().find_map(|run| run.clip(FIRST, u32::MAX)).map(Run::first)
    }

    /// Notes that the object cannot be had, of which nothing has come. Returns `true` if it was missed.
    pub(super) fn refuse(&mut self, number: u32) -> bool {
        self.take(number);
        let missed = number < FIRST;
        if missed {
            self.refused = self.refused.max(Some(number));
        }
        missed
    }

    /// Returns `true` if the object, or one after it, was missed and cannot be had.
    pub(super) fn is_refused(&self, number: u32) -> bool {
        self.refused.is_some_and(|last| number <= last)
    }

    /// Returns the index of the object's run in the list, or the index at which it would be.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.unheard.binary_search_by(|run| {
            if run.contains(number) { core::cmp::Ordering::Equal } else { run.first().cmp(&number) }
        })
    }

    /// Returns the runs of objects before `end` of which nothing has come.
    pub(super) fn unheard(&self, end: u32) -> impl Iterator<Item = Run> + '_ {
        self.unheard.iter().map_while(move |run| run.clip(0, end))
    }

    /// Returns the number behind the last one that is known.
    pub(super) fn next(&self) -> u32 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unheard(numbers: &Numbers) -> Vec<(u16, u32)> {
        numbers.unheard(u32::MAX).map(|run| (numbers.id(run.first()), run.count())).collect()
    }

    #[test]
    fn what_was_missed_is_wanted_or_not() {
        let numbers = Numbers::new(5, Sync::All);
        assert_eq!(unheard(&numbers), [(0, 6)]);
        let numbers = Numbers::new(5, Sync::Current);
        assert_eq!(unheard(&numbers), [(5, 1)]);
        assert_eq!(numbers.of(4), None, "before what is wanted");
    }

    #[test]
    fn numbers_go_round() {
        let mut numbers = Numbers::new(65_534, Sync::Current);
        let first = numbers.of(65_534).expect("known");
        assert_eq!(numbers.of(1), Some(first + 3));
        assert!(numbers.knows(first) && !numbers.knows(first + 3));
        assert_eq!(numbers.reach(first + 3), None);
        assert_eq!(unheard(&numbers), [(65_534, 4)]);
        numbers.take(first + 1);
        assert_eq!(unheard(&numbers), [(65_534, 1), (0, 2)]);
        assert!(!numbers.is_unheard(first + 1) && numbers.is_unheard(first + 2));
        numbers.give_back(first + 1);
        numbers.give_back(first + 1);
        assert_eq!(unheard(&numbers), [(65_534, 1), (65_535, 1), (0, 2)]);
        for number in first..first + 4 {
            numbers.take(number);
        }
        assert_eq!(unheard(&numbers), []);
        assert_eq!(numbers.id(first + 3), 1);
    }

    #[test]
    fn what_lies_too_far_back_is_let_go() {
        let mut numbers = Numbers::new(0, Sync::All);
        let first = numbers.of(0).expect("known");
        assert_eq!(numbers.reach(first + 30_000), None);
        assert_eq!(numbers.reach(first + 40_000), Some(first + 40_000 - WINDOW));
        assert_eq!(unheard(&numbers), [((40_001 - WINDOW) as u16, WINDOW)]);
        assert_eq!(numbers.of(0), Some(first + 65_536), "it comes round");
        // However far the sender leads it, counting ends, and nothing overflows.
        while let Some(number) = numbers.of(numbers.id(numbers.next()).wrapping_add(30_000)) {
            numbers.reach(number);
        }
        assert!(numbers.next() > u32::MAX - 2 * WINDOW);
    }
}
