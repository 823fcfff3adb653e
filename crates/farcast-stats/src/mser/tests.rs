use proptest::prelude::*;

use super::mser;
use crate::StatsError;

/// Returns ten batches of five about the settled level, the first two of them far from it.
fn by_hand() -> Vec<f64> {
    let batch = |level: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|noise| level + noise);
    [90.0, 40.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0].map(batch).concat()
}

#[test]
fn a_beginning_that_is_far_off_is_left_out() {
    // The statistic is the squares of the means from the d-th on, over (k - d)^2. At d = 2 it is 8 / 4 / 64 = 0.031;
    // from 3 on it is more, because fewer are left; at 1, with the 40, it is about 18.
    assert_eq!(mser(&by_hand(), 5), Ok(10));
    // The rest at the end is ignored.
    assert_eq!(mser(&[by_hand(), vec![1e6; 4]].concat(), 5), Ok(10));
}

#[test]
fn a_steady_series_keeps_everything() {
    assert_eq!(mser(&[0.1; 200], 5), Ok(0));
    let zigzag: Vec<f64> = (0..200).map(|n| f64::from(n % 5) + f64::from(n / 5 % 2)).collect();
    assert_eq!(mser(&zigzag, 5), Ok(0));
}

#[test]
fn a_series_that_never_settles_is_refused() {
    let rising: Vec<f64> = (0..100).map(f64::from).collect();
    let refused = mser(&rising, 5).expect_err("refused");
    assert!(matches!(refused, StatsError::Unsettled { truncation: 55.., values: 100 }), "{refused:?}");
    // A step right at the half is left out; one batch later it is too late.
    let step =
        |at: usize| (0..100).map(|n| if n < at { 50.0 } else { f64::from(n as u32 % 5) }).collect::<Vec<_>>();
    assert_eq!(mser(&step(50), 5), Ok(50));
    assert_eq!(mser(&step(55), 5), Err(StatsError::Unsettled { truncation: 55, values: 100 }));
    assert_eq!(
        mser(&step(55), 5).expect_err("refused").to_string(),
        "55 of 100 values come before the series settles, more than half; it must be longer"
    );
}

#[test]
fn what_cannot_be_cut_is_refused() {
    assert_eq!(mser(&[1.0; 100], 0), Err(StatsError::TooFew { given: 0, needed: 1 }));
    assert_eq!(mser(&[1.0; 49], 5), Err(StatsError::TooFew { given: 49, needed: 50 }));
    assert_eq!(mser(&[1.0; 49], usize::MAX), Err(StatsError::TooFew { given: 49, needed: u64::MAX }));
    for bad in [f64::NAN, f64::INFINITY, 2e140] {
        // Also where it would be ignored.
        assert!(matches!(mser(&[vec![1.0; 50], vec![bad]].concat(), 5), Err(StatsError::Value { .. })));
    }
    assert_eq!(mser(&[vec![1e140; 5], vec![-1e140; 95]].concat(), 5), Ok(5));
}

/// Returns the statistic of the means from the `d`-th on, by two passes.
fn statistic(means: &[f64]) -> f64 {
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n * n)
}

proptest! {
    #[test]
    fn no_other_truncation_is_better(values in prop::collection::vec(-1e3..1e3, 50..200usize), batch in 1..6usize) {
        let means: Vec<f64> = values.chunks_exact(batch).map(|batch| batch.iter().sum::<f64>() / batch.len() as f64).collect();
        let (Ok(truncation) | Err(StatsError::Unsettled { truncation, .. })) =
            mser(&values, batch).map(|truncation| truncation as u64)
        else {
            panic!("enough of them");
        };
        let found = statistic(&means[truncation as usize / batch..]);
        for d in 0..=means.len() - 5 {
            prop_assert!(found <= statistic(&means[d..]) * (1.0 + 1e-9), "{d}");
        }
    }

    #[test]
    fn neither_a_shift_nor_a_scale_changes_it(values in prop::collection::vec(-1e3..1e3, 50..200usize), shift in -1e3..1e3) {
        let moved: Vec<f64> = values.iter().map(|value| -4.0 * value + shift).collect();
        prop_assert_eq!(mser(&values, 5), mser(&moved, 5));
    }
}
