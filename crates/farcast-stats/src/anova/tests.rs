use proptest::prelude::*;

use super::{Anova, one_way_anova};
use crate::{StatsError, welch};

fn of(samples: &[Vec<f64>]) -> Result<Anova, StatsError> {
    one_way_anova(&samples.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn samples() -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(prop::collection::vec(-1e3..1e3, 2..12usize), 2..6usize)
}

#[test]
fn a_worked_example() {
    // Means 2, 5 and 4 about 11/3: 3 (25 + 16 + 1) / 9 = 14 between with 2 degrees of freedom, and 2 + 2 + 8 = 12
    // within with 6.
    let found = one_way_anova(&[&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], &[2.0, 4.0, 6.0]]).expect("valid");
    assert!((found.f - 3.5).abs() < 1e-12 && (found.eta_squared - 14.0 / 26.0).abs() < 1e-12, "{found:?}");
    assert_eq!((found.freedom_between, found.freedom_within), (2, 6));
    // With two degrees of freedom above, the tail is (1 + 2 F / below)^(-below / 2).
    assert!((found.p - (1.0_f64 + 7.0 / 6.0).powi(-3)).abs() < 1e-12, "{found:?}");
}

#[test]
fn samples_without_spread_differ_surely_or_not_at_all() {
    let apart = one_way_anova(&[&[0.1; 3], &[0.1; 2], &[0.3; 2]]).expect("valid");
    assert_eq!((apart.f, apart.p, apart.eta_squared), (f64::INFINITY, 0.0, 1.0));
    let alike = one_way_anova(&[&[0.1; 3], &[0.1; 2]]).expect("valid");
    assert_eq!((alike.f, alike.p, alike.eta_squared), (0.0, 1.0, 0.0));
}

#[test]
fn the_largest_and_the_least_values_have_an_answer() {
    let found = one_way_anova(&[&[1e140, -1e140], &[1e140, 1e140]]).expect("valid");
    assert!(found.f.is_finite() && (0.0..=1.0).contains(&found.p), "{found:?}");
    let found = one_way_anova(&[&[1e-150, 0.0], &[1e140, 1e140]]).expect("valid");
    assert_eq!((found.p, found.eta_squared), (0.0, 1.0));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let too_few = |given, needed| Err(StatsError::TooFew { given, needed });
    assert_eq!(one_way_anova(&[]), too_few(0, 2));
    assert_eq!(one_way_anova(&[&[1.0, 2.0]]), too_few(1, 2));
    assert_eq!(one_way_anova(&[&[1.0], &[2.0], &[3.0]]), too_few(3, 4));
    assert_eq!(one_way_anova(&[&[1.0, 2.0], &[]]), Err(StatsError::Empty));
    assert!(matches!(one_way_anova(&[&[1.0, 2.0], &[f64::NAN]]), Err(StatsError::Value { .. })));
}

proptest! {
    #[test]
    fn the_sum_of_squares_is_that_of_all_values(samples in samples()) {
        let found = of(&samples).expect("valid");
        let all: Vec<f64> = samples.concat();
        let squares = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        };
        let within: f64 = samples.iter().map(|sample| squares(sample)).sum();
        let whole = squares(&all);
        prop_assert!((found.eta_squared - (1.0 - within / whole)).abs() < 1e-9, "{found:?}");
        let f = (whole - within) / found.freedom_between as f64 / (within / found.freedom_within as f64);
        prop_assert!((found.f - f).abs() < 1e-6 * (1.0 + f), "{found:?}");
    }

    #[test]
    fn neither_their_order_nor_a_shift_changes_anything(samples in samples(), shift in -1e3..1e3) {
        let moved: Vec<Vec<f64>> =
            samples.iter().rev().map(|sample| sample.iter().map(|value| value + shift).collect()).collect();
        let (before, after) = (of(&samples).expect("valid"), of(&moved).expect("valid"));
        prop_assert!((before.p - after.p).abs() < 1e-7 && (before.eta_squared - after.eta_squared).abs() < 1e-7);
    }

    #[test]
    fn of_two_samples_of_one_size_it_is_the_square_of_t(pairs in prop::collection::vec((-1e3..1e3, -1e3..1e3), 2..20usize)) {
        // Welch's t and the pooled one differ in nothing but their degrees of freedom where the sizes are equal.
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (found, t) = (one_way_anova(&[&a, &b]).expect("valid"), welch(&a, &b, 0.95).expect("valid").t);
        prop_assert!((found.f - t * t).abs() <= 1e-8 * (1.0 + t * t), "{found:?} {t}");
    }
}
