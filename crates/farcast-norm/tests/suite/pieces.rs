//! Questions to more named receivers than a flush has room for, or than the return channel carries answers of.

use std::collections::BTreeMap;

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::{BitRate, Span, Time};
use farcast_norm::message::{Answer, FromReceiver, FromSender, Point, Symbol};
use farcast_norm::{Body, Fec, Message, NodeId, Sender, SenderConfig, SenderEvent, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, group, ms, node, receiver_address, said, sender, sent};

/// Octets of an acknowledgement with UDP and IPv4: common header, sender, times, and the point.
const ACK: u64 = 28 + 8 + 16 + 8;
/// Rate of the return in the tests, octets a second.
const RETURN: u64 = 2000;

/// Returns a sender of 60 segments to `ackers` named receivers, whose return carries [`RETURN`].
fn thin(ackers: u32) -> SenderConfig {
    SenderConfig { return_rate: BitRate::from_bps(RETURN * 8), grtt: ms(200), ..sender(60, ackers) }
}

/// Returns the times and lists of the sender's flushes.
fn flushes(session: &mut Session) -> Vec<(Time, Vec<NodeId>)> {
    let list = |message: &Message| match said(message) {
        Some(FromSender::Flush { ackers, .. }) => Some(ackers.clone()),
        _ => None,
    };
    sent(&session.net.take_log(), 0, list)
}

/// Returns how often each receiver was asked.
fn asked(flushes: &[(Time, Vec<NodeId>)]) -> BTreeMap<NodeId, u32> {
    let mut asked = BTreeMap::new();
    for node in flushes.iter().flat_map(|(_, nodes)| nodes) {
        *asked.entry(*node).or_default() += 1;
    }
    asked
}

/// Asserts that the answers to `flushes` take at most seven tenths of the return in the long run, and that a second's
/// flushes ask for no more than the return carries in it.
fn assert_bounded(flushes: &[(Time, Vec<NodeId>)]) {
    for (at, _) in flushes {
        let within = flushes.iter().filter(|(then, _)| then >= at && *then < *at + Span::from_secs(1));
        let answers: usize = within.map(|(_, nodes)| nodes.len()).sum();
        assert!(answers as u64 * ACK <= RETURN, "{answers} answers in a second from {at:?} on");
    }
}

#[test]
fn all_are_asked_in_pieces_and_confirmed_once() {
    for seed in 0..5 {
        let mut session = Session::new("many", Setup::plain(seed), thin(80), 80, Link::clean(ms(100))).run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
        session.assert_received(1);
        let flushes = flushes(&mut session);
        let asked = asked(&flushes);
        assert_eq!(asked.len(), 80);
        let twice = asked.values().filter(|&&times| times > 1).count();
        assert_eq!(twice, 0, "none was asked before it could answer");
        assert_bounded(&flushes);
        // The last piece is asked when the return has carried seven tenths of it for all others.
        let took = flushes[flushes.len() - 1].0.since(flushes[0].0).as_secs_f64();
        let all = 80.0 * ACK as f64 / (0.7 * RETURN as f64);
        assert!((all * 0.9..all).contains(&took), "{took} s of {all} s");
    }
}

#[test]
fn lost_questions_and_answers_have_another_turn() {
    for seed in 0..5 {
        let mut session =
            Session::new("lossy", Setup::plain(seed), thin(80), 80, Link::lossy(ms(100), 0.1)).run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
        session.assert_received(1);
        let flushes = flushes(&mut session);
        assert!(asked(&flushes).values().any(|&times| times > 1));
        assert_bounded(&flushes);
    }
}

#[test]
fn a_list_longer_than_a_segment_is_asked_in_pieces() {
    let config =
        SenderConfig { segment_size: 40, return_rate: BitRate::from_bps(100_000_000), ..sender(30, 70) };
    let mut session = Session::new("long", Setup::plain(1), config, 70, Link::lossy(ms(50), 0.05)).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    let flushes = flushes(&mut session);
    let longest = flushes.iter().map(|(_, nodes)| nodes.len()).max();
    assert_eq!((longest, asked(&flushes).len()), (Some(10), 70), "ten ids fit 40 octets");
}

#[test]
fn few_receivers_are_all_asked_at_once() {
    // Without a rate, a thirtieth of 1 Mbit/s is assumed, which carries the answers of 48 in a second.
    let config = SenderConfig { grtt: ms(200), ..sender(60, 45) };
    let mut session = Session::new("few", Setup::plain(1), config, 45, Link::clean(ms(100))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_eq!(flushes(&mut session)[0].1.len(), 45);
}

#[test]
fn a_silent_receiver_is_asked_in_each_round_and_then_lost() {
    for absent in [0, 37, 79] {
        let mut session = Session::empty("silent", Setup::plain(3), thin(80), Link::clean(ms(100)));
        for n in (0..80).filter(|&n| n != absent) {
            session.add(n, crate::common::receiver(n));
        }
        let mut session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
        let told = session.told.borrow().clone();
        assert!(told.iter().any(|(_, event)| *event == SenderEvent::Lost(node(absent))));
        let acknowledged = |(_, event): &&(Time, SenderEvent)| matches!(event, SenderEvent::Acknowledged(_));
        assert_eq!(told.iter().filter(acknowledged).count(), 79);
        let asked = asked(&flushes(&mut session));
        assert_eq!(asked.get(&node(absent)), Some(&20), "as often as where all are asked at once");
    }
}

#[test]
fn a_stranger_s_acknowledgement_confirms_nobody() {
    let mut session = Session::new("forged", Setup::plain(1), thin(80), 79, Link::clean(ms(100)));
    let symbol = Symbol { block: 5, block_len: None, symbol: 9 };
    let answer = Answer::Flushed { id: 0, point: Point { fec: Fec::ReedSolomon8, object: 0, symbol } };
    let forged = FromReceiver { sender: NodeId(1), instance: 1, response: None, feedback: None, answer };
    for n in 0..200 {
        let message = Message { source: NodeId(5000 + n), sequence: 0, body: Body::Receiver(forged.clone()) };
        let at = Time::ZERO + Span::from_secs(2);
        session.net.at(at, session.sender, move |engine: &mut Sender, now| {
            let result = engine.handle(now, &Arrival::new(receiver_address(7), group()), &message);
            assert_eq!(result, Err(Reject::Stranger));
        });
    }
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert_eq!(session.net.engine(session.sender).rejects().of(Reject::Stranger), 200);
}

#[test]
fn objects_that_have_passed_are_confirmed_within_the_same_bound() {
    let mut config = SenderConfig { watermarks: true, ..thin(80) };
    config.objects = vec![config.objects[0].clone(); 20];
    let mut session = Session::new("marks", Setup::plain(2), config, 80, Link::lossy(ms(100), 0.02)).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    let told = session.told.borrow().clone();
    let reached = |(_, event): &&(Time, SenderEvent)| matches!(event, SenderEvent::Own(_));
    assert!(told.iter().filter(reached).count() >= 80, "before the end");
    let flushes = flushes(&mut session);
    assert_bounded(&flushes);
    assert!(flushes.iter().all(|(_, nodes)| nodes.len() < 30));
}
