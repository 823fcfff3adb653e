//! What a repairer lacks of a session that it receives itself: a receiver's window and its state machine, without what
//! a receiver makes of what comes.

use alloc::vec::Vec;

use farcast_core::{Span, Time};

use super::window::{Due, Intervals, Window};
use crate::sqn::Place;

/// The numbers that are missing.
#[derive(Clone, Debug)]
pub(crate) struct Lacking {
    window: Window,
    intervals: Intervals,
}

impl Lacking {
    /// Nothing before `place` is asked for; how long it waits for confirmation and for repair, and how often it asks
    /// again for want of either.
    pub(crate) fn new(place: Place, (confirm, repair): (Span, Span), retries: (u32, u32)) -> Self {
        let (confirm_retries, repair_retries) = retries;
        Self {
            window: Window::new(place),
            intervals: Intervals { confirm, repair, confirm_retries, repair_retries },
        }
    }

    /// One past the newest that is known of.
    pub(crate) fn lead(&self) -> Place {
        self.window.lead()
    }

    /// Everything before `lead` has been sent, and nothing before `trail` can be had any more. Back-offs end at
    /// `backoff`.
    pub(crate) fn know(&mut self, trail: Place, lead: Place, backoff: impl FnOnce() -> Time) {
        // So many gaps are told apart; behind them nothing is, until some are closed.
        if !self.window.is_full() {
            self.window.extend(lead);
        }
        self.window.advance(trail.min(self.window.lead()));
        self.window.fill(Place(u64::MAX), &[], backoff);
    }

    /// `place` has come.
    pub(crate) fn came(&mut self, place: Place) {
        if self.window.is_full() {
            return;
        }
        self.window.extend(place);
        if place == self.window.lead() {
            self.window.follow();
        } else {
            self.window.settle(place);
        }
    }

    /// A NAK for `place` was confirmed.
    pub(crate) fn confirmed(&mut self, now: Time, place: Place) {
        self.window.heard(now, place, true, &self.intervals);
    }

    /// When something is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.window.next()
    }

    /// What is to be asked for now, oldest first.
    pub(crate) fn expire(&mut self, now: Time, backoff: impl FnMut() -> Time) -> Vec<Place> {
        // What is given up it will not have: those below ask others.
        let Due { ask, .. } = self.window.expire(now, &self.intervals, backoff);
        ask
    }
}
