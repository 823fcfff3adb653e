//! Withdrawn files, whose sources changed or are gone.

use alloc::vec::Vec;

use farcast_core::{Span, Time};
use farcast_delivery::ObjectId;

use super::Sender;
use crate::config::Sending;
use crate::message::Sqn;
use crate::sqn::Place;

/// Divisor of [`SenderConfig::linger`](crate::SenderConfig::linger) once a file was withdrawn. A receiver that lacks
/// the file never acknowledges.
const BEREFT: u64 = 2;

impl Sender {
    /// Withdraws the file `object`: nothing of it is sent any more. Its descriptor says so, at once if it had left, and
    /// in answer to every request for the file.
    pub(super) fn withdraw_file(&mut self, now: Time, object: ObjectId) {
        if self.core.ending.is_some() || self.config.sending == Sending::Messages {
            return;
        }
        let (had, next) = (self.has_data(), self.window.next);
        let Some(places) = self.window.withdraw(object) else { return };
        self.is_bereft = true;
        self.is_cut_short |= next < places.end;
        self.repairs.take(|place| places.contains(&place));
        if places.start < next {
            self.repairs.repeat(places.start);
        }
        self.look_whether_sent(now);
        self.wake(now, had);
    }

    /// Returns the time to stay after the last request.
    pub(super) fn linger(&self) -> Span {
        let linger = self.config.linger;
        if self.is_bereft { Span::from_nanos(linger.as_nanos() / BEREFT) } else { linger }
    }

    /// Returns `true` if `sqn` is a number of a withdrawn file.
    pub(super) fn is_of_withdrawn(&self, sqn: Sqn) -> bool {
        let place = self.window.next.near(sqn);
        place >= self.window.trail && self.window.answer_for(place).is_some()
    }

    /// Replaces the gathered requests for withdrawn files by the descriptors of these files. A descriptor that has left
    /// lately does not leave again, however many receivers ask.
    pub(super) fn answer_for_withdrawn(&mut self, now: Time) {
        if !self.is_bereft {
            return;
        }
        let window = &self.window;
        let answer = |place| window.answer_for(place).filter(|&answer| answer != place);
        let asked = self.repairs.take(|place| answer(place).is_some());
        let mut answers: Vec<Place> = asked.into_iter().filter_map(answer).collect();
        answers.dedup();
        for place in answers {
            self.repairs.ask(now, place, self.config.holdoff);
        }
    }
}
