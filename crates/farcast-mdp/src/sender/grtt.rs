//! The group's greatest round trip (draft §4.5).

use farcast_core::Span;

use crate::config::GRTT_RANGE;

/// Until the next probe: first and in the end; it doubles.
const INTERVALS: (Span, Span) = (Span::from_secs(5), Span::from_secs(40));

/// After so many intervals whose longest round trip is shorter than thought, that is believed.
const LOW: u32 = 3;

/// What is known of it.
#[derive(Clone, Debug)]
pub(super) struct Grtt {
    estimate: Span,
    /// The greatest sample since the last probe.
    peak: Span,
    /// Intervals in a row in which nothing as long as thought was measured.
    low: u32,
    interval: Span,
}

impl Grtt {
    pub(super) fn new(estimate: Span) -> Self {
        Self { estimate, peak: Span::ZERO, low: 0, interval: Span::ZERO }
    }

    pub(super) fn estimate(&self) -> Span {
        self.estimate
    }

    /// A round trip was measured. One that is longer than thought counts at once.
    pub(super) fn sample(&mut self, trip: Span) {
        let trip = trip.clamp(GRTT_RANGE.0, GRTT_RANGE.1);
        if trip > self.peak {
            self.peak = trip;
            if trip > self.estimate {
                self.estimate = (self.estimate + trip * 3) / 4;
            }
        }
    }

    /// A probe leaves. How long until the next.
    pub(super) fn probed(&mut self) -> Span {
        if !self.peak.is_zero() {
            self.low = if self.peak < self.estimate { self.low + 1 } else { 0 };
            if self.low == LOW {
                self.low = 0;
                self.estimate = (self.estimate * 3 + self.peak) / 4;
            }
        }
        self.peak = Span::ZERO;
        self.interval = (self.interval * 2).clamp(INTERVALS.0, INTERVALS.1);
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_at_once_and_falls_at_the_third_time() {
        let ms = Span::from_millis;
        let mut grtt = Grtt::new(ms(400));
        assert_eq!(grtt.probed(), ms(5000));
        grtt.sample(ms(800));
        assert_eq!(grtt.estimate(), ms(700), "a quarter of what was thought, three of what was measured");
        grtt.sample(ms(760));
        assert_eq!(grtt.estimate(), ms(700), "no longer than the longest since the probe");
        assert_eq!((grtt.probed(), grtt.estimate()), (ms(10_000), ms(700)));
        for _ in 0..2 {
            grtt.sample(ms(100));
            grtt.sample(ms(300));
            grtt.probed();
            assert_eq!(grtt.estimate(), ms(700));
        }
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(700), "nobody has answered");
        grtt.sample(ms(300));
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(600), "three quarters of what was thought, one of the longest");
        grtt.sample(Span::MAX);
        assert_eq!(grtt.estimate(), ms(11_400), "15 s are the most that is believed");
        assert_eq!((0..9).map(|_| grtt.probed()).last(), Some(ms(40_000)));
    }
}
