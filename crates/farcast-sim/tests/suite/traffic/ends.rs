//! End of a replication, and unfinished parts.

use farcast_sim::outcome::Together;

use super::tcp::GEO;
use super::{CBR, MS, beside, cbr};
use crate::worlds::{completion_ns, once, replications, scenario, transfer};

/// Source without an end.
const NOISE: &str =
    "[[traffic]]\nname = \"noise\"\nprotocol = \"cbr\"\nrate = \"100 kbit/s\"\npayload = \"97 B\"\n";

#[test]
fn what_has_no_end_runs_to_the_limit_and_is_not_unfinished() {
    let all = replications(&scenario(CBR, &[]), 1, 3);
    let together = Together::of(&all).unwrap();
    assert_eq!((together.unfinished, together.completion_time_s.n), (0, 0));
    assert_eq!(cbr(&all[0].flows[0]).sent, 5001);
    // Then the goodput shows whether there are enough replications.
    assert_eq!(all[0].aim(), Some(all[0].flows[0].goodput_bit_per_s));
}

#[test]
fn a_transfer_ends_and_what_has_no_end_stops_with_it() {
    let settings = ["link.forward.rate=1 Mbit/s", "link.forward.per=0.05", "time_limit=10 h"];
    let all = once(&beside(NOISE), &settings);
    let noise = &all.flows[0];
    let last = all.completion_time_s.unwrap();
    // A packet leaves every 10 ms until the sender has ended, some timers later.
    let sent_for = cbr(noise).sent as f64 * 0.01;
    assert!(sent_for > last && sent_for < last + 60.0, "{sent_for} s, the transfer {last} s");
    let packets = noise.goodput_bit_per_s * sent_for / 8.0 / 97.0;
    assert!((packets - cbr(noise).received as f64).abs() < 2.0, "{noise:?}");
    assert_eq!(transfer(&all).incomplete, 0);
}

#[test]
fn a_sender_that_gives_up_ends_too() {
    // No receiver hears anything.
    let settings = ["link.forward.per=1", "protocol.srt.retries=3", "time_limit=10 h"];
    let settings = [&settings[..], &["link.forward.loses=everything"]].concat();
    let all = once(&beside(NOISE), &settings);
    assert_eq!((all.completion_time_s, transfer(&all).incomplete, all.has_end), (None, 10, true));
    assert!(cbr(&all.flows[0]).sent < 100_000, "not until the limit: {all:?}");
}

#[test]
fn a_flow_of_a_size_that_is_not_done_is_unfinished() {
    let settings = ["traffic.bulk.size=10 MB", "time_limit=30 s", "traffic.bulk.start=10 s"];
    let all = replications(&scenario(GEO, &settings), 1, 2);
    let together = Together::of(&all).unwrap();
    assert_eq!(together.unfinished, 2);
    let flow = &all[0].flows[0];
    assert_eq!((flow.completion_time_s, all[0].completion_time_s), (None, None));
    let expected = flow.octets as f64 * 8.0 / 20.0;
    assert!(flow.octets > 0 && (flow.goodput_bit_per_s - expected).abs() < 1e-6);
    assert_eq!(together.flows[0].completion_time_s.map(|measure| measure.n), Some(0));
    // With enough time the flow completes, and its time counts from its start.
    let done = once(GEO, &[settings[0], settings[2]]);
    let (own, all) = (done.flows[0].completion_time_s.unwrap(), done.completion_time_s.unwrap());
    assert!((all - own - 10.0).abs() < 1e-9 && own > 40.0 && own < 80.0, "{own} {all}");
}

#[test]
fn the_last_to_end_counts() {
    let flow = "[[traffic]]\nname = \"up\"\nprotocol = \"tcp\"\ndirection = \"return\"\nsize = \"5 MB\"\n\
                window = \"64 KiB\"\n";
    let text = beside(flow);
    let both = once(&text, &[]);
    let own = both.flows[0].completion_time_s.unwrap();
    assert!(own > 30.0 && both.completion_time_s == Some(own), "{both:?}");
    let short = once(&text, &["traffic.up.size=1 B"]);
    // A SYN, its answer, and the octet take three times the delay; the transfer is done then.
    assert!(transfer(&short).receiver_time_s.is_some_and(|times| times.p95 < 0.52));
    assert_eq!(completion_ns(&short), 3 * 250 * MS);
}

#[test]
fn a_stopped_flow_sends_no_more_and_counts_until_then() {
    let all = once(GEO, &["traffic.bulk.stop=20 s", "traffic.bulk.window=20 packets"]);
    let flow = &all.flows[0];
    assert!((flow.goodput_bit_per_s - flow.octets as f64 * 8.0 / 20.0).abs() < 1e-6);
    // 20 segments a round trip for 20 s, and one reset.
    assert!((600..=700).contains(&(flow.octets / 1000)), "{flow:?}");
    let after = all.forward.datagrams - 3 - flow.octets / 1000;
    assert!(after <= 45, "what was under way: {after}");
}
