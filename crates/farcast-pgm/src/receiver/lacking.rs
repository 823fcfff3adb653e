//! Missing numbers of a session that a repairer receives itself: a receiver's window and state machine, without its
//! delivery.

use alloc::vec::Vec;

use farcast_core::Time;

use super::window::{Due, Intervals, Window};
use crate::sqn::Place;

/// The missing numbers, and the intervals of their requests.
#[derive(Clone, Debug)]
pub(crate) struct Lacking {
    window: Window,
    intervals: Intervals,
}

impl Lacking {
    /// Creates an empty set that asks for nothing before `place`.
    pub(crate) fn new(place: Place, intervals: Intervals) -> Self {
        Self { window: Window::new(place), intervals }
    }

    /// Returns the place behind the newest number that is known.
    pub(crate) fn lead(&self) -> Place {
        self.window.lead()
    }

    /// Notes that everything before `lead` has been sent, and that nothing before `trail` can be obtained any more.
    /// Back-offs end at `backoff`.
    pub(crate) fn know(&mut self, trail: Place, lead: Place, backoff: impl FnOnce() -> Time) {
        // The window holds a limited number of gaps; it is not extended until some are closed.
        if !self.window.is_full() {
            self.window.extend(lead);
        }
        self.window.advance(trail.min(self.window.lead()));
        self.window.fill(Place(u64::MAX), &[], backoff);
    }

    /// Notes that `place` has come.
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

    /// Notes that a NAK for `place` was confirmed.
    pub(crate) fn confirmed(&mut self, now: Time, place: Place) {
        self.window.heard(now, place, true, &self.intervals);
    }

    /// Returns the time at which something is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.window.next()
    }

    /// Returns the places that are to be asked for now, oldest first.
    pub(crate) fn expire(&mut self, now: Time, backoff: impl FnMut() -> Time) -> Vec<Place> {
        // The repairer will not get what it gives up: receivers below ask others.
        let Due { ask, .. } = self.window.expire(now, &self.intervals, backoff);
        ask
    }
}
