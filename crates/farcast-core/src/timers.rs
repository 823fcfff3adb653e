//! The named timers of an engine: a small array of optional deadlines.

use crate::{Deadline, Time};

/// A set of named timers, indexed by an enum of at most a dozen variants.
///
/// An engine has a handful of timers; the earliest is found by looking at all of them, which beats a heap and
/// needs no cancellation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timers<const N: usize> {
    at: [Time; N],
}

impl<const N: usize> Default for Timers<N> {
    fn default() -> Self {
        Self { at: [Time::NEVER; N] }
    }
}

impl<const N: usize> Timers<N> {
    /// Sets timer `index` to `at`, replacing what it was.
    ///
    /// # Panics
    /// If `index` is not below `N`; it is an enum's discriminant.
    pub fn set(&mut self, index: usize, at: Time) {
        self.at[index] = at;
    }

    /// Stops timer `index`.
    pub fn stop(&mut self, index: usize) {
        self.at[index] = Time::NEVER;
    }

    /// When timer `index` is due; [`Time::NEVER`] while it is stopped.
    pub fn due(&self, index: usize) -> Time {
        self.at[index]
    }

    /// Whether timer `index` is running.
    pub fn is_set(&self, index: usize) -> bool {
        self.at[index] != Time::NEVER
    }

    /// Stops and returns the first timer that is due at `now`, earliest deadline first, ties by index.
    pub fn expire(&mut self, now: Time) -> Option<usize> {
        let (index, at) = self.first();
        if at > now || at == Time::NEVER {
            return None;
        }
        self.stop(index);
        Some(index)
    }

    /// The earliest deadline and its name out of `names`.
    pub fn next(&self, names: &[&'static str; N]) -> Option<Deadline> {
        let (index, at) = self.first();
        (at != Time::NEVER).then(|| Deadline { at, timer: names[index] })
    }

    /// The earliest, ties by index. Engines are asked for it after each packet, so it is a loop without a branch.
    fn first(&self) -> (usize, Time) {
        let mut first = (0, Time::NEVER);
        for (index, &at) in self.at.iter().enumerate() {
            first = if at < first.1 { (index, at) } else { first };
        }
        first
    }
}
