use farcast_core::random::RandomStream;
use proptest::prelude::*;

use super::{MeanDifference, paired, welch};
use crate::{StatsError, binomial_range, t_interval};

/// Returns `true` if the numbers are equal but for rounding.
fn alike(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + 1e-12
}

fn samples() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let sample = || prop::collection::vec(-1e3..1e3, 2..30usize);
    (sample(), sample())
}

fn pairs() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    prop::collection::vec((-1e3..1e3, -1e3..1e3), 2..30usize).prop_map(|pairs| pairs.into_iter().unzip())
}

#[test]
fn a_worked_example() {
    // Means 2 and 6, variances 1 and 4, of three values each: the standard error is sqrt(5/3), and t is 4 / sqrt(5/3)
    // = 3.098387. The degrees of freedom are (1/3 + 4/3)^2 / ((1/3)^2 / 2 + (4/3)^2 / 2) = 50/17.
    let found = welch(&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0], 0.95).expect("valid");
    assert!(alike(found.difference, -4.0) && alike(found.t, -4.0 / (5.0_f64 / 3.0).sqrt()), "{found:?}");
    assert!(alike(found.freedom, 50.0 / 17.0), "{found:?}");
    // Differences -3, -4 and -5: t = -4 / sqrt(1/3) with two degrees of freedom, whose tails are 1 - t / sqrt(2 + t^2).
    let found = paired(&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0], 0.95).expect("valid");
    assert!(alike(found.t, -48.0_f64.sqrt()) && alike(found.p, 1.0 - (48.0_f64 / 50.0).sqrt()), "{found:?}");
}

#[test]
fn samples_without_spread_differ_surely_or_not_at_all() {
    let apart = welch(&[0.1; 3], &[0.3; 4], 0.95).expect("valid");
    let expected =
        MeanDifference { difference: 0.1 - 0.3, half_width: 0.0, t: f64::NEG_INFINITY, freedom: 5.0, p: 0.0 };
    assert_eq!(apart, expected);
    let alike = welch(&[0.1; 3], &[0.1; 4], 0.95).expect("valid");
    assert_eq!(alike, MeanDifference { difference: 0.0, half_width: 0.0, t: 0.0, freedom: 5.0, p: 1.0 });
    let shifted = paired(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0], 0.95).expect("valid");
    assert_eq!((shifted.half_width, shifted.t, shifted.p), (0.0, f64::NEG_INFINITY, 0.0));
    let same = paired(&[1.0, 2.0], &[1.0, 2.0], 0.95).expect("valid");
    assert_eq!((same.half_width, same.t, same.p), (0.0, 0.0, 1.0));
}

#[test]
fn the_largest_and_the_least_values_have_an_answer() {
    let found = welch(&[1e140, -1e140], &[1e140, -1e140, 0.0], 0.9999).expect("valid");
    assert!(found.half_width.is_finite() && found.freedom >= 1.0 && found.p >= 1.0, "{found:?}");
    let found = welch(&[1e-150, 0.0], &[-1e-150, 0.0], 0.95).expect("valid");
    assert!(found.freedom > 1.99 && found.p > 0.1, "{found:?}");
    let found = paired(&[1e140, 0.0], &[0.0, 1e-140], 0.95).expect("valid");
    assert!(found.p > 0.1, "{found:?}");
    // Far less than a double holds.
    let found = welch(&[1e140, 1e140], &[0.0, 1e-150], 0.95).expect("valid");
    assert_eq!((found.p, found.half_width > 0.0), (0.0, true));
}

#[test]
fn what_has_no_difference_is_refused() {
    let good = [1.0, 2.0, 4.0];
    for bad in [f64::NAN, f64::INFINITY, -2e140] {
        for test in [welch, paired] {
            assert!(matches!(test(&good, &[1.0, bad, 2.0], 0.95), Err(StatsError::Value { .. })));
            assert!(matches!(test(&[1.0, bad, 2.0], &good, 0.95), Err(StatsError::Value { .. })));
        }
    }
    for test in [welch, paired] {
        assert_eq!(test(&good, &good, 0.3), Err(StatsError::Confidence { value: 0.3 }));
        assert_eq!(test(&[1.0], &[2.0], 0.95), Err(StatsError::TooFew { given: 1, needed: 2 }));
    }
    assert_eq!(paired(&good, &good[1..], 0.95), Err(StatsError::Pairs { first: 3, second: 2 }));
    assert!(matches!(paired(&[1e140, 0.0], &[-1e140, 0.0], 0.95), Err(StatsError::Value { .. })));
}

#[test]
fn small_samples_of_one_mean_differ_as_often_as_the_level_says() {
    // Uniform samples of unlike sizes and widths. Welch's test is not exact: with these its size is within half a per
    // cent of 5 % (Welch 1947). The range of the count is wider by that amount.
    let mut stream = RandomStream::derive(21, &[]);
    let (trials, mut outside) = (10_000, 0);
    for _ in 0..trials {
        let mut sample =
            |n: usize, width: f64| -> Vec<f64> { (0..n).map(|_| width * (stream.unit() - 0.5)).collect() };
        let (a, b) = (sample(12, 1.0), sample(25, 4.0));
        let found = welch(&a, &b, 0.95).expect("valid");
        outside += u64::from(found.difference.abs() > found.half_width);
        assert_eq!(found.p < 0.05, found.difference.abs() > found.half_width);
    }
    let low = *binomial_range(trials, 0.045, 0.9999).expect("valid").start();
    let high = *binomial_range(trials, 0.055, 0.9999).expect("valid").end();
    assert!((low..=high).contains(&outside), "{outside}");
}

proptest! {
    #[test]
    fn the_other_way_round_is_the_negative((a, b) in samples(), (c, d) in pairs(), level in 0.5..0.9999) {
        let forth = [welch(&a, &b, level), paired(&c, &d, level)];
        let back = [welch(&b, &a, level), paired(&d, &c, level)];
        for (forth, back) in forth.into_iter().zip(back) {
            let (forth, back) = (forth.expect("valid"), back.expect("valid"));
            prop_assert!(alike(forth.difference, -back.difference) && alike(forth.t, -back.t));
            prop_assert!(alike(forth.half_width, back.half_width) && alike(forth.p, back.p));
            prop_assert!(alike(forth.freedom, back.freedom));
        }
    }

    #[test]
    fn what_all_have_in_common_changes_nothing((a, b) in samples(), (c, d) in pairs(), shift in -1e3..1e3) {
        let moved = |values: &[f64]| values.iter().map(|value| value + shift).collect::<Vec<_>>();
        let before = [welch(&a, &b, 0.95), paired(&c, &d, 0.95)];
        let after = [welch(&moved(&a), &moved(&b), 0.95), paired(&moved(&c), &moved(&d), 0.95)];
        for (before, after) in before.into_iter().zip(after) {
            let (before, after) = (before.expect("valid"), after.expect("valid"));
            prop_assert!((before.difference - after.difference).abs() < 1e-9);
            prop_assert!((before.half_width - after.half_width).abs() < 1e-6 * before.half_width + 1e-9);
            prop_assert!((before.p - after.p).abs() < 1e-6, "{before:?} {after:?}");
        }
    }

    #[test]
    fn the_freedom_lies_between_that_of_either_and_of_both((a, b) in samples()) {
        let found = welch(&a, &b, 0.95).expect("valid");
        let least = (a.len().min(b.len()) - 1) as f64;
        prop_assert!((least - 1e-9..=(a.len() + b.len() - 2) as f64 + 1e-9).contains(&found.freedom));
    }

    #[test]
    fn a_difference_is_significant_where_its_interval_has_no_zero((a, b) in samples(), level in 0.5..0.9999) {
        let found = welch(&a, &b, level).expect("valid");
        let margin = found.difference.abs() - found.half_width;
        prop_assume!(margin.abs() > 1e-6);
        prop_assert_eq!(found.p < 1.0 - level, margin > 0.0);
    }

    #[test]
    fn pairs_are_the_interval_of_their_differences((a, b) in pairs(), level in 0.5..0.9999) {
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let (found, plain) = (paired(&a, &b, level).expect("valid"), t_interval(&differences, level).expect("valid"));
        prop_assert_eq!((found.difference, found.half_width), (plain.mean, plain.half_width));
    }
}
