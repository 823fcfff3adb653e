//! Scheduled outages of a link, and the stage that holds frames until the link is back.

use alloc::vec::Vec;

use farcast_core::engine::{Deadline, Message};
use farcast_core::stage::{Frame, Output, Port, Stage, Totals};
use farcast_core::{Span, Time};

use crate::LinkError;
use crate::pipe::{Inbox, entering_before};

/// One outage, from `start` (included) to `start + length` (excluded).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Start of the outage.
    pub start: Time,
    /// Length of the outage; above zero.
    pub length: Span,
}

/// Scheduled outages, the same for all receivers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// Start and end of each outage, ascending, with time between them.
    windows: Vec<(Time, Time)>,
    period: Option<Span>,
}

/// State of the link at an instant, and the time until which it lasts ([`Time::NEVER`]: for good).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutagePhase {
    /// The link is up.
    Clear {
        /// Start of the next outage.
        until: Time,
    },
    /// The link is out.
    Outage {
        /// End of the outage.
        until: Time,
    },
}

impl Schedule {
    /// Creates a schedule of outages at `windows`, in any order. Windows that overlap or touch are one outage. With a
    /// `period` all of them repeat every `period`, for good.
    ///
    /// # Errors
    /// [`LinkError::ZeroOutage`] if a window has no length, [`LinkError::Period`] if the last does not end before the
    /// first repeats.
    pub fn new(windows: &[Window], period: Option<Span>) -> Result<Self, LinkError> {
        if windows.iter().any(|window| window.length.is_zero()) {
            return Err(LinkError::ZeroOutage);
        }
        let mut spans: Vec<_> =
            windows.iter().map(|window| (window.start, window.start + window.length)).collect();
        spans.sort_unstable();
        spans.dedup_by(|later, earlier| {
            let one = later.0 <= earlier.1;
            if one {
                earlier.1 = earlier.1.max(later.1);
            }
            one
        });
        if let (Some(period), Some(first), Some(last)) = (period, spans.first(), spans.last())
            && last.1 >= first.0 + period
        {
            return Err(LinkError::Period);
        }
        Ok(Self { windows: spans, period })
    }

    /// Returns the state of the link at `now`.
    pub fn at(&self, now: Time) -> OutagePhase {
        let Some(&(first, _)) = self.windows.first() else {
            return OutagePhase::Clear { until: Time::NEVER };
        };
        // Time by which the windows have been moved by earlier repetitions.
        let moved = self
            .period
            .map_or(Span::ZERO, |period| period * (now.since(first).as_nanos() / period.as_nanos()));
        let within = now - moved;
        let next = self.windows.partition_point(|&(_, end)| end <= within);
        match (self.windows.get(next), self.period) {
            (Some(&(start, end)), _) if start <= within => OutagePhase::Outage { until: end + moved },
            (Some(&(start, _)), _) => OutagePhase::Clear { until: start + moved },
            (None, Some(period)) => OutagePhase::Clear { until: first + moved + period },
            (None, None) => OutagePhase::Clear { until: Time::NEVER },
        }
    }
}

/// A stage that stores the frames that enter during an outage and forwards them when it is over, all at once and in
/// order.
///
/// It carries one direction: frames enter at any port and leave at the port that it was made with. A frame that enters
/// while the link is up passes without delay.
#[derive(Clone, Debug)]
pub struct Hold<M> {
    schedule: Schedule,
    out: Port,
    inbox: Inbox<M>,
    sent: u64,
}

impl<M> Hold<M> {
    /// Creates a stage that holds frames during the outages of `schedule`; frames leave at `out`.
    pub const fn new(schedule: Schedule, out: Port) -> Self {
        Self { schedule, out, inbox: Inbox::new(), sent: 0 }
    }
}

impl<M: Message> Stage<M> for Hold<M> {
    fn handle(&mut self, now: Time, _port: Port, frame: Frame<M>) {
        self.inbox.push(now, frame);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_output(&mut self) -> Option<Output<M>> {
        let (now, frame) = self.inbox.front()?;
        let phase = self.schedule.at(now);
        let (OutagePhase::Clear { until } | OutagePhase::Outage { until }) = phase;
        let count = entering_before(now, frame.spacing, until, frame.message.segments());
        let mut frame = self.inbox.take(count)?;
        self.sent += u64::from(frame.segments());
        let at = match phase {
            OutagePhase::Clear { .. } => now,
            OutagePhase::Outage { until } => {
                frame.spacing = Span::ZERO;
                until
            }
        };
        Some(Output { at, port: self.out, frame })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn totals(&self) -> Totals {
        Totals { sent: self.sent, ..Totals::default() }
    }
}

#[cfg(test)]
mod tests;
