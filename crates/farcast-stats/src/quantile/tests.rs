use proptest::prelude::*;

use super::{Quantiles, quantile};
use crate::StatsError;

#[test]
fn agrees_with_numpy() {
    // NumPy's numpy.quantile(values, p), whose default method is type 7.
    let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    for (p, expected) in [(0.0, 1.0), (0.05, 1.25), (0.25, 2.5), (0.5, 6.0), (0.95, 28.0), (1.0, 32.0)] {
        let value = quantile(&values, p).expect("valid");
        assert!((value - expected).abs() < 1e-12, "{p}: {value}");
    }
}

#[test]
fn what_never_finished_stands_as_infinity() {
    let values = [1.0, 2.0, 3.0, f64::INFINITY, f64::INFINITY];
    assert_eq!(quantile(&values, 0.5), Ok(3.0));
    assert_eq!(quantile(&values, 0.51), Ok(f64::INFINITY));
    assert_eq!(quantile(&values, 0.75), Ok(f64::INFINITY));
    assert_eq!(quantile(&values, 1.0), Ok(f64::INFINITY));
}

#[test]
fn ends_do_not_overflow() {
    assert_eq!(quantile(&[f64::MIN, f64::MAX], 0.5), Ok(0.0));
    assert_eq!(quantile(&[f64::MAX, f64::MAX], 0.3), Ok(f64::MAX));
    assert_eq!(quantile(&[7.0], 0.3), Ok(7.0));
}

#[test]
fn refuses_what_has_no_quantile() {
    assert_eq!(quantile(&[], 0.5), Err(StatsError::Empty));
    assert_eq!(quantile(&[1.0], 1.5), Err(StatsError::Probability { value: 1.5 }));
    assert!(matches!(quantile(&[1.0], f64::NAN), Err(StatsError::Probability { .. })));
    assert_eq!(quantile(&[2.0, 1.0], 0.5), Err(StatsError::Unsorted));
    assert!(matches!(quantile(&[1.0, f64::NAN], 0.5), Err(StatsError::Unordered { .. })));
    assert!(matches!(quantile(&[f64::NEG_INFINITY], 0.5), Err(StatsError::Unordered { .. })));
}

proptest! {
    #[test]
    fn at_least_the_share_p_lies_at_or_below_the_next_value(
        mut values in prop::collection::vec(-1e6..1e6, 1..40usize),
        p in 0.0..=1.0,
    ) {
        values.sort_by(f64::total_cmp);
        let found = quantile(&values, p).expect("valid");
        // Type 7 lies between the order statistics numbered floor((n-1)p) and ceil((n-1)p), from 0.
        let position = (values.len() - 1) as f64 * p;
        prop_assert!(values[position.floor() as usize] <= found);
        prop_assert!(found <= values[position.ceil() as usize]);
    }

    #[test]
    fn mirrored_values_have_mirrored_quantiles(mut values in prop::collection::vec(-1e6..1e6, 1..40usize)) {
        values.sort_by(f64::total_cmp);
        let mirrored: Vec<f64> = values.iter().rev().map(|value| -value).collect();
        let (these, those) = (Quantiles::of_sorted(&values), Quantiles::of_sorted(&mirrored));
        for (a, b) in [(these.p05, those.p95), (these.p25, those.p75), (these.p50, those.p50)] {
            prop_assert!((a + b).abs() < 1e-6, "{} and {}", a, b);
        }
    }
}
