use proptest::prelude::*;

use super::{TukeyPair, tukey_hsd, tukey_pairs};
use crate::StatsError;

fn pairs(samples: &[Vec<f64>], level: f64) -> Vec<TukeyPair> {
    tukey_pairs(&samples.iter().map(Vec::as_slice).collect::<Vec<_>>(), level).expect("valid")
}

#[test]
fn a_worked_example() {
    // Sums of squares 2, 2 and 8 with 6 degrees of freedom: a mean square of 2.
    let samples: [&[f64]; 3] = [&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], &[2.0, 4.0, 6.0]];
    let hsd = tukey_hsd(&samples, 0.95).expect("valid");
    assert!((hsd.mean_square - 2.0).abs() < 1e-12);
    assert!((hsd.difference - hsd.q * (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
    assert!((hsd.q - 4.339).abs() < 0.001, "{}", hsd.q);
    let pairs = tukey_pairs(&samples, 0.95).expect("valid");
    let expected = [(0, 1, -3.0), (0, 2, -2.0), (1, 2, 1.0)];
    for (pair, (first, second, difference)) in pairs.iter().zip(expected) {
        assert_eq!((pair.first, pair.second), (first, second));
        assert!(
            (pair.difference - difference).abs() < 1e-12 && (pair.half_width - hsd.difference).abs() < 1e-9
        );
        assert!((pair.q - difference.abs() / (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
    }
}

#[test]
fn a_pair_is_significant_at_the_point_of_the_table() {
    // There are three samples of two values, each 0.5 from its mean: a mean square of 1/2 and 3 degrees of freedom.
    // The table has 5.910 for these at 5 %. The first two means are that many standard errors sqrt(1/4) apart.
    let apart = 5.910 * 0.5;
    let pairs = pairs(&[vec![-0.5, 0.5], vec![apart - 0.5, apart + 0.5], vec![-0.5, 0.5]], 0.95);
    assert!((pairs[0].p - 0.05).abs() < 1e-4, "{pairs:?}");
    assert!((pairs[0].half_width - apart).abs() < 1e-3, "{pairs:?}");
    assert!(pairs[1].p > 0.999_999, "{pairs:?}");
}

#[test]
fn samples_without_spread_differ_surely_or_not_at_all() {
    let pairs = pairs(&[vec![0.1; 3], vec![0.1; 2], vec![0.3; 2]], 0.95);
    let told: Vec<_> = pairs.iter().map(|pair| (pair.half_width, pair.q, pair.p)).collect();
    assert_eq!((told[0].0, told[0].1), (0.0, 0.0));
    assert!((told[0].2 - 1.0).abs() < 1e-12);
    assert_eq!(told[1..], [(0.0, f64::INFINITY, 0.0); 2]);
}

#[test]
fn what_has_no_answer_is_refused() {
    assert!(tukey_hsd(&[&[1.0, 2.0]], 0.95).is_err());
    assert!(tukey_hsd(&[&[1.0], &[2.0]], 0.95).is_err());
    assert!(tukey_hsd(&[&[1.0, 2.0], &[1.0, 2.0, 3.0]], 0.95).is_err());
    let too_few = |given| Err(StatsError::TooFew { given, needed: 2 });
    assert_eq!(tukey_pairs(&[], 0.95), too_few(0));
    assert_eq!(tukey_pairs(&[&[1.0, 2.0]], 0.95), too_few(1));
    assert_eq!(tukey_pairs(&[&[1.0, 2.0], &[1.0]], 0.95), too_few(1));
    for bad in [f64::NAN, f64::INFINITY, 2e140] {
        assert!(matches!(tukey_hsd(&[&[1.0, bad], &[1.0, 2.0]], 0.95), Err(StatsError::Value { .. })));
        assert!(matches!(tukey_pairs(&[&[1.0, bad], &[1.0, 2.0]], 0.95), Err(StatsError::Value { .. })));
    }
    assert_eq!(tukey_pairs(&[&[1.0, 2.0], &[1.0, 2.0]], 0.4), Err(StatsError::Confidence { value: 0.4 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_pair_is_significant_where_its_interval_has_no_zero(
        samples in prop::collection::vec(prop::collection::vec(-1.0..1.0, 2..9usize), 2..6usize),
        level in 0.5..0.9999,
    ) {
        let count = samples.len();
        let found = pairs(&samples, level);
        prop_assert_eq!(found.len(), count * (count - 1) / 2);
        for pair in found {
            prop_assert!(pair.first < pair.second && pair.second < count);
            let margin = pair.difference.abs() - pair.half_width;
            prop_assert!(margin.abs() < 1e-6 || (pair.p < 1.0 - level) == (margin > 0.0), "{pair:?}");
        }
    }

    #[test]
    fn neither_a_shift_nor_a_scale_changes_a_p_value(
        samples in prop::collection::vec(prop::collection::vec(-1.0..1.0, 2..9usize), 2..5usize),
        shift in -10.0..10.0,
        scale in 0.1..10.0,
    ) {
        let moved: Vec<Vec<f64>> =
            samples.iter().map(|sample| sample.iter().map(|value| scale * value + shift).collect()).collect();
        for (before, after) in pairs(&samples, 0.95).into_iter().zip(pairs(&moved, 0.95)) {
            prop_assert!((before.p - after.p).abs() < 1e-7, "{before:?} {after:?}");
        }
    }
}
