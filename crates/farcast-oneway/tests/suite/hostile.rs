//! Messages from attackers and broken peers.

use std::net::SocketAddr;

use farcast_core::engine::Reject;
use farcast_core::random::RandomStream;
use farcast_core::{Arrival, Engine as _, Time};
use farcast_delivery::{ObjectId, Outcome};
use farcast_oneway::{
    Duration, Kind, Message, Receiver, ReceiverConfig, ReceiverEvent, SenderConfig, Symbols,
};
use farcast_testkit::laws;

use crate::common::{damage, described, everything, group, own, sender, server, symbol, symbols};

fn from(n: u8) -> Arrival {
    Arrival::new(SocketAddr::from(([192, 0, 2, n], 40_000)), group())
}

/// Returns the messages of a session, half of them also damaged, from any source.
fn conversation(seed: u64) -> Vec<(Time, Arrival, Message)> {
    let mut random = RandomStream::derive(seed, &[1]);
    let mut said = Vec::new();
    let config = SenderConfig { duration: Duration::Rounds(2), ..sender(200, 70) };
    for (at, message) in everything(config) {
        if random.chance(0.5) {
            let source = if random.chance(0.5) { Arrival::new(server(), group()) } else { from(9) };
            said.extend((0..3).filter_map(|_| damage(&message, &mut random)).map(|m| (at, source, m)));
        }
        if random.chance(0.7) {
            said.push((at, Arrival::new(server(), group()), message));
        }
    }
    said
}

/// Creates a receiver whose owner has opened the object of the conversation.
fn listening() -> Receiver {
    let mut engine = Receiver::new(ReceiverConfig { segments: 10_000, ..ReceiverConfig::default() });
    let (_, first) = described(&everything(sender(200, 70))).remove(0);
    let from = Arrival::new(server(), group());
    engine.handle(Time::ZERO, &from, &Message::Description(first)).expect("news");
    let event = engine.poll_event().expect("offered");
    own(&mut engine, Time::ZERO, &event);
    engine
}

#[test]
fn what_is_turned_down_leaves_no_trace() {
    for seed in 0..10 {
        let trace = |engine: &Receiver| {
            let object = ObjectId::FIRST;
            format!("{:?} {:?} {}", engine.have(object), engine.symbols(object), engine.is_busy())
        };
        let context = format!("[seed {seed}]");
        let looked =
            laws::rejects_without_trace(&context, &mut listening(), conversation(seed), trace, |_, _| false);
        assert!(looked > 20, "{looked}");
    }
}

#[test]
fn a_receiver_takes_part_in_so_many_at_once_and_the_last_take_the_place_of_the_first() {
    let mut engine = Receiver::new(ReceiverConfig::default());
    let (_, first) = described(&everything(sender(100, 100))).remove(0);
    let (mut open, mut most) = (0, 0);
    for n in 0..1000u32 {
        let mut other = first.clone();
        other.id[..4].copy_from_slice(&n.to_be_bytes());
        engine.handle(Time::ZERO, &from(1), &Message::Description(other)).unwrap();
        while let Some(event) = engine.poll_event() {
            match event {
                ReceiverEvent::Offered(_) => open += 1,
                ReceiverEvent::Ended(_, outcome) => {
                    assert_eq!(outcome, Outcome::Lost);
                    open -= 1;
                }
                _ => {}
            }
        }
        most = most.max(open);
    }
    assert_eq!((open, most, engine.is_busy()), (32, 32, false));
}

/// An object with content keeps its place, however many others are described. Once no content comes any more, a new
/// object takes its place.
#[test]
fn what_is_only_described_takes_no_place_from_what_is_sent() {
    let mut engine = Receiver::new(ReceiverConfig::default());
    let sent = everything(sender(100, 100));
    let (_, first) = described(&sent).remove(0);
    let of = |n: u32| {
        let mut other = first.clone();
        (other.session, other.id[0]) = (n, n as u8);
        other.id[1..5].copy_from_slice(&n.to_be_bytes());
        Message::Description(other)
    };
    let (_, first_symbols) = symbols(&sent)[0];
    let content = |n: u32| Message::Symbols(Symbols { session: n, ..first_symbols });
    for n in 0..32 {
        engine.handle(Time::ZERO, &from(1), &of(n)).unwrap();
        engine.handle(Time::ZERO, &from(1), &content(n)).unwrap();
    }
    let soon = Time::ZERO + farcast_core::Span::from_millis(900);
    assert_eq!(engine.handle(soon, &from(2), &of(99)), Err(Reject::Limit), "all 32 are being sent");
    let later = Time::ZERO + farcast_core::Span::from_secs(1);
    for n in 1000..2000 {
        engine.handle(later, &from(2), &of(n)).unwrap();
    }
    let mut lost = 0;
    while let Some(event) = engine.poll_event() {
        lost += usize::from(matches!(event, ReceiverEvent::Ended(object, _) if object.get() < 32));
    }
    assert_eq!(lost, 1, "they have one place among them");
    engine.handle(later, &from(2), &of(99)).unwrap();
    engine.handle(later, &from(2), &content(99)).unwrap();
}

#[test]
fn claims_that_cost_memory_are_turned_down() {
    let (_, first) = described(&everything(sender(100, 100))).remove(0);
    let told = |change: &dyn Fn(&mut farcast_oneway::Description)| {
        let mut engine = Receiver::new(ReceiverConfig::default());
        let mut other = first.clone();
        change(&mut other);
        engine.handle(Time::ZERO, &from(1), &Message::Description(other))
    };
    assert_eq!(told(&|_| {}), Ok(()));
    assert_eq!(told(&|one| one.size = u64::MAX), Err(Reject::OutOfRange));
    assert_eq!(told(&|one| one.block = 32_769), Err(Reject::OutOfRange));
    assert_eq!(told(&|one| one.block = 1), Err(Reject::OutOfRange), "a hundred blocks");
    assert_eq!(told(&|one| (one.block, one.size) = (1, 1000)), Ok(()), "one");
    assert_eq!(told(&|one| one.parity = 256), Err(Reject::OutOfRange));
    assert_eq!(told(&|one| one.parity = 255), Ok(()));
    assert_eq!(told(&|one| one.over = true), Err(Reject::Duplicate));
}

#[test]
fn another_object_of_the_same_digest_is_turned_down() {
    let (_, first) = described(&everything(sender(100, 100))).remove(0);
    let mut engine = Receiver::new(ReceiverConfig::default());
    let mut told = |change: &dyn Fn(&mut farcast_oneway::Description)| {
        let mut other = first.clone();
        change(&mut other);
        engine.handle(Time::ZERO, &from(1), &Message::Description(other))
    };
    assert_eq!(told(&|_| {}), Ok(()));
    assert_eq!(told(&|one| one.size += 1), Err(Reject::Inconsistent));
    assert_eq!(told(&|one| one.segment += 2), Err(Reject::Inconsistent));
    assert_eq!(told(&|one| one.block -= 1), Err(Reject::Inconsistent));
    assert_eq!(told(&|one| one.parity -= 1), Err(Reject::Inconsistent));
    // A new session may not change the object either.
    assert_eq!(told(&|one| (one.session, one.size) = (2, one.size + 1)), Err(Reject::Inconsistent));
    assert_eq!(told(&|one| (one.rate_kbps, one.left_ms) = (1, 2)), Ok(()));
}

#[test]
fn symbols_that_the_object_does_not_have_are_turned_down() {
    let config = sender(129, 128);
    let shape = config.shape;
    let mut engine = Receiver::new(ReceiverConfig::default());
    let server = Arrival::new(server(), group());
    let (_, first) = described(&everything(config)).remove(0);
    let early = symbol(&shape, Kind::Source, 0, 0);
    assert_eq!(engine.handle(Time::ZERO, &server, &early), Err(Reject::Unexpected), "of what?");
    engine.handle(Time::ZERO, &server, &Message::Description(first)).expect("news");
    let parity = symbol(&shape, Kind::Parity, 0, 0);
    assert_eq!(engine.handle(Time::ZERO, &server, &parity), Err(Reject::Unexpected), "what of it is kept?");
    let event = engine.poll_event().expect("offered");
    own(&mut engine, Time::ZERO, &event);
    let mut hear = |from: &Arrival, change: &dyn Fn(&mut Symbols)| {
        let Message::Symbols(mut one) = early else { panic!("a symbol") };
        change(&mut one);
        engine.handle(Time::ZERO, from, &Message::Symbols(one))
    };
    let at = farcast_core::Run::one;
    assert_eq!(hear(&server, &|one| one.session = 2), Err(Reject::Unexpected));
    assert_eq!(hear(&from(9), &|_| {}), Err(Reject::Stranger));
    assert_eq!(hear(&server, &|one| one.block = 2), Err(Reject::OutOfRange));
    assert_eq!(hear(&server, &|one| one.block = u32::MAX), Err(Reject::OutOfRange));
    assert_eq!(hear(&server, &|one| one.run = at(65)), Err(Reject::OutOfRange));
    assert_eq!(hear(&server, &|one| (one.block, one.run) = (1, at(64))), Err(Reject::OutOfRange));
    assert_eq!(hear(&server, &|one| (one.kind, one.run) = (Kind::Parity, at(190))), Err(Reject::OutOfRange));
    assert_eq!(hear(&server, &|one| (one.len, one.last) = (999, 999)), Err(Reject::Inconsistent));
    assert_eq!(
        hear(&server, &|one| (one.block, one.run) = (1, at(63))),
        Err(Reject::Inconsistent),
        "it is short"
    );
    assert_eq!(hear(&server, &|_| {}), Ok(()));
    assert_eq!(hear(&server, &|_| {}), Err(Reject::Duplicate));
}

#[test]
fn a_receiver_stays_small() {
    for seed in 0..5 {
        let said = conversation(seed);
        let thrice = said.iter().chain(&said).chain(&said).cloned();
        let size = |engine: &Receiver| format!("{engine:?}").len();
        laws::stays_small(&format!("[seed {seed}]"), &mut listening(), thrice, size, 40_000);
    }
}
