//! Settings, timers, counters and events that the two sides of an entity share.

use alloc::collections::VecDeque;

use farcast_core::{Span, Time, Timers, timers};

use crate::config::Config;
use crate::event::{Counters, Event};

timers! {
    /// The timers of an entity, under their names of the standard (TS 25.322 section 9.5).
    pub(crate) enum Timer {
        Poll = "Timer_Poll",
        PollPeriodic = "Timer_Poll_Periodic",
        PollProhibit = "Timer_Poll_Prohibit",
        StatusPeriodic = "Timer_Status_Periodic",
        StatusProhibit = "Timer_Status_Prohibit",
        Epc = "Timer_EPC",
        Mrw = "Timer_MRW",
        Discard = "Timer_Discard",
        Reset = "Timer_RST",
    }
}

/// State that the two sides of an entity share.
#[derive(Clone, Debug)]
pub(crate) struct Common<P> {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    pub(crate) events: VecDeque<Event<P>>,
    /// `true` if an event calls for a reset, which the entity then begins.
    pub(crate) reset_wanted: bool,
    timers: Timers<Timer>,
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

    pub(crate) const fn timers(&self) -> &Timers<Timer> {
        &self.timers
    }

    /// Starts `timer` anew, to end `after` from now; does nothing if that is `None`.
    pub(crate) fn start(&mut self, timer: Timer, now: Time, after: Option<Span>) {
        if let Some(after) = after {
            self.timers.set(timer, now + after);
        }
    }

    pub(crate) fn start_at(&mut self, timer: Timer, at: Time) {
        self.timers.set(timer, at);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.timers.stop(timer);
    }

    pub(crate) fn is_running(&self, timer: Timer) -> bool {
        self.timers.is_set(timer)
    }

    /// Stops and returns the first timer that is due at `now`, with the time at which it was due.
    pub(crate) fn expire(&mut self, now: Time) -> Option<(Timer, Time)> {
        let due = self.timers.next()?.at;
        self.timers.expire(now).map(|timer| (timer, due))
    }
}

/// Returns the first of `from`, `from + period`, ... that is after `now`: the period runs on while nobody wakes the
/// entity.
pub(crate) fn next_period(from: Time, period: Span, now: Time) -> Time {
    let elapsed = now.since(from).as_nanos() / period.as_nanos().max(1);
    from + period * (elapsed + 1)
}
