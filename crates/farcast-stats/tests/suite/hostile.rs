//! Any numbers give an error or a result, and no result is not-a-number.

use farcast_stats::{
    Statistic, batch_means, benjamini_hochberg, bootstrap_interval, holm, mser, one_way_anova, paired,
    paired_bootstrap, studentized_range_quantile, studentized_range_survival, t_interval, tukey_pairs, welch,
};
use proptest::prelude::*;

/// Generates any double, more often one that a function takes, of all magnitudes, and only a few different ones.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => any::<f64>(),
        20 => prop::sample::select(vec![0.0, -0.0, 1.0, 0.1, -3.0]),
        20 => prop::sample::select(vec![1e140, -1e140, 1e-300, 5e-324, 1e-160, f64::MIN_POSITIVE, 1e15]),
        20 => (-140..140_i32, -1.0..1.0).prop_map(|(exponent, mantissa)| mantissa * 10_f64.powi(exponent)),
    ]
}

fn sample() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(number(), 0..12usize)
}

fn level() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.5..=0.9999, 1 => any::<f64>(), 1 => Just(0.9999)]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![99 => 0..60_u64, 1 => any::<u64>()]
}

fn all_numbers(values: &[f64]) -> bool {
    values.iter().all(|value| !value.is_nan())
}

fn finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn of_one_and_two_samples(a in sample(), b in sample(), level in level()) {
        if let Ok(found) = t_interval(&a, level) {
            prop_assert!(finite(&[found.mean, found.half_width]) && found.half_width >= 0.0, "{found:?}");
        }
        for found in [welch(&a, &b, level), paired(&a, &b, level)].into_iter().flatten() {
            prop_assert!(finite(&[found.difference, found.half_width, found.freedom]), "{found:?}");
            prop_assert!(found.freedom >= 1.0 - 1e-9 && !found.t.is_nan() && (0.0..=1.0).contains(&found.p), "{found:?}");
        }
    }

    #[test]
    fn of_several_samples(samples in prop::collection::vec(prop::collection::vec(number(), 1..8usize), 0..5usize)) {
        let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
        if let Ok(found) = one_way_anova(&samples) {
            prop_assert!(!found.f.is_nan() && (0.0..=1.0).contains(&found.p), "{found:?}");
            prop_assert!((0.0..=1.0).contains(&found.eta_squared), "{found:?}");
        }
    }

    #[test]
    fn of_series(values in prop::collection::vec(number(), 0..60usize), batch in 0..6usize, level in level()) {
        if let Ok(truncation) = mser(&values, batch) {
            prop_assert!(2 * truncation <= values.len());
        }
        if let Ok(found) = batch_means(&values, 3 * batch, level) {
            prop_assert!(finite(&[found.mean.mean, found.mean.half_width]), "{found:?}");
            prop_assert!(found.lag_one.is_none_or(|lag| lag.abs() <= 1.0), "{found:?}");
        }
    }

    #[test]
    fn of_p_values(p in prop::collection::vec(prop_oneof![9 => 0.0..=1.0, 1 => any::<f64>()], 0..6usize)) {
        for adjusted in [holm(&p), benjamini_hochberg(&p)].into_iter().flatten() {
            prop_assert!(adjusted.iter().all(|p| (0.0..=1.0).contains(p)), "{adjusted:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_pairs_of_several_samples(
        samples in prop::collection::vec(prop::collection::vec(number(), 2..6usize), 0..4usize),
        level in level(),
    ) {
        let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
        for pair in tukey_pairs(&samples, level).into_iter().flatten() {
            prop_assert!(finite(&[pair.difference, pair.half_width]), "{pair:?}");
            prop_assert!(pair.q >= 0.0 && (0.0..=1.0).contains(&pair.p), "{pair:?}");
        }
    }

    #[test]
    fn of_the_studentised_range(number in any::<f64>(), share in 0.0..1.0, groups in count(), freedom in count()) {
        for number in [number, share, 100.0 * share] {
            if let Ok(p) = studentized_range_survival(number, groups, freedom) {
                prop_assert!((0.0..=1.0).contains(&p), "{p}");
            }
        }
        if let Ok(q) = studentized_range_quantile(number, groups, freedom) {
            prop_assert!(q.is_finite() && q >= 0.0, "{q}");
        }
    }

    #[test]
    fn of_resamples(a in sample(), b in sample(), level in level(), p in prop_oneof![0.0..=1.0, any::<f64>()]) {
        for statistic in [Statistic::Mean, Statistic::Deviation, Statistic::Quantile(p)] {
            let one = bootstrap_interval(&a, statistic, level, 500, 1);
            let pair = paired_bootstrap(&a, &b[..a.len().min(b.len())], statistic, level, 500, 1);
            for found in [one, pair].into_iter().flatten() {
                prop_assert!(finite(&[found.estimate, found.interval.low, found.interval.high]), "{found:?}");
                prop_assert!(found.interval.low <= found.interval.high, "{found:?}");
                if let Some(correction) = found.correction {
                    prop_assert!(all_numbers(&[correction.bias, correction.acceleration]), "{found:?}");
                }
            }
        }
    }
}
