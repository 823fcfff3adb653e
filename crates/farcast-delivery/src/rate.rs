//! How fast a sender sends, as something beside its pacer decides.

use core::convert::Infallible;

use farcast_core::engine::Reject;
use farcast_core::{BitRate, Time};

/// Decides how fast a sender sends: a fixed rate, or congestion control by what receivers report.
///
/// The rate changes by a report, or at the instant that [`until`](Self::until) names, and at no other time. So before
/// that instant a sender hands out nothing that leaves after it, and its
/// [`settled_until`](farcast_core::Engine::settled_until) never passes a change of rate (law 12): neither that instant,
/// nor the present where a report may come at any time.
pub trait RateControl {
    /// What a receiver says of how the way carries what is sent.
    type Report;

    /// Takes a report that has come at `now`.
    ///
    /// # Errors
    /// A report that makes no sense changes nothing.
    fn report(&mut self, now: Time, report: &Self::Report) -> Result<(), Reject>;

    /// Changes what is due at `now`; called early, it does nothing.
    fn advance(&mut self, now: Time);

    /// The rate, until a report comes or [`until`](Self::until): of datagrams with all their headers.
    fn rate(&self) -> BitRate;

    /// When the rate may change next without a report.
    fn until(&self) -> Time;
}

/// A rate that nothing changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedRate(pub BitRate);

impl RateControl for FixedRate {
    type Report = Infallible;

    fn report(&mut self, _now: Time, report: &Infallible) -> Result<(), Reject> {
        match *report {}
    }

    fn advance(&mut self, _now: Time) {}

    fn rate(&self) -> BitRate {
        self.0
    }

    fn until(&self) -> Time {
        Time::NEVER
    }
}
