//! How long to wait (RFC 5401 §3.2.2, §3.2.3.2; RFC 5740 §5).

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};

use crate::message::{NodeId, Terms};
use crate::quantise::GroupSize;

/// How often what must arrive is said, and how often silence is forgiven (`NORM_ROBUST_FACTOR`).
pub const ROBUST: u32 = 20;

/// A wait of up to `most`, exponentially more often late than early: of `group` receivers that wait so, few come first.
pub fn random_backoff(most: Span, group: GroupSize, random: &mut RandomStream) -> Span {
    let lambda = libm::log(group.receivers() as f64) + 1.0;
    let part = libm::log(random.unit() * libm::expm1(lambda) + 1.0) / lambda;
    Span::from_secs_f64(most.as_secs_f64() * part)
}

/// The waits of receivers. Each is a function of who waits, and since when: many receivers as one draw what each of
/// them would.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waits {
    pub(crate) seed: u64,
}

impl Waits {
    fn random(self, node: NodeId, now: Time) -> RandomStream {
        RandomStream::derive(self.seed, &[u64::from(node.0), now.as_nanos()])
    }

    /// Until `node`, which finds at `now` that it lacks something, asks for it, under these terms and with a greatest
    /// round trip of `grtt`.
    pub(crate) fn backoff(self, node: NodeId, now: Time, terms: Terms, grtt: Span) -> Span {
        random_backoff(grtt * u64::from(terms.backoff), terms.group, &mut self.random(node, now))
    }

    /// Until `node`, which was asked at `now`, acknowledges: over one round trip (RFC 5740 §5.5.3).
    pub(crate) fn acknowledgement(self, node: NodeId, now: Time, grtt: Span) -> Span {
        Span::from_secs_f64(grtt.as_secs_f64() * self.random(node, now).unit())
    }
}

/// How long what was asked for has to come (RFC 5740 §5.3).
pub(crate) fn holdoff(terms: Terms, grtt: Span) -> Span {
    grtt * (u64::from(terms.backoff) + 2)
}

/// How long nothing must be heard of a sender until something is wrong (RFC 5740 §5.3).
pub(crate) fn silence(grtt: Span, robust: u32) -> Span {
    (grtt * 2 * u64::from(robust)).max(Span::from_secs(1))
}

/// For each octet that a sender says, so many may be said because of it.
const ANSWERS: u64 = 3;
/// So much may be saved up.
const MOST_CREDIT: u64 = 1 << 16;

/// The octets that may be said to a sender that has said `octets` more, where `credit` might be before.
pub fn earned(credit: u64, octets: u64) -> u64 {
    credit.saturating_add(octets.saturating_mul(ANSWERS)).min(MOST_CREDIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_has_its_distribution() {
        let (most, group) = (Span::from_secs(4), GroupSize::of(1000));
        let mut random = RandomStream::derive(5, &[]);
        let draws: std::vec::Vec<f64> =
            (0..100_000).map(|_| random_backoff(most, group, &mut random).as_secs_f64() / 4.0).collect();
        assert!(draws.iter().all(|part| (0.0..=1.0).contains(part)));
        // P(t <= x) = (e^(lambda x) - 1) / (e^lambda - 1), lambda = ln 1000 + 1.
        let lambda = 1000f64.ln() + 1.0;
        for x in [0.5, 0.8, 0.9, 0.99] {
            let expected = (lambda * x).exp_m1() / lambda.exp_m1();
            let seen = draws.iter().filter(|&&part| part <= x).count() as f64 / draws.len() as f64;
            assert!((seen - expected).abs() < 0.005, "P(t <= {x}) is {seen}, expected {expected}");
        }
        assert_eq!(random_backoff(Span::ZERO, group, &mut random), Span::ZERO);
    }
}
