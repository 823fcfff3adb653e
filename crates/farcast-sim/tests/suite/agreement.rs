//! Agreement of runs and populations with packets and single engines: they have the same distributions, by the test of
//! Kolmogorov and Smirnov on independent samples. Its p-value errs to the large side where values are tied, so a
//! discrete measure is never refused wrongly. The tests also show that the samples are large enough to detect a
//! difference.

use farcast_core::random::RandomStream;
use farcast_sim::outcome::Replication;
use farcast_sim::scenario::Scenario;
use farcast_stats::ks_two_sample;

use crate::worlds::{BGAN, PIPE, naks_sent, passes, replications, scenario, transfer};

const REPLICATIONS: u64 = 1000;

/// Least accepted p-value: one true test in a thousand lies below it, and the seeds are fixed.
const LEAST: f64 = 0.001;

type Measure = (&'static str, fn(&Replication) -> f64);

const MEASURES: [Measure; 4] = [
    ("completion time", |r| r.completion_time_s.unwrap_or(f64::INFINITY)),
    // One receiver of each replication counts, because the times of one replication depend on each other.
    ("receiver's time", |r| {
        let times = transfer(r).receivers.as_deref().unwrap();
        let one = RandomStream::derive(99, &[r.index]).below(times.len() as u64);
        times[one as usize].unwrap_or(f64::INFINITY)
    }),
    ("NAKs sent", |r| naks_sent(r) as f64),
    ("passes", |r| passes(r) as f64),
];

fn sample(replications: &[Replication], measure: fn(&Replication) -> f64) -> Vec<f64> {
    replications.iter().map(measure).collect()
}

/// Returns the p-value of each measure.
fn compare(one: &[Replication], other: &[Replication]) -> Vec<(&'static str, f64)> {
    let p = |&(name, measure): &Measure| {
        (name, ks_two_sample(&sample(one, measure), &sample(other, measure)).unwrap().p_value)
    };
    MEASURES.iter().map(p).collect()
}

/// Asserts that populations agree with engines, and that a loss that is 15 % higher is noticed.
fn agrees(scenario: &Scenario, worse: &Scenario) {
    let together = replications(scenario, 1, REPLICATIONS);
    let alone = replications(&scenario.clone().with_engines(), 2, REPLICATIONS);
    for (name, p) in compare(&together, &alone) {
        assert!(p > LEAST, "{name}: p = {p}");
    }
    let more = replications(worse, 3, REPLICATIONS);
    let naks = compare(&more, &alone)[2];
    assert!(naks.1 < LEAST, "{naks:?}: a loss 15 % higher goes unnoticed");
    // The sessions were worth comparing.
    assert!(together.iter().all(|r| r.completion_time_s.is_some()));
    assert!(together.iter().any(|r| passes(r) >= 4) && together.iter().all(|r| naks_sent(r) > 0));
}

#[test]
fn over_bgan_with_contention() {
    let settings = |per: &'static str| {
        ["receivers=10", "protocol.file=120 kB", "protocol.block_size=20", "protocol.spread=1 s", per]
    };
    let world = |per| scenario(BGAN, &settings(per));
    agrees(&world("link.forward.per=0.005"), &world("link.forward.per=0.00575"));
}

#[test]
fn over_a_pipe_with_spread_answers() {
    let settings = |per: &'static str| {
        // Requests and answers are lost, too.
        [
            "protocol.file=100 kB",
            "protocol.spread=700 ms",
            "link.forward.loses=everything",
            "link.return.per=0.1",
            per,
        ]
    };
    let world = |per| scenario(PIPE, &settings(per));
    agrees(&world("link.forward.per=0.02"), &world("link.forward.per=0.023"));
}

#[test]
fn over_a_pipe_with_merged_answers() {
    let settings = |per: &'static str| ["protocol.file=100 kB", "link.return.per=0.1", per];
    let world = |per| scenario(PIPE, &settings(per));
    agrees(&world("link.forward.per=0.02"), &world("link.forward.per=0.023"));
}

#[test]
fn over_bursts_of_loss() {
    // A DTU takes 4.5 ms: a burst is four DTUs long. 15 % more bursts are 15 % more loss.
    let settings = |p: &'static str| {
        ["protocol.file=200 kB", "protocol.spread=300 ms", "link.forward.gilbert_elliott.r=0.25", p]
    };
    let world = |p| scenario(PIPE, &settings(p));
    agrees(&world("link.forward.gilbert_elliott.p=0.01"), &world("link.forward.gilbert_elliott.p=0.0115"));
}
