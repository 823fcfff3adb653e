use proptest::prelude::*;

use super::*;

#[test]
fn a_full_buffer_drops_what_enters() {
    let mut config = config();
    // Of three packets of 1000 octets two find room, and 500 octets more do.
    config.downlink.queue = QueueLimit::Octets(2500);
    config.uplink.queue = QueueLimit::Packets(3);
    let mut stage = bearer(&config);
    for (number, octets) in [(0, 1000), (1, 1000), (2, 1000), (3, 501), (4, 500), (5, 1)] {
        stage.handle(Time::ZERO, Port::Hub, packets(number, 1, octets, Span::ZERO));
    }
    stage.handle(Time::ZERO, Port::Terminal(0), packets(10, 5, 100, Span::ZERO));
    let mut numbers: Vec<u32> =
        drain(&mut stage, micros(5_000_000)).iter().map(|&(_, number)| number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 4, 10, 11, 12]);
    assert_eq!((stage.totals().dropped, stage.return_totals().dropped), (3, 2));
}

#[test]
fn what_has_been_sent_leaves_room_though_it_is_not_acknowledged() {
    let mut config = config();
    config.downlink.queue = QueueLimit::Octets(1000);
    let mut stage = bearer(&config);
    stage.handle(Time::ZERO, Port::Hub, packets(0, 1, 1000, Span::ZERO));
    // The first interval begins at 10 ms, and takes 480 octets.
    let mut out = drain(&mut stage, micros(10_000));
    stage.handle(micros(10_001), Port::Hub, packets(1, 1, 481, Span::ZERO));
    stage.handle(micros(10_001), Port::Hub, packets(2, 1, 480, Span::ZERO));
    out.extend(drain(&mut stage, micros(5_000_000)));
    assert_eq!(out.iter().map(|&(_, number)| number).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn the_capacity_is_that_of_whole_pdus() {
    let bps = |kbps: u64| BitRate::from_bps(kbps * 1000);
    assert_eq!(config().capacity(), [bps(384), bps(32)]);
    let mut odd = config();
    // 999 bits in an interval are three PDUs of 320.
    odd.downlink.rate = BitRate::from_bps(99_900).unwrap();
    odd.uplink.rate = BitRate::from_bps(1).unwrap();
    assert_eq!(odd.capacity(), [bps(96), None]);
    odd.rlc.format.pdu_octets = 2;
    assert_eq!(odd.capacity()[0], None);
}

proptest! {
    /// Bursts enter an idle bearer, in which the last one is always over, so plain arithmetic tells which SDUs find
    /// room.
    #[test]
    fn a_burst_fills_the_buffer_and_no_more(
        bursts in proptest::collection::vec(proptest::collection::vec(1usize..1500, 1..12), 1..5),
        octets in any::<bool>(), limit in 1u32..8, uplink in any::<bool>(),
    ) {
        let queue = if octets { QueueLimit::Octets(u64::from(limit) * 500) } else { QueueLimit::Packets(limit) };
        let mut config = config();
        (config.downlink.queue, config.uplink.queue) = (queue, queue);
        let mut stage = bearer(&config);
        let (mut number, mut dropped) = (0, 0);
        for (at, burst) in (0u64..).zip(&bursts) {
            let start = micros(at * 10_000_000);
            let (mut held, mut count) = (0u64, 0u32);
            let mut expected = Vec::new();
            for &length in burst {
                let fits = if octets { held + length as u64 <= u64::from(limit) * 500 } else { count < limit };
                if fits {
                    expected.push(number);
                    (held, count) = (held + length as u64, count + 1);
                } else {
                    dropped += 1;
                }
                let port = if uplink { Port::Terminal(0) } else { Port::Hub };
                stage.handle(start, port, packets(number, 1, length, Span::ZERO));
                number += 1;
            }
            let out = drain(&mut stage, start + Span::from_secs(9));
            prop_assert_eq!(out.iter().map(|&(_, number)| number).collect::<Vec<_>>(), expected);
            // An indicator of an octet for each packet, an interval until the first begins, and one that is not full.
            let (interval, carried) = if uplink { (20_000, 80) } else { (10_000, 480) };
            let intervals = (held + u64::from(count)).div_ceil(carried) + 2;
            let latest = start + Span::from_micros(intervals * interval) + PROCESSING;
            prop_assert!(out.iter().all(|&(at, _)| at <= latest));
        }
        let totals = if uplink { stage.return_totals() } else { stage.totals() };
        prop_assert_eq!(totals.dropped, dropped);
    }
}
