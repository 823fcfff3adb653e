//! Completion of a receiver, and the fate of missing symbols.

use std::collections::BTreeSet;

use farcast_core::random::RandomStream;
use farcast_core::{Arrival, Bitmap, Engine as _, Run, Span, Time};
use farcast_delivery::{Answer, ObjectId, Outcome};
use farcast_oneway::{
    Description, Duration, Kind, Message, Receiver, ReceiverConfig, ReceiverEvent, SenderConfig, Shape,
    Symbols,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, described, everything, group, kept, ms, own, sender, server, symbol};

const OBJECT: ObjectId = ObjectId::FIRST;

#[test]
fn without_loss_nothing_is_rebuilt() {
    for (segments, block) in [(1, 70), (70, 70), (1000, 128)] {
        let session =
            Session::new("clean", Setup::plain(1), sender(segments, block), 2, Link::clean(ms(10))).run();
        for client in &session.clients {
            assert!(client.completed().is_some());
            assert_eq!(kept(client), (segments, 0, 0));
        }
    }
}

#[test]
fn any_symbols_do_as_many_as_the_block_has_segments() {
    let mut random = RandomStream::derive(3, &[]);
    for round in 0..60 {
        let shape = sender(1 + random.below(700) as u32, 64 + random.below(200) as u32).shape;
        let geometry = *shape.geometry();
        let mut engine = receiver(&shape);
        // All symbols, in random order, some of them twice.
        let mut all = Vec::new();
        for block in 0..geometry.blocks() {
            all.extend((0..geometry.block_len(block)).map(|n| (block, Kind::Source, n)));
            all.extend((0..shape.parity()).map(|n| (block, Kind::Parity, n)));
        }
        let twice: Vec<_> = all.iter().copied().filter(|_| random.chance(0.2)).collect();
        all.extend(twice);
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at as u64 + 1) as usize);
        }
        // The expected events, from an independent count.
        let mut came = vec![BTreeSet::new(); geometry.blocks() as usize];
        let mut done = BTreeSet::new();
        for (block, kind, n) in all {
            let of = &mut came[block as usize];
            of.insert((kind == Kind::Parity, n));
            let enough = of.len() as u32 >= geometry.block_len(block);
            let parity = of.iter().any(|&(parity, _)| parity);
            let _ = engine.handle(Time::ZERO, &from(), &symbol(&shape, kind, block, n));
            let (mut decoded, mut complete) = (None, false);
            while let Some(event) = engine.poll_event() {
                own(&mut engine, Time::ZERO, &event);
                match event {
                    ReceiverEvent::Decode { block, .. } => decoded = Some(block),
                    ReceiverEvent::Complete(_) => complete = true,
                    _ => {}
                }
            }
            let fresh = enough && done.insert(block);
            assert_eq!(decoded, (fresh && parity).then_some(block), "round {round}");
            assert_eq!(complete, fresh && done.len() == came.len(), "round {round}");
            if complete {
                break;
            }
        }
        assert!(!engine.is_busy(), "round {round}");
    }
}

/// Returns the ratio of symbols needed to segments, for a receiver that comes at `late` into two rounds with this loss.
fn needed(late: Span, loss: f64, seed: u64) -> f64 {
    let segments = 4000;
    let config = SenderConfig { duration: Duration::Rounds(2), ..sender(segments, 1000) };
    let mut session = Session::new("late", Setup::plain(seed), config, 1, Link::lossy(ms(10), loss));
    let client = session.clients[0].clone();
    session.net.vanish(Time::ZERO, client.handle);
    session.net.appear(Time::ZERO + late, client.handle);
    let session = session.run();
    assert!(client.completed().is_some());
    let heard = session.net.engine(client.handle).heard(OBJECT);
    heard as f64 / f64::from(segments)
}

#[test]
fn whenever_it_comes_it_needs_about_as_many_symbols_as_there_are_segments() {
    for late in [0, 700, 2000, 3500] {
        for (loss, most) in [(0.0, 1.01), (0.02, 1.02), (0.08, 1.03)] {
            let needed = needed(ms(late), loss, 5);
            assert!(needed <= most, "{late} ms late, {loss} lost: {needed}");
        }
    }
}

#[test]
fn a_burst_of_losses_is_made_good_in_the_same_round() {
    // 50 ms of every second are lost: ten bursts in 12.5 MB at 10 Mbit/s.
    let config = sender(12_500, 1300);
    let mut session = Session::new("bursts", Setup::plain(1), config, 1, Link::clean(ms(10)));
    session.net.drop_if(|leg| leg.at.as_nanos() % 1_000_000_000 < 50_000_000);
    let client = session.clients[0].clone();
    let session = session.run();
    assert!(client.completed().is_some());
    let (segments, parity, blocks) = kept(&client);
    assert_eq!((segments + parity, blocks), (12_500, 10), "every block was hit and rebuilt");
    drop(session);
}

/// Returns the source of symbols.
fn from() -> Arrival {
    Arrival::new(server(), group())
}

/// Returns the description of an object of this shape, by a sender that continues for long.
fn description(shape: &Shape, over: bool) -> Message {
    ending(shape, over, u32::MAX)
}

/// Returns the description by a sender that ends after `left_ms` milliseconds.
fn ending(shape: &Shape, over: bool, left_ms: u32) -> Message {
    let config = SenderConfig { shape: *shape, ..sender(1, 1) };
    let (_, first) = described(&everything(config)).remove(0);
    Message::Description(Description { over, left_ms, ..first })
}

/// Creates a receiver that takes an object of this shape.
fn receiver(shape: &Shape) -> Receiver {
    let mut engine = Receiver::new(ReceiverConfig::default());
    engine.handle(Time::ZERO, &from(), &description(shape, false)).expect("news");
    settle(&mut engine, Time::ZERO);
    engine
}

/// Answers all events, and returns them.
fn settle(engine: &mut Receiver, now: Time) -> Vec<ReceiverEvent> {
    let mut told = Vec::new();
    while let Some(event) = engine.poll_event() {
        own(engine, now, &event);
        told.push(event);
    }
    told
}

/// Lets the receiver hear source symbols of block 0.
fn hear(engine: &mut Receiver, shape: &Shape, symbols: impl IntoIterator<Item = u32>) {
    for n in symbols {
        engine.handle(Time::ZERO, &from(), &symbol(shape, Kind::Source, 0, n)).expect("new");
    }
}

#[test]
fn what_it_lacks_at_the_end_it_keeps_for_another_time() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 0..60);
    engine.handle(Time::ZERO, &from(), &description(&shape, true)).expect("news");
    let told = settle(&mut engine, Time::ZERO);
    assert_eq!(told.last(), Some(&ReceiverEvent::Ended(OBJECT, Outcome::Missed)));
    assert_eq!(engine.received(OBJECT).segments, 60);
    // The end is announced again and ignored.
    assert!(engine.handle(Time::ZERO, &from(), &description(&shape, true)).is_err());
    // At a later time, its owner has kept the segments, and parity besides.
    engine.handle(Time::ZERO, &from(), &description(&shape, false)).expect("news");
    let Some(ReceiverEvent::Offered(offer)) = engine.poll_event() else { panic!("not offered again") };
    let mut held = Bitmap::new(100);
    held.insert_run(Run::new(0, 60).expect("a run"));
    engine.answer(Time::ZERO, offer.object, Answer::Open(held));
    let mut parity = Bitmap::new(shape.parity());
    parity.insert_run(Run::new(0, 39).expect("a run"));
    engine.kept(offer.object, 0, &parity);
    assert_eq!(engine.poll_event(), None);
    // Kept symbols are not taken again.
    assert!(engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 0, 38)).is_err());
    engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 0, 40)).expect("new");
    let told = settle(&mut engine, Time::ZERO);
    assert_eq!(told.last(), Some(&ReceiverEvent::Ended(offer.object, Outcome::Complete(Time::ZERO))));
}

#[test]
fn the_end_waits_for_what_is_being_rebuilt() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 1..100);
    engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 0, 7)).expect("new");
    engine.handle(Time::ZERO, &from(), &description(&shape, true)).expect("news");
    let mut told: Vec<_> = std::iter::from_fn(|| engine.poll_event()).collect();
    assert_eq!(told.pop(), Some(ReceiverEvent::Decode { object: OBJECT, block: 0 }));
    // Silence does not end the reception either.
    engine.handle_timeout(Time::ZERO + Span::from_secs(3600));
    assert!(engine.is_busy() && engine.poll_timeout().is_none());
    engine.answer(Time::ZERO, OBJECT, Answer::Decoded { block: 0, rebuilt: true });
    let told = settle(&mut engine, Time::ZERO);
    assert!(matches!(told.last(), Some(ReceiverEvent::Ended(_, Outcome::Complete(_)))), "{told:?}");
    // The object is not wanted again.
    assert!(engine.handle(Time::ZERO, &from(), &description(&shape, false)).is_err());
}

#[test]
fn of_a_run_only_what_is_new_is_stored_and_counts() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    let mut hear = |kind, first, count| {
        let Message::Symbols(one) = symbol(&shape, kind, 0, 0) else { panic!("a symbol") };
        let run = Run::new(first, count).expect("a run");
        engine.handle(Time::ZERO, &from(), &Message::Symbols(Symbols { run, ..one })).expect("new");
        let told = settle(&mut engine, Time::ZERO);
        let stored = told.iter().map(|event| match *event {
            ReceiverEvent::Store { segments, offset, .. } => (segments.first(), segments.count(), offset),
            ReceiverEvent::Parity { symbols, offset, .. } => (symbols.first(), symbols.count(), offset),
            _ => panic!("{event:?}"),
        });
        stored.collect::<Vec<_>>()
    };
    for kind in [Kind::Source, Kind::Parity] {
        assert_eq!(hear(kind, 10, 3), [(10, 3, 0)]);
        assert_eq!(hear(kind, 20, 1), [(20, 1, 0)]);
        assert_eq!(hear(kind, 8, 15), [(8, 2, 0), (13, 7, 5), (21, 2, 13)]);
    }
    let received = engine.received(OBJECT);
    assert_eq!((received.segments, received.parity, received.duplicates), (15, 15, 8));
    assert_eq!((engine.heard(OBJECT), engine.symbols(OBJECT)), (38, Some((30, 100))));
}

#[test]
fn what_could_not_be_rebuilt_takes_other_symbols() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 2..100);
    for n in 0..2 {
        engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 0, n)).expect("new");
    }
    while engine.poll_event().is_some() {}
    engine.answer(Time::ZERO, OBJECT, Answer::Decoded { block: 0, rebuilt: false });
    assert_eq!(engine.poll_event(), None);
    for n in 1..3 {
        engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 0, n)).expect("new again");
    }
    let told = settle(&mut engine, Time::ZERO);
    assert!(matches!(told.last(), Some(ReceiverEvent::Ended(_, Outcome::Complete(_)))), "{told:?}");
}

#[test]
fn what_was_damaged_comes_again() {
    let shape = sender(200, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 0..100);
    for n in 0..100 {
        engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Source, 1, n)).expect("new");
    }
    let told: Vec<_> = std::iter::from_fn(|| engine.poll_event()).collect();
    assert_eq!(told.last(), Some(&ReceiverEvent::Complete(OBJECT)));
    engine.answer(Time::ZERO, OBJECT, Answer::Lost(Run::new(150, 10).expect("a run")));
    // The answer to the earlier request must not count.
    engine.answer(Time::ZERO, OBJECT, Answer::Verified);
    assert!(engine.is_busy());
    for n in 0..10 {
        engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 1, n)).expect("new");
    }
    let told = settle(&mut engine, Time::ZERO);
    assert!(matches!(told.last(), Some(ReceiverEvent::Ended(_, Outcome::Complete(_)))), "{told:?}");
}

#[test]
fn what_was_kept_of_a_damaged_block_goes_with_it() {
    let shape = sender(200, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 0..50);
    for block in 0..2 {
        for n in 0..10 {
            engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, block, n)).expect("new");
        }
    }
    settle(&mut engine, Time::ZERO);
    assert_eq!(engine.symbols(OBJECT), Some((70, 200)));
    engine.answer(Time::ZERO, OBJECT, Answer::Lost(Run::new(10, 2).expect("a run")));
    assert_eq!(
        engine.symbols(OBJECT),
        Some((58, 200)),
        "its parity may be wrong, too; the other block's is not"
    );
}

#[test]
fn a_block_that_was_found_wrong_while_it_was_rebuilt_is_not_there() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 1..100);
    engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 0, 7)).expect("new");
    let asked = std::iter::from_fn(|| engine.poll_event()).last();
    assert_eq!(asked, Some(ReceiverEvent::Decode { object: OBJECT, block: 0 }));
    engine.answer(Time::ZERO, OBJECT, Answer::Lost(Run::one(5)));
    engine.answer(Time::ZERO, OBJECT, Answer::Decoded { block: 0, rebuilt: true });
    assert_eq!(engine.poll_event(), None);
    assert_eq!(engine.symbols(OBJECT), Some((98, 100)));
}

#[test]
fn a_sender_that_falls_silent_is_waited_for_and_then_put_aside() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    let later = Time::ZERO + Span::from_secs(59);
    engine.handle(later, &from(), &symbol(&shape, Kind::Source, 0, 0)).expect("new");
    while engine.poll_event().is_some() {}
    let due = engine.poll_timeout().expect("a timer").at;
    assert_eq!(due, later + Span::from_secs(60));
    // A rejected message is no sign of the sender.
    let _ = engine.handle(due - ms(1), &from(), &symbol(&shape, Kind::Source, 0, 0));
    engine.handle_timeout(due - ms(1));
    assert_eq!(engine.poll_event(), None);
    engine.handle_timeout(due);
    assert_eq!(engine.poll_event(), Some(ReceiverEvent::Ended(OBJECT, Outcome::Lost)));
    engine.handle(due, &from(), &description(&shape, false)).expect("it is back");
    assert!(matches!(engine.poll_event(), Some(ReceiverEvent::Offered(_))));
}

#[test]
fn a_sender_whose_end_was_lost_is_put_aside_soon_after_it() {
    let shape = sender(100, 100).shape;
    let at = |millis| Time::ZERO + ms(millis);
    let mut engine = receiver(&shape);
    let due = |engine: &Receiver| engine.poll_timeout().expect("a timer").at;
    // The sender announces its end in ten seconds: the receiver waits through an outage until then, and two seconds
    // more.
    engine.handle(at(1000), &from(), &ending(&shape, false, 10_000)).expect("news");
    assert_eq!(due(&engine), at(13_000));
    // The sender is late, but present.
    engine.handle(at(12_500), &from(), &symbol(&shape, Kind::Source, 0, 0)).expect("new");
    assert_eq!(due(&engine), at(14_500));
    // The sender continues longer than announced.
    engine.handle(at(14_000), &from(), &ending(&shape, false, 5000)).expect("news");
    assert_eq!(due(&engine), at(21_000));
    while engine.poll_event().is_some() {}
    engine.handle_timeout(at(20_999));
    assert_eq!(engine.poll_event(), None);
    engine.handle_timeout(at(21_000));
    assert_eq!(engine.poll_event(), Some(ReceiverEvent::Ended(OBJECT, Outcome::Missed)));
    // The sender had stalled, and continues.
    engine.handle(at(30_000), &from(), &ending(&shape, false, 1000)).expect("it is back");
    let Some(ReceiverEvent::Offered(offer)) = engine.poll_event() else { panic!("not offered again") };
    // The receiver never waits longer than the configured silence.
    engine.answer(at(30_000), offer.object, Answer::Open(Bitmap::new(0)));
    engine.handle(at(30_000), &from(), &ending(&shape, false, 600_000)).expect("news");
    assert_eq!(due(&engine), at(90_000));
}

#[test]
fn where_descriptions_take_long_the_end_is_believed_later() {
    let shape = sender(100, 100).shape;
    let mut engine = Receiver::new(ReceiverConfig { silence: Span::MAX, ..ReceiverConfig::default() });
    let Message::Description(slow) = ending(&shape, false, 1000) else { panic!("a description") };
    let slow = Description { rate_kbps: 8, ..slow };
    engine.handle(Time::ZERO, &from(), &Message::Description(slow)).expect("news");
    settle(&mut engine, Time::ZERO);
    // A description of 116 octets takes 116 ms and a 500th of the rate, so they are 58 s apart; the receiver waits for
    // four.
    let due = engine.poll_timeout().expect("a timer").at;
    assert_eq!(due, Time::ZERO + Span::from_secs(1) + ms(116 * 500 * 4));
}

#[test]
fn every_receiver_of_a_session_whose_end_was_lost_ends_with_it() {
    // One of three receivers hears nothing of the end, and lacks a few symbols.
    let config = sender(300, 128);
    let mut session = Session::new("end", Setup::plain(1), config, 1, Link::clean(ms(10)));
    session.net.drop_if(|leg| leg.at.as_nanos() > 200_000_000);
    let client = session.clients[0].clone();
    drop(session.run());
    let told = client.told.borrow();
    let (at, last) = told.last().expect("told");
    assert_eq!(last, &ReceiverEvent::Ended(OBJECT, Outcome::Missed));
    // The end is 330 symbols of 1,040 octets at 10 Mbit/s, a tenth more, and two seconds.
    let end = Time::ZERO + ms(10) + ms(330 * 1040 * 8 / 10_000 * 11 / 10) + Span::from_secs(2);
    assert!(*at >= end && *at < end + ms(50), "{at:?} for {end:?}");
}

#[test]
fn what_comes_before_its_owner_has_looked_is_stored() {
    let shape = sender(100, 100).shape;
    let mut engine = Receiver::new(ReceiverConfig::default());
    engine.handle(Time::ZERO, &from(), &description(&shape, false)).expect("news");
    hear(&mut engine, &shape, 0..10);
    let told: Vec<_> = std::iter::from_fn(|| engine.poll_event()).collect();
    let stored = told.iter().filter(|event| matches!(event, ReceiverEvent::Store { .. })).count();
    assert_eq!(stored, 10);
    // Three of them were stored before.
    let mut held = Bitmap::new(100);
    held.insert_run(Run::new(7, 20).expect("a run"));
    engine.answer(Time::ZERO, OBJECT, Answer::Open(held));
    let received = engine.received(OBJECT);
    assert_eq!((received.segments, received.duplicates), (7, 3));
    assert_eq!(engine.have(OBJECT).map(Bitmap::count), Some(27));
    // The whole object comes before the owner has answered.
    let mut engine = Receiver::new(ReceiverConfig::default());
    engine.handle(Time::ZERO, &from(), &description(&shape, false)).expect("news");
    hear(&mut engine, &shape, 0..100);
    assert!(
        std::iter::from_fn(|| engine.poll_event()).all(|event| !matches!(event, ReceiverEvent::Complete(_)))
    );
    engine.answer(Time::ZERO, OBJECT, Answer::Open(Bitmap::new(100)));
    assert_eq!(engine.poll_event(), Some(ReceiverEvent::Complete(OBJECT)));
}

#[test]
fn parity_that_comes_before_what_is_kept_is_known_is_not_forgotten() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 0..90);
    for n in 0..5 {
        engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Parity, 0, n)).expect("new");
    }
    settle(&mut engine, Time::ZERO);
    let mut kept = Bitmap::new(shape.parity());
    kept.insert_run(Run::new(4, 6).expect("a run"));
    engine.kept(OBJECT, 0, &kept);
    let told = settle(&mut engine, Time::ZERO);
    assert!(matches!(told.last(), Some(ReceiverEvent::Ended(_, Outcome::Complete(_)))), "{told:?}");
}

#[test]
fn a_sender_that_starts_again_is_gone_on_with() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    hear(&mut engine, &shape, 0..99);
    let Message::Description(mut again) = description(&shape, false) else { panic!("a description") };
    again.session = 2;
    let elsewhere = Arrival::new("192.0.2.9:1".parse().expect("address"), group());
    let again = Message::Description(again);
    assert!(engine.handle(Time::ZERO + ms(1500), &elsewhere, &again).is_err(), "the first is still there");
    engine.handle(Time::ZERO + ms(2500), &elsewhere, &again).expect("it has gone");
    settle(&mut engine, Time::ZERO);
    let Message::Symbols(mut last) = symbol(&shape, Kind::Source, 0, 99) else { panic!("a symbol") };
    assert!(engine.handle(Time::ZERO, &from(), &Message::Symbols(last)).is_err(), "the first is passed over");
    last.session = 2;
    engine.handle(Time::ZERO, &elsewhere, &Message::Symbols(last)).expect("new");
    let told = settle(&mut engine, Time::ZERO);
    assert!(matches!(told.last(), Some(ReceiverEvent::Ended(_, Outcome::Complete(_)))), "{told:?}");
}
