use farcast_core::random::RandomStream;
use proptest::prelude::*;

use super::{Accumulator, Summary, prediction_half_width};
use crate::StatsError;

fn close(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} instead of {expected:e}");
}

fn accumulate(values: &[f64]) -> Accumulator {
    let mut all = Accumulator::new();
    for &value in values {
        all.push(value).expect("finite");
    }
    all
}

/// Draws a normal variable of mean 0 and standard deviation 1 (Box and Muller, 1958).
fn normal(stream: &mut RandomStream) -> f64 {
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (2.0 * core::f64::consts::PI * stream.unit()).cos()
}

#[test]
fn has_the_certified_values_of_hard_data() {
    // NIST Statistical Reference Datasets, univariate: NumAcc1 to NumAcc4. The inputs of the last two are not binary
    // fractions: rounding them alone changes the standard deviation by up to 1e-8 of it.
    let alternating = |base: f64| {
        let pair = [base + 0.1, base + 0.3];
        core::iter::once(base + 0.2).chain((0..1_000).map(move |i| pair[i % 2])).collect::<Vec<_>>()
    };
    for (values, mean, sd) in [
        (vec![10_000_001.0, 10_000_003.0, 10_000_002.0], 10_000_002.0, 1.0),
        (alternating(1.0), 1.2, 0.1),
        (alternating(1_000_000.0), 1_000_000.2, 0.1),
        (alternating(10_000_000.0), 10_000_000.2, 0.1),
    ] {
        let summary = Summary::of(&values).expect("values");
        close(summary.mean, mean, 1e-14);
        close(summary.sd.expect("two or more"), sd, 3e-8);
    }
}

#[test]
fn the_interval_is_students() {
    let summary = Summary::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).expect("values");
    assert_eq!((summary.n, summary.min, summary.max), (5, 1.0, 5.0));
    close(summary.mean, 3.0, 1e-15);
    close(summary.sd.expect("five"), 2.5_f64.sqrt(), 1e-14);
    // t(0.975, 4) = 2.776445 in every table.
    close(summary.ci95_half_width.expect("five"), 2.776_445 * 0.5_f64.sqrt(), 1e-7);
    let quantiles = summary.quantiles.expect("from values");
    for (found, expected) in
        [(quantiles.p05, 1.2), (quantiles.p25, 2.0), (quantiles.p50, 3.0), (quantiles.p95, 4.8)]
    {
        close(found, expected, 1e-12);
    }
}

#[test]
fn one_value_has_no_spread() {
    let summary = Summary::of(&[7.0]).expect("a value");
    assert_eq!((summary.n, summary.mean, summary.sd, summary.ci95_half_width), (1, 7.0, None, None));
    assert_eq!(Summary::of(&[]), Err(StatsError::Empty));
    assert_eq!(Accumulator::new().summary(), None);
}

#[test]
fn what_cannot_be_averaged_is_refused_and_changes_nothing() {
    let mut all = accumulate(&[1.0, 2.0]);
    let before = all;
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2e140, -2e140] {
        assert!(matches!(all.push(value), Err(StatsError::Value { .. })));
        assert_eq!(all, before);
    }
    assert_eq!(
        all.push(f64::INFINITY).expect_err("infinite").to_string(),
        "inf cannot be averaged; a value must be finite and lie within -1e140 to 1e140"
    );
}

#[test]
fn the_largest_values_do_not_overflow() {
    let all = accumulate(&[1e140, -1e140, 1e140, -1e140]);
    let summary = all.summary().expect("values");
    close(summary.sd.expect("four"), 1e140 * (4.0_f64 / 3.0).sqrt(), 1e-12);
    assert!(summary.ci95_half_width.expect("four").is_finite());
}

#[test]
fn merging_in_the_same_order_gives_the_same_bits() {
    let parts: Vec<Accumulator> =
        (0..7).map(|i| accumulate(&[f64::from(i) * 0.1, 1.0 / f64::from(i + 3), 0.3])).collect();
    let merged = || {
        let mut all = Accumulator::new();
        for part in &parts {
            all.merge(part);
        }
        all
    };
    assert_eq!(merged(), merged());
    assert_eq!(merged().n(), 21);
}

#[test]
fn the_prediction_range_has_its_textbook_value() {
    // t(0.975, 15) = 2.131450.
    let half_width = prediction_half_width(2.0, 14, 16).expect("valid");
    close(half_width, 2.0 * (1.0 / 14.0 + 1.0 / 16.0_f64).sqrt() * 2.131_450, 1e-6);
    assert_eq!(prediction_half_width(0.0, 1, 2), Ok(0.0));
}

#[test]
fn the_prediction_range_refuses_what_has_none() {
    assert!(matches!(prediction_half_width(-1.0, 14, 16), Err(StatsError::Deviation { .. })));
    assert!(matches!(prediction_half_width(f64::NAN, 14, 16), Err(StatsError::Deviation { .. })));
    assert_eq!(prediction_half_width(1.0, 0, 16), Err(StatsError::TooFew { given: 0, needed: 1 }));
    assert_eq!(prediction_half_width(1.0, 14, 1), Err(StatsError::TooFew { given: 1, needed: 2 }));
}

#[test]
fn the_prediction_range_holds_95_of_100_published_means() {
    let mut stream = RandomStream::derive(5, &[]);
    let (trials, mut inside) = (10_000, 0);
    for _ in 0..trials {
        let mut sample =
            |n: usize| -> Vec<f64> { (0..n).map(|_| 50.0 + 3.0 * normal(&mut stream)).collect() };
        let theirs = Summary::of(&sample(14)).expect("values");
        let ours = Summary::of(&sample(20)).expect("values");
        let half_width = prediction_half_width(ours.sd.expect("twenty"), 14, 20).expect("valid");
        inside += u32::from((theirs.mean - ours.mean).abs() <= half_width);
    }
    // Four standard deviations of a count with p = 0.95: 4 sqrt(10,000 * 0.95 * 0.05) = 87.
    assert!(inside.abs_diff(9_500) < 87, "{inside}");
}

proptest! {
    #[test]
    fn any_split_agrees_with_two_passes(
        values in prop::collection::vec(-1e3..1e3, 2..60usize),
        offset in prop::sample::select(vec![0.0, 1e6, -1e9]),
        cuts in prop::collection::vec(0..60usize, 0..5),
    ) {
        let values: Vec<f64> = values.iter().map(|value| value + offset).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);

        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % values.len()).chain([values.len()]).collect();
        ends.sort_unstable();
        let (mut merged, mut begin) = (Accumulator::new(), 0);
        for end in ends {
            merged.merge(&accumulate(&values[begin..end]));
            begin = end;
        }
        let summary = merged.summary().expect("values");
        prop_assert_eq!(summary.n as usize, values.len());
        // Inputs near 1e9 carry an absolute error of 1e-7, and so does a naive mean.
        prop_assert!((summary.mean - mean).abs() <= 1e-14 * mean.abs() + 1e-9);
        let sd = summary.sd.expect("two or more");
        prop_assert!((sd - variance.sqrt()).abs() <= 1e-9 * variance.sqrt() + 1e-6, "{} and {}", sd, variance.sqrt());
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        prop_assert_eq!([summary.min, summary.max].map(f64::to_bits), [sorted[0], sorted[values.len() - 1]].map(f64::to_bits));
    }
}
