//! Resets, and segments that would break a connection (RFC 9293 section 3.10.7, RFC 5961).

use farcast_core::Span;
use farcast_core::engine::Reject;
use farcast_tcp::{Config, Event, Failure, Flags, Payload, ReceiveWindow, Segment, State, Window};

use crate::common::{CLIENT, SERVER, World, address, initial, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);
const WINDOW: u32 = 50_000;

/// Open, and 1000 octets each way are acknowledged.
fn open() -> World {
    let size = Window::Octets(WINDOW.into());
    let config = Config {
        receive_window: ReceiveWindow { size, first: None },
        window_scaling: false,
        timestamps: None,
        ..prompt()
    };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 100_000);
    world.write(CLIENT, 1000);
    world.write(SERVER, 1000);
    world.run();
    world.sent.clear();
    world
}

/// A segment for the server, `from_next` beyond the position that the server expects next.
fn forged(flags: Flags, from_next: i64, acknowledges: i64) -> Segment {
    Segment {
        source_port: address(CLIENT).port(),
        destination_port: address(SERVER).port(),
        sequence: initial(CLIENT).plus(1001).plus(from_next as u32),
        acknowledgment: initial(SERVER).plus(1001).plus(acknowledges as u32),
        flags,
        window: 50_000,
        ..Segment::default()
    }
}

/// Returns the segments that the server sends right away.
fn answers(world: &World) -> Vec<Segment> {
    world.sent.iter().filter(|sent| sent.from == SERVER && sent.at == world.now).map(|s| s.segment).collect()
}

fn is_challenge(segment: &Segment) -> bool {
    segment.flags == Flags::ACK
        && segment.payload.len == 0
        && segment.sequence == initial(SERVER).plus(1001)
        && segment.acknowledgment == initial(CLIENT).plus(1001)
}

/// RFC 5961 section 3.2: exactly the next number resets; within the window is challenged; outside is passed over.
#[test]
fn only_the_exact_number_resets() {
    for flags in [Flags::RST, Flags::RST.with(Flags::ACK)] {
        for from_next in [1, 2, 1000, i64::from(WINDOW) - 1] {
            let mut world = open();
            assert!(world.hand(SERVER, &forged(flags, from_next, 0), &[]).is_err());
            assert_eq!(world.states()[SERVER], State::Established);
            let answers = answers(&world);
            assert!(answers.len() == 1 && is_challenge(&answers[0]), "{from_next}");
        }
        for from_next in [-1, -1000, i64::from(WINDOW) + 1, 1 << 31, -(1 << 30)] {
            let mut world = open();
            assert!(world.hand(SERVER, &forged(flags, from_next, 0), &[]).is_err());
            assert_eq!(
                (world.states()[SERVER], answers(&world)),
                (State::Established, vec![]),
                "{from_next}"
            );
        }
        let mut world = open();
        assert_eq!(world.hand(SERVER, &forged(flags, 0, 0), &[]), Ok(()));
        assert_eq!((world.states()[SERVER], answers(&world)), (State::Closed, vec![]));
        assert!(world.server().heard(Event::Failed(Failure::Reset)));
    }
}

/// RFC 5961 section 4.2: a SYN is challenged wherever it lies; the peer that really started anew answers that with a
/// reset.
#[test]
fn a_syn_is_challenged() {
    for from_next in [0, 1, 1000, -1, -5000, i64::from(WINDOW) + 5000, 1 << 31] {
        for flags in [Flags::SYN, Flags::SYN.with(Flags::ACK)] {
            let mut world = open();
            assert!(world.hand(SERVER, &forged(flags, from_next, 0), &[]).is_err());
            let answers = answers(&world);
            assert!(answers.len() == 1 && is_challenge(&answers[0]), "{from_next} {flags:?}");
            assert_eq!(world.states(), [State::Established; 2]);
        }
    }
}

/// RFC 5961 section 7: not more than ten challenges in a second.
#[test]
fn challenges_are_limited() {
    let mut world = open();
    world.now += ms(5000);
    for _ in 0..100 {
        let _ = world.hand(SERVER, &forged(Flags::SYN, 500, 0), &[]);
    }
    assert_eq!(answers(&world).len(), 10);
    world.now += ms(999);
    let _ = world.hand(SERVER, &forged(Flags::SYN, 500, 0), &[]);
    assert_eq!(answers(&world).len(), 0);
    world.now += ms(1);
    let _ = world.hand(SERVER, &forged(Flags::SYN, 500, 0), &[]);
    assert_eq!(answers(&world).len(), 1);
}

/// RFC 5961 section 5.2: an acknowledgment must not be of octets that were never sent, nor older than the largest
/// window; its data are not taken either.
#[test]
fn blind_acknowledgments_are_turned_down() {
    for (acknowledges, taken) in [
        (0, true),
        (-1, true),
        (-1001, true),
        (1, false),
        (1 << 31, false),
        (-i64::from(WINDOW) - 5000, false),
        (-(1 << 30), false),
    ] {
        let mut world = open();
        let segment =
            Segment { payload: Payload { offset: 0, len: 10 }, ..forged(Flags::ACK, 0, acknowledges) };
        let octets = world.ends[CLIENT].stream[1000..1010].to_vec();
        let result = world.hand(SERVER, &segment, &octets);
        assert_eq!(result.is_ok(), taken, "{acknowledges}");
        assert_eq!(world.ends[SERVER].connection.received(), if taken { 1010 } else { 1000 });
        if !taken {
            assert!(answers(&world).len() == 1 && is_challenge(&answers(&world)[0]));
        }
    }
}

/// A segment without ACK, or outside the window, brings nothing; the latter is answered (RFC 9293 section 3.10.7.4).
#[test]
fn what_lies_outside_the_window_is_answered_and_dropped() {
    for (from_next, len, answered) in
        [(i64::from(WINDOW), 1, true), (i64::from(WINDOW) + 1, 0, true), (1 << 30, 5, true)]
    {
        let mut world = open();
        let segment = Segment { payload: Payload { offset: 0, len }, ..forged(Flags::ACK, from_next, 0) };
        assert!(world.hand(SERVER, &segment, &vec![0; len.into()]).is_err());
        assert_eq!(!answers(&world).is_empty(), answered);
        assert_eq!(world.ends[SERVER].connection.received(), 1000);
    }
    let mut world = open();
    let segment = Segment { payload: Payload { offset: 0, len: 5 }, ..forged(Flags::default(), 0, 0) };
    assert!(world.hand(SERVER, &segment, &[0; 5]).is_err());
    assert_eq!(world.ends[SERVER].connection.received(), 1000);
}

#[test]
fn another_port_or_host_is_another_session() {
    let mut world = open();
    let wrong = Segment { source_port: 1, ..forged(Flags::RST, 0, 0) };
    assert_eq!(world.hand(SERVER, &wrong, &[]), Err(Reject::OtherSession));
    let wrong = Segment { destination_port: 1, ..forged(Flags::RST, 0, 0) };
    assert_eq!(world.hand(SERVER, &wrong, &[]), Err(Reject::OtherSession));
    assert_eq!(world.states(), [State::Established; 2]);
}

/// An owner that aborts tells the peer, whose connection ends at once (RFC 9293 section 3.10.5).
#[test]
fn an_abort_resets_the_peer() {
    for (written, consumed) in [(0, true), (50_000, true), (90_000, false)] {
        let mut world = open();
        world.server().consumes = consumed;
        world.write(CLIENT, written);
        world.run_until(world.now + ms(1000));
        world.abort(CLIENT);
        let reset = world.sent.last().expect("a reset").segment;
        assert!(reset.flags.has(Flags::RST));
        assert!(world.client().heard(Event::Failed(Failure::Aborted)));
        world.run_until(world.now + ms(50));
        assert_eq!(world.states(), [State::Closed; 2], "{written}");
        assert!(world.server().heard(Event::Failed(Failure::Reset)));
        assert_eq!(world.next(), None);
    }
}
