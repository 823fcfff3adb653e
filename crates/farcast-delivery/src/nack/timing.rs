//! Random back-off, and octets that a receiver may send (RFC 5401 §3.2.2).

use farcast_core::Span;
use farcast_core::random::RandomStream;

use super::quantise::GroupSize;

/// Draws a wait of up to `most`, exponentially more often late than early, so that few of `group` receivers come first.
pub fn random_backoff(most: Span, group: GroupSize, random: &mut RandomStream) -> Span {
    let lambda = libm::log(group.receivers() as f64) + 1.0;
    let part = libm::log(random.unit() * libm::expm1(lambda) + 1.0) / lambda;
    Span::from_secs_f64(most.as_secs_f64() * part)
}

/// Octets that may be sent to a sender for each octet that it sends.
const ANSWERS: u64 = 3;
/// Maximum credit.
const MOST_CREDIT: u64 = 1 << 16;

/// Returns the octets that may be sent to a sender after `octets` more have come from it, where the credit was `credit`
/// before.
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
