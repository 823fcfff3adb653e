//! The timers of an engine: a small set of optional deadlines, named by an enum.
//!
//! ```
//! use farcast_core::{Time, Timers, timers};
//!
//! timers! {
//!     /// Those of a light.
//!     enum Timer {
//!         /// It was switched off.
//!         Off = "off",
//!         /// Its bulb is to be looked at.
//!         Check = "check",
//!     }
//! }
//!
//! let mut timers = Timers::<Timer>::default();
//! timers.set(Timer::Check, Time::from_nanos(7));
//! assert_eq!(timers.next().map(|deadline| deadline.timer), Some("check"));
//! assert_eq!(timers.expire(Time::from_nanos(7)), Some(Timer::Check));
//! assert_eq!(timers.next(), None);
//! ```

use core::fmt::Debug;

use crate::{Deadline, Time};

/// An enum of timers, made with [`timers!`](crate::timers!).
pub trait TimerSet: Copy + Eq + Debug + 'static {
    /// All timers, in the order in which timers due at the same time expire.
    const ALL: &'static [Self];
    /// Array with a time for each timer.
    type Times: AsRef<[Time]> + AsMut<[Time]> + Clone + Eq + Debug;
    /// Times of a set in which no timer runs.
    const STOPPED: Self::Times;

    /// Returns the timer's index in [`ALL`](Self::ALL).
    fn index(self) -> usize;

    /// Returns the timer's name in traces and failures.
    fn name(self) -> &'static str;
}

/// Defines an enum of timers, each with the name by which it is shown.
#[macro_export]
macro_rules! timers {
    ($(#[$about:meta])* $vis:vis enum $Set:ident { $($(#[$doc:meta])* $Timer:ident = $name:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $Set {
            $($(#[$doc])* $Timer),+
        }

        impl $crate::timers::TimerSet for $Set {
            const ALL: &'static [Self] = &[$(Self::$Timer),+];
            type Times = [$crate::Time; [$($name),+].len()];
            const STOPPED: Self::Times = [$crate::Time::NEVER; [$($name),+].len()];

            fn index(self) -> usize {
                self as usize
            }

            fn name(self) -> &'static str {
                match self {
                    $(Self::$Timer => $name),+
                }
            }
        }
    };
}

/// The timers of an engine. An engine has a handful of them, so the earliest is found by a scan, which beats a heap and
/// needs no cancellation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timers<T: TimerSet> {
    at: T::Times,
}

impl<T: TimerSet> Default for Timers<T> {
    fn default() -> Self {
        Self { at: T::STOPPED }
    }
}

impl<T: TimerSet> Timers<T> {
    /// Sets `timer` to `at`, replacing its earlier time.
    pub fn set(&mut self, timer: T, at: Time) {
        self.at.as_mut()[timer.index()] = at;
    }

    /// Stops `timer`.
    pub fn stop(&mut self, timer: T) {
        self.set(timer, Time::NEVER);
    }

    /// Returns the time at which `timer` is due; [`Time::NEVER`] while it is stopped.
    pub fn due(&self, timer: T) -> Time {
        self.at.as_ref()[timer.index()]
    }

    /// Returns `true` if `timer` is running.
    pub fn is_set(&self, timer: T) -> bool {
        self.due(timer) != Time::NEVER
    }

    /// Stops and returns the first timer that is due at `now`, earliest deadline first, ties in the order of the set.
    pub fn expire(&mut self, now: Time) -> Option<T> {
        let (timer, at) = self.first()?;
        if at > now {
            return None;
        }
        self.stop(timer);
        Some(timer)
    }

    /// Returns the earliest deadline.
    pub fn next(&self) -> Option<Deadline> {
        self.first().map(|(timer, at)| Deadline { at, timer: timer.name() })
    }

    /// Returns the earliest timer, ties in the order of the set. Engines call this after each packet, so it is a loop
    /// without a branch.
    fn first(&self) -> Option<(T, Time)> {
        let mut first = (0, Time::NEVER);
        for (index, &at) in self.at.as_ref().iter().enumerate() {
            first = if at < first.1 { (index, at) } else { first };
        }
        (first.1 != Time::NEVER).then(|| (T::ALL[first.0], first.1))
    }
}
