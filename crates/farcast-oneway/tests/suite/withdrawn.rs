//! Files that are withdrawn while they are sent: everything else arrives, and no block mixes contents.

use std::cell::RefCell;
use std::rc::Rc;

use farcast_core::{Arrival, Bitmap, Engine as _, Run, Span, Time};
use farcast_delivery::{Answer, Gone, ObjectId, Outcome};
use farcast_oneway::{
    Duration, Kind, Message, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig, Shape, Withdrawn,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, described, everything, group, ms, sender, server, symbol};

const SEGMENTS: u32 = 1000;
/// Segments of the withdrawn file, which begins in block 2 and ends in block 3. The outer ones have octets of others.
const TOUCHED: (u32, u32) = (270, 230);
const WHY: &str = "\"d/f\" changed while it was being sent";

fn run(first: u32, count: u32) -> Run {
    Run::new(first, count).expect("a run")
}

fn gone() -> Gone {
    let (first, count) = TOUCHED;
    Gone { whole: Run::new(first + 1, count - 2), touched: run(first, count) }
}

/// Returns a sender of eight blocks of 125 segments; a round takes a second.
fn eight_blocks(rounds: u32) -> SenderConfig {
    SenderConfig { duration: Duration::Rounds(rounds), ..sender(SEGMENTS, 128) }
}

/// Returns what leaves if the file is withdrawn at `at`, with the times.
fn leaving(config: SenderConfig, at: Time) -> Vec<(Time, Message)> {
    let mut sender = Sender::new(config).expect("valid");
    sender.open(Time::ZERO);
    let (mut now, mut left, mut is_withdrawn) = (Time::ZERO, Vec::new(), false);
    loop {
        if now >= at && !std::mem::replace(&mut is_withdrawn, true) {
            sender.withdraw(&gone(), WHY);
        }
        while let Some(transmit) = sender.poll_transmit(now, now) {
            left.push((now, transmit.message));
        }
        match sender.poll_timeout() {
            Some(deadline) => now = deadline.at,
            None => return left,
        }
    }
}

#[test]
fn nothing_of_it_leaves_any_more_and_its_blocks_have_no_parity() {
    for rounds in [1, 3] {
        let at = Time::ZERO + ms(400);
        let left = leaving(eight_blocks(rounds), at);
        let geometry = *eight_blocks(rounds).shape.geometry();
        let (mut torn, mut others, mut told, mut described) = (0, 0, 0, 0);
        for (when, message) in &left {
            match message {
                Message::Symbols(symbols) if *when > at => {
                    let is_torn = (2..=3).contains(&symbols.block);
                    let segment = geometry.first_of(symbols.block) + symbols.run.first();
                    let is_gone = gone().whole.expect("some").contains(segment);
                    assert!(symbols.kind == Kind::Parity || !is_gone, "{segment} of {rounds} rounds");
                    match symbols.kind {
                        Kind::Parity if is_torn => panic!("parity of block {}", symbols.block),
                        Kind::Parity => others += 1,
                        Kind::Source => torn += u32::from(is_torn),
                    }
                }
                Message::Withdrawn(said) => {
                    assert_eq!((&said.gone[..], said.files, &said.why[..]), (&[gone()][..], 1, WHY));
                    assert!(*when >= at);
                    told += 1;
                }
                Message::Description(_) if *when >= at => {
                    described += 1;
                    assert!(told >= described, "each is preceded by the news");
                }
                _ => {}
            }
        }
        let first = left.iter().find(|(_, message)| matches!(message, Message::Withdrawn(_)));
        assert!(first.expect("told").0.since(at) < ms(2), "at once");
        assert!(others > 70 && torn > 0, "{others} {torn}");
    }
}

#[test]
fn what_has_left_for_the_last_time_is_not_withdrawn() {
    // A round is 1,000 source symbols, about 840 ms, and a tenth of parity.
    let late = leaving(eight_blocks(1), Time::ZERO + ms(940));
    let is_told =
        |left: &[(Time, Message)]| left.iter().any(|(_, said)| matches!(said, Message::Withdrawn(_)));
    assert!(!is_told(&late));
    assert_eq!(late.len(), everything(eight_blocks(1)).len());
    assert!(is_told(&leaving(eight_blocks(3), Time::ZERO + ms(940))), "later rounds send it again");
}

/// Adds a receiver whose owner stores segments and finds out at the end which it misses. Returns these.
fn add(session: &mut Session, n: u32) -> Rc<RefCell<Bitmap>> {
    let stored = Rc::new(RefCell::new(Bitmap::new(SEGMENTS)));
    let mine = Rc::clone(&stored);
    session.add_owned(n, ReceiverConfig::default(), move |engine: &mut Receiver, now, event| {
        let mut stored = mine.borrow_mut();
        match event {
            ReceiverEvent::Offered(offer) => {
                engine.answer(now, offer.object, Answer::Open(Bitmap::new(SEGMENTS)));
            }
            ReceiverEvent::Store { segments, .. } => {
                stored.insert_run(*segments);
            }
            ReceiverEvent::Decode { object, block } => {
                stored.insert_run(run(block * 125, 125));
                engine.answer(now, *object, Answer::Decoded { block: *block, rebuilt: true });
            }
            ReceiverEvent::Complete(object) => {
                let gaps: Vec<Run> = stored.iter_gaps().collect();
                if gaps.is_empty() {
                    engine.answer(now, *object, Answer::Verified);
                }
                for gap in gaps {
                    engine.answer(now, *object, Answer::Lost(gap));
                }
            }
            _ => {}
        }
    });
    stored
}

#[test]
fn receivers_get_all_else_and_end_by_themselves() {
    for (loss, rounds) in [(0.0, 1), (0.0, 3), (0.08, 3)] {
        let mut session =
            Session::empty("withdrawn", Setup::plain(5), eight_blocks(rounds), Link::lossy(ms(10), loss));
        session.net.at(Time::ZERO + ms(400), session.sender, |engine: &mut Sender, _| {
            engine.withdraw(&gone(), WHY);
        });
        let stored: Vec<_> = (0..20).map(|n| add(&mut session, n)).collect();
        let session = session.run();
        for (client, stored) in session.clients.iter().zip(stored) {
            let whole = gone().whole.expect("some");
            let missing: Vec<u32> = stored.borrow().iter_gaps().flat_map(Run::segments).collect();
            assert!(missing.iter().all(|&segment| whole.contains(segment)), "{loss}, {rounds}: {missing:?}");
            assert!(missing.len() > 50, "{loss}, {rounds}: some of it was still to come");
            let ended = client.pick(|event| match event {
                ReceiverEvent::Withdrawn { outcome, why, .. } => Some((*outcome, why.clone())),
                _ => None,
            });
            assert_eq!(ended, [(Outcome::SourceChanged, WHY.to_owned())], "{loss}, {rounds}");
            let at = client
                .told
                .borrow()
                .iter()
                .find_map(|(at, event)| matches!(event, ReceiverEvent::Withdrawn { .. }).then_some(*at));
            let over = session.told.borrow().last().expect("an end").0;
            assert!(at < Some(over), "{loss}, {rounds}: it waits for the end");
        }
    }
}

/// With a single round, what a receiver lost of other files in the same blocks does not all come. That is not called
/// complete.
#[test]
fn what_else_is_lost_of_its_blocks_is_missed() {
    let mut session = Session::empty("torn", Setup::plain(5), eight_blocks(1), Link::lossy(ms(10), 0.05));
    session.net.at(Time::ZERO + ms(100), session.sender, |engine: &mut Sender, _| {
        engine.withdraw(&gone(), WHY);
    });
    let stored: Vec<_> = (0..10).map(|n| add(&mut session, n)).collect();
    let session = session.run();
    for (client, stored) in session.clients.iter().zip(stored) {
        let missing: Vec<u32> = stored.borrow().iter_gaps().flat_map(Run::segments).collect();
        assert!(missing.iter().all(|segment| (250..500).contains(segment)), "only its blocks: {missing:?}");
        let whole = gone().whole.expect("some");
        let lacks = missing.iter().any(|&segment| !whole.contains(segment));
        let expected = if lacks { Outcome::Missed } else { Outcome::SourceChanged };
        assert_eq!(client.outcomes(), [expected], "{missing:?}");
    }
}

/// Returns a receiver of an object of 100 segments in one block.
fn receiver(shape: &Shape) -> Receiver {
    let mut engine = Receiver::new(ReceiverConfig::default());
    let config = SenderConfig { shape: *shape, ..sender(1, 1) };
    let (_, first) = described(&everything(config)).remove(0);
    engine.handle(Time::ZERO, &from(), &Message::Description(first)).expect("news");
    engine.answer(Time::ZERO, ObjectId::FIRST, Answer::Open(Bitmap::new(100)));
    while engine.poll_event().is_some() {}
    engine
}

fn from() -> Arrival {
    Arrival::new(server(), group())
}

/// Returns the news that the segments of a file are gone, of which the outer ones have octets of others.
fn news(first: u32, count: u32) -> Message {
    let gone = vec![Gone { whole: Run::new(first + 1, count - 2), touched: run(first, count) }];
    Message::Withdrawn(Withdrawn { session: 1, files: 1, gone, why: WHY.to_owned() })
}

fn events(engine: &mut Receiver) -> Vec<ReceiverEvent> {
    std::iter::from_fn(|| engine.poll_event()).collect()
}

#[test]
fn parity_of_the_content_before_is_never_mixed_with_what_comes_after() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    let mut hear = |message: &Message| {
        let result = engine.handle(Time::ZERO, &from(), message);
        let decodes = events(&mut engine).iter().any(|event| matches!(event, ReceiverEvent::Decode { .. }));
        assert!(!decodes, "{message:?}");
        result
    };
    for parity in 0..60 {
        hear(&symbol(&shape, Kind::Parity, 0, parity)).expect("new");
    }
    hear(&news(20, 30)).expect("news");
    assert!(hear(&news(20, 30)).is_err(), "known");
    for source in (0..20).chain(50..99) {
        hear(&symbol(&shape, Kind::Source, 0, source)).expect("new");
    }
    assert!(hear(&symbol(&shape, Kind::Parity, 0, 70)).is_err());
    // What was kept on disk is of the content before, too.
    let mut kept = Bitmap::new(shape.parity());
    kept.insert_run(run(0, 100));
    engine.kept(ObjectId::FIRST, 0, &kept);
    assert_eq!(events(&mut engine), []);
}

/// A segment that the file shares with others came with wrong octets of the file. The others keep theirs.
#[test]
fn damage_of_the_file_itself_is_not_waited_for() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    for source in 0..100 {
        if source == 60 {
            engine.handle(Time::ZERO, &from(), &news(20, 30)).expect("news");
        }
        let _ = engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Source, 0, source));
    }
    assert_eq!(events(&mut engine).last(), Some(&ReceiverEvent::Complete(ObjectId::FIRST)));
    let lost = |engine: &mut Receiver, first, count| {
        engine.answer(Time::ZERO, ObjectId::FIRST, Answer::Lost(run(first, count)));
        events(engine)
    };
    assert_eq!(lost(&mut engine, 49, 1), [], "the owner goes on looking");
    assert_eq!(lost(&mut engine, 70, 3), [], "another file was damaged");
    for source in 70..73 {
        engine.handle(Time::ZERO, &from(), &symbol(&shape, Kind::Source, 0, source)).expect("wanted");
    }
    assert_eq!(events(&mut engine).last(), Some(&ReceiverEvent::Complete(ObjectId::FIRST)));
    let (object, outcome) = (ObjectId::FIRST, Outcome::SourceChanged);
    let end = ReceiverEvent::Withdrawn { object, outcome, why: WHY.to_owned() };
    assert_eq!(lost(&mut engine, 49, 1), [end]);
    // Nothing of this transmission is wanted again.
    let (_, again) = described(&everything(SenderConfig { shape, ..sender(1, 1) })).remove(0);
    assert!(engine.handle(Time::ZERO, &from(), &Message::Description(again)).is_err());
}

#[test]
fn news_of_strangers_and_of_segments_that_do_not_exist_are_refused() {
    let shape = sender(100, 100).shape;
    let mut engine = receiver(&shape);
    let stranger = Arrival::new("192.0.2.9:40000".parse().expect("an address"), group());
    assert!(engine.handle(Time::ZERO, &stranger, &news(20, 30)).is_err());
    assert!(engine.handle(Time::ZERO, &from(), &news(90, 11)).is_err());
    assert_eq!(engine.have(ObjectId::FIRST).map(Bitmap::count), Some(0));
    engine.handle(Time::ZERO, &from(), &news(0, 100)).expect("news");
    assert_eq!(engine.have(ObjectId::FIRST).map(Bitmap::count), Some(98));
    engine.handle_timeout(Time::ZERO + Span::from_secs(3600));
    assert!(matches!(
        &events(&mut engine)[..],
        [ReceiverEvent::Ended(_, Outcome::Lost) | ReceiverEvent::Withdrawn { .. }]
    ));
}
