//! Bulk transfers over TCP.

use farcast_sim::outcome::{FlowCounts, FlowOutcome};
use farcast_sim::traffic::{End, TcpReport};

use super::played;
use crate::worlds::{once, scenario};

pub(super) const GEO: &str = include_str!("../../../../../scenarios/tcp-geo.toml");

fn tcp(flow: &FlowOutcome) -> TcpReport {
    match flow.counts {
        FlowCounts::Tcp(counts) => counts,
        _ => panic!("{flow:?}"),
    }
}

/// Returns the seconds that `octets` take at 2 Mbit/s.
fn sending(octets: f64) -> f64 {
    octets * 8.0 / 2e6
}

#[test]
fn a_window_below_the_path_is_sent_once_a_round_trip() {
    for (window, limit) in [(20.0, 1000.0), (100.0, 300.0)] {
        let settings = [format!("traffic.bulk.window={window} packets"), format!("time_limit={limit} s")];
        let all = once(GEO, &settings.each_ref().map(String::as_str));
        let round_trip = 0.56 + sending(1040.0) + sending(40.0);
        let steady = window * 8000.0 / round_trip;
        // The SYN takes a round trip and slow start less than ten: nine windows at most are missing of them.
        let flow = &all.flows[0];
        let missing = (steady - flow.goodput_bit_per_s) * limit / (window * 8000.0);
        assert!((1.0..10.0).contains(&missing), "{missing} windows missing of {steady} bit/s: {flow:?}");
        let counts = tcp(flow);
        assert_eq!((counts.retransmits, counts.timeouts, flow.dropped, flow.lost), (0, 0, 0, 0));
    }
}

#[test]
fn slow_start_takes_the_round_trips_that_can_be_added_up() {
    // Windows of 2, 4, 8 and 16: 30 segments and a last one. The SYN and its answer are 44 octets, for the MSS option
    // and the one that permits SACK take eight: 20 + 20 + 8 = 48.
    let settings =
        ["traffic.bulk.size=31 kB", "link.forward.rate=1000 Gbit/s", "link.return.rate=1000 Gbit/s"];
    let flow = &once(GEO, &settings).flows[0];
    let time = flow.completion_time_s.unwrap();
    // SYN and SYN-ACK, then data of the fifth flight arrives after four more round trips and a half.
    assert!((time - (5.5 * 0.56)).abs() < 1e-5, "{time}");
    assert_eq!((tcp(flow).segments, flow.octets), (31, 31_000));
    assert!((flow.goodput_bit_per_s - 31_000.0 * 8.0 / time).abs() < 1e-6);
}

#[test]
fn both_directions_are_alike() {
    let losses = ["link.forward.per=0.01", "link.return.per=0.01", "traffic.bulk.size=1 MB"];
    for losses in [&losses[..], &losses[2..]] {
        let [forward, back] = ["forward", "return"].map(|direction| {
            let direction = format!("traffic.bulk.direction={direction}");
            once(GEO, &[losses, &[&direction]].concat()).flows.remove(0)
        });
        if losses.len() == 1 {
            assert_eq!(forward.completion_time_s, back.completion_time_s);
            assert_eq!((forward.counts, forward.dropped), (back.counts, back.dropped));
        } else {
            // The law is the same, the draws are others.
            assert!(forward.lost > 0 && back.lost > 0);
            assert_ne!(forward.completion_time_s, back.completion_time_s);
        }
        assert_eq!((forward.octets, back.octets), (1_000_000, 1_000_000));
    }
}

#[test]
fn what_enters_the_links_leaves_them_or_is_dropped() {
    let other =
        "[[traffic]]\nname = \"other\"\nprotocol = \"tcp\"\npreset = \"ns2\"\nwindow = \"1000 packets\"\n";
    let twice = format!("{GEO}\n{other}");
    let settings = ["traffic.other.start=3 s", "link.forward.per=0.001", "time_limit=200 s"];
    let star = played(scenario(&twice, &settings).star(5, 0).unwrap());
    let dropped: Vec<u64> = star.forward_totals().map(|totals| totals.dropped).collect();
    let of = |end| star.flows().iter().map(move |flow| *flow.passage(end));
    assert_eq!(of(End::Terminal).map(|passage| passage.dropped()).sum::<u64>(), dropped[0]);
    assert!(dropped[0] > 50, "the queue is too small for both: {dropped:?}");
    let sent: u64 = star.forward_totals().map(|totals| totals.sent).sum();
    assert_eq!(of(End::Terminal).map(|passage| passage.entered).sum::<u64>(), dropped[0] + sent);
    assert_eq!(star.tally().forward_datagrams, dropped[0] + sent);
    assert_eq!(of(End::Hub).map(|passage| passage.dropped()).sum::<u64>(), 0);
    // Each flow has its share, and together they have no more than the link.
    let goodputs: Vec<u64> = star.flows().iter().map(|flow| flow.flow().report().octets).collect();
    assert!(goodputs.iter().all(|&octets| octets > 5_000_000), "{goodputs:?}");
    assert!((goodputs.iter().sum::<u64>() as f64) < 2e6 / 8.0 * 200.0 * 1000.0 / 1040.0);
}

#[test]
fn a_timer_that_moves_with_every_acknowledgment_costs_no_event_each() {
    let settings = ["traffic.bulk.window=20 packets", "time_limit=500 s"];
    let star = played(scenario(GEO, &settings).star(1, 0).unwrap());
    let tally = star.tally();
    // One event for each packet that arrives; the timer's wakes are at most five a second.
    let packets = tally.forward_datagrams + tally.return_datagrams;
    assert!(packets > 30_000);
    assert!(tally.events <= packets + 5 * 500, "{tally:?}");
}

#[test]
fn a_flow_of_its_own_seed_is_the_same_every_time() {
    let settings = ["link.forward.per=0.01", "time_limit=100 s"];
    let world = scenario(GEO, &settings);
    let of = |seed| {
        let star = played(world.star(seed, 3).unwrap());
        (star.flows()[0].flow().report(), star.tally())
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}
