use farcast_core::random::RandomStream;
use proptest::prelude::*;

use super::batch_means;
use crate::{StatsError, binomial_range, t_interval};

/// Draws a normal variable of mean 0 and standard deviation 1 (Box and Muller, 1958).
fn normal(stream: &mut RandomStream) -> f64 {
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (2.0 * core::f64::consts::PI * stream.unit()).cos()
}

/// Draws a steady autoregressive series about 10: the correlation at lag j is `phi^j`, the variance `1 / (1 -
/// phi^2)`.
fn autoregressive(stream: &mut RandomStream, n: usize, phi: f64) -> Vec<f64> {
    let mut x = normal(stream) / (1.0 - phi * phi).sqrt();
    let step = |_| {
        x = phi * x + normal(stream);
        10.0 + x
    };
    (0..n).map(step).collect()
}

#[test]
fn a_worked_example() {
    // The first value is left over; means 1, 3, 2 about 2 with squares 2 and products of neighbours -1 + 0.
    let found = batch_means(&[99.0, 0.0, 2.0, 3.0, 3.0, 1.0, 3.0], 3, 0.95).expect("valid");
    assert_eq!((found.size, found.mean.mean, found.mean.freedom), (2, 2.0, 2));
    // t(0.975, 2) = 4.302653, the standard error sqrt(1 / 3).
    assert!((found.mean.half_width - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-6);
    assert!((found.lag_one.expect("they vary") + 0.5).abs() < 1e-15);
}

#[test]
fn the_interval_of_a_correlated_series_covers_its_mean_as_often_as_it_says() {
    // With phi = 0.8 the mean of n values has (1 + phi) / (1 - phi) = 9 times the variance of a mean of independent
    // ones. Means of neighbouring batches of 200 have a correlation of phi / (200 (1 - phi^2)) = 0.011. The interval
    // is therefore 1.1 % too narrow, which takes 0.25 % from the 95 %; the range of the count allows for that.
    let mut stream = RandomStream::derive(31, &[]);
    let (trials, mut covered, mut naively) = (2_000, 0, 0);
    let mut lags = 0.0;
    for _ in 0..trials {
        let values = autoregressive(&mut stream, 4_000, 0.8);
        let found = batch_means(&values, 20, 0.95).expect("valid");
        covered += u64::from((found.mean.mean - 10.0).abs() <= found.mean.half_width);
        let naive = t_interval(&values, 0.95).expect("valid");
        naively += u64::from((naive.mean - 10.0).abs() <= naive.half_width);
        lags += found.lag_one.expect("they vary") / trials as f64;
    }
    let low = *binomial_range(trials, 0.9475, 0.9999).expect("valid").start();
    let high = *binomial_range(trials, 0.95, 0.9999).expect("valid").end();
    assert!((low..=high).contains(&covered), "{covered} not within {low} to {high}");
    // What takes the values for independent is too narrow by a factor of 3: P(|Z| < 1.96 / 3) = 0.4864.
    let range = binomial_range(trials, 0.4864, 0.9999).expect("valid");
    assert!(range.contains(&naively), "{naively} not within {range:?}");
    // Of 20 independent means the coefficient has the mean -1/20 (Kendall 1954) and a deviation of about 1 / sqrt(20).
    assert!((lags + 0.05 - 0.011).abs() < 4.0 / (20.0 * trials as f64).sqrt(), "{lags}");
}

#[test]
fn batches_that_are_too_short_say_so() {
    // Batches of two values: their means have a correlation of phi (1 + phi) / 2 = 0.855.
    let mut stream = RandomStream::derive(32, &[]);
    let found = batch_means(&autoregressive(&mut stream, 20_000, 0.9), 10_000, 0.95).expect("valid");
    let lag = found.lag_one.expect("they vary");
    assert!((lag - 0.855).abs() < 0.03, "{lag}");
}

#[test]
fn a_series_that_does_not_vary_has_no_correlation() {
    let found = batch_means(&[0.1; 40], 8, 0.95).expect("valid");
    assert_eq!((found.mean.mean, found.mean.half_width, found.lag_one, found.size), (0.1, 0.0, None, 5));
    let largest = batch_means(&[1e140, -1e140, 1e140, -1e140], 4, 0.9999).expect("valid");
    assert!(largest.mean.half_width.is_finite());
    assert!((largest.lag_one.expect("they vary") + 0.75).abs() < 1e-12);
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let too_few = |given, needed| Err(StatsError::TooFew { given, needed });
    for batches in [0, 1] {
        assert_eq!(batch_means(&[1.0; 40], batches, 0.95), too_few(batches as u64, 2));
    }
    assert_eq!(batch_means(&[1.0; 9], 10, 0.95), too_few(9, 10));
    assert_eq!(batch_means(&[1.0; 40], 4, 0.1), Err(StatsError::Confidence { value: 0.1 }));
    for bad in [f64::NAN, f64::INFINITY, 2e140] {
        // Also where it would be left out.
        assert!(matches!(batch_means(&[bad, 1.0, 2.0, 3.0, 4.0], 2, 0.95), Err(StatsError::Value { .. })));
    }
}

proptest! {
    #[test]
    fn a_value_a_batch_is_the_plain_interval(values in prop::collection::vec(-1e3..1e3, 2..60usize), level in 0.5..0.9999) {
        let found = batch_means(&values, values.len(), level).expect("valid");
        prop_assert_eq!(found.mean, t_interval(&values, level).expect("valid"));
        prop_assert!(found.lag_one.is_none_or(|lag| lag.abs() <= 1.0));
    }

    #[test]
    fn backwards_the_correlation_is_the_same(values in prop::collection::vec(-1e3..1e3, 20..60usize)) {
        let back: Vec<f64> = values.iter().rev().copied().collect();
        let lag = |values: &[f64]| batch_means(values, values.len(), 0.95).expect("valid").lag_one.expect("they vary");
        prop_assert!((lag(&values) - lag(&back)).abs() < 1e-9);
    }
}
