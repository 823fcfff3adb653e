//! The call behind a link: it drops, is found dead, and is dialled again.

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_ppp::EchoMonitor;

use super::config::{Calls, Detection};

/// Counters of a link's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallCounters {
    /// Calls that dropped.
    pub drops: u64,
    /// Working calls that were hung up because echoes got lost.
    pub hang_ups: u64,
    /// The time from drops to their detection.
    pub undetected: Span,
    /// The time from drops and hang-ups until the link was back in the bundle. Only finished ones count.
    pub down: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Up,
    /// Dropped, and the drop is not detected yet.
    Dropped,
    Dialling,
}

/// Actions of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Drop,
    /// The drop is detected, and the link leaves the bundle.
    Leave,
    /// A working call is given up: it drops, and the link leaves.
    HangUp,
    /// The call is up again, and the link joins the bundle.
    Join,
    /// The hub's end sends an Echo-Request with this identifier.
    Ask(u8),
}

/// A link's call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// `None` if calls never drop.
    config: Option<Calls>,
    state: State,
    /// Time at which the call drops, is found dead by the carrier, or is up again.
    at: Time,
    echo: Option<EchoMonitor>,
    drops: RandomStream,
    /// Time of the last drop.
    dropped: Time,
    counters: CallCounters,
}

impl Call {
    /// Creates a call that is up from time 0 on.
    pub(super) fn new(config: Option<Calls>, drops: RandomStream) -> Self {
        let (at, dropped) = (Time::NEVER, Time::ZERO);
        let counters = CallCounters::default();
        let mut call = Self { config, state: State::Up, at, echo: None, drops, dropped, counters };
        if let Some(config) = call.config {
            call.come_up(Time::ZERO, &config);
        }
        call
    }

    pub(super) const fn counters(&self) -> &CallCounters {
        &self.counters
    }

    /// Returns the time of the call's next action.
    pub(super) fn next(&self) -> Time {
        let echo = self.echo.as_ref().and_then(EchoMonitor::poll_timeout);
        echo.map_or(self.at, |echo| self.at.min(echo.at))
    }

    fn come_up(&mut self, now: Time, config: &Calls) {
        self.state = State::Up;
        // Exponential; 1 - unit() lies in (0, 1], so its logarithm is finite. The logarithm is libm's: the same digits
        // on every platform.
        let means = -libm::log(1.0 - self.drops.unit());
        let lasts = Span::from_secs_f64(means * config.time_between_drops.as_secs_f64());
        self.at = now + lasts.max(Span::from_nanos(1));
        if let Detection::Echo(echo) = config.detection {
            self.echo = Some(EchoMonitor::new(echo, now));
        }
    }

    /// Performs the action that is due at `now`, if any.
    pub(super) fn act(&mut self, now: Time) -> Option<Act> {
        let config = self.config?;
        if self.at <= now {
            return Some(match self.state {
                State::Up => self.drop_out(now, &config),
                State::Dropped => self.redial(now, &config),
                State::Dialling => {
                    self.counters.down = self.counters.down + now.since(self.dropped);
                    self.come_up(now, &config);
                    Act::Join
                }
            });
        }
        let echo = self.echo.as_mut()?;
        echo.handle_timeout(now);
        if echo.is_dead() {
            return Some(self.redial(now, &config));
        }
        echo.poll_request().map(Act::Ask)
    }

    fn drop_out(&mut self, now: Time, config: &Calls) -> Act {
        self.state = State::Dropped;
        self.dropped = now;
        self.counters.drops += 1;
        self.at = match config.detection {
            Detection::Carrier { after } => now + after,
            Detection::Echo(_) => Time::NEVER,
        };
        Act::Drop
    }

    fn redial(&mut self, now: Time, config: &Calls) -> Act {
        let works = self.state == State::Up;
        if works {
            self.dropped = now;
            self.counters.hang_ups += 1;
        }
        self.counters.undetected = self.counters.undetected + now.since(self.dropped);
        self.state = State::Dialling;
        self.at = now + config.redial;
        self.echo = None;
        if works { Act::HangUp } else { Act::Leave }
    }

    /// Takes an Echo-Reply.
    pub(super) fn reply(&mut self, now: Time, identifier: u8) {
        if let Some(echo) = &mut self.echo {
            echo.reply(now, identifier);
        }
    }
}
