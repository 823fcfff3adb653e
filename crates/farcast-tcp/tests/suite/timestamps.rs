//! Timestamps (RFC 7323): the echoed value, and segments that are too old.

use farcast_core::engine::Reject;
use farcast_core::{Span, Time};
use farcast_tcp::{Config, DelayedAck, Flags, Options, Payload, Segment, State, Timestamps};

use crate::common::{CLIENT, Fate, SERVER, World, address, initial, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);

/// Returns the timestamps of the segments that a side has sent since.
fn stamps(world: &World, side: usize) -> Vec<(u32, u32)> {
    let sent = world.sent.iter().filter(|sent| sent.from == side);
    sent.filter_map(|sent| sent.segment.options.timestamps).map(|stamp| (stamp.value, stamp.echo)).collect()
}

/// The SYN has a timestamp, the answer echoes it, and the acknowledgment echoes the answer's (section 3.2). The clock
/// ticks milliseconds.
#[test]
fn the_handshake_carries_them() {
    let mut world = World::new(prompt(), prompt(), ROUND_TRIP, 0);
    world.run();
    assert_eq!(stamps(&world, CLIENT), [(0, 0), (100, 50)]);
    assert_eq!(stamps(&world, SERVER), [(50, 0)]);
}

/// Section 4.3: an acknowledgment that was delayed echoes the first segment that it answers, so that the round trip
/// includes the delay; one that answers several, the first of them.
#[test]
fn a_delayed_acknowledgment_echoes_the_first_segment() {
    let config = Config { delayed_ack: DelayedAck::Delayed { delay: ms(200) }, ..prompt() };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 20_000);
    world.run_until(Time::ZERO + ms(1000));
    world.write(CLIENT, 100);
    world.run_until(Time::ZERO + ms(1030));
    world.write(CLIENT, 50);
    world.run_until(Time::ZERO + ms(2000));
    // The first arrives at 1050, the second at 1080: 150 octets are more than one of the largest, which has 100.
    assert_eq!(stamps(&world, SERVER), [(1080, 1000)]);
    world.write(CLIENT, 100);
    world.run();
    assert_eq!(stamps(&world, SERVER)[1], (2250, 2000));
}

/// Section 4.3: a segment out of order is not echoed, but the last segment in order is; a segment that fills the gap is
/// echoed.
#[test]
fn a_gap_is_echoed_as_the_rfc_says() {
    let mut world = World::open(prompt(), prompt(), ROUND_TRIP, 20_000);
    world.paths[CLIENT].script =
        Box::new(|passing| if passing.nth_data == 1 { Fate::Late(ms(25)) } else { Fate::Pass });
    for n in 0..4 {
        world.run_until(Time::ZERO + ms(1000 + 10 * n));
        world.write(CLIENT, 100);
    }
    world.run();
    // Segments of 1000, 1010, 1020 and 1030 arrive at 1050, 1070 (out of order), 1080 (too) and 1085, filling the gap.
    assert_eq!(stamps(&world, SERVER), [(1050, 1000), (1070, 1000), (1080, 1000), (1085, 1010)]);
}

/// The last acknowledgment sent before data flow is the answer to the SYN: the first data is echoed, not the SYN.
#[test]
fn the_first_data_is_echoed() {
    let mut world = World::new(prompt(), prompt(), ROUND_TRIP, 1000);
    world.write(CLIENT, 1000);
    world.run();
    assert_eq!(stamps(&world, SERVER), [(50, 0), (150, 100)]);
}

/// A segment with a time stamp, for the server, which expects octet `offset`.
fn stamped(offset: u32, len: u16, value: Option<u32>, flags: Flags) -> Segment {
    Segment {
        source_port: address(CLIENT).port(),
        destination_port: address(SERVER).port(),
        sequence: initial(CLIENT).plus(1 + offset),
        acknowledgment: initial(SERVER).plus(1),
        flags,
        window: 1000,
        options: Options {
            timestamps: value.map(|value| Timestamps { value, echo: 0 }),
            ..Options::default()
        },
        payload: Payload { offset: 0, len },
        ..Segment::default()
    }
}

/// Section 5.3: a segment older than the last in order is dropped and answered, though its numbers fit (PAWS), but a
/// reset is accepted. Section 3.2: a segment without timestamps is dropped silently.
#[test]
fn old_duplicates_are_turned_down() {
    let open = || {
        let mut world = World::open(prompt(), prompt(), ROUND_TRIP, 20_000);
        world.run_until(Time::ZERO + ms(1000));
        world.write(CLIENT, 100);
        world.run();
        world.sent.clear();
        world
    };
    for (value, taken) in
        [(999, false), (0, false), (1000, true), (1001, true), (0x7FFF_FFFF, true), (0x8000_0500, false)]
    {
        let mut world = open();
        let octets = world.ends[CLIENT].stream[100..200].to_vec();
        let result = world.hand(SERVER, &stamped(100, 100, Some(value), Flags::ACK), &octets);
        assert_eq!(result.is_ok(), taken, "{value}");
        assert_eq!(world.ends[SERVER].connection.received(), if taken { 200 } else { 100 });
        assert_eq!(world.sent.len(), 1, "both are acknowledged");
        assert_eq!(world.sent[0].segment.acknowledgment, initial(CLIENT).plus(if taken { 201 } else { 101 }));
    }
    let mut world = open();
    let octets = world.ends[CLIENT].stream[100..200].to_vec();
    assert_eq!(world.hand(SERVER, &stamped(100, 100, None, Flags::ACK), &octets), Err(Reject::Inconsistent));
    assert_eq!((world.ends[SERVER].connection.received(), world.sent.len()), (100, 0));
    for value in [None, Some(5)] {
        let mut world = open();
        assert_eq!(world.hand(SERVER, &stamped(100, 0, value, Flags::RST), &[]), Ok(()));
        assert_eq!(world.states()[SERVER], State::Closed);
    }
}

/// Section 5.5: after 24 days without a segment the peer's clock may have wrapped.
#[test]
fn very_old_timestamps_are_not_compared() {
    for (days, taken) in [(23, false), (25, true)] {
        let mut world = World::open(prompt(), prompt(), ROUND_TRIP, 20_000);
        world.run_until(Time::ZERO + ms(1000));
        world.write(CLIENT, 100);
        world.run();
        world.run_until(Time::ZERO + Span::from_secs(days * 24 * 3600));
        let octets = world.ends[CLIENT].stream[100..200].to_vec();
        let result = world.hand(SERVER, &stamped(100, 100, Some(900), Flags::ACK), &octets);
        assert_eq!(result.is_ok(), taken, "{days}");
    }
}

/// The tick is that of the settings.
#[test]
fn the_clock_ticks_as_set() {
    for (tick, expected) in [(1, 12_345), (10, 1234), (1000, 12)] {
        let config = Config { timestamps: Some(ms(tick)), ..prompt() };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 100);
        world.run_until(Time::ZERO + ms(12_345));
        world.write(CLIENT, 100);
        assert_eq!(stamps(&world, CLIENT)[0].0, expected);
        world.run();
    }
}
