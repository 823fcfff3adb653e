//! Measures that the tests of loss processes share. Seeds are fixed; bounds are four standard deviations.

use alloc::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::{Probability, Time};

use super::{Among, Losses};

pub(super) fn probability(p: f64) -> Probability {
    Probability::new(p).expect("from 0 to 1")
}

pub(super) fn stream(label: u64) -> RandomStream {
    RandomStream::derive(2026, &[label])
}

/// Returns the receivers that lose a frame.
pub(super) fn losers(process: &mut impl Losses, now: Time, octets: u64, among: Among<'_>) -> Vec<u32> {
    let mut lost = Vec::new();
    process.draw(now, octets, among, &mut lost);
    assert!(lost.is_sorted_by(|a, b| a < b), "not ascending: {lost:?}");
    lost
}

/// `hits` of `trials` that are independent, but for `correlation` times the variance, agree with `p`.
pub(super) fn assert_share_of(hits: u64, trials: u64, p: f64, correlation: f64) {
    let sigma = (p * (1.0 - p) * correlation / trials as f64).sqrt();
    let share = hits as f64 / trials as f64;
    assert!((share - p).abs() <= 4.0 * sigma, "{share} of {trials}, expected {p} within {}", 4.0 * sigma);
}

/// `hits` of `trials` independent trials agree with `p`.
pub(super) fn assert_share(hits: u64, trials: u64, p: f64) {
    assert_share_of(hits, trials, p, 1.0);
}

/// Observed counts agree with expected ones by the chi-square test; cells that are expected below 10 are pooled.
pub(super) fn assert_fits(observed: &[u64], expected: &[f64]) {
    let (mut statistic, mut cells) = (0.0, 0u32);
    let (mut seen, mut due) = (0.0, 0.0);
    let left: f64 = expected.iter().sum();
    let mut passed = 0.0;
    for (&o, &e) in observed.iter().zip(expected) {
        seen += o as f64;
        due += e;
        passed += e;
        // A cell is closed only if what is left makes another.
        if due >= 10.0 && left - passed >= 10.0 {
            statistic += (seen - due) * (seen - due) / due;
            cells += 1;
            (seen, due) = (0.0, 0.0);
        }
    }
    statistic += (seen - due) * (seen - due) / due;
    let limit = chi_square_limit(cells);
    assert!(cells > 0 && statistic < limit, "chi-square {statistic} with {cells} degrees, limit {limit}");
}

/// The point that chi-square exceeds as rarely as a normal number exceeds four deviations (Wilson and Hilferty 1931).
pub(super) fn chi_square_limit(degrees: u32) -> f64 {
    let spread = 2.0 / (9.0 * f64::from(degrees));
    f64::from(degrees) * (1.0 - spread + 4.0 * spread.sqrt()).powi(3)
}

/// Returns the expected frequencies of the counts from 0 to `n` in `trials` draws of a binomial number.
pub(super) fn binomial(n: u32, p: f64, trials: u32) -> Vec<f64> {
    let ratio = p / (1.0 - p);
    let mut term = (1.0 - p).powi(n.cast_signed()) * f64::from(trials);
    let next = |k: u32| {
        let now = term;
        term *= f64::from(n - k) / f64::from(k + 1) * ratio;
        now
    };
    (0..=n).map(next).collect()
}

#[test]
fn the_limit_is_near_the_tables() {
    // The upper 0.00003167 points by the closed form of even degrees: exp(-x/2) Σ (x/2)^k / k!.
    for degrees in [2u32, 10, 40] {
        let half = chi_square_limit(degrees) / 2.0;
        let mut term = (-half).exp();
        let mut tail = 0.0;
        for k in 0..degrees / 2 {
            tail += term;
            term *= half / f64::from(k + 1);
        }
        assert!((1.5e-5..6e-5).contains(&tail), "{degrees} degrees: {tail}");
    }
}
