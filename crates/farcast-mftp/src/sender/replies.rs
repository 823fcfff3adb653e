//! Limit on answers to strangers, and the recent round trip.

use farcast_core::{Span, Time};

use crate::config::Pace;

/// Divisor of the rate for answers to strangers, minimum in octets per second, and the value where there is no rate.
const PART: u64 = 50;
const LEAST: u64 = 100;
const WITHOUT_RATE: u64 = 64 << 10;
/// Octets that may be sent to strangers at once.
const AT_ONCE: u64 = 4096;

/// Allowance of octets to strangers.
#[derive(Clone, Debug)]
pub(super) struct Replies {
    level: u64,
    at: Time,
    octets_per_second: u64,
}

impl Replies {
    pub(super) fn new(pace: Pace) -> Self {
        let octets_per_second = match pace {
            Pace::Rate { rate, .. } => (rate.as_bps() / 8 / PART).clamp(LEAST, WITHOUT_RATE),
            Pace::Window { .. } => WITHOUT_RATE,
        };
        Self { level: AT_ONCE, at: Time::ZERO, octets_per_second }
    }

    /// Takes `octets` from the allowance. Returns `true` if they may be sent now.
    pub(super) fn take(&mut self, now: Time, octets: u64) -> bool {
        let fresh = now.since(self.at).as_nanos().saturating_mul(self.octets_per_second) / 1_000_000_000;
        if fresh > 0 {
            (self.level, self.at) = ((self.level + fresh).min(AT_ONCE), now);
        }
        let enough = self.level >= octets;
        self.level -= if enough { octets } else { 0 };
        enough
    }
}

/// Interval of samples: at least this long, or eight round trips. Samples older than two intervals no longer count.
const LATELY: Span = Span::from_secs(10);
const TRIPS: u64 = 8;
/// Maximum of a sample: no path is longer, so a later answer was held back.
const LONGEST: Span = Span::from_secs(15);

/// Longest round trip of the last two intervals, so that one slow answer does not slow everything for good.
#[derive(Clone, Debug, Default)]
pub(super) struct LongestTrip {
    current: Option<Span>,
    before: Option<Span>,
    shortest: Option<Span>,
    at_most: Option<Span>,
    since: Time,
}

impl LongestTrip {
    pub(super) fn sample(&mut self, now: Time, sample: Span) {
        let sample = sample.min(LONGEST);
        let interval = LATELY.max(self.longest().unwrap_or(Span::ZERO) * TRIPS);
        if now.since(self.since) >= interval {
            (self.before, self.current, self.since) = (self.current, None, now);
        }
        self.current = Some(self.current.map_or(sample, |longest| longest.max(sample)));
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
    }

    pub(super) fn longest(&self) -> Option<Span> {
        self.current.max(self.before)
    }

    /// Records that one receiver's round trip takes `span` at most.
    pub(super) fn limit(&mut self, span: Span) {
        self.at_most = Some(self.at_most.map_or(span, |most| most.max(span)));
    }

    /// Returns the longest of these limits, if there is one: no receiver that has a limit takes longer.
    pub(super) fn at_most(&self) -> Option<Span> {
        self.at_most
    }

    /// Returns the shortest of all samples.
    pub(super) fn shortest(&self) -> Option<Span> {
        self.shortest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_is_forgotten() {
        let mut trip = LongestTrip::default();
        let (late, usual) = (Span::from_secs(5), Span::from_millis(100));
        trip.sample(Time::ZERO, late);
        assert_eq!(trip.longest(), Some(late));
        for second in 1..200 {
            trip.sample(Time::ZERO + Span::from_secs(second), usual);
        }
        assert_eq!((trip.longest(), trip.shortest()), (Some(usual), Some(usual)));
    }

    #[test]
    fn the_longest_registration_limits_the_round_trip() {
        let mut trip = LongestTrip::default();
        assert_eq!(trip.at_most(), None);
        for milliseconds in [500, 700, 600] {
            trip.limit(Span::from_millis(milliseconds));
        }
        assert_eq!((trip.at_most(), trip.longest()), (Some(Span::from_millis(700)), None));
    }

    #[test]
    fn strangers_take_a_fiftieth_of_the_rate() {
        let rate = farcast_core::BitRate::from_bps(8_000_000).expect("positive");
        let mut replies = Replies::new(Pace::Rate { rate, overhead: 28, credit: Span::ZERO, granule: 1 });
        let mut said = 0;
        for millisecond in 0..10_000 {
            said += u64::from(replies.take(Time::ZERO + Span::from_millis(millisecond), 100)) * 100;
        }
        assert!((190_000..=200_000 + AT_ONCE).contains(&said), "{said} octets in 10 s at 1 MB/s");
    }
}
