//! Estimate of the group's greatest round trip (draft §4.5).

use farcast_core::Span;

use crate::config::GRTT_RANGE;

/// The first and the longest interval of probes; the interval doubles.
const INTERVALS: (Span, Span) = (Span::from_secs(5), Span::from_secs(40));

/// Number of intervals in a row with only shorter round trips after which the estimate falls.
const LOW: u32 = 3;

/// Estimate of the greatest round trip.
#[derive(Clone, Debug)]
pub(super) struct Grtt {
    estimate: Span,
    /// The greatest sample since the last probe.
    peak: Span,
    /// Number of intervals in a row in which every sample was shorter than the estimate.
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

    /// Takes a measured round trip. One that is longer than the estimate counts at once.
    pub(super) fn sample(&mut self, trip: Span) {
        let trip = trip.clamp(GRTT_RANGE.0, GRTT_RANGE.1);
        if trip > self.peak {
            self.peak = trip;
            if trip > self.estimate {
                self.estimate = (self.estimate + trip * 3) / 4;
            }
        }
    }

    /// Notes that a probe leaves, and returns the time until the next.
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
