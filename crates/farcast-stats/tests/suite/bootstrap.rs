//! Bootstrap intervals, which vary with the draws, and their properties that do not.

use farcast_stats::{BootstrapInterval, Statistic, bootstrap_interval, paired_bootstrap};
use serde_json::Value;

use super::common::{cases, close, count, lists, number, numbers};

/// Number of our seeds over which intervals are averaged.
const SEEDS: u64 = 30;
/// Number of `SciPy`'s seeds over which its intervals were averaged.
const REPEATS: f64 = 60.0;

fn intervals(case: &Value) -> Vec<BootstrapInterval> {
    let statistic = match case["statistic"].as_str().expect("a name") {
        "mean" => Statistic::Mean,
        "deviation" => Statistic::Deviation,
        "median" => Statistic::Quantile(0.5),
        "p80" => Statistic::Quantile(0.8),
        other => panic!("{other}"),
    };
    let (level, resamples) = (number(&case["level"]), count(&case["resamples"]));
    let samples = lists(&case["samples"]);
    let interval = |seed| match &samples[..] {
        [one] => bootstrap_interval(one, statistic, level, resamples, seed).expect("valid"),
        [a, b] => paired_bootstrap(a, b, statistic, level, resamples, seed).expect("valid"),
        _ => panic!("{case}"),
    };
    (0..SEEDS).map(interval).collect()
}

/// Checks that the mean of our intervals' ends is within four standard errors of `SciPy`'s mean. Our intervals vary
/// as `SciPy`'s do, so the error is the deviation of these times `sqrt(1 / SEEDS + 1 / REPEATS)`.
fn agrees(name: &str, case: &Value, ours: impl Iterator<Item = f64>) {
    let mean = ours.sum::<f64>() / SEEDS as f64;
    let [theirs, sd] = numbers(&case[name])[..] else { panic!("{case}") };
    let error = sd * (1.0 / SEEDS as f64 + 1.0 / REPEATS).sqrt();
    assert!(
        (mean - theirs).abs() <= 4.0 * error + 1e-9 * theirs.abs(),
        "{name}: {mean}, not {theirs} +- {error}: {case}"
    );
}

#[test]
fn intervals_agree_within_what_draws_vary() {
    for case in cases(include_str!("../../../../vectors/scipy/bootstrap.json")) {
        let found = intervals(&case);
        let correction = |one: &BootstrapInterval| one.correction.expect("defined");
        for one in &found {
            close(one.estimate, number(&case["estimate"]), 1e-10, &case);
            // Of a median it is a difference of equal numbers.
            let acceleration = number(&case["acceleration"]);
            assert!(
                (correction(one).acceleration - acceleration).abs() <= 1e-8 * acceleration.abs() + 1e-12,
                "{case}"
            );
        }
        agrees("bias", &case, found.iter().map(|one| correction(one).bias));
        agrees("low", &case, found.iter().map(|one| one.interval.low));
        agrees("high", &case, found.iter().map(|one| one.interval.high));
    }
}
