//! Series and their steady state.

use farcast_stats::{StatsError, batch_means, mser};

use super::common::{cases, close, count, number, numbers};

#[test]
fn truncations_are_those_of_the_definition() {
    for case in cases(include_str!("../../../../vectors/scipy/mser.json")) {
        let values = numbers(&case["values"]);
        let found = mser(&values, count(&case["batch"]) as usize);
        match case["truncation"].as_u64() {
            Some(truncation) => assert_eq!(found, Ok(truncation as usize), "{case}"),
            None => assert!(matches!(found, Err(StatsError::Unsettled { .. })), "{found:?}: {case}"),
        }
    }
}

#[test]
fn means_of_batches_agree() {
    for case in cases(include_str!("../../../../vectors/scipy/batch_means.json")) {
        let values = numbers(&case["values"]);
        let found =
            batch_means(&values, count(&case["batches"]) as usize, number(&case["level"])).expect("valid");
        assert_eq!(found.size, count(&case["size"]));
        let interval = found.mean.interval();
        close(found.mean.mean, number(&case["mean"]), 1e-9, &case);
        close(interval.low, number(&case["low"]), 1e-9, &case);
        close(interval.high, number(&case["high"]), 1e-9, &case);
        close(found.lag_one.expect("they vary"), number(&case["lag_one"]), 1e-9, &case);
    }
}
