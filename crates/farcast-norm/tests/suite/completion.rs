//! End of a transmission, and the parties that decide it.

use farcast_core::Time;
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_norm::message::{Answer, FromSender};
use farcast_norm::{Body, ReceiverConfig, SenderConfig, SenderEvent, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, is_nack, ms, node, receiver, said, sender, sent};

#[test]
fn everyone_who_is_named_has_the_object_when_the_sender_says_so() {
    for seed in 0..20 {
        let session =
            Session::new("named", Setup::plain(seed), sender(60, 4), 4, Link::lossy(ms(100), 0.1)).run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
        let told = session.told.borrow();
        let delivered = told.iter().find(|(_, event)| *event == SenderEvent::Delivered).expect("delivered").0;
        for client in &session.clients {
            let complete = client.told.borrow().iter().find_map(|(at, event)| match event {
                farcast_norm::ReceiverEvent::Complete(_) => Some(*at),
                _ => None,
            });
            assert!(complete.is_some_and(|at| at < delivered), "{}", session.net.context());
        }
        // If the last message is lost, a receiver only waits.
        session.assert_received(1);
    }
}

#[test]
fn a_named_receiver_that_is_not_there_is_lost() {
    let session = Session::new("absent", Setup::plain(1), sender(20, 3), 2, Link::clean(ms(50))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert!(session.told.borrow().iter().any(|(_, event)| *event == SenderEvent::Lost(node(2))));
    session.assert_received(1);
}

#[test]
fn a_receiver_that_does_not_verify_does_not_acknowledge() {
    let mut session = Session::empty("slow", Setup::plain(1), sender(20, 1), Link::clean(ms(50)));
    // The receiver does not listen while everything is sent, and later it cannot become complete.
    let client = session.add(0, ReceiverConfig { silent: true, ..receiver(0) });
    session
        .net
        .drop_if(|leg| leg.message.data().is_some_and(|data| data.block == 0 && data.symbols.first() == 3));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert_eq!(client.outcome(), Some(Outcome::Lost), "the sender's last word");
}

#[test]
fn without_names_the_sender_says_that_it_does_not_know() {
    let mut session =
        Session::new("unnamed", Setup::plain(2), sender(60, 0), 3, Link::lossy(ms(50), 0.05)).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Unknown));
    session.assert_received(1);
    let log = session.net.take_log();
    let flushes =
        sent(&log, 0, |message| matches!(said(message), Some(FromSender::Flush { .. })).then_some(()));
    assert!(flushes.len() >= 20, "{} flushes", flushes.len());
    let acks = |message: &farcast_norm::Message| {
        matches!(&message.body, Body::Receiver(r) if matches!(r.answer, Answer::Flushed { .. })).then_some(())
    };
    assert!((1..4).all(|from| sent(&log, from, acks).is_empty()), "nobody was asked to acknowledge");
}

#[test]
fn the_end_waits_for_receivers_that_wait_by_a_longer_round_trip() {
    // The first answer shortens the assumed half second to a hundredth, while other receivers still hold off by it.
    for seed in 0..20 {
        let session =
            Session::new("sudden", Setup::plain(seed), sender(60, 0), 2, Link::lossy(ms(2), 0.1)).run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Unknown));
        session.assert_received(1);
    }
}

#[test]
fn what_was_asked_for_last_is_still_sent() {
    // The one flush is answered in time, but gathering takes longer than that.
    let config = SenderConfig { robust: 1, backoff: 1, ..sender(20, 0) };
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
        complete += session.clients.iter().filter(|client| client.complete() > 0).count();
        let log = session.net.take_log();
        assert!(log.departures.iter().all(|departure| departure.from == 0), "they say nothing");
        assert_eq!(data(&log).len(), 60 + 6 * 4);
    }
    // A block of 10 with 4 parity symbols fails with probability 0.0004; the first INFO is lost in one of twenty.
    assert!((36..=40).contains(&complete), "{complete} of 40");
}

#[test]
fn a_sender_that_gives_up_says_so() {
    let mut session = Session::new("abort", Setup::plain(2), sender(60, 2), 2, Link::clean(ms(50)));
    session.net.at(Time::ZERO + ms(200), session.sender, |engine: &mut farcast_norm::Sender, now| {
        engine.abort(now, farcast_delivery::Cause::Application, None);
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Aborted));
    assert!(session.clients.iter().all(|client| client.outcome() == Some(Outcome::Lost)));
}

#[test]
fn without_losses_nobody_asks_for_anything() {
    let mut session = Session::new("clean", Setup::plain(3), sender(60, 3), 3, Link::clean(ms(250))).run();
    session.assert_received(1);
    let log = session.net.take_log();
    assert!(!log.departures.iter().any(|departure| is_nack(&departure.message)));
    assert_eq!(data(&log).len(), 60);
}
