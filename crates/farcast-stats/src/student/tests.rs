use proptest::prelude::*;

use super::t_interval;
use crate::StatsError;

#[test]
fn the_interval_is_students() {
    // t(0.995, 4) = 4.604095 and t(0.75, 4) = 0.740697 in every table; the mean is 3, the variance 5/2.
    for (level, t) in [(0.99, 4.604_095), (0.5, 0.740_697)] {
        let found = t_interval(&[5.0, 1.0, 4.0, 2.0, 3.0], level).expect("valid");
        assert!((found.half_width - t * 0.5_f64.sqrt()).abs() < 1e-6, "{found:?}");
        assert_eq!((found.mean, found.freedom), (3.0, 4));
        assert_eq!(
            (found.interval().low, found.interval().high),
            (3.0 - found.half_width, 3.0 + found.half_width)
        );
    }
}

#[test]
fn equal_values_have_an_interval_of_no_width() {
    let found = t_interval(&[0.1; 7], 0.95).expect("valid");
    assert_eq!((found.mean, found.half_width), (0.1, 0.0));
}

#[test]
fn the_largest_values_do_not_overflow() {
    let found = t_interval(&[1e140, -1e140], 0.9999).expect("valid");
    assert!(found.half_width.is_finite() && found.half_width > 6e143, "{found:?}");
}

#[test]
fn what_has_no_interval_is_refused() {
    for level in [0.0, 0.49, 0.99991, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(t_interval(&[1.0, 2.0], level), Err(StatsError::Confidence { .. })));
    }
    assert_eq!(t_interval(&[1.0], 0.95), Err(StatsError::TooFew { given: 1, needed: 2 }));
    assert_eq!(t_interval(&[], 0.95), Err(StatsError::TooFew { given: 0, needed: 2 }));
    for value in [f64::NAN, f64::INFINITY, 2e140] {
        assert!(matches!(t_interval(&[1.0, value], 0.95), Err(StatsError::Value { .. })));
    }
    assert_eq!(
        t_interval(&[1.0, 2.0], 0.4).expect_err("refused").to_string(),
        "0.4 is not a level of confidence; it must lie within 0.5 to 0.9999"
    );
}

proptest! {
    #[test]
    fn a_higher_level_is_wider(values in prop::collection::vec(-1e3..1e3, 2..40usize), low in 0.5..0.99, more in 1e-3..9e-3) {
        let width = |level| t_interval(&values, level).expect("valid").half_width;
        let varies = !values.is_sorted_by(|a, b| a.to_bits() == b.to_bits());
        prop_assert!(width(low + more) > width(low) || !varies);
    }
}
