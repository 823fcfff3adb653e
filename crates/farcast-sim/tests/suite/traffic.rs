//! Flows over simulated links, compared with closed forms and with second computations.

mod cutting;
mod ends;
mod ftp;
mod schema;
mod stub;
mod tcp;
mod traces;

use farcast_sim::outcome::{CbrCounts, FlowCounts, FlowOutcome, Replication, TransferOutcome};
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::{Star, StarConfig};
use farcast_stats::binomial_range;

use crate::worlds::{PIPE, completion_ns, naks_sent, once, replications, scenario, transfer};

/// Scenario of two sources of datagrams at a constant rate over a link of 1 Mbit/s with a delay of 100 ms. A packet of
/// 125 octets, of which 28 are headers, takes 1 ms.
pub(crate) const CBR: &str = r#"
time_limit = "10 s"
[[traffic]]
name = "one"
protocol = "cbr"
rate = "500 kbit/s"
payload = "97 B"
[[traffic]]
name = "two"
protocol = "cbr"
rate = "500 kbit/s"
payload = "97 B"
start = "9000.5 ms"
[link.forward]
rate = "1 Mbit/s"
delay = "100 ms"
[link.return]
delay = "100 ms"
"#;

const MS: u64 = 1_000_000;

fn cbr(flow: &FlowOutcome) -> CbrCounts {
    match flow.counts {
        FlowCounts::Cbr(counts) => counts,
        _ => panic!("{flow:?}"),
    }
}

/// Returns the world after its replication.
pub(crate) fn played(config: StarConfig<Mftp>) -> Star<'static, Mftp> {
    let mut star = Star::new(config, None).unwrap();
    star.run();
    star
}

fn near(told: Option<f64>, expected: f64) {
    let told = told.unwrap();
    assert!((told - expected).abs() < 1e-12, "{told}, {expected} expected");
}

#[test]
fn an_idle_link_delays_every_packet_alike() {
    let all = once(CBR, &["traffic.two.stop=9.001 s"]);
    let one = &all.flows[0];
    let counts = cbr(one);
    // A packet every 2 ms, the first at once and the last at 9.998 s; the limit is before 10.000 s arrives.
    assert_eq!((counts.sent, one.dropped, one.lost), (5001, 0, 0));
    // The last to arrive left at 9.898 s; the single packet of the other flow makes none of these wait.
    assert_eq!(counts.received, 4950);
    assert_eq!(one.octets, 4950 * 97);
    near(Some(one.goodput_bit_per_s), 4950.0 * 97.0 * 8.0 / 10.0);
    near(Some(counts.loss), 0.0);
    near(counts.delay_mean_s, 0.101);
    near(counts.delay_p95_s, 0.101);
    near(counts.jitter_s, 0.0);
    let two = cbr(&all.flows[1]);
    assert_eq!((two.sent, two.received), (1, 1));
    // The packet waits for the rest of one that left at 9 s.
    near(two.delay_mean_s, 0.1015);
    assert_eq!(two.jitter_s, None);
    // Nothing here has an end, so nothing is unfinished and nothing has a completion time.
    assert_eq!((all.completion_time_s, all.has_end), (None, false));
}

/// Simulates a drop-tail queue of `room` packets with a constant service time, packet by packet. Returns the delays of
/// served packets, and the number of dropped ones.
fn naive_queue(arrivals: &[u64], service: u64, room: usize) -> (Vec<u64>, u64) {
    let mut departures: Vec<u64> = Vec::new();
    let (mut delays, mut dropped) = (Vec::new(), 0);
    for &at in arrivals {
        let waiting = departures.iter().filter(|&&departure| departure > at).count();
        if waiting >= room {
            dropped += 1;
            continue;
        }
        let departure = departures.last().copied().unwrap_or(0).max(at) + service;
        departures.push(departure);
        delays.push(departure - at);
    }
    (delays, dropped)
}

#[test]
fn an_overloaded_queue_drops_and_delays_as_a_second_computation_says() {
    // 1.6 Mbit/s into 1 Mbit/s and a queue of 7: a packet of 1 ms every 625 us.
    let settings =
        ["traffic.one.rate=1.6 Mbit/s", "traffic.two.stop=9.001 s", "link.forward.queue_packets=7"];
    let settings = [&settings[..], &["traffic.one.stop=8 s"]].concat();
    let all = once(CBR, &settings);
    let counts = cbr(&all.flows[0]);
    let arrivals: Vec<u64> = (0..12_800).map(|n| n * 625_000).collect();
    let (delays, dropped) = naive_queue(&arrivals, MS, 7);
    assert!(dropped > 4000, "the queue is full most of the time");
    assert_eq!((counts.sent, counts.received), (12_800, delays.len() as u64));
    assert_eq!((all.flows[0].dropped, all.flows[0].lost), (dropped, 0));
    near(Some(counts.loss), dropped as f64 / 12_800.0);
    let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64 / 1e9;
    near(counts.delay_mean_s, 0.1 + mean);
    let differences = delays.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum::<u64>();
    near(counts.jitter_s, differences as f64 / (delays.len() - 1) as f64 / 1e9);
    // 1.6 packets come for each that leaves, so 3/8 are dropped, except for the first, which fill the queue.
    assert!((dropped as f64 - 12_800.0 * 0.375).abs() <= 7.0, "{dropped}");
}

#[test]
fn flows_share_a_first_come_first_served_link_in_proportion() {
    // 1.5 Mbit/s and 0.5 Mbit/s enter 1 Mbit/s without a limit: in any time, three packets of four are those of flow
    // `one`.
    let settings = ["traffic.one.rate=1.5 Mbit/s", "traffic.two.start=0 s", "link.forward.queue=unlimited"];
    let all = once(CBR, &settings);
    let [one, two] = [0, 1].map(|n| cbr(&all.flows[n]).received);
    // Packets that left within 9.9 s have arrived: 9900.
    assert_eq!(one + two, 9900);
    assert!((one as f64 - 7425.0).abs() <= 2.0, "{one} and {two}");
    // All packets that have entered will be sent, including the two of the last instant: 20,001 ms.
    near(Some(all.forward.airtime_s), 20.001);
}

#[test]
fn pauses_are_kept() {
    // 50 ms of every 130 ms: packets at 0, 2, .. 48 ms of each, from 0.5 s to 8.5 s.
    let settings = ["traffic.one.on=50 ms", "traffic.one.off=80 ms", "traffic.one.start=0.5 s"];
    let all = once(CBR, &[&settings[..], &["traffic.one.stop=8.5 s"]].concat());
    let expected = (0..8000u64).filter(|ms| ms % 130 < 50 && (ms % 130) % 2 == 0).count() as u64;
    assert_eq!(cbr(&all.flows[0]).sent, expected);
    // Packets that left within the last 101 ms of 8 s come too late to count.
    let delivered = (0..8000 - 101).filter(|ms| ms % 130 < 50 && (ms % 130) % 2 == 0).count() as f64;
    near(Some(all.flows[0].goodput_bit_per_s), 97.0 * 8.0 * delivered / 8.0);
    // A packet that takes longer than a pause and a sending period together waits for a sending period.
    let slow = ["traffic.one.rate=4 kbit/s", "traffic.one.on=10 ms", "traffic.one.off=90 ms"];
    // One packet takes 250 ms; the next sending period is at 300 ms.
    assert_eq!(cbr(&once(CBR, &slow).flows[0]).sent, 10_000 / 300 + 1);
}

#[test]
fn losses_of_flows_are_binomial_in_both_directions() {
    let text = CBR.replace("start = \"9000.5 ms\"", "direction = \"return\"");
    let settings = ["link.forward.per=0.1", "link.return.per=0.25", "time_limit=100 s"];
    let all = once(&text, &settings);
    for (flow, p) in all.flows.iter().zip([0.1, 0.25]) {
        let counts = cbr(flow);
        // Packets that have arrived or were lost had passed the link by then.
        let passed = counts.received + flow.lost;
        assert!((49_940..=50_001).contains(&passed), "{flow:?}");
        let range = binomial_range(passed, p, 1.0 - 6.334e-5).unwrap();
        assert!(range.contains(&flow.lost), "{} not in {range:?}", flow.lost);
        assert_eq!(flow.dropped, 0);
    }
    // Each flow has a random stream of its own, which the other flow does not change.
    let alone = once(&text, &[&settings[..], &["traffic.two.stop=1 us"]].concat());
    assert_eq!(alone.flows[0], all.flows[0]);
    let bursts = ["link.forward.gilbert_elliott.p=0.02", "link.forward.gilbert_elliott.r=0.2"];
    let one = once(&text, &bursts).flows[0].lost as f64;
    // 4950 packets, a share of 1/11, in bursts: the variance is (2 - p - r)/(p + r) times that of single ones.
    let sd = (4950.0 * 10.0 / 121.0 * 1.78 / 0.22f64).sqrt();
    assert!((one - 450.0).abs() < 4.0 * sd, "{one}");
}

/// Returns [`PIPE`] with these flows.
fn beside(flows: &str) -> String {
    format!("{PIPE}\n{flows}")
}

#[test]
fn a_flow_slows_a_transfer_by_the_time_of_its_packets() {
    // The link is as fast as the sender, so it is busy from the first DTU to the last. The announcement is paced but
    // not sent; a DTU of 568 octets takes 4.544 ms.
    const ANNOUNCE: u64 = 1_536_000;
    const DTU: u64 = 4_544_000;
    let flow = "[[traffic]]\nname = \"probe\"\nprotocol = \"cbr\"\nrate = \"80 kbit/s\"\npayload = \"72 B\"\n\
                start = \"1536 us\"\nstop = \"1 h\"\n";
    let settings = ["link.forward.rate=1 Mbit/s", "receivers=3"];
    let alone = once(PIPE, &settings);
    assert_eq!(completion_ns(&alone), ANNOUNCE + 60 * DTU + 250 * MS);
    for engines in ["engines=false", "engines=true"] {
        let both = once(&beside(flow), &[&settings[..], &[engines]].concat());
        // 100 octets take 0.8 ms, one every 10 ms; the first comes with the first DTU, behind it.
        let before = (59 * DTU).div_ceil(10 * MS);
        assert_eq!(completion_ns(&both), ANNOUNCE + 60 * DTU + before * 800_000 + 250 * MS, "{engines}");
        assert!(cbr(&both.flows[0]).delay_mean_s > Some(0.25));
    }
}

/// Returns all results of the transfer as text.
fn of_transfer(all: &Replication) -> String {
    let TransferOutcome { completion_time_s, receivers, figures, incomplete, .. } = transfer(all);
    format!("{completion_time_s:?} {receivers:?} {figures:?} {incomplete}")
}

#[test]
fn over_links_without_a_rate_a_flow_changes_nothing_for_the_transfer() {
    let flows = "[[traffic]]\nname = \"up\"\nprotocol = \"tcp\"\ndirection = \"return\"\nsize = \"300 kB\"\n\
                 [[traffic]]\nname = \"down\"\nprotocol = \"cbr\"\nrate = \"1 Mbit/s\"\nstop = \"5 s\"\n";
    let both = beside(flows);
    let loss = ["link.forward.per=0.1", "link.return.per=0.1", "link.forward.loses=everything"];
    let bursts = ["link.forward.gilbert_elliott.p=0.05", "link.forward.gilbert_elliott.r=0.3"];
    for losses in [&loss[..], &bursts[..]] {
        for engines in ["engines=false", "engines=true"] {
            let settings = [losses, &[engines, "protocol.spread=300 ms"]].concat();
            let alone = replications(&scenario(PIPE, &settings), 3, 10);
            let beside = replications(&scenario(&both, &settings), 3, 10);
            for (alone, beside) in alone.iter().zip(&beside) {
                // The flows end before the transfer does, or after it: the last end counts.
                let up = beside.flows[0].completion_time_s.unwrap();
                let last = alone.completion_time_s.unwrap().max(up);
                assert_eq!(beside.completion_time_s, Some(last));
                let transfer = Replication { completion_time_s: alone.completion_time_s, ..beside.clone() };
                assert_eq!(of_transfer(alone), of_transfer(&transfer), "{settings:?}");
            }
            assert!(alone.iter().any(|one| naks_sent(one) > 0));
        }
    }
}
