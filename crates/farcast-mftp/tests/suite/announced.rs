//! Forged announcements, and sessions that are announced and not served.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine};
use farcast_mftp::message::{Completion, cancel};
use farcast_mftp::{
    Body, MemberState, Message, Proof, Receiver, Sender, SenderConfig, SenderEvent, SenderOutcome, Start,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, at, group, ms, receiver, receiver_address, secs, server};
use crate::proofs::{client, closed, forge_at_receiver, state};

/// Returns the first announcement of a sender with these settings.
fn announcement(config: &SenderConfig) -> Message {
    let mut engine = Sender::new(config.clone()).expect("valid");
    engine.open(Time::ZERO);
    engine.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message
}

#[test]
fn a_session_of_the_draft_that_falls_silent_gives_way() {
    // A host announces a product as in the draft, sends one DTU of it, and falls silent.
    let mut session = Session::new("gives way", Setup::plain(1), closed(1), 1, Link::clean(ms(100)));
    let sender = session.sender;
    session.net.appear(at(secs(1)), sender);
    session.net.at(at(secs(1)), sender, |engine: &mut Sender, now| engine.open(now));
    let stranger = SocketAddr::from(([203, 0, 113, 1], 666));
    let mut draft = SenderConfig::new(crate::common::product(90_000), stranger, group());
    draft.transmission = 9;
    draft.product.id = [9; 32];
    let len = draft.dtu_size as u16;
    let announcement = announcement(&draft);
    let data = farcast_mftp::message::Data {
        pass: 1,
        block: 0,
        kind: farcast_mftp::message::DataKind::Source,
        dtus: farcast_core::Run::one(0),
        len,
        last_len: len,
    };
    let handle = session.clients[0].handle;
    for (when, message) in [(ms(100), announcement), (ms(200), Message::new(9, Body::Data(data)))] {
        session.net.at(at(when), handle, move |engine: &mut Receiver, now| {
            let result = engine.handle(now, &Arrival::new(stranger, group()), &message);
            assert_eq!(result, Ok(()));
        });
    }
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
    let joined = session.when(|event| matches!(event, SenderEvent::Registered { .. })).expect("registered");
    assert!(joined < at(secs(13)), "the silent session held it until {joined:?}");
}

#[test]
fn a_forged_announcement_in_the_senders_name_does_not_last() {
    // Before the sender's own announcement arrives, a host announces the same transmission with other contents.
    let changes: [fn(&mut farcast_mftp::message::Announce); 8] = [
        |m| m.dtu_size = 900,
        |m| m.product_size += 1,
        |m| m.block_size = 8,
        |m| m.product_id = Some([9; 32]),
        |m| m.transfer_duration_s = 6,
        |m| m.commitment = Some(Proof([9; 8])),
        |m| m.commitment = None,
        |m| m.response.set_port(9),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut config = closed(1);
        config.late_announce_interval = secs(1);
        let mut message = announcement(&config);
        let Body::Announce(m) = &mut message.body else { unreachable!() };
        change(m);
        let mut session = Session::new("announced", Setup::plain(1), config, 1, Link::clean(ms(100)));
        forge_at_receiver(&mut session, ms(50), 0, message);
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished), "change {n}");
        assert_eq!(state(&session, 0), MemberState::Done, "change {n}");
        assert!(session.clients[0].owner.is_complete(), "change {n}");
        assert!(session.engine().members().all(|(_, m)| m.is_proven()), "change {n}");
        assert!(session.net.now() < at(secs(60)), "change {n}: {:?}", session.net.now());
    }
}

#[test]
fn what_a_forged_announcement_began_and_ended_begins_anew() {
    // A host announces in the sender's name, as in the draft, and ends or declines it before the sender is heard.
    for declines in [false, true] {
        let mut config = closed(1);
        config.start = Start::default();
        let mut message = announcement(&config);
        let Body::Announce(m) = &mut message.body else { unreachable!() };
        (m.commitment, m.product_size) = (None, 1 + u64::from(declines));
        let mut session = Session::new("anew", Setup::plain(1), config, 1, Link::clean(ms(100)));
        forge_at_receiver(&mut session, ms(50), 0, message);
        if declines {
            let handle = session.clients[0].handle;
            session
                .net
                .at(at(ms(60)), handle, |engine: &mut Receiver, _| engine.fail(cancel::QUIT_SYSTEM, None));
        } else {
            forge_at_receiver(
                &mut session,
                ms(60),
                0,
                Message::new(1, Body::Completion(Completion { turn: None, hosts: None })),
            );
        }
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished), "declines: {declines}");
        assert_eq!(state(&session, 0), MemberState::Done, "declines: {declines}");
    }
}

#[test]
fn who_follows_another_sender_forgets_what_the_first_one_announced() {
    // Another host announces the same product before the sender begins, with a duration of five seconds, or with
    // registrations spread over weeks.
    let changes: [fn(&mut farcast_mftp::message::Announce); 2] =
        [|m| m.transfer_duration_s = 5, |m| m.backoff_window_ms = Some(u32::MAX)];
    for change in changes {
        let mut config = closed(1);
        config.start = Start::default();
        let mut message = announcement(&config);
        let Body::Announce(m) = &mut message.body else { unreachable!() };
        m.hosts = Some(vec![(client(0), farcast_mftp::message::HostState::Pending)]);
        change(m);
        let mut session = Session::new("forgets", Setup::plain(1), config, 1, Link::clean(ms(100)));
        let sender = session.sender;
        session.net.appear(at(ms(4500)), sender);
        let (handle, stranger) = (session.clients[0].handle, SocketAddr::from(([203, 0, 113, 1], 666)));
        session.net.at(at(ms(100)), handle, move |engine: &mut Receiver, now| {
            let _ = engine.handle(now, &Arrival::new(stranger, group()), &message);
        });
        session.net.at(at(ms(4500)), sender, |engine: &mut Sender, now| engine.open(now));
        session.net.drop_if(|leg| leg.at < at(secs(5)) && matches!(leg.message.body, Body::Registration(_)));
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        assert_eq!(state(&session, 0), MemberState::Done);
    }
}

#[test]
fn a_nonce_is_for_the_sender_alone() {
    // If answers are multicast, so that receivers hear one another, registrations are not.
    let mut config = closed(2);
    config.response = SocketAddr::new(crate::common::response_group(), group().port());
    let mut session = Session::new("alone", Setup::plain(1), config, 2, Link::lossy(ms(100), 0.1)).run();
    session.assert_complete();
    let log = session.net.take_log();
    let is_one = |leg: &&farcast_testkit::Leg<Message>| matches!(leg.message.body, Body::Registration(_));
    let mut registrations = log.legs.iter().filter(is_one).peekable();
    assert!(registrations.peek().is_some());
    assert!(registrations.all(|leg| leg.to == session.sender.index()));
}

#[test]
fn an_announcement_from_another_port_of_the_senders_host_gets_no_token() {
    // The announcement is true, but data does not come from its source. A token for that port would bind the receiver
    // to a nonce for the port alone. After a restart it would be a newcomer under its own name.
    let mut config = closed(1);
    config.late_announce_interval = secs(1);
    let mut engine = Sender::new(config.clone()).expect("valid");
    engine.open(Time::ZERO);
    let message = engine.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message;
    let mut session = Session::new("port", Setup::plain(1), config, 1, Link::clean(ms(100)));
    let mut elsewhere = server();
    elsewhere.set_port(52_865);
    let first = session.clients[0].handle;
    session.net.at(at(ms(50)), first, move |engine: &mut Receiver, now| {
        let _ = engine.handle(now, &Arrival::new(elsewhere, group()), &message);
    });
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let again = session.add_at(address, receiver(0), Ownership::default());
    session.net.vanish(at(ms(900)), first);
    session.net.appear(at(ms(1000)), again.handle);
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
    session.assert_received(&session.clients[1..]);
}
