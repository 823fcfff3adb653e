//! A sender's objects by number: those on the wire go round, these do not.

use alloc::vec::Vec;

use farcast_core::Run;

use crate::config::Sync;

/// How far objects may lie apart: half of what numbers on the wire can tell apart.
const WINDOW: u32 = 1 << 15;

/// The number of the object that is heard first: behind it there is room for all that may come, before it for what was
/// missed.
const FIRST: u32 = 2 * WINDOW;

/// Which objects of a sender there are, as far as is known, and which of them nothing has come of.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// The number on the wire of number 0.
    origin: u16,
    /// The first that is wanted.
    low: u32,
    /// Behind the last that is known of.
    next: u32,
    /// Wanted, known of, and neither at hand nor through: in order, apart from one another.
    unheard: Vec<Run>,
}

impl Numbers {
    /// Of a sender of whom object `id` is the first to be known of, but not its content.
    pub(super) fn new(id: u16, sync: Sync) -> Self {
        let number = FIRST;
        let missed = if sync == Sync::All { u32::from(id).min(WINDOW - 1) } else { 0 };
        let low = number - missed;
        let mut numbers =
            Self { origin: id.wrapping_sub(number as u16), low, next: low, unheard: Vec::new() };
        numbers.reach(number);
        numbers
    }

    /// The number of the object with this one on the wire, which is the nearest to the last that is known of; `None`
    /// if it lies before all that are wanted, or numbers have come to their end.
    pub(super) fn of(&self, id: u16) -> Option<u32> {
        let last = self.next - 1;
        let ahead = id.wrapping_sub(self.id(last)).cast_signed();
        let number = last.checked_add_signed(ahead.into())?;
        (number >= self.low && number < u32::MAX - WINDOW).then_some(number)
    }

    /// The number on the wire.
    pub(super) fn id(&self, number: u32) -> u16 {
        self.origin.wrapping_add(number as u16)
    }

    /// Whether anything is known of it.
    pub(super) fn knows(&self, number: u32) -> bool {
        (self.low..self.next).contains(&number)
    }

    /// Knows of all up to `number`. What then lies too far back cannot be told from others any more: the last of that.
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

    /// Whether nothing has come of it, although it is wanted and known of.
    pub(super) fn is_unheard(&self, number: u32) -> bool {
        self.place(number).is_ok()
    }

    /// Something has come of it, or cannot.
    pub(super) fn take(&mut self, number: u32) {
        let Ok(at) = self.place(number) else { return };
        let run = self.unheard[at];
        let parts = [run.clip(0, number), run.clip(number + 1, u32::MAX)];
        self.unheard.splice(at..=at, parts.into_iter().flatten());
    }

    /// What has come of it is lost.
    pub(super) fn give_back(&mut self, number: u32) {
        if let Err(at) = self.place(number)
            && self.knows(number)
        {
            // Neighbours stay apart; whoever lists them does not mind.
            self.unheard.insert(at, Run::one(number));
        }
    }

    /// Whether it was sent before anything was heard.
    pub(super) const fn was_missed(number: u32) -> bool {
        number < FIRST
    }

    /// Those before `number` of which nothing has come cannot be had: the first of them that was not missed.
    pub(super) fn let_go(&mut self, number: u32) -> Option<u32> {
        let gone: Vec<Run> = self.unheard(number).collect();
        self.unheard.retain_mut(|run| run.clip(number, u32::MAX).map(|rest| *run = rest).is_some());
        gone.into_iter().find_map(|run| run.clip(FIRST, u32::MAX)).map(Run::first)
    }

    /// Where in the list it is, or would be.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.unheard.binary_search_by(|run| {
            if run.contains(number) { core::cmp::Ordering::Equal } else { run.first().cmp(&number) }
        })
    }

    /// Those of which nothing has come before `end`, in runs.
    pub(super) fn unheard(&self, end: u32) -> impl Iterator<Item = Run> + '_ {
        self.unheard.iter().map_while(move |run| run.clip(0, end))
    }

    /// Behind the last that is known of.
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
        // However far it is led, it ends somewhere, and nothing overflows.
        while let Some(number) = numbers.of(numbers.id(numbers.next()).wrapping_add(30_000)) {
            numbers.reach(number);
        }
        assert!(numbers.next() > u32::MAX - 2 * WINDOW);
    }
}
