use proptest::prelude::*;

use super::{benjamini_hochberg, holm};
use crate::StatsError;

fn p_values() -> impl Strategy<Value = Vec<f64>> {
    // With some that are equal.
    prop::collection::vec(prop_oneof![0.0..=1.0, (0..=20_u32).prop_map(|n| f64::from(n) / 20.0)], 0..30usize)
}

/// Returns the rejections of Holm's own procedure. The least value is rejected if it is at most alpha / n, the next
/// if it is at most alpha / (n - 1), and so on until one is not.
fn rejected_by_holm(p: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut rejected = vec![false; p.len()];
    for (rank, &index) in order.iter().enumerate() {
        if p[index] * (p.len() - rank) as f64 > alpha {
            break;
        }
        rejected[index] = true;
    }
    rejected
}

/// Returns the rejections of Benjamini's and Hochberg's own procedure: of the k least values, for the greatest k for
/// which k values are at most k alpha / n.
fn rejected_by_benjamini_hochberg(p: &[f64], alpha: f64) -> Vec<bool> {
    let n = p.len();
    let bound = |k: usize| k as f64 * alpha / n as f64;
    let most = (1..=n).rev().find(|&k| p.iter().filter(|p| **p <= bound(k)).count() >= k);
    p.iter().map(|p| most.is_some_and(|k| *p <= bound(k))).collect()
}

#[test]
fn a_worked_example() {
    let close = |found: Vec<f64>, expected: [f64; 4]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
    };
    close(holm(&[0.01, 0.04, 0.03, 0.005]).expect("valid"), [0.03, 0.06, 0.06, 0.02]);
    close(benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]).expect("valid"), [0.02, 0.04, 0.04, 0.02]);
}

#[test]
fn none_give_none_and_what_is_no_probability_is_refused() {
    for adjust in [holm, benjamini_hochberg] {
        assert_eq!(adjust(&[]), Ok(vec![]));
        assert_eq!(adjust(&[0.3]), Ok(vec![0.3]));
        for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert!(matches!(adjust(&[0.5, bad]), Err(StatsError::Probability { .. })));
        }
    }
}

proptest! {
    #[test]
    fn what_is_at_most_alpha_is_what_the_procedures_reject(p in p_values(), alpha in 0.001..0.999_f64) {
        let near = |adjusted: &[f64]| adjusted.iter().any(|p| (p - alpha).abs() < 1e-12);
        let (a, b) = (holm(&p).expect("valid"), benjamini_hochberg(&p).expect("valid"));
        prop_assume!(!near(&a) && !near(&b));
        prop_assert_eq!(a.iter().map(|p| *p <= alpha).collect::<Vec<_>>(), rejected_by_holm(&p, alpha));
        prop_assert_eq!(b.iter().map(|p| *p <= alpha).collect::<Vec<_>>(), rejected_by_benjamini_hochberg(&p, alpha));
    }

    #[test]
    fn adjusted_values_keep_the_order_and_grow(p in p_values()) {
        let (a, b) = (holm(&p).expect("valid"), benjamini_hochberg(&p).expect("valid"));
        for i in 0..p.len() {
            prop_assert!(p[i] <= b[i] * (1.0 + 1e-12) && b[i] <= a[i] * (1.0 + 1e-12) && a[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || (a[i] <= a[j] && b[i] <= b[j]));
            }
        }
    }

    #[test]
    fn the_order_of_the_comparisons_does_not_matter(p in p_values()) {
        let back: Vec<f64> = p.iter().rev().copied().collect();
        for adjust in [holm, benjamini_hochberg] {
            let mut adjusted = adjust(&back).expect("valid");
            adjusted.reverse();
            prop_assert_eq!(adjusted, adjust(&p).expect("valid"));
        }
    }
}
