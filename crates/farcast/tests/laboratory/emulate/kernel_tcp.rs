//! The kernel's TCP, compared with its throughput behind another emulator.

use super::rate::arrived_bps;
use super::run::{Emulate, Emulated, Way, judged, link, median, need};
use crate::common::Place;

/// Goodput of 60 s in bit/s: the least and the most of five runs with Linux 6.18 and iperf3 3.12 behind a plain TUN
/// relay. Each direction has 2 Mbit/s, 260 ms, and a loss of one packet in a thousand. The queue has 130,000 octets.
const RENO: [f64; 2] = [616_462.0, 1_347_412.0];
const CUBIC: [f64; 2] = [1_510_034.0, 1_870_044.0];
/// Number of runs. Goodput depends much on which packets are lost: one run of three would lie outside the range of
/// five. The median of five runs with different losses seldom does.
const SEEDS: usize = 5;

/// Buffer sizes of those runs, without metrics of earlier connections.
const SETTINGS: &str = "cd /proc/sys/net/ipv4
    echo 4096 131072 6291456 > tcp_rmem
    echo 4096 16384 4194304 > tcp_wmem
    echo 1 > tcp_no_metrics_save
    cd /";

#[test]
fn reno_and_cubic_reach_what_they_reached_elsewhere() {
    need("iperf3", "iperf3");
    let way = Way { per: 1e-3, ..Way::new(2_000_000, 260, 130_000) };
    let (place, text) = (Place::new(), link(way, way));
    let cases: Vec<(&str, usize)> =
        ["reno", "cubic"].into_iter().flat_map(|name| (1..=SEEDS).map(move |seed| (name, seed))).collect();
    let done = judged("the kernel's TCP", &cases, |(congestion, seed), attempt| {
        let client = "exec iperf3 -c $FARCAST_PEER -t 60 -J --get-server-output";
        Emulate::toml(&place, &format!("{congestion}-{seed}{attempt}"), &text)
            .options(&["--seed", &seed.to_string()])
            .far(&format!("{SETTINGS}\nexec iperf3 -s -1 -J > /dev/null"))
            .near(&format!("{SETTINGS}\n{client} -C {congestion}"))
            .start()
    });
    for ((congestion, [least, most]), runs) in
        [("reno", RENO), ("cubic", CUBIC)].into_iter().zip(done.chunks(SEEDS))
    {
        let goodputs: Vec<f64> = runs.iter().map(|run| goodput_bps(run, congestion)).collect();
        let median = median(goodputs.clone());
        assert!(
            (least..=most).contains(&median),
            "{congestion}: {goodputs:?} bit/s, median not {least} to {most}"
        );
    }
}

/// Returns the goodput of a run's minute in bit/s.
fn goodput_bps(emulated: &Emulated, congestion: &str) -> f64 {
    let shown = emulated.json();
    assert_eq!(shown["end"]["sender_tcp_congestion"], congestion);
    arrived_bps(&shown["server_output_json"]["intervals"], 0.0, 60.0)
}
