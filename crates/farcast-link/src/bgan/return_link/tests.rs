use super::*;
use crate::bgan::tests::probe::{Probe, drive, ms, packet, run};
use proptest::prelude::*;
use reference::{Entry, reference};
use std::collections::BTreeSet;

mod queue;
mod reference;

const TERMINALS: u32 = 1000;

fn link(config: &ReturnConfig, seed: u64) -> Return<Probe> {
    let stream = RandomStream::derive(seed, &[]);
    Return::new(config.clone(), TERMINALS, stream).expect("a valid configuration")
}

/// One packet of 100 octets, one slot, at each of the terminals `0..n`, all at `at`.
fn enter_all(link: &mut Return<Probe>, n: u32, at: Time) {
    for terminal in 0..n {
        link.handle(at, Port::Terminal(terminal), packet(terminal, 100));
    }
}

#[test]
fn a_lone_packet_follows_the_schedule() {
    // One contention slot: 0 to 5 ms of a frame; reservation slots from 5, 25 and 45 ms.
    let config = ReturnConfig { contention_slots: 1, ..ReturnConfig::default() };
    let mut link = link(&config, 1);
    // Frame 2 begins at 160 ms, the request ends at 165 ms, the grant is there at 1165 ms. Frame 14 begins at 1120 ms,
    // its third reservation slot at 1165 ms.
    link.handle(ms(100), Port::Terminal(5), packet(0, 168));
    assert_eq!(link.poll_timeout(), Some(Deadline { at: ms(165), timer: "contention" }));
    assert_eq!(drive(&mut link, Time::NEVER), [(ms(1185 + 450), 0)]);
    let expected = ReturnCounters {
        packets_in: 1,
        packets_out: 1,
        requests: 1,
        most_attempts: 1,
        r_slots: 1,
        waited: Span::from_millis(1065),
        longest_wait: Span::from_millis(1065),
        ..ReturnCounters::default()
    };
    assert_eq!(*link.counters(), expected);
}

#[test]
fn a_nanosecond_makes_the_next_frame_and_the_next_slot() {
    let config = ReturnConfig { contention_slots: 1, ..ReturnConfig::default() };
    let leaves = |config: &ReturnConfig, entry| {
        let mut link = link(config, 1);
        link.handle(entry, Port::Terminal(0), packet(0, 168));
        drive(&mut link, Time::NEVER)[0].0
    };
    assert_eq!(leaves(&config, ms(160)), ms(1185 + 450), "the frame that begins now");
    // Frame 3: 240 ms, grant at 1245 ms, frame 15 begins at 1200 ms: its third slot again.
    assert_eq!(leaves(&config, ms(160) + Span::from_nanos(1)), ms(1265 + 450), "the next frame");
    let slower = ReturnConfig { processing: Span::from_nanos(100_000_001), ..config };
    // The grant comes at 1165.000001 ms; the next slot begins at 1205 ms.
    assert_eq!(leaves(&slower, ms(160)), ms(1225 + 450), "the next slot");
}

#[test]
fn a_packet_takes_whole_slots_across_frames() {
    let config = ReturnConfig { contention_slots: 1, ..ReturnConfig::default() };
    let mut link = link(&config, 1);
    // Slots from 1165 (frame 14), 1205, 1225 and 1245 ms (frame 15).
    link.handle(ms(100), Port::Terminal(0), packet(0, 3 * 168 + 1));
    assert_eq!(drive(&mut link, Time::NEVER), [(ms(1265 + 450), 0)]);
    assert_eq!(link.counters().r_slots, 4);
    assert_eq!(
        [0, 1, 168, 169, u64::MAX].map(|octets| config.r_slots(octets)),
        [1, 1, 1, 2, u64::MAX / 168 + 1]
    );
}

#[test]
fn a_request_covers_what_waits_when_it_is_sent() {
    let config = ReturnConfig { contention_slots: 1, ..ReturnConfig::default() };
    let mut link = link(&config, 1);
    link.handle(ms(100), Port::Terminal(0), packet(0, 100));
    link.handle(ms(160), Port::Terminal(0), packet(1, 100));
    // Too late by a nanosecond: asked for when the first grant is there (1165 ms), in frame 15 at 1200 ms. That is
    // heard at 1205 ms and granted from 2205 ms on; frame 27 begins at 2160 ms, its third slot at 2205 ms.
    link.handle(ms(160) + Span::from_nanos(1), Port::Terminal(0), packet(2, 100));
    let left = drive(&mut link, Time::NEVER);
    assert_eq!(left, [(ms(1185 + 450), 0), (ms(1225 + 450), 1), (ms(2225 + 450), 2)]);
    assert_eq!(link.counters().requests, 2);
}

#[test]
fn a_packet_rides_in_the_last_burst_reserved_for_its_terminal() {
    let config = ReturnConfig { contention_slots: 1, piggyback: true, ..ReturnConfig::default() };
    let mut link = link(&config, 1);
    // A burst from 1165 to 1185 ms; what enters up to its start is asked for in it, and granted from 2185 ms on: frame
    // 27 begins at 2160 ms, its second reservation slot at 2185 ms.
    link.handle(ms(100), Port::Terminal(0), packet(0, 100));
    let mut left = drive(&mut link, ms(1100));
    link.handle(ms(1165), Port::Terminal(0), packet(1, 100));
    assert_eq!(link.poll_timeout(), Some(Deadline { at: ms(1185), timer: "piggyback" }));
    // This one rides in the next burst, from 2185 to 2205 ms: granted from 3205 ms on, the first reservation slot of
    // frame 40, which begins at 3200 ms.
    link.handle(ms(1166), Port::Terminal(0), packet(2, 100));
    left.extend(drive(&mut link, Time::NEVER));
    assert_eq!(left, [(ms(1185 + 450), 0), (ms(2205 + 450), 1), (ms(3225 + 450), 2)]);
    assert_eq!((link.counters().requests, link.counters().piggybacked), (1, 2));
}

#[test]
fn a_packet_that_asks_for_itself_rides_only_in_a_burst_that_its_terminal_knows_of() {
    let config = ReturnConfig {
        contention_slots: 1,
        request: RequestFor::Packet,
        piggyback: true,
        ..ReturnConfig::default()
    };
    // A burst from 1165 to 1185 ms, known from 1165 ms on. Before, the request goes in frame 15, at 1200 ms; it is
    // granted from 2205 ms on. A request in the burst is granted from 2185 ms on.
    for (entry, leaves, piggybacked) in [(1164, 2225, 0), (1165, 2205, 1)] {
        let mut link = link(&config, 1);
        link.handle(ms(100), Port::Terminal(0), packet(0, 100));
        drive(&mut link, ms(1100));
        link.handle(ms(entry), Port::Terminal(0), packet(1, 100));
        assert_eq!(drive(&mut link, Time::NEVER), [(ms(leaves + 450), 1)]);
        assert_eq!(link.counters().piggybacked, piggybacked);
    }
}

#[test]
fn each_packet_may_ask_for_itself() {
    let config = ReturnConfig { request: RequestFor::Packet, ..ReturnConfig::default() };
    let mut alone = link(&ReturnConfig { contention_slots: 1, ..config.clone() }, 1);
    alone.handle(ms(100), Port::Terminal(0), packet(0, 100));
    alone.handle(ms(165), Port::Terminal(0), packet(1, 100));
    // The second request goes in frame 3, at 240 ms, while the first is still under way.
    assert_eq!(drive(&mut alone, Time::NEVER), [(ms(1185 + 450), 0), (ms(1265 + 450), 1)]);

    // Two packets at once make two requests, which meet in one of four slots in a quarter of all cases.
    let n = 4000;
    let met = (0..n).filter(|&seed| {
        let mut link = link(&config, seed);
        link.handle(ms(0), Port::Terminal(0), run(0, 2, &[100], Span::ZERO));
        link.handle_timeout(ms(20));
        link.counters().collided == 2
    });
    // Sigma is sqrt(n 1/4 3/4) = 27.4; five are 137.
    assert!(met.count().abs_diff(n as usize / 4) < 137);
}

#[test]
fn slotted_aloha_has_its_throughput() {
    // n requests in C slots: n (1 - 1/C)^(n-1) are alone on the mean. With S alone,
    // E[S (S - 1)] = n (n - 1) (1 - 1/C) (1 - 2/C)^(n-2) gives the variance.
    for (n, slots) in [(1, 4), (2, 4), (5, 4), (12, 16), (80, 64)] {
        let config =
            ReturnConfig { contention_slots: slots, frame: Span::from_secs(1), ..ReturnConfig::default() };
        let (terminals, c) = (f64::from(n), f64::from(slots));
        let mean = terminals * libm::pow(1.0 - 1.0 / c, terminals - 1.0);
        let pairs =
            terminals * (terminals - 1.0) * (1.0 - 1.0 / c) * libm::pow(1.0 - 2.0 / c, terminals - 2.0);
        let variance = pairs + mean - mean * mean;
        let trials = 2000;
        let total: u64 = (0..trials)
            .map(|seed| {
                let mut link = link(&config, seed);
                enter_all(&mut link, n, Time::ZERO);
                link.handle_timeout(link.poll_timeout().expect("a first frame").at);
                let counters = link.counters();
                assert_eq!(counters.requests, u64::from(n));
                assert_eq!(counters.packets_out, counters.requests - counters.collided);
                counters.packets_out
            })
            .sum();
        let error = (total as f64 - trials as f64 * mean).abs();
        let bound = 5.0 * libm::sqrt(trials as f64 * variance) + 1e-6;
        assert!(error <= bound, "{n} in {slots}: off by {error}, bound {bound}");
    }
}

#[test]
fn a_collision_costs_a_round_trip() {
    // Without back-off and with four slots: a request of frame 0 is granted at 1005 to 1020 ms, so the first packet has
    // the slot from 1020 ms. After a collision both try again in frame 13, at 1040 ms: everything 1040 ms later.
    let config = ReturnConfig { backoff_frames: 1, ..ReturnConfig::default() };
    let mut seen = BTreeSet::new();
    for seed in 0..40 {
        let mut link = link(&config, seed);
        enter_all(&mut link, 2, Time::ZERO);
        let left = drive(&mut link, Time::NEVER);
        let collisions = link.counters().collided / 2;
        let shift = Span::from_millis(1040) * collisions;
        let times: Vec<Time> = left.iter().map(|&(at, _)| at).collect();
        assert_eq!(times, [ms(1040 + 450) + shift, ms(1080 + 450) + shift], "seed {seed}");
        assert_eq!(u64::from(link.counters().most_attempts), collisions + 1);
        seen.insert(collisions);
    }
    assert!(seen.len() >= 3, "no, one and two collisions occur: {seen:?}");
}

#[test]
fn the_backoff_window_is_w0_and_doubles() {
    // Two terminals in one slot collide until their back-offs differ: in a window of W frames they agree with 1/W. So
    // the collisions are 1 + 1/W1 + 1/(W1 W2) + ... on the mean.
    let mean_and_variance = |windows: &dyn Fn(i32) -> f64| {
        let at_least: Vec<f64> =
            (0..60).scan(1.0, |p, k| Some(core::mem::replace(p, *p / windows(k)))).collect();
        let mean: f64 = at_least.iter().sum();
        let square: f64 = at_least.iter().zip(0..).map(|(p, k)| p * f64::from(2 * k + 1)).sum();
        (mean, square - mean * mean)
    };
    let fixed = |_| 2.0;
    let doubling = |k: i32| f64::from(2 << k.min(2));
    let study = |_| 12.0;
    let cases = [
        (2, None, mean_and_variance(&fixed)),
        (2, Some(2), mean_and_variance(&doubling)),
        (12, None, mean_and_variance(&study)),
    ];
    for (backoff_frames, backoff_doubling, (mean, variance)) in cases {
        let config =
            ReturnConfig { contention_slots: 1, backoff_frames, backoff_doubling, ..ReturnConfig::default() };
        let trials = 3000;
        let collisions: u64 = (0..trials)
            .map(|seed| {
                let mut link = link(&config, seed);
                enter_all(&mut link, 2, Time::ZERO);
                drive(&mut link, Time::NEVER);
                link.counters().collided / 2
            })
            .sum();
        let error = (collisions as f64 - trials as f64 * mean).abs();
        let bound = 5.0 * libm::sqrt(trials as f64 * variance);
        assert!(error < bound, "W0 {backoff_frames}: off by {error}, bound {bound}");
    }
}

#[test]
fn overload_fills_every_reservation_slot_in_turn() {
    let config = ReturnConfig { access: Access::Ideal, ..ReturnConfig::default() };
    let mut link = link(&config, 1);
    enter_all(&mut link, 901, Time::ZERO);
    let left = drive(&mut link, Time::NEVER);
    assert_eq!(left.len(), 901);
    // 37.5 a second: 900 intervals are 24 s.
    assert_eq!(left[900].0, left[0].0 + Span::from_secs(24));
    assert!(left.windows(4).all(|four| four[3].0 == four[0].0 + Span::from_millis(80)));
    assert_eq!(link.counters().collided, 0);
}

#[test]
fn ideal_access_needs_no_contention_slots() {
    let config = ReturnConfig { access: Access::Ideal, contention_slots: 0, ..ReturnConfig::default() };
    let mut link = link(&config, 1);
    enter_all(&mut link, 2, ms(80));
    // The requests take 80 to 85 ms. Slots begin at 1085 ms or later: frame 13 begins at 1040 ms, frame 14 at 1120 ms.
    assert_eq!(drive(&mut link, Time::NEVER), [(ms(1140 + 450), 0), (ms(1160 + 450), 1)]);
}

#[test]
fn a_hopeless_request_is_given_up() {
    // One slot and no back-off: two terminals collide for ever.
    let config = ReturnConfig {
        contention_slots: 1,
        backoff_frames: 1,
        give_up_after: Some(3),
        ..ReturnConfig::default()
    };
    for request in [RequestFor::Queue, RequestFor::Packet] {
        let mut link = link(&ReturnConfig { request, ..config.clone() }, 1);
        enter_all(&mut link, 2, Time::ZERO);
        assert_eq!(drive(&mut link, Time::NEVER), []);
        let counters = link.counters();
        assert_eq!((counters.given_up, counters.requests, counters.most_attempts), (2, 6, 3));
        // Both are as good as new.
        link.handle(ms(100_000), Port::Terminal(0), packet(9, 100));
        assert_eq!(drive(&mut link, Time::NEVER).len(), 1);
    }
}

#[test]
fn early_wake_ups_do_nothing_and_late_ones_lose_nothing() {
    let fresh = || {
        let mut link = link(&ReturnConfig::default(), 3);
        enter_all(&mut link, 30, ms(10));
        link
    };
    let mut punctual = fresh();
    let expected = drive(&mut punctual, Time::NEVER);
    let mut early = fresh();
    let deadline = early.poll_timeout();
    early.handle_timeout(ms(99));
    assert_eq!((early.poll_timeout(), early.poll_output()), (deadline, None));
    assert_eq!(drive(&mut early, Time::NEVER), expected);
    let mut late = fresh();
    let when = ms(6_000);
    late.handle_timeout(when);
    assert!(
        expected.first().is_some_and(|first| first.0 < when)
            && expected.last().is_some_and(|last| last.0 > when)
    );
    let left = drive(&mut late, Time::NEVER);
    assert_eq!(left, expected.iter().map(|&(at, id)| (at.max(when), id)).collect::<Vec<_>>());
    assert_eq!(late.counters(), punctual.counters());
}

#[test]
fn packets_from_elsewhere_go_nowhere() {
    let mut link = link(&ReturnConfig::default(), 1);
    for port in [Port::Hub, Port::Terminals, Port::Terminal(TERMINALS), Port::Terminal(u32::MAX)] {
        link.handle(Time::ZERO, port, run(0, 2, &[100], Span::ZERO));
    }
    assert_eq!((link.counters().misdirected, link.counters().packets_in), (8, 0));
    assert_eq!(drive(&mut link, Time::NEVER), []);
}

#[test]
fn nothing_overflows() {
    for access in [Access::Contention, Access::Ideal] {
        let config = ReturnConfig {
            propagation: Span::MAX,
            r_slot_octets: 1,
            backoff_frames: u32::MAX,
            backoff_doubling: Some(31),
            piggyback: true,
            access,
            ..ReturnConfig::default()
        };
        let mut link = link(&config, 1);
        for at in [Time::ZERO, Time::NEVER - Span::from_nanos(1), Time::NEVER] {
            link.handle(at, Port::Terminal(0), run(0, 3, &[usize::MAX / 2], Span::MAX));
            enter_all(&mut link, 9, at);
            link.handle_timeout(at);
        }
        assert_eq!(link.counters().packets_in, 36);
        assert_eq!(link.poll_timeout(), None, "nothing is due at the end of time");
    }
}

#[test]
fn senseless_settings_are_refused() {
    type Change = fn(&mut ReturnConfig);
    let cases: [(Change, BganError); 10] = [
        (|c| c.frame = Span::ZERO, BganError::Zero("the return frame")),
        (|c| c.contention_slot = Span::ZERO, BganError::Zero("the length of a contention slot")),
        (|c| c.reservation_slot = Span::ZERO, BganError::Zero("the length of a reservation slot")),
        (|c| c.contention_slots = 0, BganError::Zero("the number of contention slots")),
        (|c| c.reservation_slots = 0, BganError::Zero("the number of reservation slots")),
        (|c| c.r_slot_octets = 0, BganError::Zero("the octets of a reservation slot")),
        (|c| c.backoff_frames = 0, BganError::Zero("the back-off window")),
        (|c| c.give_up_after = Some(0), BganError::Zero("the number of attempts before giving up")),
        (|c| c.backoff_doubling = Some(32), BganError::Doubling(32)),
        (
            |c| c.contention_slots = 5,
            BganError::Slots { slots: Span::from_millis(85), frame: Span::from_millis(80) },
        ),
    ];
    for (change, error) in cases {
        let mut config = ReturnConfig::default();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.round_trip(), Span::from_secs(1));
        change(&mut config);
        assert_eq!(config.check(), Err(error));
    }
}

/// A run that enters some time after the one before has.
#[derive(Clone, Debug)]
struct Load {
    gap: u64,
    terminal: u32,
    count: u32,
    spacing: u64,
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    // Times that often fall on slots and frames of the configurations below.
    let load = (0u64..40, 0u32..6, 1u32..5, 0u64..12).prop_map(|(gap, terminal, count, spacing)| Load {
        gap: gap * 5,
        terminal,
        count,
        spacing: spacing * 5,
    });
    proptest::collection::vec(load, 1..20)
}

fn configs() -> impl Strategy<Value = ReturnConfig> {
    let slots = (1u32..4, 1u32..4, 0u64..3);
    let delays = (0u64..300, 0u64..30);
    let backoff = (1u32..6, proptest::option::of(0u32..3), proptest::option::of(1u32..4));
    (slots, delays, backoff, any::<bool>()).prop_map(|(slots, delays, backoff, ideal)| ReturnConfig {
        frame: Span::from_nanos(u64::from(slots.0) * 5 + u64::from(slots.1) * 20 + slots.2 * 5),
        contention_slots: slots.0,
        contention_slot: Span::from_nanos(5),
        reservation_slots: slots.1,
        reservation_slot: Span::from_nanos(20),
        propagation: Span::from_nanos(delays.0),
        processing: Span::from_nanos(delays.1),
        backoff_frames: backoff.0,
        backoff_doubling: backoff.1,
        give_up_after: backoff.2,
        access: if ideal { Access::Ideal } else { Access::Contention },
        ..ReturnConfig::default()
    })
}

fn request() -> impl Strategy<Value = RequestFor> {
    prop_oneof![Just(RequestFor::Queue), Just(RequestFor::Packet)]
}

/// Hands the loads over, each cut into pieces of `cut` segments, serves timers in between, and returns what left.
fn carry(link: &mut Return<Probe>, loads: &[Load], lengths: &[usize], cut: u32) -> Vec<(Time, u32)> {
    let (mut entry, mut first) = (0, 0);
    let mut left = Vec::new();
    for load in loads {
        entry += load.gap;
        for done in (0..load.count).step_by(cut as usize) {
            let at = Time::from_nanos(entry + load.spacing * u64::from(done));
            left.extend(drive(link, at));
            let piece =
                run(first + done, cut.min(load.count - done), lengths, Span::from_nanos(load.spacing));
            link.handle(at, Port::Terminal(load.terminal), piece);
        }
        entry += load.spacing * u64::from(load.count - 1);
        first += load.count;
    }
    // One slot and one frame of back-off may never end.
    left.extend(drive(link, Time::from_nanos(entry) + Span::from_micros(100)));
    left
}

/// The packets of `loads`, one by one.
fn entries(loads: &[Load], lengths: &[usize]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut at = 0;
    for load in loads {
        at += load.gap;
        for segment in 0..u64::from(load.count) {
            let octets = lengths[entries.len() % lengths.len()] as u64;
            entries.push(Entry { at: at + segment * load.spacing, terminal: load.terminal, octets });
        }
        at += load.spacing * u64::from(load.count - 1);
    }
    entries
}

proptest! {
    #[test]
    fn packets_leave_when_a_naive_link_lets_them(
        config in configs(), loads in loads(), seed in any::<u64>(),
        lengths in proptest::collection::vec(1usize..500, 1..4),
    ) {
        let entries = entries(&loads, &lengths);
        let until = entries.last().map_or(0, |last| last.at) + 100_000;
        let expected = reference(&config, &entries, RandomStream::derive(seed, &[]), until);
        let mut link = link(&config, seed);
        let left = carry(&mut link, &loads, &lengths, u32::MAX);
        prop_assert_eq!(left, expected.left);
        prop_assert_eq!(link.counters().requests, expected.requests);
        prop_assert_eq!(link.counters().collided, expected.collided);
        prop_assert_eq!(link.counters().given_up, expected.given_up);
        prop_assert_eq!(link.counters().waited, Span::from_nanos(expected.waited));
    }

    #[test]
    fn whatever_enters_leaves_once(
        config in configs(), loads in loads(), seed in any::<u64>(), request in request(), piggyback in any::<bool>(),
    ) {
        // A window that doubles makes room for every request in the end.
        let config = ReturnConfig { give_up_after: None, backoff_doubling: Some(10), request, piggyback, ..config };
        let mut link = link(&config, seed);
        let mut left = carry(&mut link, &loads, &[150, 200], u32::MAX);
        left.extend(drive(&mut link, Time::NEVER));
        let total: u32 = loads.iter().map(|load| load.count).sum();
        let ids: BTreeSet<u32> = left.iter().map(|&(_, id)| id).collect();
        prop_assert_eq!(left.len(), total as usize);
        prop_assert_eq!(ids, (0..total).collect::<BTreeSet<_>>());
        let counters = link.counters();
        prop_assert_eq!((counters.packets_in, counters.packets_out), (u64::from(total), u64::from(total)));
        prop_assert_eq!(link.poll_timeout(), None);
        // Bursts of 20 ns do not overlap: a packet of 200 octets takes two.
        for pair in left.windows(2) {
            let slots = if pair[1].1 % 2 == 0 { 1 } else { 2 };
            prop_assert!(pair[1].0 >= pair[0].0 + Span::from_nanos(20 * slots));
        }
    }

    #[test]
    fn a_cut_changes_nothing(
        config in configs(), loads in loads(), seed in any::<u64>(), request in request(), piggyback in any::<bool>(),
        cut in 1u32..5,
    ) {
        let config = ReturnConfig { request, piggyback, ..config };
        let (mut whole, mut pieces) = (link(&config, seed), link(&config, seed));
        let lengths = [100, 300, 170];
        let left = carry(&mut whole, &loads, &lengths, u32::MAX);
        prop_assert_eq!(carry(&mut pieces, &loads, &lengths, cut), left);
        prop_assert_eq!(pieces.counters(), whole.counters());
    }

    #[test]
    fn ties_may_be_served_in_either_order(
        config in configs(), loads in loads(), seed in any::<u64>(), request in request(), piggyback in any::<bool>(),
    ) {
        let config = ReturnConfig { request, piggyback, ..config };
        let (mut before, mut after) = (link(&config, seed), link(&config, seed));
        let (mut left, mut expected) = (Vec::new(), Vec::new());
        for (entry, id) in entries(&loads, &[100, 300]).into_iter().zip(0..) {
            let (at, octets) = (Time::from_nanos(entry.at), entry.octets as usize);
            expected.extend(drive(&mut before, at));
            before.handle(at, Port::Terminal(entry.terminal), packet(id, octets));
            // Here timers that are due at the time of the packet are served after it.
            left.extend(drive(&mut after, at - Span::from_nanos(1)));
            after.handle(at, Port::Terminal(entry.terminal), packet(id, octets));
        }
        expected.extend(drive(&mut before, Time::from_nanos(100_000)));
        left.extend(drive(&mut after, Time::from_nanos(100_000)));
        prop_assert_eq!(left, expected);
        prop_assert_eq!(after.counters(), before.counters());
    }
}
