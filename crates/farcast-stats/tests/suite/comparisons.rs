//! Several samples in pairs, several p-values at once, and two samples as a whole.

use farcast_stats::{benjamini_hochberg, holm, ks_two_sample, studentized_range_survival, tukey_pairs};
use serde_json::Value;

use super::common::{cases, close, count, lists, number, numbers};

/// Checks that a number is within 1e-6 of the expected one, relatively, or within 1e-11. `SciPy` takes 1 less an
/// integral, of which eleven digits are right.
fn close_tail(found: f64, expected: f64, case: &Value) {
    assert!((found - expected).abs() <= 1e-6 * expected + 1e-11, "{found:e} instead of {expected:e}: {case}");
}

#[test]
fn the_studentised_range_agrees() {
    for case in cases(include_str!("../../../../vectors/scipy/studentized_range.json")) {
        let (groups, freedom) = (count(&case["groups"]), count(&case["freedom"]));
        let p = studentized_range_survival(number(&case["q"]), groups, freedom).expect("valid");
        close_tail(p, number(&case["p"]), &case);
    }
}

#[test]
fn pairs_of_several_samples_agree() {
    for case in cases(include_str!("../../../../vectors/scipy/tukey.json")) {
        let samples = lists(&case["samples"]);
        let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
        let found = tukey_pairs(&samples, number(&case["level"])).expect("valid");
        let expected = lists(&case["pairs"]);
        assert_eq!(found.len(), expected.len());
        for (pair, expected) in found.iter().zip(expected) {
            let [first, second, difference, low, high, p] = expected[..] else { panic!("{expected:?}") };
            assert_eq!((pair.first, pair.second), (first as usize, second as usize));
            close(pair.difference, difference, 1e-9, &case);
            close(pair.half_width, (high - low) / 2.0, 1e-6, &case);
            close_tail(pair.p, p, &case);
        }
    }
}

#[test]
fn adjusted_p_values_agree() {
    for case in cases(include_str!("../../../../vectors/scipy/multiple.json")) {
        let p = numbers(&case["p"]);
        for (name, adjusted) in [("holm", holm(&p)), ("benjamini_hochberg", benjamini_hochberg(&p))] {
            let expected = numbers(&case[name]);
            let adjusted = adjusted.expect("valid");
            assert_eq!(adjusted.len(), expected.len());
            for (found, expected) in adjusted.into_iter().zip(expected) {
                close(found, expected, 1e-12, &case);
            }
        }
    }
}

#[test]
fn the_distance_of_two_samples_agrees_and_errs_as_it_says() {
    for case in cases(include_str!("../../../../vectors/scipy/ks.json")) {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let found = ks_two_sample(&a, &b).expect("valid");
        close(found.statistic, number(&case["statistic"]), 1e-12, &case);
        close(found.p_value, number(&case["limit"]), 1e-6, &case);
        let exact = number(&case["exact"]);
        // By up to 7 % for equal sizes, by up to 80 % for others, and by a factor of three far out; to the large side.
        let most = match found.p_value {
            p if p >= 0.1 => continue,
            p if p < 0.005 => 3.0,
            _ if a.len() == b.len() => 1.07,
            _ => 1.8,
        };
        assert!((1.0..most).contains(&(found.p_value / exact)), "{found:?}: {case}");
    }
}
