use farcast_core::random::RandomStream;
use proptest::prelude::*;

use super::statistic::Sample;
use super::{
    BootstrapInterval, Correction, RESAMPLE_LIMIT, Statistic, acceleration, bias, bootstrap_interval,
    paired_bootstrap,
};
use crate::special::t_two_sided;
use crate::{Interval, StatsError, binomial_range};

const STATISTICS: [Statistic; 4] =
    [Statistic::Mean, Statistic::Deviation, Statistic::Quantile(0.5), Statistic::Quantile(0.85)];

fn interval(values: &[f64], statistic: Statistic) -> BootstrapInterval {
    bootstrap_interval(values, statistic, 0.95, 500, 7).expect("valid")
}

/// Returns the statistic by its definition.
fn naive(mut values: Vec<f64>, statistic: Statistic) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    match statistic {
        Statistic::Mean => mean,
        Statistic::Deviation => {
            (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
        }
        Statistic::Quantile(p) => {
            values.sort_by(f64::total_cmp);
            let position = (n - 1.0) * p;
            let (low, high) = (values[position.floor() as usize], values[position.ceil() as usize]);
            low + (high - low) * position.fract()
        }
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    // With some that are equal.
    prop::collection::vec(prop_oneof![-1e2..1e2, (-5..5_i32).prop_map(f64::from)], 3..40usize)
}

#[test]
fn equal_arguments_give_equal_bits_and_another_seed_others() {
    let values: Vec<f64> = (0..50).map(|n| f64::from(n * n % 37)).collect();
    for statistic in STATISTICS {
        assert_eq!(interval(&values, statistic), interval(&values, statistic));
    }
    let other = bootstrap_interval(&values, Statistic::Mean, 0.95, 500, 8).expect("valid");
    assert_ne!(interval(&values, Statistic::Mean).interval, other.interval);
}

#[test]
fn the_acceleration_of_a_mean_is_its_skewness() {
    // Efron 1987, (5.3): the skewness over 6 sqrt(n). Of 1, 2, 3, 10 about 4: third moment 180 / 4, variance 50 / 4.
    let found = interval(&[1.0, 2.0, 3.0, 10.0], Statistic::Mean).correction.expect("defined");
    let skewness = 45.0 / 12.5_f64.powf(1.5);
    assert!((found.acceleration - skewness / (6.0 * 2.0)).abs() < 1e-12, "{found:?}");
}

#[test]
fn the_bias_counts_equal_resamples_half() {
    // Of eight one is below and two are equal: a quarter, whose normal quantile is -0.67449.
    let resampled = [1.0, 2.0, 2.0 + 1e-14, 3.0, 3.0, 4.0, 5.0, 6.0];
    let found = bias(2.0, &resampled).expect("on both sides");
    assert!((found + 0.674_489_750_196).abs() < 1e-9, "{found}");
    assert_eq!([bias(0.5, &resampled), bias(6.5, &resampled)], [None, None]);
    assert_eq!(acceleration(&[0.1; 7]), None);
    assert_eq!(acceleration(&[f64::NAN, f64::NAN]), None);
}

#[test]
fn a_correction_shifts_both_ends() {
    let shares = |bias, acceleration| Correction { bias, acceleration }.shares(0.025);
    let (low, high) = shares(0.0, 0.0).expect("defined");
    assert!((low - 0.025).abs() < 1e-12 && (high - 0.975).abs() < 1e-12);
    // By hand: z0 = 0.1, a = 0.05; 0.1 + (0.1 - 1.959964) / (1 + 0.05 * 1.859964) = -1.601711, and
    // 0.1 + 2.059964 / (1 - 0.05 * 2.059964) = 2.396493; the normal distribution there from a table.
    let (low, high) = shares(0.1, 0.05).expect("defined");
    assert!((low - 0.054_610).abs() < 1e-5 && (high - 0.991_724).abs() < 1e-5, "{low} {high}");
    // The formula turns over.
    assert_eq!(shares(0.0, 0.6), None);
    assert_eq!(shares(0.0, -0.6), None);
}

#[test]
fn without_a_correction_it_is_the_percentiles() {
    // Leaving out a value changes no extreme: both ends occur twice.
    let values = [1.0, 1.0, 2.0, 3.0, 3.0];
    let found = interval(&values, Statistic::Quantile(1.0));
    assert_eq!((found.estimate, found.correction), (3.0, None));
    // In 500 resamples the greatest is 1 in none (0.01 of them in 5), 2 in 7 % and 3 in all others.
    assert_eq!(found.interval, Interval { low: 2.0, high: 3.0 });
}

#[test]
fn equal_values_have_an_interval_of_no_width() {
    for statistic in STATISTICS {
        let found = interval(&[0.1; 20], statistic);
        assert_eq!((found.interval.low, found.interval.high), (found.estimate, found.estimate));
        assert_eq!(found.correction, None);
    }
    let found = interval(&[1e140, -1e140, 1e140], Statistic::Deviation);
    assert!(found.interval.low.is_finite() && found.interval.high.is_finite(), "{found:?}");
    let found = interval(&[1e-160, -1e-160], Statistic::Mean);
    assert!(found.interval.low < found.interval.high, "{found:?}");
}

#[test]
fn of_two_values_a_deviation_has_percentiles() {
    // With one value left there is none.
    let found = interval(&[1.0, 2.0], Statistic::Deviation);
    assert_eq!((found.correction, found.interval.low, found.interval.high), (None, 0.0, 0.5_f64.sqrt()));
}

#[test]
fn common_random_numbers_make_the_interval_narrower() {
    let mut stream = RandomStream::derive(41, &[]);
    let common: Vec<f64> = (0..60).map(|_| 100.0 * stream.unit()).collect();
    let mut noisy =
        |shift: f64| -> Vec<f64> { common.iter().map(|value| value + shift + stream.unit()).collect() };
    let (a, b) = (noisy(1.0), noisy(0.0));
    for statistic in STATISTICS {
        let width = |interval: Interval| interval.high - interval.low;
        let joint = paired_bootstrap(&a, &b, statistic, 0.95, 1_000, 3).expect("valid");
        assert!(
            width(joint.interval) < width(interval(&a, statistic).interval) / 5.0,
            "{statistic:?} {joint:?}"
        );
    }
    let mean = paired_bootstrap(&a, &b, Statistic::Mean, 0.95, 1_000, 3).expect("valid");
    assert!(mean.interval.low > 0.8 && mean.interval.high < 1.2, "{mean:?}");
}

#[test]
fn the_interval_of_a_mean_covers_it_as_often_as_resampling_can() {
    // Sums of twelve uniform numbers are as good as normal. Resamples of n such values have the standard error of the
    // mean but with divisor n. Their percentiles therefore cover the mean if |t| < 1.96 sqrt((n - 1) / n). The
    // correction of BCa is noise here, and takes up to 1 % more.
    let mut stream = RandomStream::derive(42, &[]);
    let (trials, n, mut covered) = (1_000, 30, 0);
    for trial in 0..trials {
        let sample: Vec<f64> = (0..n).map(|_| (0..12).map(|_| stream.unit()).sum()).collect();
        let found = bootstrap_interval(&sample, Statistic::Mean, 0.95, 1_000, trial).expect("valid").interval;
        covered += u64::from((found.low..=found.high).contains(&6.0));
    }
    let share = 1.0 - t_two_sided(1.959_964 * (29.0_f64 / 30.0).sqrt(), 29.0);
    let low = *binomial_range(trials, share - 0.01, 0.9999).expect("valid").start();
    let high = *binomial_range(trials, share, 0.9999).expect("valid").end();
    assert!((low..=high).contains(&covered), "{covered} not within {low} to {high}");
}

#[test]
fn what_has_no_interval_is_refused() {
    let values = [1.0, 2.0, 4.0];
    let of = |values: &[f64], statistic, level, resamples| {
        bootstrap_interval(values, statistic, level, resamples, 1)
    };
    let too_few = |given, needed| Err(StatsError::TooFew { given, needed });
    assert_eq!(of(&values[..1], Statistic::Mean, 0.95, 500), too_few(1, 2));
    assert_eq!(of(&values, Statistic::Mean, 0.95, 99), too_few(99, 100));
    assert_eq!(of(&values, Statistic::Mean, 0.999, 1_999), too_few(1_999, 2_000));
    assert_eq!(
        of(&values, Statistic::Mean, 0.95, u64::MAX),
        Err(StatsError::TooMany { given: u64::MAX, limit: RESAMPLE_LIMIT })
    );
    assert_eq!(of(&values, Statistic::Mean, 0.3, 500), Err(StatsError::Confidence { value: 0.3 }));
    for p in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(
            of(&values, Statistic::Quantile(p), 0.95, 500),
            Err(StatsError::Probability { .. })
        ));
    }
    for bad in [f64::NAN, f64::INFINITY, -2e140] {
        for statistic in STATISTICS {
            assert!(matches!(of(&[1.0, bad], statistic, 0.95, 500), Err(StatsError::Value { .. })));
            let pair = paired_bootstrap(&[1.0, 2.0], &[1.0, bad], statistic, 0.95, 500, 1);
            assert!(matches!(pair, Err(StatsError::Value { .. })));
        }
    }
    assert_eq!(
        paired_bootstrap(&values, &values[1..], Statistic::Mean, 0.95, 500, 1),
        Err(StatsError::Pairs { first: 3, second: 2 })
    );
}

proptest! {
    #[test]
    fn counts_stand_for_a_resample(values in values(), seed in any::<u64>()) {
        let mut stream = RandomStream::derive(seed, &[]);
        let mut counts = vec![0; values.len()];
        let draws: Vec<usize> = (0..values.len()).map(|_| stream.below(values.len() as u64) as usize).collect();
        for &at in &draws {
            counts[at] += 1;
        }
        let drawn: Vec<f64> = draws.iter().map(|&at| values[at]).collect();
        for statistic in STATISTICS {
            let sample = Sample::new(&values, statistic).expect("valid");
            // A deviation of no spread is a root of rounding errors.
            prop_assert!((sample.resampled(&counts) - naive(drawn.clone(), statistic)).abs() < 1e-5);
            prop_assert!(near(sample.estimate(), naive(values.clone(), statistic)));
            for index in 0..values.len() {
                let mut others = values.clone();
                others.remove(index);
                prop_assert!((sample.without(index) - naive(others, statistic)).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn of_means_pairs_are_their_differences(pairs in prop::collection::vec((-1e2..1e2, -1e2..1e2), 2..30usize)) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let joint = paired_bootstrap(&a, &b, Statistic::Mean, 0.95, 500, 7).expect("valid");
        let plain = interval(&differences, Statistic::Mean);
        prop_assert!(near(joint.interval.low, plain.interval.low) && near(joint.interval.high, plain.interval.high));
    }

    #[test]
    fn the_other_way_round_is_the_mirror_image(pairs in prop::collection::vec((-1e2..1e2, -1e2..1e2), 3..30usize)) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        for statistic in STATISTICS {
            let forth = paired_bootstrap(&a, &b, statistic, 0.95, 200, 7).expect("valid");
            let back = paired_bootstrap(&b, &a, statistic, 0.95, 200, 7).expect("valid");
            prop_assert!(near(forth.interval.low, -back.interval.high), "{forth:?} {back:?}");
            prop_assert!(near(forth.interval.high, -back.interval.low), "{forth:?} {back:?}");
        }
    }

    #[test]
    fn a_shift_shifts_the_interval_and_a_scale_scales_it(values in values(), shift in -1e2..1e2) {
        let moved: Vec<f64> = values.iter().map(|value| 4.0 * value + shift).collect();
        for statistic in STATISTICS {
            let (before, after) = (interval(&values, statistic), interval(&moved, statistic));
            let expected = |value: f64| 4.0 * value + if statistic == Statistic::Deviation { 0.0 } else { shift };
            prop_assert!((after.interval.low - expected(before.interval.low)).abs() < 1e-5, "{before:?} {after:?}");
            prop_assert!((after.interval.high - expected(before.interval.high)).abs() < 1e-5, "{before:?} {after:?}");
            prop_assert!(before.interval.low <= before.interval.high);
        }
    }
}
