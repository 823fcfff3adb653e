//! Comparison of the simulation with closed forms: binomial laws, and times that can be added up by hand.

use farcast_stats::binomial_range;

use crate::worlds::{
    BGAN, PIPE, completion_ns, dtus_per_pass, naks_sent, once, passes, replications, scenario,
};

/// Replications for shares and means.
const REPLICATIONS: u64 = 2000;
/// Two-sided probability of four standard deviations.
const FOUR_SIGMA: f64 = 1.0 - 6.334e-5;

/// N receivers, K DTUs, loss p.
const LAWS: [(u32, u32, f64); 3] = [(10, 60, 0.05), (200, 60, 0.1), (1, 60, 0.3)];

fn lossy(receivers: u32, p: f64, engines: bool) -> farcast_sim::scenario::Scenario {
    let settings =
        [format!("receivers={receivers}"), format!("link.forward.per={p}"), format!("engines={engines}")];
    scenario(PIPE, &settings.each_ref().map(String::as_str))
}

#[test]
fn passes_are_as_many_as_the_binomial_law_says() {
    // All N have all K DTUs after m passes with probability (1 - p^m)^(N K).
    for (receivers, dtus, p) in LAWS {
        let all = replications(&lossy(receivers, p, false), 7, REPLICATIONS);
        let mut decided = 0;
        for m in 1..8 {
            let law = (1.0 - f64::powi(p, m)).powi((receivers * dtus).cast_signed());
            let range = binomial_range(REPLICATIONS, law, FOUR_SIGMA).unwrap();
            let within = all.iter().filter(|r| passes(r) <= m as u64).count() as u64;
            assert!(range.contains(&within), "{receivers} receivers, {m} passes: {within} not in {range:?}");
            decided += u32::from((0.01..0.99).contains(&law));
        }
        assert!(decided > 0, "the law says something about {receivers} receivers");
    }
}

#[test]
fn passes_send_what_the_binomial_law_says() {
    // A DTU is sent in pass m if any receiver has lost it m - 1 times: independently with 1 - (1 - p^(m-1))^N.
    for (receivers, dtus, p) in LAWS {
        for engines in [false, true] {
            let count = if engines { REPLICATIONS / 20 } else { REPLICATIONS };
            let all = replications(&lossy(receivers, p, engines), 8, count);
            for pass in 1..6 {
                let share = 1.0 - (1.0 - f64::powi(p, pass - 1)).powi(receivers.cast_signed());
                let trials = count * u64::from(dtus);
                let range = binomial_range(trials, share, FOUR_SIGMA).unwrap();
                let at = pass as usize - 1;
                let sent: u64 = all.iter().map(|r| dtus_per_pass(r).get(at).copied().unwrap_or(0)).sum();
                assert!(
                    range.contains(&sent),
                    "{receivers} receivers, pass {pass}, engines {engines}: {sent} not in {range:?}"
                );
            }
        }
    }
}

#[test]
fn naks_are_as_many_as_the_binomial_law_says() {
    // One DTU a block, so a NAK is a receiver that lacks a DTU after a pass: K p^m N of pass m, K N p / (1 - p) in all.
    // They are geometric counts of mean p / (1 - p) and variance p / (1 - p)^2.
    let (receivers, dtus, p) = (40u32, 60u32, 0.2);
    let settings = ["receivers=40", "protocol.block_size=1", "link.forward.per=0.2"];
    for engines in [false, true] {
        let world = scenario(PIPE, &settings);
        let world = if engines { world.with_engines() } else { world };
        let count = if engines { 20 } else { 200 };
        let all = replications(&world, 9, count);
        let trials = (count * u64::from(receivers * dtus)) as f64;
        let (mean, variance) = (trials * p / (1.0 - p), trials * p / (1.0 - p).powi(2));
        let sent = all.iter().map(naks_sent).sum::<u64>() as f64;
        assert!((sent - mean).abs() < 4.0 * variance.sqrt(), "engines {engines}: {sent}, {mean} expected");
    }
}

/// Returns the completion time in both simulations of receivers, which must be the same to the nanosecond.
fn completion_of(text: &str, settings: &[&str]) -> u64 {
    let alone: Vec<&str> = settings.iter().copied().chain(["engines=true"]).collect();
    let times = [once(text, settings), once(text, &alone)].map(|replication| completion_ns(&replication));
    assert_eq!(times[0], times[1], "{settings:?}");
    times[0]
}

/// A DTU of 500 B with 40 B of header and 28 B of UDP and IP at 1 Mbit/s; a status request of 52 B with 28 B.
const DTU: u64 = 4_544_000;
const REQUEST: u64 = 640_000;
/// Announcement with which data begins, 164 B with 28 B. No link carries it where receivers have joined before, but the
/// sender's pace counts it all the same.
const ANNOUNCE: u64 = 1_536_000;
const MS: u64 = 1_000_000;

#[test]
fn without_loss_a_transfer_takes_its_sending_time_and_the_delay() {
    assert_eq!(completion_of(PIPE, &[]), ANNOUNCE + 59 * DTU + 250 * MS);
    // A link of 2 Mbit/s takes half a DTU's time for the last one, which is 100 B shorter.
    let settings = ["protocol.file=29900 B", "link.forward.rate=2 Mbit/s"];
    assert_eq!(completion_of(PIPE, &settings), ANNOUNCE + 59 * DTU + 1_872_000 + 250 * MS);
    // A request after each of the first two blocks.
    let settings = ["protocol.nak_timing=each_block", "protocol.start_after=3 s"];
    assert_eq!(completion_of(PIPE, &settings), 3000 * MS + ANNOUNCE + 59 * DTU + 2 * REQUEST + 250 * MS);
    // Receivers that hear it 17 us later than others.
    let groups = PIPE.replace(
        "receivers = 10",
        "[[groups]]\nname = \"near\"\nreceivers = 3\n[[groups]]\nname = \"far\"\nreceivers = 4\ndelay = \"17 us\"",
    );
    let groups = groups.replacen("time_limit = \"1 h\"\n", "", 1);
    assert_eq!(completion_of(&groups, &[]), ANNOUNCE + 59 * DTU + 250 * MS + 17_000);
}

#[test]
fn the_slowest_receiver_takes_the_passes_and_the_waits() {
    // Four DTUs in a block; frames are DTUs and requests. The second and fourth DTU are lost in pass 1, the fourth
    // again in pass 2, and it comes in pass 3.
    let vector = "link.forward.error_vector=0101 0 01 0 0 0";
    let settings = ["protocol.file=2 kB", vector, "link.forward.error_vector_repeats=false"];
    let waits = 2 * 2000 * MS;
    let passes = ANNOUNCE + 4 * DTU + REQUEST + 2 * DTU + REQUEST;
    assert_eq!(completion_of(PIPE, &settings), passes + waits + 250 * MS);
    let all = once(PIPE, &settings);
    assert_eq!((dtus_per_pass(&all), naks_sent(&all)), (&[4, 2, 1][..], 20));
    // The first DTU of pass 2 completes no receiver. The last loss is the request's, which only costs a NAK.
    let settings = [
        "protocol.file=2 kB",
        "link.forward.error_vector=0001 1 0 0",
        "link.forward.loses=everything",
        "protocol.srt.retries=3",
        "link.forward.error_vector_repeats=false",
    ];
    // No receiver answers the lost request. After one timer the request is repeated, and after another pass 2 begins;
    // the second request leaves at the end of the wait.
    let asked_again = ANNOUNCE + 4 * DTU + REQUEST + 2000 * MS;
    assert_eq!(completion_of(PIPE, &settings), asked_again + 2000 * MS + 250 * MS);
}

#[test]
fn over_bgan_a_dtu_takes_20_ms() {
    // A packet takes two FEC blocks of 10 ms, and a request one. By its settings the bearer does not wait for
    // boundaries.
    let base = [
        "receivers=1",
        "link.forward.per=0",
        "protocol.file=5260 B",
        "protocol.block_size=30",
        // Not zero, because a measured round trip would replace the one that is set.
        "protocol.spread=1 ms",
    ];
    let arrival = 450 * MS;
    // The announcement counts as a block.
    let announce = 10 * MS;
    assert_eq!(completion_of(BGAN, &base), announce + 10 * 20 * MS + arrival);
    // DTUs 3 and 7 are lost in pass 1 and 7 again in pass 2. The timer is 30 x 526 B at 300 kbit/s and four seconds.
    let lossy = ["link.forward.error_vector=0010001000 0 01 0 0", "link.forward.error_vector_repeats=false"];
    let settings: Vec<&str> = base.iter().copied().chain(lossy).collect();
    let timer = 420_800_000 + 4000 * MS;
    let passes = announce + (10 * 20 + 10 + 2 * 20 + 10 + 20) * MS;
    assert_eq!(completion_of(BGAN, &settings), passes + 2 * timer + arrival);
    // With boundaries every 10 ms the DTU waits for the next one, but the sender's clock does not.
    let aligned: Vec<&str> = settings.iter().copied().chain(["link.forward.align_to_blocks=true"]).collect();
    let begins = announce + (10 * 20 + 10 + 2 * 20 + 10) * MS + 2 * timer;
    assert_eq!(completion_of(BGAN, &aligned), begins.div_ceil(10 * MS) * 10 * MS + 20 * MS + arrival);
}
