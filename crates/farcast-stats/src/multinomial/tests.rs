use proptest::prelude::*;

use super::{OUTCOME_LIMIT, multinomial_log_likelihood, multinomial_p_value};
use crate::StatsError;

fn close(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} instead of {expected:e}");
}

/// Returns every way to distribute `n` trials over `categories`.
fn outcomes(n: u64, categories: usize) -> Vec<Vec<u64>> {
    if categories == 1 {
        return vec![vec![n]];
    }
    let with_first = |first: u64| {
        outcomes(n - first, categories - 1).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (0..=n).flat_map(with_first).collect()
}

/// Returns the probability of `counts` times `sum(weights)^n`, in whole numbers: the number of orders times the
/// weights.
fn whole_likelihood(counts: &[u64], weights: &[u64]) -> u128 {
    let (mut placed, mut product) = (0_u128, 1_u128);
    for (&count, &weight) in counts.iter().zip(weights) {
        for i in 1..=u128::from(count) {
            placed += 1;
            product = product * placed / i;
        }
        product *= u128::from(weight).pow(count as u32);
    }
    product
}

#[test]
fn the_likelihood_has_its_closed_forms() {
    let likelihood = |counts: &[u64], p: &[f64]| multinomial_log_likelihood(counts, p).expect("valid");
    close(likelihood(&[14, 0], &[0.3, 0.7]), 14.0 * 0.3_f64.ln(), 1e-13);
    close(likelihood(&[1, 1, 1], &[0.2, 0.3, 0.5]), (6.0_f64 * 0.2 * 0.3 * 0.5).ln(), 1e-13);
    // 14! / (1! 11! 2!) = 1092 ways.
    let expected = 1_092.0_f64.ln() + 0.07_f64.ln() + 11.0 * 0.79_f64.ln() + 2.0 * 0.14_f64.ln();
    close(likelihood(&[1, 11, 2], &[0.07, 0.79, 0.14]), expected, 1e-12);
    assert!(likelihood(&[0, 0], &[0.5, 0.5]).abs() < 1e-15);
    assert!(likelihood(&[3, 0], &[1.0, 0.0]).abs() < 1e-12);
    assert_eq!(multinomial_log_likelihood(&[2, 1], &[1.0, 0.0]), Ok(f64::NEG_INFINITY));
}

#[test]
fn the_likelihoods_of_all_outcomes_add_up_to_one() {
    let p = [0.1, 0.2, 0.3, 0.4];
    let likelihood = |counts: &Vec<u64>| multinomial_log_likelihood(counts, &p).expect("valid").exp();
    close(outcomes(14, 4).iter().map(likelihood).sum(), 1.0, 1e-12);
}

#[test]
fn two_fair_categories_are_the_sign_test() {
    // 2 (1 + 14 + 91) / 2^14.
    close(multinomial_p_value(&[2, 12], &[0.5, 0.5]).expect("valid"), 212.0 / 16_384.0, 1e-12);
    close(multinomial_p_value(&[7, 7], &[0.5, 0.5]).expect("valid"), 1.0, 1e-12);
}

#[test]
fn impossible_and_certain_outcomes_are_the_ends() {
    let p_value = |counts: &[u64], p: &[f64]| multinomial_p_value(counts, p).expect("valid");
    assert!(p_value(&[13, 1], &[1.0, 0.0]).abs() < 1e-300);
    close(p_value(&[14, 0], &[1.0, 0.0]), 1.0, 1e-12);
    close(p_value(&[14], &[1.0]), 1.0, 1e-12);
    close(p_value(&[0, 0, 0], &[0.2, 0.3, 0.5]), 1.0, 1e-12);
}

#[test]
fn enumerates_as_many_as_it_says() {
    // 100 trials in five categories have C(104, 4) = 4,598,126 outcomes, 200 have 70,058,751.
    let p = [0.2; 5];
    close(multinomial_p_value(&[20; 5], &p).expect("within the limit"), 1.0, 1e-9);
    let refused = Err(StatsError::TooManyOutcomes { limit: OUTCOME_LIMIT });
    assert_eq!(multinomial_p_value(&[40; 5], &p), refused);
    assert_eq!(multinomial_p_value(&[u64::MAX; 5], &p), refused);
    assert_eq!(multinomial_p_value(&[u64::MAX], &[1.0]), refused);
    assert_eq!(
        multinomial_p_value(&[1; 6], &[0.1, 0.1, 0.2, 0.2, 0.2, 0.2]),
        Err(StatsError::TooManyCategories { categories: 6, limit: 5 })
    );
}

#[test]
fn refuses_what_is_no_distribution() {
    let refusal = |counts: &[u64], p: &[f64]| multinomial_p_value(counts, p).expect_err("refused");
    assert_eq!(refusal(&[1], &[0.5, 0.5]), StatsError::Categories { counts: 1, probabilities: 2 });
    assert_eq!(refusal(&[], &[]), StatsError::Empty);
    assert_eq!(refusal(&[1, 1], &[1.5, -0.5]), StatsError::Probability { value: 1.5 });
    assert!(matches!(refusal(&[1, 1], &[f64::NAN, 0.5]), StatsError::Probability { .. }));
    assert_eq!(
        refusal(&[1, 1], &[0.5, 0.25]).to_string(),
        "the probabilities add up to 0.75; they must add up to 1"
    );
}

proptest! {
    #[test]
    fn the_p_value_agrees_with_whole_numbers(
        weights in prop::collection::vec(1..6_u64, 2..=5),
        n in 0..14_u64,
        pick in any::<prop::sample::Index>(),
    ) {
        let all = outcomes(n, weights.len());
        let observed = &all[pick.index(all.len())];
        let total: u64 = weights.iter().sum();
        let probabilities: Vec<f64> = weights.iter().map(|&weight| weight as f64 / total as f64).collect();

        let bound = whole_likelihood(observed, &weights);
        let surprising = all.iter().map(|counts| whole_likelihood(counts, &weights)).filter(|w| *w <= bound);
        let expected = surprising.sum::<u128>() as f64 / u128::from(total).pow(n as u32) as f64;

        let found = multinomial_p_value(observed, &probabilities).expect("valid");
        prop_assert!((found - expected).abs() <= 1e-10 * expected, "{} instead of {}", found, expected);
    }
}
