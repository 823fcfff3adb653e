//! Until when receivers may still wait by a round trip that they were told before.
//!
//! When the group's round trip is first measured it may become a hundredth of what was assumed, and twenty flushes of
//! the new one fit into the hold-off that a receiver has just begun by the old one. Whoever then ends, ends before
//! that receiver may ask.

use farcast_core::{Span, Time};

/// What was said last, and how long that holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    /// The round trip that was said last.
    said: Span,
    until: Time,
}

impl Patience {
    /// Receivers are told `grtt` from `now` on; they spread what they ask for over `backoff` of them.
    pub(crate) fn note(&mut self, now: Time, grtt: Span, backoff: u8) {
        if grtt < self.said {
            // RFC 5740 §5.3: a hold-off, then a back-off, and the way.
            let wait = self.said * (2 * u64::from(backoff) + 3);
            self.until = self.until.max(now + wait);
        }
        self.said = grtt;
    }

    /// How long they may still wait.
    pub(crate) fn left(&self, now: Time) -> Span {
        self.until.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_before_holds_until_nobody_waits_by_it() {
        let (ms, at) = (Span::from_millis, |ms| Time::ZERO + Span::from_millis(ms));
        let mut patience = Patience::default();
        patience.note(at(0), ms(500), 4);
        patience.note(at(10), ms(700), 4);
        assert_eq!(patience.left(at(10)), Span::ZERO, "a longer one needs nothing");
        patience.note(at(20), ms(2), 4);
        assert_eq!(patience.left(at(20)), ms(7700));
        patience.note(at(120), ms(1), 4);
        assert_eq!(patience.left(at(120)), ms(7600), "the longest of them counts");
        assert_eq!(patience.left(at(8000)), Span::ZERO);
    }
}
