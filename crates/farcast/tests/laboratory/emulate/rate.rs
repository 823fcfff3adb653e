//! Throughput by iperf3.

use serde_json::Value;

use super::run::{Emulate, Way, judged, link, need};
use crate::common::Place;

/// Share of payload in 1500 octets on the link. Headers are 28 octets for IPv4 and UDP, and 52 for IPv4 and TCP with
/// timestamps.
const UDP_SHARE: f64 = 1472.0 / 1500.0;
const TCP_SHARE: f64 = 1448.0 / 1500.0;

/// Returns the rate that arrived between the seconds `from` and `to` of iperf3's intervals, in bit/s.
pub(crate) fn arrived_bps(intervals: &Value, from: f64, to: f64) -> f64 {
    let (mut octets, mut seconds) = (0.0, 0.0);
    for interval in intervals.as_array().unwrap() {
        let sum = &interval["sum"];
        let number = |key: &str| sum[key].as_f64().unwrap();
        // Intervals end a little before or after the whole second.
        if number("start") > from - 0.5 && number("end") < to + 0.5 {
            octets += number("bytes");
            seconds += number("end") - number("start");
        }
    }
    assert!(seconds > (to - from) * 0.9, "{seconds} s of intervals: {intervals}");
    octets * 8.0 / seconds
}

#[test]
fn iperf3_gets_the_rate_of_each_direction() {
    need("iperf3", "iperf3");
    // Beyond slow start, which takes TCP over these 40 ms far less than the 4 s that are not counted.
    let (forward, back) = (Way::new(4_000_000, 20, 40_000), Way::new(1_000_000, 20, 20_000));
    let text = link(forward, back);
    let cases = [
        ("udp-return", "-u -b 1.1M -l 1472", back.rate_bps as f64 * UDP_SHARE, false),
        ("udp-forward", "-u -b 4.4M -l 1472 -R", forward.rate_bps as f64 * UDP_SHARE, true),
        ("tcp-return", "-C cubic", back.rate_bps as f64 * TCP_SHARE, false),
        ("tcp-forward", "-C cubic -R", forward.rate_bps as f64 * TCP_SHARE, true),
    ];
    let place = Place::new();
    let done = judged("iperf3", &cases, |(name, options, _, _), attempt| {
        Emulate::toml(&place, &format!("{name}{attempt}"), &text)
            // Release times follow from link time, so packets that are late by less than a tenth of a second move no
            // rate.
            .options(&["--late-share", "25%"])
            .far("exec iperf3 -s -1 -J > /dev/null")
            .near(&format!("exec iperf3 -c $FARCAST_PEER -t 12 -J --get-server-output {options}"))
            .start()
    });
    for (emulated, (name, _, expected, reverse)) in done.iter().zip(cases) {
        let shown = emulated.json();
        let receiver = if reverse { &shown } else { &shown["server_output_json"] };
        let rate = arrived_bps(&receiver["intervals"], 4.0, 12.0);
        assert!((rate / expected - 1.0).abs() < 0.02, "{name}: {rate} bit/s, not {expected}");
    }
}
