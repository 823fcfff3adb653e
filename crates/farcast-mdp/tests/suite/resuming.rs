//! Resumption: a receiver that was stopped continues within an object, and requests nothing that was kept.

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::{Answer as Owner, ReceiverEngine as _, Vouched};
use farcast_mdp::message::{Answer, Flags, FromSender, Info, ObjectNack, Request};
use farcast_mdp::{
    Body, Message, Object, Receiver, ReceiverConfig, ReceiverEvent, SenderConfig, SenderOutcome, Sync,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Client, Session, data, group, ms, object, receiver, said, sender, sent, server};
use crate::rules::{about, says, symbols};

const VOUCHED: Vouched = Vouched { digest: [7; 32], mode: 0o644, mtime_ns: 5 };

fn vouched(segments: u32) -> Object {
    Object { vouched: Some(VOUCHED), ..object(segments) }
}

fn late(n: u32) -> ReceiverConfig {
    ReceiverConfig { sync: Sync::Anywhere, ..receiver(n) }
}

/// Runs a session with one receiver that has kept some segments of each object, and hears nothing before `from`.
fn rejoins(
    config: SenderConfig,
    kept: u32,
    mut from: impl FnMut(&FromSender) -> bool + 'static,
) -> (Session, Client) {
    let mut session = Session::empty("rejoins", Setup::plain(1), config, Link::clean(ms(50)));
    let client = session.add_holding(0, late(0), Run::new(0, kept));
    let mut there = false;
    session.net.drop_if(move |leg| {
        there |= said(&leg.message).is_some_and(&mut from);
        leg.from == 0 && !there
    });
    (session.run(), client)
}

/// Returns the number of segments and symbols that were sent on request.
fn repairs(session: &mut Session) -> u32 {
    let log = session.net.take_log();
    let repairs = data(&log).into_iter().filter(|(_, data)| data.about.flags.has(Flags::REPAIR));
    repairs.map(|(_, data)| data.symbols.count()).sum()
}

#[test]
fn in_the_midst_of_an_object_only_what_was_not_kept_is_asked_for() {
    let config = SenderConfig { objects: vec![vouched(60)], ..sender(60, 1) };
    let (mut session, client) =
        rejoins(config, 25, |said| matches!(said, FromSender::Data(data) if data.block == 4));
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    session.assert_received(1);
    let stored = client.stored();
    assert!(stored.iter().all(|&(_, segment)| segment >= 25), "kept: {stored:?}");
    // Segments 25 to 39 are sent: five of a block whose other five are there, and a whole block.
    assert_eq!(repairs(&mut session), 15 - 1 + 1, "parity does not reach: each as itself");
    let told = client.told.borrow();
    let offers: Vec<_> = told
        .iter()
        .filter_map(|(_, event)| match event {
            ReceiverEvent::Offered(offer) => Some((false, offer.vouched.as_deref().copied(), offer.serial)),
            ReceiverEvent::Named(offer) => Some((true, offer.vouched.as_deref().copied(), offer.serial)),
            _ => None,
        })
        .collect();
    // The same serial number before and after INFO identifies the object.
    let serial = Some(1 << 32);
    assert_eq!(offers, [(false, None, serial), (true, Some(VOUCHED), serial)]);
}

#[test]
fn from_a_flush_on_what_is_said_of_an_object_is_asked_for_first() {
    let config = SenderConfig { objects: vec![vouched(60)], ..sender(60, 1) };
    let (mut session, client) = rejoins(config, 52, |said| matches!(said, FromSender::Flush { .. }));
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    session.assert_received(1);
    assert_eq!(client.stored().len(), 4);
    assert_eq!(repairs(&mut session), 8, "and four of parity");
}

#[test]
fn what_was_sent_before_and_is_to_be_acknowledged_is_had_too() {
    let config = SenderConfig {
        objects: vec![vouched(10), vouched(20), Object { size: 0, ..vouched(1) }, vouched(5)],
        ..sender(10, 1)
    };
    let (session, _) = rejoins(config, 0, |said| matches!(said, FromSender::Data(d) if d.about.object == 3));
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    session.assert_received(4);
}

#[test]
fn what_was_sent_before_and_nobody_asks_about_is_left() {
    let objects = vec![vouched(10), vouched(20), vouched(5)];
    let config = SenderConfig { objects, ..sender(10, 0) };
    let (mut session, client) =
        rejoins(config, 0, |said| matches!(said, FromSender::Data(d) if d.about.object == 1));
    session.assert_received(2);
    assert!(client.stored().len() == 25, "nothing of the first");
    assert_eq!(repairs(&mut session), 0);
}

/// The kept segments are known only when the owner has answered.
#[test]
fn nothing_is_asked_for_before_the_owner_has_answered() {
    let mut one = Receiver::new(late(0)).unwrap();
    let about = about(0, Flags::FILE);
    let arrival = Arrival::new(server(), group());
    let hears = |one: &mut Receiver, message: Message| one.handle(Time::ZERO, &arrival, &message);
    hears(&mut one, symbols(about, 2, Run::one(0), false)).unwrap();
    let id = match one.poll_event() {
        Some(ReceiverEvent::Offered(offer)) => offer.object,
        other => panic!("{other:?}"),
    };
    let asks = |one: &mut Receiver| {
        let mut asked = Vec::new();
        while let Some(deadline) = one.poll_timeout().filter(|deadline| deadline.timer != "inactivity") {
            one.handle_timeout(deadline.at);
            while let Some(transmit) = one.poll_transmit(deadline.at, deadline.at) {
                let Body::Receiver(said) = transmit.message.body else { panic!("a receiver's") };
                let Answer::Nack(nacks) = said.answer else { panic!("{:?}", said.answer) };
                asked.extend(nacks);
            }
        }
        asked
    };
    assert_eq!(asks(&mut one), []);
    let mut held = Bitmap::new(30);
    held.insert_run(Run::new(0, 19).unwrap());
    one.answer(Time::ZERO + ms(900), id, Owner::Open(held));
    let asked = asks(&mut one);
    let [ObjectNack { object: 0, requests }] = &asked[..] else { panic!("{asked:?}") };
    assert!(matches!(requests[..], [Request::Segments { erasures: 1, offset: 10_000, .. }]), "{requests:?}");
}

/// A sender that is started again has another port.
#[test]
fn a_sender_that_comes_from_elsewhere_after_silence_begins_anew() {
    let mut one = Receiver::new(receiver(0)).unwrap();
    let about = about(0, Flags::FILE.with(Flags::INFO));
    let begin = says(FromSender::Info(Info {
        about,
        segment_size: 1000,
        content: b"name".to_vec(),
        vouched: Some(VOUCHED),
    }));
    let (here, there) =
        (Arrival::new(server(), group()), Arrival::new("192.0.2.1:40001".parse().unwrap(), group()));
    let data = symbols(about, 0, Run::one(0), false);
    one.handle(Time::ZERO, &here, &begin).unwrap();
    one.handle(Time::ZERO + ms(400), &here, &data).unwrap();
    let two = Time::ZERO + ms(800);
    assert_eq!(one.handle(two, &there, &begin), Err(Reject::OtherSession), "it is heard from where it was");
    let flush = says(FromSender::Flush { eot: false, object: 0 });
    assert_eq!(one.handle(two + ms(500), &there, &flush), Err(Reject::OtherSession), "that is no beginning");
    one.handle(two + ms(500), &there, &begin).unwrap();
    let events: Vec<_> = core::iter::from_fn(|| one.poll_event()).collect();
    let ended = events.iter().filter(|event| matches!(event, ReceiverEvent::Ended(_, Outcome::Lost)));
    let offered = events.iter().filter(|event| matches!(event, ReceiverEvent::Offered(_)));
    assert_eq!((ended.count(), offered.count()), (1, 2), "{events:?}");
    one.handle(two + ms(501), &there, &data).unwrap();
    assert_eq!(one.handle(two + ms(502), &here, &data), Err(Reject::OtherSession), "it has sent content");
}

/// A sender sends little and announces much: long segments, all of which the receiver lacks.
#[test]
fn a_sender_that_says_little_is_told_little() {
    let mut one = Receiver::new(late(0)).unwrap();
    let about =
        farcast_mdp::message::About { size: 2_000_000_000, ndata: 200, nparity: 55, ..about(0, Flags::FILE) };
    let arrival = Arrival::new(server(), group());
    let (mut heard, mut told) = (0, 0);
    for n in 0..200u64 {
        let now = Time::ZERO + Span::from_secs(n * 10);
        let data = if n == 0 {
            says(FromSender::Info(Info {
                about,
                segment_size: 60_000,
                content: vec![b'x'; 9],
                vouched: None,
            }))
        } else {
            says(FromSender::Flush { eot: false, object: 0 })
        };
        let _ = one.handle(now, &arrival, &data);
        heard += farcast_core::Message::wire_len(&data, 0);
        if let Some(ReceiverEvent::Offered(offer)) = one.poll_event() {
            one.accept(offer.object, &Bitmap::new(offer.geometry.segments()));
        }
        while let Some(deadline) =
            one.poll_timeout().filter(|deadline| deadline.at < now + Span::from_secs(10))
        {
            one.handle_timeout(deadline.at);
            while let Some(transmit) = one.poll_transmit(deadline.at, deadline.at) {
                told += farcast_core::Message::wire_len(&transmit.message, 0);
            }
        }
    }
    assert!(told > 0 && told <= 3 * heard, "{told} for {heard}");
}

#[test]
fn objects_of_no_octets_have_a_name_and_nothing_else() {
    let none = || Object { size: 0, ..vouched(1) };
    for seed in 0..10 {
        let objects = vec![none(), vouched(12), none(), none(), vouched(1), none()];
        let config = SenderConfig { objects, ..sender(1, 3) };
        let mut session = Session::empty("none", Setup::plain(seed), config, Link::lossy(ms(50), 0.2));
        for n in 0..3 {
            session.add(n, late(n));
        }
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
        session.assert_received(6);
    }
    let config = SenderConfig { objects: vec![none()], ..sender(1, 1) };
    let mut session = Session::new("alone", Setup::plain(1), config, 1, Link::clean(ms(50))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    session.assert_received(1);
    assert!(data(&session.net.take_log()).is_empty());
}

#[test]
fn who_never_hears_the_name_stops_asking_and_acknowledges_nothing() {
    let mut session = Session::new("nameless", Setup::plain(1), sender(40, 1), 1, Link::clean(ms(50)));
    session.net.drop_if(|leg| matches!(said(&leg.message), Some(FromSender::Info(_))));
    let mut session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert!(matches!(session.clients[0].outcomes()[..], [Outcome::Complete(_)]), "under its numbers");
    let told = session.clients[0].told.borrow();
    let complete = told.iter().find(|(_, event)| matches!(event, ReceiverEvent::Complete(_))).unwrap().0;
    drop(told);
    let log = session.net.take_log();
    let asked = sent(&log, 1, |message| match &message.body {
        Body::Receiver(said) => match &said.answer {
            Answer::Nack(nacks) => Some(nacks.clone()),
            Answer::Object(_) => panic!("it acknowledges what has no name"),
            Answer::Probe => None,
        },
        Body::Sender(..) => None,
    });
    assert_eq!(asked.len(), 20, "{asked:?}");
    assert!(asked.iter().all(|(at, nacks)| *at < complete && nacks[0].requests == [Request::Info]));
}
