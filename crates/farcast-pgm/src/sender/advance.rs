//! Progress of the source: segments that come into being, and the advance of its window (RFC 3208 §16).

use farcast_core::Time;

use super::window::Window;
use super::{Sender, Timer};
use crate::config::{Advance, Sending};
use crate::event::{Released, SenderEvent};
use crate::sqn::Place;

impl Sender {
    /// Returns the place behind the last TPDU that could be sent now.
    pub(super) fn there(&self) -> Place {
        self.made.map_or(self.window.end, |(made, _)| made)
    }

    /// Notes that another live segment has come into being, and sets the timer of the next.
    pub(super) fn make(&mut self) {
        let (Some(live), Some((made, begins))) = (self.config.live, &mut self.made) else { return };
        *made = made.next();
        if *made < self.window.end {
            // The whole length is converted at once, so that rounding errors do not add up.
            let octets = self.window.octets_before(*made);
            self.timers.set(Timer::Live, *begins + live.rate.time_of_bytes(octets));
        }
    }

    /// Returns the number of new TPDUs that may leave. If the window is full, advances it where that is allowed.
    pub(super) fn room(&mut self, now: Time) -> u32 {
        let left = Window::between(self.window.next, self.there());
        let Advance::Data { sqns, hold } = self.config.advance else { return left };
        let used = Window::between(self.window.trail, self.window.next);
        if used < sqns || left == 0 {
            return left.min(sqns - used);
        }
        let trail = self.window.trail.plus(sqns / 8);
        if self.is_held() {
            return 0;
        }
        let asked = self.asked_at.map(|at| at + hold).filter(|&until| until > now);
        // A ready repair leaves before this function is called, so a wanted one is still being gathered.
        let wanted =
            self.repairs.oldest().filter(|&oldest| oldest < trail).map(|_| self.timers.due(Timer::Gather));
        let since = *self.blocked.get_or_insert(now);
        if let Some(until) = asked.max(wanted).filter(|_| now.since(since) < self.config.linger) {
            self.timers.set(Timer::Advance, until);
            return 0;
        }
        self.advance(trail);
        left.min(sqns / 8)
    }

    pub(super) fn advance(&mut self, trail: Place) {
        (self.asked_at, self.blocked) = (None, None);
        self.timers.stop(Timer::Advance);
        let is_messages = self.config.sending == Sending::Messages;
        let released = self
            .window
            .advance(trail)
            .filter(|_| is_messages)
            .map(|object| SenderEvent::Own(Released(object)));
        self.core.events.extend(released);
        self.repairs.advance(self.window.trail);
    }

    /// Notes that `place` left at `at`, for a window that advances with time.
    pub(super) fn mark(&mut self, at: Time, place: Place) {
        let Advance::Time(span) = self.config.advance else { return };
        let due = self.marks.back().is_none_or(|&(last, _)| at.since(last).as_nanos() >= span.as_nanos() / 8);
        if due {
            self.marks.push_back((at, place));
            self.timers.set(Timer::Advance, self.marks[0].0 + span);
        }
    }

    /// Advances the window past its oldest part, which is too old.
    pub(super) fn age(&mut self) {
        let Advance::Time(span) = self.config.advance else { return };
        let Some((_, trail)) = self.marks.pop_front() else { return };
        self.advance(trail);
        if let Some(&(at, _)) = self.marks.front() {
            self.timers.set(Timer::Advance, at + span);
        }
    }
}
