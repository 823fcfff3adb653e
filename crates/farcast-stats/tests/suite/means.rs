//! Intervals of means, differences of two, and analyses of variance.

use farcast_stats::{MeanDifference, Summary, one_way_anova, paired, t_interval, welch};

use super::common::{cases, close, count, lists, number, numbers};

#[test]
fn intervals_of_means_agree() {
    for case in cases(include_str!("../../../../vectors/scipy/intervals.json")) {
        let (values, level) = (numbers(&case["values"]), number(&case["level"]));
        let found = t_interval(&values, level).expect("valid");
        let (low, high) = (number(&case["low"]), number(&case["high"]));
        close(found.mean, number(&case["mean"]), 1e-12, &case);
        // The ends of an interval about a million have no more digits than this in their difference.
        close(found.half_width, (high - low) / 2.0, 1e-8, &case);
        close(found.interval().low, low, 1e-8, &case);
        close(found.interval().high, high, 1e-8, &case);
        if level.to_bits() == 0.95_f64.to_bits() {
            let summary = Summary::of(&values).expect("valid");
            close(found.half_width, summary.ci95_half_width.expect("two"), 1e-10, &case);
        }
    }
}

#[test]
fn differences_of_means_agree() {
    for case in cases(include_str!("../../../../vectors/scipy/differences.json")) {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let test = if case["test"] == "welch" { welch } else { paired };
        let MeanDifference { difference, half_width, t, freedom, p } =
            test(&a, &b, number(&case["level"])).expect("valid");
        for (name, found) in
            [("difference", difference), ("half_width", half_width), ("t", t), ("freedom", freedom), ("p", p)]
        {
            close(found, number(&case[name]), 1e-9, &case);
        }
    }
}

#[test]
fn analyses_of_variance_agree() {
    for case in cases(include_str!("../../../../vectors/scipy/anova.json")) {
        let samples = lists(&case["samples"]);
        let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
        let found = one_way_anova(&samples).expect("valid");
        assert_eq!(found.freedom_between, count(&case["freedom_between"]));
        assert_eq!(found.freedom_within, count(&case["freedom_within"]));
        for (name, found) in [("f", found.f), ("p", found.p), ("eta_squared", found.eta_squared)] {
            close(found, number(&case[name]), 1e-9, &case);
        }
    }
}
