//! What the two sides of an entity share: settings, timers, counters, events.

use alloc::collections::VecDeque;

use farcast_core::{Span, Time, Timers};

use crate::config::Config;
use crate::event::{Counters, Event};

/// The timers of an entity (TS 25.322 section 9.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    Poll,
    PollPeriodic,
    PollProhibit,
    StatusPeriodic,
    StatusProhibit,
    Epc,
    Mrw,
    Discard,
    Reset,
}

/// How many timers there are.
pub(crate) const TIMERS: usize = 9;

impl Timer {
    /// Every timer, in the order in which they act at one instant.
    pub(crate) const ALL: [Self; TIMERS] = [
        Self::Poll,
        Self::PollPeriodic,
        Self::PollProhibit,
        Self::StatusPeriodic,
        Self::StatusProhibit,
        Self::Epc,
        Self::Mrw,
        Self::Discard,
        Self::Reset,
    ];
    /// Their names in the standard.
    pub(crate) const NAMES: [&'static str; TIMERS] = [
        "Timer_Poll",
        "Timer_Poll_Periodic",
        "Timer_Poll_Prohibit",
        "Timer_Status_Periodic",
        "Timer_Status_Prohibit",
        "Timer_EPC",
        "Timer_MRW",
        "Timer_Discard",
        "Timer_RST",
    ];
}

/// What the two sides of an entity share.
#[derive(Clone, Debug)]
pub(crate) struct Common<P> {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    pub(crate) events: VecDeque<Event<P>>,
    /// Whether something calls for a reset; the entity sees to it.
    pub(crate) reset_wanted: bool,
    timers: Timers<TIMERS>,
}

impl<P> Common<P> {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            counters: Counters::default(),
            events: VecDeque::new(),
            reset_wanted: false,
            timers: Timers::default(),
        }
    }

    pub(crate) const fn timers(&self) -> &Timers<TIMERS> {
        &self.timers
    }

    /// Starts `timer` anew, if there is a setting for it.
    pub(crate) fn start(&mut self, timer: Timer, now: Time, after: Option<Span>) {
        if let Some(after) = after {
            self.timers.set(timer as usize, now + after);
        }
    }

    pub(crate) fn start_at(&mut self, timer: Timer, at: Time) {
        self.timers.set(timer as usize, at);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.timers.stop(timer as usize);
    }

    pub(crate) fn is_running(&self, timer: Timer) -> bool {
        self.timers.is_set(timer as usize)
    }

    /// Stops and returns the first timer that is due at `now`, and when it was due.
    pub(crate) fn expire(&mut self, now: Time) -> Option<(Timer, Time)> {
        let due = self.timers.next(&Timer::NAMES)?.at;
        let index = self.timers.expire(now)?;
        Some((Timer::ALL[index], due))
    }
}

/// The first of `from`, `from + period`, ... that is after `now`: a period that ran on while nobody was awake.
pub(crate) fn next_period(from: Time, period: Span, now: Time) -> Time {
    let elapsed = now.since(from).as_nanos() / period.as_nanos().max(1);
    from + period * (elapsed + 1)
}
