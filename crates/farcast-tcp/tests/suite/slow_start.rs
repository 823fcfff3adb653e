//! Slow start to the nanosecond: how many segments leave in which round, and when a transfer is complete.

use farcast_core::{BitRate, Span, Time};
use farcast_tcp::{Config, DelayedAck, Increase, InitialWindow, Window};

use crate::common::{CLIENT, IP_HEADER, SERVER, World, ms, prompt};

/// A geostationary satellite's round trip.
const ROUND_TRIP: Span = Span::from_millis(560);
/// 1460 less the timestamps option.
const SMSS: u64 = 1448;
/// A segment on the path: IP, TCP, timestamps and data.
const PACKET: u64 = IP_HEADER as u64 + 20 + 12 + SMSS;

fn settings(initial: u32, delayed: Option<u64>) -> Config {
    Config {
        initial_window: InitialWindow::Segments(initial),
        delayed_ack: delayed.map_or(DelayedAck::Off, |delay| DelayedAck::Delayed { delay: ms(delay) }),
        ..Config::default()
    }
}

/// The client connects at 0 and writes `segments` of the full size when it is connected. Gives when it connected, how
/// many segments left at each later instant, and when the last of them arrived.
fn transfer(config: Config, segments: u64) -> (Time, Vec<(Span, u64)>, Time) {
    let octets = segments * SMSS;
    let mut world = World::new(config.clone(), config, ROUND_TRIP, octets as usize);
    world.write(CLIENT, octets);
    let end = world.run_to_receipt(SERVER, octets);
    let data = world.data(CLIENT);
    let begin = data[0].at;
    let mut bursts: Vec<(Span, u64)> = Vec::new();
    for (n, sent) in data.iter().enumerate() {
        assert_eq!(sent.range(), (n as u64 * SMSS, SMSS), "each leaves once and in order");
        let since = sent.at.since(begin);
        match bursts.last_mut().filter(|burst| burst.0 == since) {
            Some(burst) => burst.1 += 1,
            None => bursts.push((since, 1)),
        }
    }
    (begin, bursts, end)
}

#[test]
fn without_delayed_acknowledgments_a_round_doubles_the_window() {
    for initial in [1, 2, 3, 4, 10] {
        // After r rounds initial * (2^r - 1) segments have left; ten rounds of the smallest.
        let segments = 1023;
        let (begin, bursts, end) = transfer(settings(initial, None), segments);
        assert_eq!(begin, Time::ZERO + ROUND_TRIP, "the handshake is a round trip");
        let (mut left, mut rounds) = (segments, 0);
        for burst in &bursts {
            let expected = (u64::from(initial) << rounds).min(left);
            assert_eq!(*burst, (ROUND_TRIP * rounds, expected), "initial window {initial}");
            (left, rounds) = (left - expected, rounds + 1);
        }
        assert_eq!(left, 0);
        assert_eq!(end, begin + ROUND_TRIP * (rounds - 1) + ROUND_TRIP / 2);
    }
}

/// With acknowledgments of every second segment, and of an odd one after 100 ms. By hand, for an initial window of 2:
///
/// | at (ms) | arrives      | window | flight | leaves |
/// |---------|--------------|--------|--------|--------|
/// | 0       |              | 2      | 0      | 2 (1, 2) |
/// | 560     | ack 2        | 3      | 0      | 3 (3, 4, 5) |
/// | 1120    | ack 4        | 4      | 1      | 3 (6, 7, 8) |
/// | 1220    | ack 5        | 5      | 3      | 2 (9, 10) |
/// | 1680    | ack 7        | 6      | 3      | 3 (11, 12, 13); segment 8 waits to be acknowledged |
/// | 1780    | 8 waited 100 ms: ack 8 is under way when 9 and 10 arrive at 1500 + 280 + 280 |
///
/// Segment 8 arrives at 1400 with its timer due at 1500; segments 9 and 10 arrive at 1500 as well. What arrives comes
/// before what is due: 9 is the second segment after 7, so ack 9 leaves at 1500, and 10 waits until 1600.
///
/// | 1780    | ack 9        | 7      | 4      | 3 (14, 15, 16) |
/// | 1880    | ack 10       | 8      | 6      | 2 (17, 18) |
#[test]
fn delayed_acknowledgments_by_hand() {
    let (_, bursts, _) = transfer(settings(2, Some(100)), 18);
    let by_hand = [(0, 2), (560, 3), (1120, 3), (1220, 2), (1680, 3), (1780, 3), (1880, 2)];
    assert_eq!(bursts, by_hand.map(|(at, count)| (ms(at), count)));
}

/// Counts segments, knows nothing of octets: bursts leave, every second segment is acknowledged at once and an odd one
/// after `delay`, and each acknowledgment lets the window grow by one.
fn naive_bursts(initial: u64, delay: Span, segments: u64) -> (Vec<(Span, u64)>, Span) {
    let mut bursts = vec![(Span::ZERO, initial.min(segments))];
    let (mut window, mut sent) = (initial, initial.min(segments));
    // When the one segment that waits is acknowledged, and when the last arrival was.
    let (mut waits, mut last): (Option<Span>, Span) = (None, Span::ZERO);
    let mut answers: Vec<(Span, u64)> = Vec::new();
    let (mut next, mut received) = (0, 0);
    while sent < segments || next < bursts.len() {
        let arrival = bursts.get(next).map_or(Span::MAX, |burst| burst.0 + ROUND_TRIP / 2);
        let answer = answers.first().map_or(Span::MAX, |answer| answer.0);
        if let Some(due) = waits.filter(|&due| due < arrival && due < answer) {
            answers.push((due + ROUND_TRIP / 2, received));
            waits = None;
        } else if arrival < answer {
            last = arrival;
            for _ in 0..bursts[next].1 {
                received += 1;
                if waits.take().is_some() {
                    answers.push((arrival + ROUND_TRIP / 2, received));
                } else {
                    waits = Some(arrival + delay);
                }
            }
            next += 1;
        } else {
            let (at, acknowledged) = answers.remove(0);
            window += 1;
            let more = (window - (sent - acknowledged)).min(segments - sent);
            if more > 0 {
                sent += more;
                match bursts.last_mut().filter(|burst| burst.0 == at) {
                    Some(burst) => burst.1 += more,
                    None => bursts.push((at, more)),
                }
            }
        }
    }
    (bursts, last)
}

#[test]
fn the_naive_count_agrees_with_the_one_by_hand() {
    let by_hand = [(0, 2), (560, 3), (1120, 3), (1220, 2), (1680, 3), (1780, 3), (1880, 2)];
    let (bursts, _) = naive_bursts(2, ms(100), 18);
    assert_eq!(bursts, by_hand.map(|(at, count)| (ms(at), count)));
}

#[test]
fn delayed_acknowledgments_slow_it_down() {
    for initial in [1, 2, 3, 4, 10] {
        for delay in [1, 40, 100, 200, 500] {
            for segments in [1, 2, 7, 100, 1500] {
                let (begin, bursts, end) = transfer(settings(initial, Some(delay)), segments);
                let (expected, last) = naive_bursts(initial.into(), ms(delay), segments);
                assert_eq!(bursts, expected, "initial window {initial}, {delay} ms, {segments} segments");
                assert_eq!(end, begin + last);
            }
        }
    }
}

/// If an odd segment hardly waits, its acknowledgment counts in the same round. Then a round of n segments is answered
/// by n/2 acknowledgments, rounded up, and each adds a segment: n' = n + ceil(n/2).
#[test]
fn a_round_grows_by_half() {
    for (initial, rounds) in [(2, [2, 3, 5, 8, 12, 18, 27, 41]), (3, [3, 5, 8, 12, 18, 27, 41, 62])] {
        let total: u64 = rounds.iter().sum();
        let (_, bursts, _) = transfer(settings(initial, Some(1)), total);
        let mut counted = [0; 8];
        for (at, count) in bursts {
            // The acknowledgments of a round are less than 100 ms apart.
            counted[(at.as_millis() / 560) as usize] += count;
            assert!(at.as_millis() % 560 < 100);
        }
        assert_eq!(counted, rounds);
    }
}

/// RFC 3465 with L = 2: octets count, so delayed acknowledgments cost only where one acknowledges a single segment.
#[test]
fn counting_octets_makes_up_for_delayed_acknowledgments() {
    let config = Config { increase: Increase::Octets(2), ..settings(2, Some(1)) };
    let (_, bursts, _) = transfer(config, 2 + 4 + 8 + 16 + 32);
    assert_eq!(
        bursts,
        [2, 4, 8, 16, 32].iter().enumerate().map(|(n, &c)| (ROUND_TRIP * n as u64, c)).collect::<Vec<_>>()
    );
}

/// RFC 5681 section 3.1 and RFC 6928, for 1448 octets: 3, and ten.
#[test]
fn initial_windows_are_those_of_the_rfcs() {
    for (mss, rule, segments) in [
        (1460, InitialWindow::Rfc5681, 3),
        (1107, InitialWindow::Rfc5681, 4),
        (1108, InitialWindow::Rfc5681, 3),
        (2202, InitialWindow::Rfc5681, 3),
        (2203, InitialWindow::Rfc5681, 2),
        (1460, InitialWindow::Rfc6928, 10),
        (536, InitialWindow::Rfc6928, 10),
        (8960, InitialWindow::Rfc6928, 2),
    ] {
        let config = Config { mss, initial_window: rule, ..prompt() };
        let smss = u64::from(mss) - 12;
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 20 * smss as usize);
        world.write(CLIENT, 20 * smss);
        assert_eq!(world.data(CLIENT).len(), segments, "{mss} {rule:?}");
    }
    // 14600 octets are not a multiple of 2000: the rest of a window smaller than a segment is not used.
    let config = Config { mss: 2012, ..prompt() };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 40_000);
    world.write(CLIENT, 40_000);
    assert_eq!((world.data(CLIENT).len(), world.ends[CLIENT].connection.congestion_window()), (7, 14_600));
}

#[test]
fn a_link_that_is_always_busy_takes_the_time_of_its_octets() {
    let config = Config { initial_window: InitialWindow::Segments(400), ..prompt() };
    let segments = 300;
    let mut world = World::new(config.clone(), config, ROUND_TRIP, (segments * SMSS) as usize);
    // A window in a SYN is not scaled: 45 segments may leave before the first acknowledgment, and take longer than
    // that.
    let rate = BitRate::from_bps(384_000).expect("positive");
    world.paths[CLIENT].rate = Some(rate);
    world.write(CLIENT, segments * SMSS);
    let end = world.run_to_receipt(SERVER, segments * SMSS);
    // The SYN has 20 octets of options: MSS 4, scale 4, timestamps and SACK permitted 12.
    let syn = rate.time_of_bytes(IP_HEADER as u64 + 20 + 20);
    let data = rate.time_of_bytes(PACKET) * segments;
    // The first segment ends the handshake.
    let bare = world.sent.iter().filter(|s| s.from == CLIENT && s.segment.payload.len == 0).count();
    assert_eq!(bare, 1, "the SYN");
    assert_eq!(end, Time::ZERO + syn + ROUND_TRIP + data + ROUND_TRIP / 2);
}

/// Slow start over a link with a rate. Segments of a round leave the link s apart, and so return their acknowledgments,
/// each of which lets two follow. Round k begins k (R + s) after the first, as long as the one before did not fill the
/// link: w 2^k s < R + s. From the round that does, the link never rests.
#[test]
fn slow_start_up_to_the_rate_of_the_link() {
    for (initial, kilobits) in [(2, 128), (2, 1000), (4, 384), (10, 2000)] {
        let segments = 400;
        let config = settings(initial, None);
        let mut world = World::new(config.clone(), config, ROUND_TRIP, (segments * SMSS) as usize);
        let rate = BitRate::from_bps(kilobits * 1000).expect("positive");
        world.run_until(Time::ZERO + ms(5000));
        world.paths[CLIENT].rate = Some(rate);
        world.write(CLIENT, segments * SMSS);
        let end = world.run_to_receipt(SERVER, segments * SMSS);
        let s = rate.time_of_bytes(PACKET);
        let initial = u64::from(initial);
        let full = (0u64..64).find(|&k| s * (initial << k) >= ROUND_TRIP + s).expect("some round fills it");
        let before = initial * ((1 << full) - 1);
        let expected = (ROUND_TRIP + s) * full + s * (segments - before) + ROUND_TRIP / 2;
        assert_eq!(end.since(Time::ZERO + ms(5000)), expected, "{initial} segments at {kilobits} kbit/s");
        assert_eq!(world.ends[CLIENT].connection.stats().retransmits, 0);
    }
}

/// A receive window of w segments: w leave in each round trip.
#[test]
fn the_receive_window_limits_a_round() {
    let mut config = settings(8, None);
    config.receive_window.size = Window::Octets(8 * SMSS);
    let (begin, bursts, end) = transfer(config, 80);
    let rounds: Vec<_> = (0..10).map(|n| (ROUND_TRIP * n, 8)).collect();
    assert_eq!(bursts, rounds);
    assert_eq!(end, begin + ROUND_TRIP * 9 + ROUND_TRIP / 2);
}

/// RFC 5681 section 4.1: after idleness longer than the retransmission timeout the window is the initial one again.
#[test]
fn idleness_brings_the_window_down_to_the_initial_one() {
    for (restart, pause, falls) in [(true, 60_000, true), (false, 60_000, false), (true, 900, false)] {
        let config = Config { idle_restart: restart, ..settings(4, None) };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 1000 * SMSS as usize);
        world.write(CLIENT, (4 + 8 + 16) * SMSS);
        // The last round leaves two round trips after the first; its acknowledgments come a round trip later.
        let last = world.now + ROUND_TRIP * 2;
        world.run_until(last + ms(pause));
        let (before, grown) =
            (world.data(CLIENT).len(), world.ends[CLIENT].connection.congestion_window() / SMSS);
        assert!(before == 28 && grown >= 16, "two rounds at least have doubled it");
        world.write(CLIENT, 100 * SMSS);
        let burst = (world.data(CLIENT).len() - before) as u64;
        assert_eq!(burst, if falls { 4 } else { grown });
    }
}
