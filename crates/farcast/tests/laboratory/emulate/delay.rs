//! Round-trip times by ping.

use super::run::{Emulate, Emulated, Way, judged, link, median, need};
use crate::common::Place;

/// Octets of ping's echo request: 56 of data, and IPv4 and ICMP headers of 20 and 8.
const ECHO_OCTETS: u64 = 84;
const COUNT: usize = 15;

/// Returns the expected time of an echo in milliseconds: the delays and the transmission times of both directions.
fn expected_ms(forward: Way, back: Way) -> f64 {
    [forward, back]
        .iter()
        .map(|way| way.delay_ms as f64 + (ECHO_OCTETS * 8) as f64 / way.rate_bps as f64 * 1e3)
        .sum()
}

/// Returns the times of ping's replies in milliseconds. From 100 ms on, ping rounds them to whole milliseconds.
fn times_ms(emulated: &Emulated) -> Vec<f64> {
    let shown = emulated.ended.stdout.lines().filter_map(|line| line.split_once("time="));
    let times: Vec<f64> = shown.map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(times.len(), COUNT, "replies: {}", emulated.ended.story());
    times
}

#[test]
fn ping_takes_both_delays_and_the_time_on_the_line() {
    need("ping", "iputils-ping");
    let fast = |delay_ms| Way::new(2_000_000, delay_ms, 100_000);
    let slow = Way::new(64_000, 40, 100_000);
    let links =
        [("geo", fast(130), fast(130)), ("short", fast(20), fast(20)), ("asymmetric", fast(10), slow)];
    let place = Place::new();
    let done = judged("ping", &links, |&(name, forward, back), attempt| {
        Emulate::toml(&place, &format!("{name}{attempt}"), &link(forward, back))
            // The median of the replies is judged, and not the latest.
            .options(&["--late-share", "5%"])
            .near(&format!("ping -n -i 0.2 -c {COUNT} $FARCAST_PEER"))
            .start()
    });
    for (emulated, (name, forward, back)) in done.iter().zip(links) {
        for way in ["forward", "return"] {
            let counts = &emulated.report[way];
            let packets = ["entered", "delivered"].map(|what| counts[what]["packets"].as_u64().unwrap());
            assert_eq!(packets, [COUNT as u64; 2], "{name}: {counts}");
        }
        let (median, expected) = (median(times_ms(emulated)), expected_ms(forward, back));
        assert!(
            (median - expected).abs() < 1.0,
            "{name}: {median} ms, not {expected}: {}",
            emulated.ended.story()
        );
    }
}
