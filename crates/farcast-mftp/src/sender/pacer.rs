//! When the next datagram may leave.

use farcast_core::{Span, Time};

use crate::config::Pace;

/// Keeps the rate: each datagram moves the next departure by the time that its bits take.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    pace: Pace,
    next: Time,
    /// Sending time of control messages that left out of turn.
    debt: Span,
    /// What a DTU takes where there is no rate, and its UDP payload: control messages are not counted there.
    dtu: (Span, usize),
}

/// How much sending time a late driver may make up for at once where there is no rate.
const CREDIT: Span = Span::from_millis(2);

impl Pacer {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, next: Time::ZERO, debt: Span::ZERO, dtu: (Span::ZERO, 0) }
    }

    /// The first time that something may leave.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// The time that a datagram with `len` bytes of UDP payload takes; zero without a rate.
    pub(super) fn span(&self, len: usize) -> Span {
        match self.pace {
            Pace::Rate { rate, overhead, granule, .. } => {
                rate.time_of_bytes((len as u64 + u64::from(overhead)).next_multiple_of(u64::from(granule)))
            }
            Pace::Window { .. } if len >= self.dtu.1 => self.dtu.0,
            Pace::Window { .. } => Span::ZERO,
        }
    }

    /// Lets datagrams of `len` bytes or more of UDP payload take `span`, where there is no rate.
    pub(super) fn pace_dtus(&mut self, span: Span, len: usize) {
        self.dtu = (span, len);
    }

    /// Forgets sending time that passed unused, but for the credit: it is not made up for in one burst.
    pub(super) fn settle(&mut self, now: Time) {
        let credit = match self.pace {
            Pace::Rate { credit, .. } => credit,
            Pace::Window { .. } => CREDIT,
        };
        self.next = self.next.max(now - credit);
    }

    /// Begins to send: nothing is owed for the time before `now`.
    pub(super) fn begin(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Begins to send at `now`, whatever was planned.
    pub(super) fn restart(&mut self, now: Time) {
        self.next = now;
    }

    /// Notes that something that takes `span` left out of turn; it counts at the next block, so that what arrives
    /// while a run is in flight does not move the rest of the run.
    pub(super) fn owe(&mut self, span: Span) {
        self.debt = self.debt + span;
    }

    /// Makes the next departure wait for what left out of turn.
    pub(super) fn pay_debt(&mut self) {
        self.next += core::mem::take(&mut self.debt);
    }

    /// Accounts for something that takes `span` to send.
    pub(super) fn charge(&mut self, span: Span) {
        self.next += span;
    }

    /// How many datagrams that take `span` each depart before `until`; at least 1, the one that is due.
    pub(super) fn departures_before(&self, until: Time, span: Span) -> u32 {
        if span.is_zero() {
            return u32::MAX;
        }
        let count = until.since(self.next).as_nanos().div_ceil(span.as_nanos());
        u32::try_from(count).unwrap_or(u32::MAX).max(1)
    }
}
