//! Limits on answers to strangers, and the recent round trip.

use farcast_core::{Span, Time};

use crate::config::Pace;

/// Divisor of the rate for answers to strangers, minimum in octets per second, and the value where there is no rate.
const PART: u64 = 50;
const LEAST: u64 = 100;
const WITHOUT_RATE: u64 = 64 << 10;
/// Divisor of the rate for answers to strangers that the sender has called, with their headers.
const CALLED_PART: u64 = 10;
/// Octets of a datagram's headers.
const HEADERS: u64 = 28;
/// Octets that may be sent to strangers at once, and the time in which as much may be sent to those that were called.
const AT_ONCE: u64 = 4096;
const AT_ONCE_S: u64 = 2;

/// Allowances of octets to strangers: to those that answer a call, and to all others.
///
/// The sender asks for a limited number of answers. So forged ones take the place of true ones, and do not make it send
/// more than those would.
#[derive(Clone, Debug)]
pub(super) struct Replies {
    called: Allowance,
    others: Allowance,
}

#[derive(Clone, Debug)]
struct Allowance {
    level: u64,
    at: Time,
    octets_per_second: u64,
    most: u64,
}

impl Replies {
    pub(super) fn new(pace: Pace) -> Self {
        let called = rate(pace, CALLED_PART);
        Self {
            called: Allowance::new(called, called * AT_ONCE_S),
            others: Allowance::new(rate(pace, PART).max(LEAST), AT_ONCE),
        }
    }

    /// Takes `octets` from the allowance of strangers that were `called`, or else of the others. Returns `true` if they
    /// may be sent now.
    pub(super) fn take(&mut self, now: Time, octets: u64, called: bool) -> bool {
        called && self.called.take(now, octets + HEADERS) || self.others.take(now, octets)
    }
}

/// Returns the octets a second, with headers, that strangers get who were called, of a sender at `pace`.
pub(super) fn for_called(pace: Pace) -> f64 {
    rate(pace, CALLED_PART) as f64
}

fn rate(pace: Pace, part: u64) -> u64 {
    match pace {
        Pace::Rate { rate, .. } => (rate.as_bps() / 8 / part).min(WITHOUT_RATE),
        Pace::Window { .. } => WITHOUT_RATE,
    }
}

impl Allowance {
    fn new(octets_per_second: u64, most: u64) -> Self {
        Self { level: most, at: Time::ZERO, octets_per_second, most }
    }

    fn take(&mut self, now: Time, octets: u64) -> bool {
        let fresh = now.since(self.at).as_nanos().saturating_mul(self.octets_per_second) / 1_000_000_000;
        if fresh > 0 {
            (self.level, self.at) = ((self.level + fresh).min(self.most), now);
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
    fn strangers_take_a_fiftieth_of_the_rate_and_those_that_were_called_a_tenth_more() {
        let rate = farcast_core::BitRate::from_bps(4_000_000).expect("positive");
        let called_octets = 500_000 * 100 / (100 + HEADERS);
        for (called, octets) in [(false, 100_000), (true, 100_000 + called_octets)] {
            let mut replies = Replies::new(Pace::Rate { rate, overhead: 28, credit: Span::ZERO, granule: 1 });
            let mut said = 0;
            for part in 0..100_000 {
                let now = Time::ZERO + Span::from_micros(part * 100);
                said += u64::from(replies.take(now, 100, called)) * 100;
            }
            let most = octets + AT_ONCE + 50_000 * AT_ONCE_S;
            assert!((octets * 19 / 20..=most).contains(&said), "{said} octets in 10 s at 500 kB/s");
        }
    }
}
