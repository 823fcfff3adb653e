//! Time for which receivers may still wait by a GRTT that an earlier message had.
//!
//! When the GRTT is first measured, it may become a hundredth of the assumed one. Then twenty flushes of the new GRTT
//! fit into the hold-off that a receiver has just begun by the old one. A sender that ends after these ends before that
//! receiver may ask.

use farcast_core::{Span, Time};

/// Last advertised GRTT, and the end of waits by longer ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    /// Last advertised GRTT.
    said: Span,
    until: Time,
}

impl Patience {
    /// Notes that messages carry `grtt` from `now` on; receivers spread their requests over `backoff` GRTTs.
    pub(crate) fn note(&mut self, now: Time, grtt: Span, backoff: u8) {
        if grtt < self.said {
            // RFC 5740 §5.3: a hold-off, then a back-off, and the way.
            let wait = self.said * (2 * u64::from(backoff) + 3);
            self.until = self.until.max(now + wait);
        }
        self.said = grtt;
    }

    /// Returns the time for which receivers may still wait.
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
