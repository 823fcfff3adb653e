use proptest::prelude::*;

use super::{COUNT_LIMIT, Interval, binomial_interval, binomial_range, predictive_binomial_range};
use crate::StatsError;

fn close(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} instead of {expected:e}");
}

/// Returns the binomial probabilities by repeated convolution with one trial: no factorials, no logarithms.
fn naive_binomial(n: u64, p: f64) -> Vec<f64> {
    let mut pmf = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; pmf.len() + 1];
        for (k, mass) in pmf.iter().enumerate() {
            next[k] += mass * (1.0 - p);
            next[k + 1] += mass * p;
        }
        pmf = next;
    }
    pmf
}

/// Returns the beta-binomial probabilities by Polya's urn: after s of t trials the next succeeds with (s + a) / (t +
/// a + b).
fn naive_urn(n: u64, a: f64, b: f64) -> Vec<f64> {
    let mut pmf = vec![1.0];
    for t in 0..n {
        let mut next = vec![0.0; pmf.len() + 1];
        for (s, mass) in pmf.iter().enumerate() {
            let success = (s as f64 + a) / (t as f64 + a + b);
            next[s] += mass * (1.0 - success);
            next[s + 1] += mass * success;
        }
        pmf = next;
    }
    pmf
}

/// Returns the range by its definition, and the least distance of a tail from the allowed mass: near 0, rounding
/// decides.
fn naive_range(pmf: &[f64], level: f64) -> (u64, u64, f64) {
    let mass = (1.0 - level) / 2.0;
    let up_to: Vec<f64> = (0..pmf.len()).map(|k| pmf[..=k].iter().sum()).collect();
    let from: Vec<f64> = (0..pmf.len()).map(|k| pmf[k..].iter().sum()).collect();
    let low = up_to.iter().position(|sum| *sum > mass).expect("all of it");
    let high = from.iter().rposition(|sum| *sum > mass).expect("all of it");
    let margin = up_to.iter().chain(&from).map(|sum| (sum - mass).abs()).fold(1.0, f64::min);
    (low as u64, high as u64, margin)
}

#[test]
fn the_interval_agrees_with_scipy() {
    // SciPy 1.17.1: scipy.special.betaincinv(k, n - k + 1, mass) and betainccinv(k + 1, n - k, mass).
    for (k, n, level, low, high) in [
        (1, 14, 0.95, 0.001_806_780_659_125_388, 0.338_684_489_931_821_2),
        (3, 14, 0.95, 0.046_579_287_889_867_31, 0.507_975_677_048_471_8),
        (13, 14, 0.95, 0.661_315_510_068_178_8, 0.998_193_219_340_874_6),
        (3, 100, 0.99, 0.003_407_070_103_179_758, 0.105_481_253_725_078_24),
        (500, 1_000, 0.95, 0.468_549_172_971_792, 0.531_450_827_028_208),
        (999, 1_000, 0.5, 0.997_309_643_354_233_9, 0.999_712_359_304_067_8),
        (12, 100_000, 0.95, 6.200_723_911_735_969e-5, 2.096_064_580_501_637_6e-4),
        (500_000, 1_000_000, 0.95, 0.499_019_519_195_311_84, 0.500_980_480_804_688_2),
        (100, 10_000_000, 0.99, 7.612_058_292_393_747e-6, 1.287_603_949_583_787_3e-5),
        (5_000_000, 10_000_000, 0.95, 0.499_690_052_521_371_1, 0.500_309_947_478_628_9),
        (1, 10_000_000, 0.999_999, 5.000_001_250_144_069_6e-14, 1.742_220_070_735_012_4e-6),
    ] {
        let interval = binomial_interval(k, n, level).expect("valid");
        close(interval.low, low, 1e-9);
        close(interval.high, high, 1e-9);
    }
}

#[test]
fn the_interval_has_its_closed_ends() {
    // Nothing seen in n trials: the upper end solves (1 - p)^n = 0.025.
    for n in [1, 14, 1_000, COUNT_LIMIT] {
        let expected = -(0.025_f64.ln() / n as f64).exp_m1();
        let none = binomial_interval(0, n, 0.95).expect("valid");
        assert!(none.low <= 0.0);
        close(none.high, expected, 1e-9);
        let all = binomial_interval(n, n, 0.95).expect("valid");
        assert!(all.high >= 1.0);
        close(1.0 - all.low, expected, 1e-8);
    }
    assert_eq!(binomial_interval(0, 0, 0.95), Ok(Interval { low: 0.0, high: 1.0 }));
}

#[test]
fn the_interval_covers_every_probability() {
    let intervals: Vec<Interval> = (0..=14).map(|k| binomial_interval(k, 14, 0.9).expect("valid")).collect();
    for step in 0..=200 {
        let p = f64::from(step) / 200.0;
        let pmf = naive_binomial(14, p);
        let covered: f64 =
            intervals.iter().zip(&pmf).filter(|(i, _)| i.low <= p && p <= i.high).map(|(_, mass)| mass).sum();
        assert!(covered >= 0.9, "{covered} at {p}");
    }
}

#[test]
fn the_range_agrees_with_scipy() {
    // SciPy 1.17.1: least k with binom.cdf(k, n, p) > mass, least k with binom.sf(k, n, p) <= mass.
    for (n, p, level, low, high) in [
        (14, 0.78, 0.95, 8, 14),
        (14, 0.5, 0.99, 2, 12),
        (100, 0.005, 0.95, 0, 2),
        (1_000, 0.25, 0.9, 228, 273),
        (1_902, 0.005, 0.95, 4, 16),
        (20, 0.999, 0.95, 20, 20),
        (1_000_000, 0.005, 0.95, 4_862, 5_139),
        (10_000_000, 0.5, 0.999, 4_994_797, 5_005_203),
    ] {
        assert_eq!(binomial_range(n, p, level), Ok(low..=high), "{n} {p} {level}");
    }
}

#[test]
fn the_range_has_its_edges() {
    assert_eq!(binomial_range(0, 0.3, 0.95), Ok(0..=0));
    assert_eq!(binomial_range(10, 0.0, 0.95), Ok(0..=0));
    assert_eq!(binomial_range(10, 1.0, 0.95), Ok(10..=10));
    assert_eq!(binomial_range(10, f64::MIN_POSITIVE, 0.95), Ok(0..=0));
    assert_eq!(binomial_range(COUNT_LIMIT, 1.0 - f64::EPSILON / 2.0, 0.95), Ok(COUNT_LIMIT..=COUNT_LIMIT));
    // P(X <= 0) = P(X >= 2) = 1/4 is not more than 1/4, so neither count is in.
    assert_eq!(binomial_range(2, 0.5, 0.5), Ok(1..=1));
}

#[test]
fn the_predictive_range_agrees_with_scipy() {
    // SciPy 1.17.1: as above with scipy.stats.betabinom(n, k + 0.5, m - k + 0.5).
    for (n, k, m, level, low, high) in [
        (14, 79, 100, 0.95, 8, 14),
        (14, 0, 100, 0.95, 0, 1),
        (14, 100, 100, 0.95, 13, 14),
        (14, 1, 1, 0.95, 1, 14),
        (100, 7, 14, 0.95, 24, 76),
        (1_000, 20, 1_000, 0.99, 7, 39),
        (14, 5, 200, 0.9, 0, 2),
        (100_000, 3, 50, 0.95, 1_717, 15_155),
    ] {
        assert_eq!(predictive_binomial_range(n, k, m, level), Ok(low..=high), "{n} {k} {m}");
    }
}

#[test]
fn with_endless_trials_the_predictive_range_is_the_binomial_one() {
    let known = binomial_range(14, 0.25, 0.95).expect("valid");
    assert_eq!(predictive_binomial_range(14, 1 << 60, 1 << 62, 0.95), Ok(known));
    let extreme = predictive_binomial_range(COUNT_LIMIT, u64::MAX, u64::MAX, 0.95).expect("valid");
    assert_eq!(extreme, COUNT_LIMIT..=COUNT_LIMIT);
}

#[test]
fn refuses_what_is_no_count_or_level() {
    for level in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(binomial_interval(1, 2, level), Err(StatsError::Level { .. })));
        assert!(matches!(binomial_range(2, 0.5, level), Err(StatsError::Level { .. })));
        assert!(matches!(predictive_binomial_range(2, 1, 2, level), Err(StatsError::Level { .. })));
    }
    assert_eq!(binomial_interval(3, 2, 0.95), Err(StatsError::Successes { successes: 3, trials: 2 }));
    assert_eq!(
        predictive_binomial_range(2, 3, 2, 0.95),
        Err(StatsError::Successes { successes: 3, trials: 2 })
    );
    assert_eq!(predictive_binomial_range(2, 0, 0, 0.95), Err(StatsError::TooFew { given: 0, needed: 1 }));
    let too_many = StatsError::TooManyTrials { count: COUNT_LIMIT + 1, limit: COUNT_LIMIT };
    assert_eq!(binomial_interval(0, COUNT_LIMIT + 1, 0.95), Err(too_many));
    assert_eq!(binomial_range(COUNT_LIMIT + 1, 0.5, 0.95), Err(too_many));
    assert_eq!(predictive_binomial_range(COUNT_LIMIT + 1, 0, 1, 0.95), Err(too_many));
    assert_eq!(binomial_range(2, 1.1, 0.95), Err(StatsError::Probability { value: 1.1 }));
    assert_eq!(too_many.to_string(), "10000001 trials are too many; at most 10000000 are allowed");
}

proptest! {
    #[test]
    fn the_range_is_its_definition(n in 0..80_u64, p in 0.0..=1.0, level in 0.01..0.999) {
        let (low, high, margin) = naive_range(&naive_binomial(n, p), level);
        prop_assume!(margin > 1e-12);
        prop_assert_eq!(binomial_range(n, p, level), Ok(low..=high));
    }

    #[test]
    fn the_predictive_range_is_its_definition(
        n in 0..60_u64,
        trials in 1..60_u64,
        share in 0.0..=1.0_f64,
        level in 0.01..0.999,
    ) {
        let successes = (trials as f64 * share).round() as u64;
        let pmf = naive_urn(n, successes as f64 + 0.5, (trials - successes) as f64 + 0.5);
        let (low, high, margin) = naive_range(&pmf, level);
        prop_assume!(margin > 1e-12);
        prop_assert_eq!(predictive_binomial_range(n, successes, trials, level), Ok(low..=high));
    }

    #[test]
    fn the_interval_is_where_the_tails_have_their_mass(n in 1..60_u64, share in 0.0..=1.0_f64, level in 0.5..0.999) {
        let k = (n as f64 * share).round() as u64;
        let interval = binomial_interval(k, n, level).expect("valid");
        let mass = (1.0 - level) / 2.0;
        if k > 0 {
            let tail: f64 = naive_binomial(n, interval.low)[k as usize..].iter().sum();
            prop_assert!((tail - mass).abs() < 1e-9, "{}", tail);
        }
        if k < n {
            let tail: f64 = naive_binomial(n, interval.high)[..=k as usize].iter().sum();
            prop_assert!((tail - mass).abs() < 1e-9, "{}", tail);
        }
    }
}
