//! Messages of senders besides content: repeated requests, squelches, commands of applications.

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::{Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_norm::message::{Answer, Form, FromReceiver, FromSender, Level, Point, Request, Symbol, Terms};
use farcast_norm::quantise::{GroupSize, Rtt};
use farcast_norm::{
    Body, Command, Fec, Message, NodeId, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig,
};
use farcast_testkit::{Link, Setup};

use crate::common::{
    Session, data, group, is_nack, ms, node, receiver, receiver_address, said, sender, sent, server,
};

const TERMS: Terms = Terms { instance: 1, grtt: Rtt(0x88), backoff: 4, group: GroupSize::from_bits(1) };

/// Returns a flush that asks the receiver to acknowledge object 0.
fn flush() -> FromSender {
    FromSender::Flush { point: point(0, 3, 9), ackers: vec![node(0)] }
}

fn point(object: u16, block: u32, symbol: u16) -> Point {
    Point { fec: Fec::ReedSolomon8, object, symbol: Symbol { block, block_len: None, symbol } }
}

fn from_sender(said: FromSender) -> Message {
    Message { source: NodeId(1), sequence: 0, body: Body::Sender(TERMS, said) }
}

fn hear(engine: &mut Receiver, at: Time, said: FromSender) -> Result<(), Reject> {
    engine.handle(at, &Arrival::new(server(), group()), &from_sender(said))
}

/// Returns the messages of a receiver in the following second.
fn says(engine: &mut Receiver, at: Time) -> Vec<FromReceiver> {
    engine.handle_timeout(at + Span::from_secs(1));
    let transmits = std::iter::from_fn(|| engine.poll_transmit(at, at));
    let said = transmits.filter_map(|transmit| match transmit.message.body {
        Body::Receiver(said) => Some(said),
        Body::Sender(..) => None,
    });
    said.collect()
}

#[test]
fn what_is_asked_by_unicast_is_told_to_all_who_then_need_not_ask() {
    let mut asked = [0; 2];
    for (at, told) in [true, false].into_iter().enumerate() {
        let config = SenderConfig { grtt: ms(200), ..sender(40, 0) };
        let mut session = Session::empty("advertised", Setup::plain(4), config, Link::clean(ms(100)));
        for n in 0..60 {
            session.add(n, ReceiverConfig { unicast: true, ..receiver(n) });
        }
        session.net.drop_if(move |leg| {
            let advertised = matches!(said(&leg.message), Some(FromSender::RepairAdv { .. }));
            let lost = leg.message.data().is_some_and(|data| {
                !data.flags.has(farcast_norm::message::Flags::REPAIR)
                    && data.block == 1
                    && [2, 5].contains(&data.symbols.first())
            });
            lost || advertised && !told
        });
        let mut session = session.run();
        session.assert_received(1);
        let log = session.net.take_log();
        asked[at] = log.departures.iter().filter(|departure| is_nack(&departure.message)).count();
        let advertised = sent(&log, 0, |message| match said(message) {
            Some(FromSender::RepairAdv { requests, flags: 0, .. }) => Some(requests.clone()),
            _ => None,
        });
        assert!((1..=6).contains(&advertised.len()), "{} times", advertised.len());
        let points: Vec<Point> = advertised[0].1.iter().flat_map(|request| request.points.clone()).collect();
        assert_eq!(points, [point(0, 1, 10), point(0, 1, 11)]);
        let repairs = data(&log).iter().filter(|(_, data)| data.symbols.first() >= 10).count();
        assert_eq!(repairs, 2, "for all of them");
    }
    assert!(asked[0] < 30 && asked[1] >= 60, "{asked:?}");
}

#[test]
fn what_is_asked_before_all_is_not_told() {
    let mut session =
        Session::new("heard", Setup::plain(4), sender(60, 0), 5, Link::lossy(ms(50), 0.1)).run();
    session.assert_received(1);
    let log = session.net.take_log();
    assert!(log.departures.iter().any(|departure| is_nack(&departure.message)));
    assert!(!log.departures.iter().any(|d| matches!(said(&d.message), Some(FromSender::RepairAdv { .. }))));
}

#[test]
fn what_cannot_be_had_is_said_so_now_and_then() {
    let mut engine = Sender::new(SenderConfig { grtt: ms(100), ..sender(40, 0) }).expect("valid");
    engine.open(Time::ZERO);
    let points = vec![point(3, 0, 0), point(5, 0, 0)];
    let request = Request { form: Form::Ranges, level: Level::OBJECT, points };
    let answer = Answer::Nack(vec![request]);
    let said_by = FromReceiver { sender: NodeId(1), instance: 1, response: None, feedback: None, answer };
    let nack = Message { source: node(0), sequence: 0, body: Body::Receiver(said_by) };
    let mut squelches = Vec::new();
    for step in 0..50 {
        let now = Time::ZERO + ms(10) * step;
        engine.handle_timeout(now);
        let _ = engine.handle(now, &Arrival::new(receiver_address(0), group()), &nack);
        while let Some(transmit) = engine.poll_transmit(now, now) {
            if let Some(FromSender::Squelch { point, invalid }) = said(&transmit.message) {
                squelches.push((step, *point, invalid.clone()));
            }
        }
    }
    assert_eq!(squelches[0].1, point(0, 0, 0));
    assert_eq!(squelches[0].2, [3, 4, 5]);
    // One squelch in two round trips of 106 ms.
    assert_eq!(squelches.iter().map(|(step, ..)| *step).collect::<Vec<_>>(), [0, 22, 44]);
}

/// Returns the messages of a sender of four blocks of ten in the first `milliseconds`, datagram by datagram.
fn words(milliseconds: u64) -> Vec<(Time, Message)> {
    let mut session = Session::new("words", Setup::plain(1), sender(40, 0), 1, Link::clean(ms(10)));
    session.net.run_until(Time::ZERO + ms(milliseconds));
    let log = session.net.take_log();
    let mine = log.departures.into_iter().filter(|departure| departure.from == 0);
    let one = core::num::NonZeroU32::MIN;
    mine.map(|departure| (departure.at, farcast_core::Message::split(departure.message, one).0)).collect()
}

/// Delivers `words` to `engine`. Returns `true` if an object is complete that its owner has yet to verify.
fn listen(engine: &mut Receiver, words: impl IntoIterator<Item = (Time, Message)>) -> bool {
    let mut complete = false;
    for (at, message) in words {
        let _ = engine.handle(at, &Arrival::new(server(), group()), &message);
        while let Some(event) = engine.poll_event() {
            match event {
                ReceiverEvent::Offered(offer) => {
                    engine.accept(at, offer.object, &farcast_core::Bitmap::new(0));
                }
                ReceiverEvent::Complete(_) => complete = true,
                _ => {}
            }
        }
    }
    complete
}

/// Returns a receiver that has a block of object 0.
fn begun() -> Receiver {
    let mut engine = Receiver::new(receiver(0)).expect("valid");
    listen(&mut engine, words(300));
    assert!(engine.is_busy());
    engine
}

#[test]
fn who_is_asked_to_acknowledge_does_so_as_soon_as_it_can() {
    let mut engine = Receiver::new(receiver(0)).expect("valid");
    let content = words(390)
        .into_iter()
        .filter(|(_, message)| !matches!(said(message), Some(FromSender::Flush { .. })));
    assert!(listen(&mut engine, content), "all has come");
    let now = Time::ZERO + ms(400);
    assert_eq!(hear(&mut engine, now, flush()), Ok(()));
    assert_eq!(says(&mut engine, now), [], "not while its owner verifies");
    engine.verified(now + ms(2000), farcast_delivery::ObjectId::FIRST);
    let said = says(&mut engine, now + ms(2000));
    let answer = Answer::Flushed { id: 0, point: point(0, 3, 9) };
    assert_eq!(said.iter().map(|said| &said.answer).collect::<Vec<_>>(), [&answer]);
}

#[test]
fn a_sender_that_says_little_is_told_little() {
    let config = SenderConfig { parity: 0, block_len: 60, ..sender(600, 0) };
    let mut session = Session::new("words", Setup::plain(1), config, 0, Link::clean(ms(10)));
    session.net.run_until(Time::ZERO + ms(5000));
    let one = core::num::NonZeroU32::MIN;
    let words = session.net.take_log().departures.into_iter();
    let words = words.map(|departure| (departure.at, farcast_core::Message::split(departure.message, one).0));
    let mut engine = Receiver::new(receiver(0)).expect("valid");
    // Every other segment is missing, so the requests are long.
    let half = words.filter(|(_, message)| message.data().is_none_or(|data| data.symbols.first() % 2 == 0));
    listen(&mut engine, half);
    let (mut heard, mut told, mut longest) = (0, 0, 0);
    for n in 0..500 {
        let now = Time::ZERO + Span::from_secs(10 + 2 * n);
        let flush = FromSender::Flush { point: point(0, 9, 59), ackers: vec![] };
        heard += farcast_core::Message::wire_len(&from_sender(flush.clone()), 0);
        assert_eq!(hear(&mut engine, now, flush), Ok(()));
        engine.handle_timeout(now + Span::from_secs(1));
        while let Some(transmit) = engine.poll_transmit(now, now) {
            let octets = farcast_core::Message::wire_len(&transmit.message, 0);
            (told, longest) = (told + octets, longest.max(octets));
        }
        engine.handle_timeout(now + ms(1999));
    }
    assert!(longest > 900, "{longest} octets");
    // The credit of the content, plus three octets for each octet heard.
    assert!(told <= (1 << 16) + 3 * heard && told > 1 << 16, "{told} for {heard}");
}

#[test]
fn nobody_acknowledges_what_has_not_been_sent() {
    let object = |_| farcast_norm::Object {
        kind: farcast_norm::Kind::File,
        size: 50_000,
        info: Vec::new(),
        vouched: None,
    };
    let objects = (0..2).map(object).collect();
    let mut engine = Sender::new(SenderConfig { objects, ..sender(1, 1) }).expect("valid");
    engine.open(Time::ZERO);
    let ack = |object, block, symbol| {
        let answer = Answer::Flushed { id: 0, point: point(object, block, symbol) };
        let said = FromReceiver { sender: NodeId(1), instance: 1, response: None, feedback: None, answer };
        Message { source: node(0), sequence: 0, body: Body::Receiver(said) }
    };
    let from = Arrival::new(receiver_address(0), group());
    // 50 segments of 8 ms each.
    let mut at = Time::ZERO;
    for (until, object, expected) in [
        (ms(300), 0, Err(Reject::Unexpected)),
        (ms(600), 0, Ok(())),
        (ms(600), 0, Err(Reject::Duplicate)),
        (ms(600), 1, Err(Reject::Unexpected)),
        (ms(600), 2, Err(Reject::OutOfRange)),
    ] {
        while at < Time::ZERO + until {
            engine.handle_timeout(at);
            while engine.poll_transmit(at, at).is_some() {}
            at += ms(1);
        }
        assert_eq!(engine.handle(at, &from, &ack(object, 4, 9)), expected, "{until} {object}");
        assert_eq!(engine.handle(at, &from, &ack(object, 4, 8)), Err(Reject::OutOfRange));
    }
}

fn ends(engine: &mut Receiver) -> Vec<Outcome> {
    let events = std::iter::from_fn(|| engine.poll_event());
    events
        .filter_map(|event| match event {
            ReceiverEvent::Ended(_, outcome) => Some(outcome),
            _ => None,
        })
        .collect()
}

#[test]
fn an_object_that_cannot_be_had_any_more_is_over() {
    let now = Time::ZERO + ms(400);
    let (lost, withdrawn) = (Some(Outcome::Lost), Some(Outcome::Missed));
    for (from, invalid, expected) in [
        (point(1, 0, 0), vec![], lost),
        (point(0, 0, 0), vec![0], withdrawn),
        (point(0, 0, 0), vec![7], None),
    ] {
        let mut engine = begun();
        assert_eq!(hear(&mut engine, now, FromSender::Squelch { point: from, invalid }), Ok(()));
        assert_eq!(ends(&mut engine), Vec::from_iter(expected));
        // The object is not acknowledged either.
        assert_eq!(hear(&mut engine, now, flush()), Ok(()));
        let said = says(&mut engine, now);
        let acknowledged = said.iter().any(|said| matches!(said.answer, Answer::Flushed { .. }));
        assert!(!acknowledged, "{said:?}");
    }
}

#[test]
fn a_receiver_that_comes_late_does_not_acknowledge_what_it_was_refused() {
    let late = Time::ZERO + ms(400);
    for (from, invalid) in [(point(1, 0, 0), vec![]), (point(0, 0, 0), vec![0])] {
        // The first message is of an object behind, so that object 0 was missed. Somebody may have forged it.
        let mut engine = Receiver::new(receiver(0)).expect("valid");
        let other = FromSender::Flush { point: point(1, 0, 0), ackers: Vec::new() };
        assert_eq!(hear(&mut engine, late, other), Ok(()));
        assert_eq!(hear(&mut engine, late, FromSender::Squelch { point: from, invalid }), Ok(()));
        assert_eq!(hear(&mut engine, late, flush()), Ok(()));
        let said = says(&mut engine, late);
        let acknowledged = said.iter().any(|said| matches!(said.answer, Answer::Flushed { .. }));
        assert!(!acknowledged, "{said:?}");
    }
}

#[test]
fn applications_are_acknowledged_and_heard() {
    let now = Time::ZERO + ms(400);
    let mut engine = begun();
    let asks = |kind, ackers: Vec<NodeId>| FromSender::AckReq { kind, id: 9, ackers };
    assert_eq!(hear(&mut engine, now, asks(16, vec![node(5)])), Ok(()));
    assert_eq!(says(&mut engine, now), [], "another is meant");
    for kind in [0, 1, 2, 15] {
        assert_eq!(hear(&mut engine, now, asks(kind, vec![node(0)])), Err(Reject::OutOfRange));
    }
    assert_eq!(hear(&mut engine, now, asks(16, vec![node(0)])), Ok(()));
    let said = says(&mut engine, now);
    let acknowledged: Vec<&Answer> =
        said.iter().map(|said| &said.answer).filter(|answer| !matches!(answer, Answer::Nack(_))).collect();
    assert_eq!(acknowledged, [&Answer::Ack { kind: 16, id: 9, content: Vec::new() }]);

    assert_eq!(hear(&mut engine, now, FromSender::Application(b"stop".to_vec())), Ok(()));
    let told = ReceiverEvent::Own(Command { sender: NodeId(1), content: b"stop".to_vec() });
    assert!(std::iter::from_fn(|| engine.poll_event()).any(|event| event == told));
    let mut stranger = Receiver::new(receiver(1)).expect("valid");
    let unknown = hear(&mut stranger, now, FromSender::Application(b"stop".to_vec()));
    assert_eq!(unknown, Err(Reject::OtherSession));
}

#[test]
fn a_sender_that_left_and_comes_back_is_received_again() {
    let mut engine = begun();
    let now = Time::ZERO + ms(400);
    assert_eq!(hear(&mut engine, now, FromSender::Eot), Ok(()));
    assert_eq!(ends(&mut engine), [Outcome::Lost]);
    assert!(!engine.is_busy());
    assert_eq!(hear(&mut engine, now, FromSender::Eot), Err(Reject::Unexpected));
    let flush = FromSender::Flush { point: point(0, 3, 9), ackers: vec![] };
    assert_eq!(hear(&mut engine, now + ms(10), flush), Ok(()));
    assert!(engine.is_busy());
    let said = says(&mut engine, now + ms(10));
    let Answer::Nack(requests) = &said[0].answer else { panic!("{said:?}") };
    assert_eq!(requests[0].level, Level::OBJECT);
}
