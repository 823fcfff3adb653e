//! Rate control: rates that something beside the pacer decides.

use core::convert::Infallible;

use farcast_core::engine::Reject;
use farcast_core::{BitRate, Time};

/// Rate control of a sender: a fixed rate, or congestion control from receivers' reports.
///
/// The rate changes with a report, or at the instant [`until`](Self::until), and at no other time. Before that instant
/// a sender hands out nothing that leaves after it. Its [`settled_until`](farcast_core::Engine::settled_until) never
/// passes a change of rate (law 12): neither that instant, nor the present if a report may come at any time.
pub trait RateControl {
    /// Receiver's report about the path.
    type Report;

    /// Handles a report that came at `now`.
    ///
    /// # Errors
    /// Returns an error for an implausible report, which changes nothing.
    fn report(&mut self, now: Time, report: &Self::Report) -> Result<(), Reject>;

    /// Makes the changes that are due at `now`; an early call does nothing.
    fn advance(&mut self, now: Time);

    /// Returns the rate, which counts datagrams with all their headers. It holds until a report or
    /// [`until`](Self::until).
    fn rate(&self) -> BitRate;

    /// Returns the next time at which the rate may change without a report.
    fn until(&self) -> Time;
}

/// Rate that never changes.
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
