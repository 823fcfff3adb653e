//! Peers, and strangers on the path, that send anything.

use farcast_core::engine::Engine as _;
use farcast_core::{Span, Time};
use farcast_tcp::{
    Config, Event, Flags, InitialWindow, Options, Payload, Recovery, Reduction, SackBlock, SackBlocks,
    Segment, SequenceNumber, Timestamps,
};
use proptest::prelude::*;

use crate::common::{CLIENT, Lone, SERVER, World, address, initial, ms, prompt};

/// A forged segment: its numbers are relative to the state of its receiver.
#[derive(Clone, Debug)]
struct Forged {
    side: usize,
    after: u64,
    sequence: i64,
    acknowledgment: i64,
    flags: u8,
    window: u16,
    len: u16,
    options: Options,
}

/// A distance: mostly one that matters.
fn distance() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -3000i64..3000,
        2 => prop::sample::select(vec![0, 1, -1, 1448, 65_535, 65_536, 1 << 31, -(1 << 31), (1 << 31) - 1]),
        1 => any::<i32>().prop_map(i64::from),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let blocks = prop::collection::vec((distance(), distance()), 0..4);
    let stamps = prop::option::of((0u32..5000, 0u32..5000));
    let odd = prop::option::of((any::<u32>(), any::<u32>()));
    (blocks, stamps, odd, any::<Option<u16>>(), prop::option::of(0u8..15), any::<bool>()).prop_map(
        |(blocks, stamps, odd, mss, window_scale, sack_permitted)| {
            let mut sack = SackBlocks::default();
            for (left, right) in blocks {
                let number = |distance: i64| initial(CLIENT).plus(5000).plus(distance as u32);
                sack.push(SackBlock { left: number(left), right: number(right) });
            }
            let timestamps = stamps.or(odd).map(|(value, echo)| Timestamps { value, echo });
            Options { mss, window_scale, sack_permitted, timestamps, sack }
        },
    )
}

fn forged() -> impl Strategy<Value = Forged> {
    let flags = prop_oneof![
        6 => Just(Flags::ACK.0),
        1 => Just(Flags::ACK.with(Flags::FIN).0),
        1 => Just(Flags::SYN.0),
        1 => any::<u8>(),
    ];
    let window = prop_oneof![Just(0u16), Just(65_535), any::<u16>()];
    let len = prop_oneof![2 => Just(0u16), 1 => 1u16..1500];
    (0usize..2, 0u64..400, distance(), distance(), flags, window, len, options()).prop_map(
        |(side, after, sequence, acknowledgment, flags, window, len, options)| Forged {
            side,
            after,
            sequence,
            acknowledgment,
            flags,
            window,
            len,
            options,
        },
    )
}

fn config() -> impl Strategy<Value = Config> {
    let recovery =
        prop::sample::select(vec![Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack]);
    let reduction = prop::sample::select(vec![
        Reduction::Immediate,
        Reduction::Proportional,
        Reduction::ProportionalSafe,
        Reduction::RateHalving,
    ]);
    (recovery, reduction, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(recovery, reduction, stamps, frto, modern)| {
            let base = if modern { Config::modern() } else { Config::default() };
            Config {
                recovery,
                reduction,
                frto,
                undo: true,
                timestamps: stamps.then_some(ms(1)),
                most_retries: 6,
                time_wait: Span::from_secs(1),
                ..base
            }
        },
    )
}

/// The segment, with octets that are right where the stream has any.
fn make(world: &World, forged: &Forged) -> (Segment, Vec<u8>) {
    let (from, to) = (1 - forged.side, forged.side);
    let at = world.ends[to].connection.received().cast_signed() + forged.sequence;
    let acknowledged = world.ends[to].connection.acknowledged().cast_signed() + forged.acknowledgment;
    let written = world.ends[from].connection.written().cast_signed();
    // Right octets only: those of a stranger who guesses the numbers would be taken, as TCP has no means against that.
    let len = if at >= 0 { (written - at).clamp(0, forged.len.into()) } else { 0 };
    let payload = world.ends[from].stream[at.clamp(0, written) as usize..][..len as usize].to_vec();
    let segment = Segment {
        source_port: address(from).port(),
        destination_port: address(to).port(),
        sequence: initial(from).plus(1).plus(at as u32),
        acknowledgment: initial(to).plus(1).plus(acknowledged as u32),
        flags: Flags(forged.flags),
        window: forged.window,
        options: forged.options,
        payload: Payload { offset: 0, len: len as u16 },
        ..Segment::default()
    };
    (segment, payload)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// An attacker puts arbitrary segments between two open connections. Neither panics, the delivered data is the data
    /// written, and both come to rest: done, failed, or waiting for each other without a timer.
    #[test]
    fn forged_segments_break_nothing(config in config(), forged in prop::collection::vec(forged(), 1..60)) {
        // A forged answer to a SYN would be believed: these come later.
        let mut world = World::open(config.clone(), config, ms(100), 60_000);
        for side in [CLIENT, SERVER] {
            world.write(side, 60_000);
        }
        for one in &forged {
            world.run_until(world.now + ms(one.after / 10));
            let (segment, payload) = make(&world, one);
            let _ = world.hand(one.side, &segment, &payload);
        }
        for side in [CLIENT, SERVER] {
            world.close(side);
        }
        for _ in 0..200_000 {
            if world.next().is_none_or(|next| next > Time::ZERO + Span::from_secs(3600)) {
                break;
            }
            world.step();
        }
        prop_assert!(world.next().is_none_or(|next| next > Time::ZERO + Span::from_secs(3600)));
    }

    /// A peer that answers a sender with anything.
    #[test]
    fn any_answers_break_nothing(
        config in config(),
        answers in prop::collection::vec((forged(), 0u32..70_000, any::<bool>()), 1..200),
    ) {
        let options = Options {
            mss: Some(1460),
            window_scale: Some(3),
            sack_permitted: true,
            timestamps: Some(Timestamps::default()),
            ..Options::default()
        };
        let mut lone = Lone::open(config, ms(100), Segment { window: 65_535, options, ..Segment::default() });
        lone.connection.write(1 << 20);
        lone.poll();
        for (forged, acknowledged, waits) in answers {
            if waits && lone.connection.poll_timeout().is_some() {
                lone.wait();
            }
            let mut options = forged.options;
            options.timestamps = options.timestamps.or(Some(Timestamps::default()));
            let segment = Segment {
                sequence: initial(SERVER).plus(1).plus((forged.sequence % 3) as u32),
                flags: Flags(forged.flags | Flags::ACK.0),
                options,
                ..Lone::ack(acknowledged, forged.window)
            };
            let sent = lone.after(ms(forged.after), &segment);
            let end = lone.connection.written();
            prop_assert!(sent.iter().all(|s| s.payload.offset + u64::from(s.payload.len) <= end));
            prop_assert!(lone.connection.in_flight() <= end + 1);
        }
    }

    /// A SYN with any options, and the transfer that follows it.
    #[test]
    fn any_options_open_a_connection(options in options(), mss in any::<Option<u16>>(), scale in any::<Option<u8>>()) {
        let answer = Segment {
            window: 5000,
            options: Options { mss, window_scale: scale, ..options },
            ..Segment::default()
        };
        let mut lone = Lone::open(prompt(), ms(100), answer);
        lone.connection.write(10_000);
        let sent = lone.poll();
        prop_assert!(!sent.is_empty());
        let limit = usize::from(mss.unwrap_or(536).clamp(48, 1460));
        for segment in sent {
            prop_assert!(segment.payload.len > 0);
            prop_assert!(usize::from(segment.payload.len) + segment.header_len() - 20 <= limit);
        }
    }
}

fn sack(blocks: &[(u32, u32)]) -> Options {
    let mut sack = SackBlocks::default();
    for &(left, right) in blocks {
        sack.push(SackBlock { left: SequenceNumber(left), right: SequenceNumber(right) });
    }
    Options { sack, ..Options::default() }
}

/// Blocks that cannot be true say nothing: no octet counts as arrived, nothing is sent again.
#[test]
fn blocks_of_nonsense_are_not_believed() {
    let una = initial(CLIENT).plus(1).0;
    let nxt = una + 10_000;
    for recovery in [Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        let config = Config {
            mss: 1000,
            recovery,
            timestamps: None,
            initial_window: InitialWindow::Segments(10),
            ..prompt()
        };
        let options = Options { mss: Some(1000), sack_permitted: true, ..Options::default() };
        let mut lone = Lone::open(config, ms(100), Segment { window: 10_000, options, ..Segment::default() });
        lone.connection.write(50_000);
        assert_eq!(lone.poll().len(), 10);
        let window = lone.connection.congestion_window();
        for blocks in [
            // The left edge behind the right one, and equal to it.
            &[(una + 5000, una + 4000)][..],
            &[(una + 5000, una + 5000)],
            // Beyond the octets sent, wholly and by an octet.
            &[(nxt, nxt + 1000)],
            &[(nxt + 5000, nxt + 6000)],
            &[(una + 8000, nxt + 1)],
            // Half of the sequence space away.
            &[(una + (1 << 31), una + (1 << 31) + 1000)],
            &[(una + 1000, una + (1 << 31))],
            &[(una + (1 << 31), una + 1000)],
            // Below the acknowledged position, which reports a duplicate.
            &[(una - 1000, una)],
            &[(una - 1, una)],
        ] {
            for _ in 0..5 {
                let segment = Segment { options: sack(blocks), ..Lone::ack(0, 10_000) };
                assert_eq!(lone.after(ms(1), &segment), [], "{recovery:?} {blocks:?}");
            }
            let connection = &lone.connection;
            assert_eq!((connection.in_flight(), connection.congestion_window()), (10_000, window));
            assert_eq!((connection.stats().fast_recoveries, connection.stats().retransmits), (0, 0));
        }
    }
}

/// Acknowledgments of octets that were never sent change nothing (RFC 9293 section 3.10.7.4), nor do windows with them.
#[test]
fn acknowledgments_of_the_future_move_nothing() {
    let mut lone = Lone::open(
        Config { timestamps: None, ..prompt() },
        ms(100),
        Segment {
            window: 4000,
            options: Options { mss: Some(1000), ..Options::default() },
            ..Segment::default()
        },
    );
    lone.connection.write(50_000);
    assert_eq!(lone.poll().len(), 4);
    for beyond in [1, 1000, 1 << 20, 1 << 30, (1 << 31) - 4001] {
        let answers = lone.after(ms(200), &Lone::ack(4000 + beyond, 65_535));
        assert!(answers.iter().all(|answer| answer.payload.len == 0), "{beyond}");
        assert_eq!((lone.connection.acknowledged(), lone.connection.in_flight()), (0, 4000));
    }
}

/// A window that opens and closes with every acknowledgment: no more is ever in flight than it allowed last.
#[test]
fn a_window_that_flaps() {
    let answer = Segment {
        window: 65_535,
        options: Options { mss: Some(1000), ..Options::default() },
        ..Segment::default()
    };
    let mut lone = Lone::open(Config { timestamps: None, ..prompt() }, ms(100), answer);
    lone.connection.write(1 << 20);
    lone.poll();
    let mut acknowledged = 0;
    for round in 0..200u32 {
        let edge = lone.connection.acknowledged() + lone.connection.in_flight();
        let window = if round % 2 == 0 { 0 } else { 65_535 };
        acknowledged = if round % 3 == 0 { edge as u32 } else { acknowledged };
        let sent = lone.after(ms(10), &Lone::ack(acknowledged, window));
        let new = sent.iter().any(|segment| segment.payload.offset >= edge && segment.payload.len > 0);
        assert!(!new || window > 0, "round {round}");
    }
    assert!(!lone.events.contains(&Event::Closed));
}
