//! Receivers and senders that leave and come back (rules 18 to 25).

use std::collections::BTreeSet;

use farcast_core::Time;
use farcast_mftp::message::cancel;
use farcast_mftp::{
    Body, GivenUp, MemberState, PassWait, Receiver, ReceiverConfig, ReceiverOutcome, Sender, SenderConfig,
    SenderEvent, SenderOutcome,
};
use farcast_testkit::{Link, Setup};

use crate::common::{
    Ownership, Session, add_sender, at, data, ms, receiver, receiver_address, secs, sender, sent,
};
use crate::proofs::{client, closed, state};

#[test]
fn a_receiver_that_vanishes_is_lost_and_the_others_finish() {
    for wait in [PassWait::Draft, PassWait::FixedTimer] {
        let config = SenderConfig { pass_wait: wait, status_retry_count: 4, ..sender(60, 60, 3) };
        let mut session = Session::new("vanishes", Setup::plain(1), config, 3, Link::clean(ms(100)));
        let gone = session.clients[1].handle;
        session.net.vanish(at(ms(400)), gone);
        let mut session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished), "{wait:?}");
        session.assert_received(&[session.clients[0].clone(), session.clients[2].clone()]);
        let state = session.engine().members().nth(1).map(|(_, m)| m.state.clone());
        assert_eq!(state, Some(MemberState::Lost(GivenUp::Silent)));
        let lost = session.when(|event| matches!(event, SenderEvent::Lost { .. })).expect("lost");
        let log = session.net.take_log();
        let last_data = data(&log, 0).last().expect("data").0;
        let asked = sent(&log, 0, |body| matches!(body, Body::StatusRequest(_)).then_some(()));
        let rounds: BTreeSet<Time> =
            asked.iter().map(|(at, ())| *at).filter(|at| *at > last_data && *at < lost).collect();
        // The pass's own request, and the retries.
        assert_eq!(rounds.len(), 1 + 4, "{wait:?}");
    }
}

#[test]
fn when_all_vanish_it_is_aborted() {
    let mut session = Session::new("all vanish", Setup::plain(1), sender(60, 16, 2), 2, Link::clean(ms(100)));
    for client in session.clients.clone() {
        session.net.vanish(at(ms(400)), client.handle);
    }
    let reason = cancel::ABORT_STATUS_TIMEOUT;
    assert_eq!(session.run().outcome(), Some(SenderOutcome::Aborted { reason }));
}

#[test]
fn a_receiver_quits_and_the_others_finish() {
    let mut session = Session::new("quits", Setup::plain(1), sender(60, 16, 3), 3, Link::clean(ms(100)));
    let handle = session.clients[1].handle;
    session.net.at(at(ms(400)), handle, |engine: &mut Receiver, now| engine.stop(now));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    session.assert_received(&[session.clients[0].clone(), session.clients[2].clone()]);
    assert_eq!(session.clients[1].owner.outcomes(), [ReceiverOutcome::Stopped]);
    let quit =
        |event: &SenderEvent| matches!(event, SenderEvent::Quit { reason: cancel::QUIT_APPLICATION, .. });
    assert_eq!(session.count(quit), 1, "told once, although it is sent three times");
    assert_eq!(session.count(|event| matches!(event, SenderEvent::Lost { .. })), 0);
}

#[test]
fn who_is_dismissed_is_not_waited_for() {
    // A receiver that has not answered yet, and one that takes part.
    for (when, vanishes) in [(ms(500), ms(0)), (ms(900), ms(800))] {
        let mut session = Session::new("dismissed", Setup::plain(1), closed(2), 2, Link::clean(ms(100)));
        let (sender, gone) = (session.sender, session.clients[1].handle);
        session.net.vanish(at(vanishes), gone);
        session.net.at(at(when), sender, |engine: &mut Sender, now| engine.dismiss(now, client(1)));
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished), "{when}");
        session.assert_received(&session.clients[..1]);
        assert_eq!(state(&session, 1), MemberState::Lost(GivenUp::Dismissed), "{when}");
        let ended = session.when(|event| matches!(event, SenderEvent::Ended(_))).expect("it ends");
        assert!(ended < at(secs(30)), "its silence would be 60 s: {ended:?}");
    }
}

#[test]
fn who_asks_for_more_than_anyone_can_need_is_served_no_more() {
    let mut session = Session::new("deaf", Setup::plain(1), closed(2), 2, Link::clean(ms(100)));
    session.net.limit(secs(1000));
    let deaf = session.clients[1].handle.index();
    session.net.drop_if(move |leg| leg.to == deaf && matches!(leg.message.body, Body::Data(_)));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    session.assert_received(&session.clients[..1]);
    assert_eq!(state(&session, 1), MemberState::Lost(GivenUp::Greedy));
    let given_up = SenderEvent::Lost { client: client(1), why: GivenUp::Greedy };
    assert_eq!(session.count(|event| *event == given_up), 1, "told once, although it goes on asking");
    // All DTUs that it may request, and a pass for both receivers.
    let sent: u64 = session.engine().stats().dtus_per_pass.iter().sum();
    assert!((300 * 16..=300 * 18 + 4096).contains(&sent), "{sent} DTUs of 300");
}

#[test]
fn the_sender_aborts() {
    for when in [ms(150), ms(500), ms(900)] {
        let link = Link::lossy(ms(100), 0.1);
        let mut session = Session::new("aborts", Setup::plain(3), sender(200, 16, 3), 3, link);
        let sender = session.sender;
        session
            .net
            .at(at(when), sender, |engine: &mut Sender, now| engine.abort(now, 3001, Some("enough".into())));
        let session = session.run();
        let reason = cancel::ABORT_APPLICATION;
        assert_eq!(session.outcome(), Some(SenderOutcome::Aborted { reason }));
        for client in &session.clients {
            let told = client.owner.outcomes();
            let text = Some("enough".to_string());
            assert_eq!(told, [ReceiverOutcome::Aborted { reason, text }], "aborted at {when}");
        }
    }
}

#[test]
fn a_sender_that_vanishes_is_given_up() {
    let mut session = Session::new("alone", Setup::plain(1), sender(200, 16, 2), 2, Link::clean(ms(100)));
    let sender = session.sender;
    session.net.vanish(at(ms(700)), sender);
    let session = session.run();
    for client in &session.clients {
        assert_eq!(client.owner.outcomes(), [ReceiverOutcome::SenderLost]);
    }
    let patience = receiver(0).patience;
    assert!(session.net.now() < at(ms(900)) + patience);
}

/// Returns the DTUs of host 0 that at least one receiver lacks, according to the network.
fn lacking(log: &crate::common::MftpLog, receivers: usize, dtus: u32, block: u32) -> BTreeSet<u32> {
    let mut lacking = vec![(0..dtus).collect::<BTreeSet<u32>>(); receivers];
    for leg in log.legs.iter().filter(|leg| leg.from == 0 && leg.to <= receivers && leg.copies > 0) {
        if let Body::Data(d) = &leg.message.body {
            lacking[leg.to - 1].remove(&(d.block * block + d.dtus.first()));
        }
    }
    lacking.into_iter().flatten().collect()
}

#[test]
fn a_sender_starts_again_and_receivers_go_on() {
    for wait in [PassWait::Draft, PassWait::FixedTimer] {
        for seed in 0..10 {
            let config = SenderConfig { pass_wait: wait, ..sender(200, 16, 3) };
            let link = Link::clean(ms(100));
            let mut session = Session::new("starts again", Setup::plain(seed), config.clone(), 3, link);
            let mut random = farcast_core::random::RandomStream::derive(seed, &[99]);
            session.net.drop_if(move |leg| {
                leg.from == 0 && matches!(leg.message.body, Body::Data(_)) && random.chance(0.1)
            });
            let first = session.sender;
            session.net.vanish(at(ms(1200)), first);
            let mut again = SenderConfig { transmission: 2, ..config };
            again.server.set_port(40001);
            again.response = again.server;
            let (_, told) = add_sender(&mut session.net, again, at(secs(3)));
            // The second sender is host 4, and its messages are not lost.
            let mut session = session.run();
            session.assert_received(&session.clients);
            let finished = SenderEvent::Ended(SenderOutcome::Finished);
            assert_eq!(told.borrow().last().map(|(_, event)| event.clone()), Some(finished));
            let restart = |(_, event): &(Time, SenderEvent)| matches!(event, SenderEvent::Started { restart, .. } if *restart);
            assert!(told.borrow().iter().any(restart), "all hold something");
            let log = session.net.take_log();
            let expected = lacking(&log, 3, 200, 16);
            let again: BTreeSet<u32> =
                data(&log, 4).iter().map(|(_, d)| d.block * 16 + d.dtus.first()).collect();
            assert_eq!(again, expected, "{}", session.net.context());
            let pass_1 = data(&log, 4).iter().filter(|(_, d)| d.pass == 1).count();
            assert!(pass_1 <= expected.len());
        }
    }
}

#[test]
fn a_sender_that_starts_again_hears_of_the_complete() {
    // All DTUs are sent after 1.9 s; the first sender is gone before a Done reaches it.
    let config = sender(200, 16, 3);
    let mut session = Session::new("complete", Setup::plain(1), config.clone(), 3, Link::clean(ms(100)));
    let first = session.sender;
    session.net.vanish(at(ms(2000)), first);
    let mut again = SenderConfig { transmission: 2, ..config };
    again.server.set_port(40001);
    again.response = again.server;
    let (_, told) = add_sender(&mut session.net, again, at(secs(3)));
    let mut session = session.run();
    session.assert_received(&session.clients);
    let done = |(_, event): &&(Time, SenderEvent)| matches!(event, SenderEvent::Done { .. });
    assert_eq!(told.borrow().iter().filter(done).count(), 3);
    assert!(data(&session.net.take_log(), 4).is_empty(), "nothing is missing, so nothing is sent");
}

#[test]
fn a_sender_that_starts_again_with_something_else_is_heard() {
    let config = sender(200, 16, 2);
    let mut session =
        Session::new("another product", Setup::plain(1), config.clone(), 2, Link::clean(ms(100)));
    let first = session.sender;
    session.net.vanish(at(ms(1000)), first);
    let mut again = SenderConfig { transmission: 2, dtu_size: 500, ..config };
    again.product.id = [9; 32];
    again.server.set_port(40001);
    again.response = again.server;
    let (_, told) = add_sender(&mut session.net, again, at(secs(3)));
    session.run();
    let finished = |(_, event): &(Time, SenderEvent)| *event == SenderEvent::Ended(SenderOutcome::Finished);
    let done = |(_, event): &&(Time, SenderEvent)| matches!(event, SenderEvent::Done { .. });
    assert!(told.borrow().iter().any(finished));
    assert_eq!(told.borrow().iter().filter(done).count(), 2, "long before patience ends");
}

#[test]
fn receivers_that_hold_half_are_asked_first() {
    let config = SenderConfig { pass_wait: PassWait::FixedTimer, ..sender(100, 16, 2) };
    let mut session = Session::empty("holding half", Setup::plain(1), config, Link::clean(ms(100)));
    let half = |lacks: Vec<u32>| Ownership { lacks: Some(lacks), ..Ownership::default() };
    session.add(0, receiver(0), half((50..100).collect()));
    session.add(1, receiver(1), half((45..60).collect()));
    let mut session = session.run();
    session.assert_complete();
    let log = session.net.take_log();
    let asked = sent(&log, 0, |body| match body {
        Body::StatusRequest(m) => Some(m.pass),
        _ => None,
    });
    assert_eq!(asked[0].1, 0, "pass 0 asks");
    let sent: Vec<u32> = data(&log, 0).iter().map(|(_, d)| d.block * 16 + d.dtus.first()).collect();
    assert_eq!(sent, (45..100).collect::<Vec<_>>());
}

#[test]
fn one_that_holds_nothing_makes_a_full_first_pass() {
    let mut session = Session::empty("mixed", Setup::plain(1), sender(100, 16, 2), Link::clean(ms(100)));
    session.add(0, receiver(0), Ownership { lacks: Some((50..100).collect()), ..Ownership::default() });
    session.add(1, receiver(1), Ownership::default());
    let mut session = session.run();
    session.assert_complete();
    assert_eq!(data(&session.net.take_log(), 0).len(), 100);
}

#[test]
fn one_that_holds_everything_needs_no_data() {
    let mut session = Session::empty("has all", Setup::plain(1), sender(100, 16, 1), Link::clean(ms(100)));
    session.add(0, receiver(0), Ownership { lacks: Some(Vec::new()), ..Ownership::default() });
    let mut session = session.run();
    session.assert_complete();
    assert_eq!(data(&session.net.take_log(), 0).len(), 0);
}

#[test]
fn a_receiver_that_starts_again_comes_from_a_new_port() {
    for (seed, draft) in (0..10).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut config = sender(300, 16, 2);
        config.secret = config.secret.filter(|_| !draft);
        config.late_announce_interval = ms(300);
        let mut session = Session::new("new port", Setup::plain(seed), config, 2, Link::clean(ms(100)));
        crate::common::lose_data(&mut session.net, seed, 0.02);
        let old = session.clients[0].handle;
        session.net.vanish(at(ms(900)), old);
        let mut address = receiver_address(0);
        address.set_port(41000);
        let half = Ownership { lacks: Some((40..300).collect()), ..Ownership::default() };
        let new = session.add_at(address, receiver(0), half);
        session.net.appear(at(ms(1100)), new.handle);
        let mut session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        session.assert_received(&session.clients[1..]);
        let anew = |event: &SenderEvent| matches!(event, SenderEvent::Registered { held: 40.., .. });
        assert_eq!(session.count(anew), 1, "{}", session.net.context());
        let log = session.net.take_log();
        let probes = sent(&log, 0, |body| matches!(body, Body::Echo(_)).then_some(()));
        // Without proofs the old address is asked first; with them the receiver is recognised by its nonce.
        assert!(if draft { probes.len() >= 2 } else { probes.is_empty() });
    }
}

#[test]
fn a_new_port_is_refused_while_the_old_one_answers() {
    let mut config = sender(300, 16, 1);
    config.late_announce_interval = ms(300);
    let mut session = Session::new("collision", Setup::plain(1), config, 1, Link::clean(ms(100)));
    let mut address = receiver_address(0);
    address.set_port(41000);
    let other = ReceiverConfig { secret: receiver(7).secret, ..receiver(0) };
    let second = session.add_at(address, other, Ownership::default());
    session.net.appear(at(ms(600)), second.handle);
    let session = session.run();
    session.assert_received(&session.clients[..1]);
    let outcomes = second.owner.outcomes();
    let refused =
        |o: &ReceiverOutcome| matches!(o, ReceiverOutcome::Aborted { reason: cancel::ABORT_COLLISION, .. });
    assert!(outcomes.first().is_some_and(refused), "{outcomes:?}");
}
