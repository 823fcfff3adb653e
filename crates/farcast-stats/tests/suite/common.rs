//! Reading vectors, and comparing with them.

use serde_json::Value;

/// Returns the cases of a file.
pub(crate) fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).expect("JSON");
    assert!(file["scipy"].is_string(), "a file says which version wrote it");
    let cases = file["cases"].as_array().expect("cases").clone();
    assert!(!cases.is_empty());
    cases
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

pub(crate) fn count(value: &Value) -> u64 {
    value.as_u64().expect("a count")
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(number).collect()
}

pub(crate) fn lists(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().expect("lists").iter().map(numbers).collect()
}

/// Checks that a number is within the relative distance `relative` of the expected one.
pub(crate) fn close(found: f64, expected: f64, relative: f64, case: &Value) {
    assert!(
        (found - expected).abs() <= relative * expected.abs(),
        "{found:e} instead of {expected:e}: {case}"
    );
}
