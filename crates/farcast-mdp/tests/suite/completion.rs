//! The end of a session, and the nodes that may bring it about.

use farcast_core::Time;
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_mdp::message::{Answer, FromSender};
use farcast_mdp::{Body, Message, ReceiverConfig, ReceiverEvent, SenderConfig, SenderEvent, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, is_nack, ms, node, object, receiver, said, sender, sent};

/// Returns a sender of three objects, one after the other.
fn three(ackers: u32) -> SenderConfig {
    SenderConfig { objects: vec![object(25), object(1), object(30)], ..sender(1, ackers) }
}

#[test]
fn everyone_who_is_named_has_everything_when_the_sender_says_so() {
    for seed in 0..20 {
        let session = Session::new("named", Setup::plain(seed), three(4), 4, Link::lossy(ms(100), 0.1)).run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
        let told = session.told.borrow();
        let delivered = told.iter().find(|(_, event)| *event == SenderEvent::Delivered).expect("delivered").0;
        for client in &session.clients {
            let told = client.told.borrow();
            let complete = told.iter().filter(|(_, event)| matches!(event, ReceiverEvent::Complete(_)));
            let before: Vec<_> = complete.filter(|(at, _)| *at < delivered).collect();
            assert_eq!(before.len(), 3, "{}", session.net.context());
        }
        // The loss of the last word only makes a receiver wait.
        session.assert_received(3);
    }
}

#[test]
fn a_named_receiver_that_is_not_there_is_lost() {
    let mut session = Session::new("absent", Setup::plain(1), three(3), 2, Link::clean(ms(50))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert!(session.told.borrow().iter().any(|(_, event)| *event == SenderEvent::Lost(node(2))));
    session.assert_received(3);
    let log = session.net.take_log();
    let asked = sent(&log, 0, |message| match said(message) {
        Some(FromSender::AckReq { object, nodes }) if nodes.contains(&node(2)) => Some(*object),
        _ => None,
    });
    for object in 0..3 {
        assert_eq!(asked.iter().filter(|(_, of)| *of == object).count(), 20, "draft §4.7: 20 times");
    }
}

#[test]
fn a_receiver_that_lacks_a_segment_does_not_acknowledge() {
    let mut session = Session::empty("lacking", Setup::plain(1), sender(20, 1), Link::clean(ms(50)));
    let client = session.add(0, ReceiverConfig { silent: true, ..receiver(0) });
    session
        .net
        .drop_if(|leg| leg.message.data().is_some_and(|data| data.block == 0 && data.symbols.first() == 3));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert_eq!(client.outcomes(), [Outcome::Lost], "the sender's last word");
}

#[test]
fn without_names_the_sender_says_that_it_does_not_know() {
    let mut session = Session::new("unnamed", Setup::plain(2), three(0), 3, Link::lossy(ms(50), 0.05)).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Unknown));
    session.assert_received(3);
    let log = session.net.take_log();
    let flushes =
        sent(&log, 0, |message| matches!(said(message), Some(FromSender::Flush { .. })).then_some(()));
    assert!(flushes.len() >= 21, "{} flushes: twenty, and the last word", flushes.len());
    let acks = |message: &Message| {
        matches!(&message.body, Body::Receiver(r) if matches!(r.answer, Answer::Object(_))).then_some(())
    };
    assert!((1..4).all(|from| sent(&log, from, acks).is_empty()), "nobody was asked to acknowledge");
}

#[test]
fn what_was_asked_for_last_is_still_sent() {
    // The only flush is answered in time, but gathering the requests takes longer than the flush waits.
    let config = SenderConfig { robust: 1, ..sender(20, 0) };
    let mut session = Session::new("last", Setup::plain(1), config, 1, Link::clean(ms(50)));
    session
        .net
        .drop_if(|leg| leg.message.data().is_some_and(|data| (data.block, data.symbols.first()) == (1, 9)));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Unknown));
    session.assert_received(1);
}

#[test]
fn silent_receivers_complete_by_parity_that_nobody_asked_for() {
    let config = SenderConfig { auto_parity: 4, ..sender(60, 0) };
    let mut complete = 0;
    for seed in 0..10 {
        let mut session =
            Session::empty("silent", Setup::plain(seed), config.clone(), Link::lossy(ms(50), 0.05));
        for n in 0..4 {
            session.add(n, ReceiverConfig { silent: true, ..receiver(n) });
        }
        let mut session = session.run();
        complete += session.clients.iter().map(crate::common::Client::complete).sum::<usize>();
        let log = session.net.take_log();
        assert!(log.departures.iter().all(|departure| departure.from == 0), "they say nothing");
        let symbols: u32 = data(&log).iter().map(|(_, data)| data.symbols.count()).sum();
        assert_eq!(symbols, 60 + 6 * 4);
    }
    // A block of 10 with 4 parity symbols fails with probability 0.0004. A receiver that lost INFO lacks only the name.
    assert!((39..=40).contains(&complete), "{complete} of 40");
}

#[test]
fn a_sender_that_gives_up_says_so() {
    let mut session = Session::new("abort", Setup::plain(2), sender(60, 2), 2, Link::clean(ms(50)));
    session.net.at(Time::ZERO + ms(200), session.sender, |engine: &mut farcast_mdp::Sender, now| {
        engine.abort(now, farcast_delivery::Cause::Application, None);
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Aborted));
    assert!(session.clients.iter().all(|client| client.outcomes() == [Outcome::Lost]));
}

#[test]
fn without_losses_nobody_asks_for_anything() {
    let mut session = Session::new("clean", Setup::plain(3), three(3), 3, Link::clean(ms(250))).run();
    session.assert_received(3);
    let log = session.net.take_log();
    assert!(!log.departures.iter().any(|departure| is_nack(&departure.message)));
    assert_eq!(data(&log).iter().map(|(_, data)| data.symbols.count()).sum::<u32>(), 56);
}
