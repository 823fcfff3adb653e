//! Identity of receivers: claims to names, tokens, and restarts.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_core::{Span, Time};
use farcast_mftp::message::{Completion, Registration, RegistrationEntry};
use farcast_mftp::{
    Body, ClientId, Group, Invited, MemberState, Message, PassWait, Proof, Receiver, ReceiverConfig,
    ReceiverOutcome, Secret, Sender, SenderConfig, SenderEvent, SenderOutcome, Start,
};
use farcast_testkit::{Link, Setup};

use crate::alone::Alone;
use crate::common::{Ownership, Session, at, ms, receiver, receiver_address, secs, sender, server};
use crate::proofs::{accepts, client, closed, done, forge, forge_at_receiver, state};

/// Adds another receiver under the first one's name, which comes at `when`.
fn newcomer(session: &mut Session, when: Span) {
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let other = ReceiverConfig { secret: Some(Secret([99; 32])), ..receiver(0) };
    let newcomer = session.add_at(address, other, Ownership::default());
    session.net.appear(at(when), newcomer.handle);
}

#[test]
fn a_receiver_that_does_not_exist_is_not_done() {
    // It registers as in the draft, or asks for a token, from an unused address.
    for nonce in [None, Some(Proof([9; 8]))] {
        let mut config = sender(300, 16, 1);
        config.silence = secs(60);
        let mut session = Session::new("ghost", Setup::plain(1), config, 1, Link::clean(ms(100)));
        forge(&mut session, ms(150), receiver_address(7), accepts(7, nonce));
        forge(&mut session, ms(900), receiver_address(7), done(7));
        let session = session.run();
        session.assert_complete();
        let ghost = session.engine().members().find(|(id, _)| *id == client(7));
        assert!(ghost.is_none(), "what nobody has shown to be true is forgotten: {ghost:?}");
    }
}

#[test]
fn a_name_goes_to_who_shows_that_it_is_there() {
    // A host registers under the name of a later receiver, from an unused address.
    let mut session = Session::new("squatter", Setup::plain(1), closed(2), 2, Link::clean(ms(100)));
    forge(&mut session, ms(50), receiver_address(9), accepts(1, Some(Proof([9; 8]))));
    let late = session.clients[1].handle;
    session.net.appear(at(ms(900)), late);
    let session = session.run();
    session.assert_complete();
}

#[test]
fn a_newcomer_does_not_take_the_name_of_a_member_that_pauses() {
    // The newcomer is a complete engine; the member is away for three seconds in the middle.
    let mut config = closed(1);
    config.late_announce_interval = ms(300);
    let mut session = Session::new("newcomer", Setup::plain(1), config, 1, Link::clean(ms(100)));
    let member = session.clients[0].handle;
    session.net.freeze(at(ms(900)), member, secs(3), 100);
    newcomer(&mut session, ms(1000));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    session.assert_received(&session.clients[..1]);
    let member = session.engine().members().next().map(|(_, m)| (m.address, m.state.clone(), m.replaced));
    assert_eq!(member, Some((Some(receiver_address(0)), MemberState::Done, None)));
}

#[test]
fn one_that_took_the_name_of_a_lost_member_is_told() {
    let mut config = closed(2);
    config.late_announce_interval = ms(300);
    config.silence = secs(2);
    let link = Link::clean(ms(100));
    let mut session = Session::new("replaced", Setup::plain(1), config, 2, link);
    // The other receiver is far from complete, so that the session continues.
    let other = session.clients[1].handle;
    session.net.freeze(at(ms(900)), other, secs(1), 0);
    let member = session.clients[0].handle;
    session.net.vanish(at(ms(900)), member);
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let config = ReceiverConfig { secret: Some(Secret([99; 32])), ..receiver(0) };
    let newcomer = session.add_at(address, config, Ownership::default());
    session.net.appear(at(secs(1)), newcomer.handle);
    let session = session.run();
    let replaced = session.engine().members().next().and_then(|(_, m)| m.replaced);
    assert!(
        state(&session, 0) != MemberState::Done || replaced == Some(receiver_address(0)),
        "the first has not everything: {:?}, {replaced:?}",
        state(&session, 0)
    );
}

#[test]
fn lost_tokens_are_asked_for_again() {
    for seed in 0..20 {
        let mut config = closed(3);
        config.late_announce_interval = secs(1);
        let link = Link::clean(ms(100));
        let mut session = Session::new("tokens", Setup::plain(seed), config, 3, link);
        let mut random = farcast_core::random::RandomStream::derive(seed, &[98]);
        session.net.drop_if(move |leg| {
            matches!(leg.message.body, Body::Grant(_) | Body::Registration(_)) && random.chance(0.6)
        });
        session.run().assert_complete();
    }
}

#[test]
fn a_remembered_receiver_confirms_now_or_is_not_done() {
    for comes in [true, false] {
        let mut config = closed(2);
        config.start = Start::default();
        let mut session = Session::new("remembered", Setup::plain(1), config, 2, Link::clean(ms(100)));
        let sender = session.sender;
        session.net.at(Time::ZERO, sender, |engine: &mut Sender, _| engine.remember(client(0)));
        let gone = session.clients[0].handle;
        if !comes {
            session.net.vanish(Time::ZERO, gone);
        }
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        session.assert_received(&session.clients[usize::from(!comes)..]);
        let expected = if comes { MemberState::Done } else { MemberState::Invited };
        assert_eq!(state(&session, 0), expected);
        let began = session.when(|event| matches!(event, SenderEvent::Started { .. })).expect("data");
        assert!(began < at(secs(1)), "data did not wait for it");
    }
}

#[test]
fn who_starts_again_is_known_by_its_proof_where_its_registration_is_lost() {
    let mut config = closed(1);
    config.late_announce_interval = ms(300);
    let mut session = Session::new("known", Setup::plain(1), config, 1, Link::clean(ms(100)));
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let again = session.add_at(address, receiver(0), Ownership::default());
    let first = session.clients[0].handle;
    session.net.vanish(at(ms(900)), first);
    session.net.appear(at(ms(1000)), again.handle);
    let new = again.handle.index();
    session.net.drop_if(move |leg| {
        leg.from == new && leg.at < at(secs(3)) && matches!(leg.message.body, Body::Done(_))
    });
    // It gets its token for the registration without a proof; all registrations with one are lost.
    let number = again.handle.index();
    session.net.drop_if(move |leg| {
        let proven = leg.from == number && leg.message.proof.is_some();
        proven && matches!(leg.message.body, Body::Registration(_))
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    session.assert_received(&session.clients[1..]);
    assert_eq!(state(&session, 0), MemberState::Done);
}

#[test]
fn nothing_is_confirmed_to_who_has_no_token_yet() {
    // It holds everything and reports that before its token comes; the confirmation is forged at once.
    let mut session = Session::empty("confirmed", Setup::plain(1), closed(1), Link::clean(ms(100)));
    let holds_all = Ownership { lacks: Some(Vec::new()), ..Ownership::default() };
    session.add(0, receiver(0), holds_all);
    let confirmation = Body::Completion(Completion { turn: None, hosts: Some(vec![client(0)]) });
    forge_at_receiver(&mut session, ms(150), 0, Message::new(1, confirmation));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
    let outcomes = session.clients[0].owner.outcomes();
    assert!(matches!(outcomes[..], [ReceiverOutcome::Complete { confirmed: true, .. }]), "{outcomes:?}");
}

#[test]
fn one_that_has_proofs_does_not_come_back_without() {
    let mut session = Session::new("without", Setup::plain(1), closed(1), 1, Link::clean(ms(100)));
    session.net.run_until(at(ms(900)));
    let mut engine = session.engine().clone();
    assert!(engine.members().all(|(_, m)| m.is_proven()));
    let from = Arrival::new(receiver_address(0), server());
    let message = Message::new(1, accepts(0, None));
    assert_eq!(engine.handle(at(ms(900)), &from, &message), Err(Reject::Unproven));
    // Nor if its host returns the echo.
    let returned = std::iter::from_fn(|| engine.poll_transmit(at(ms(900)), at(ms(900)))).find_map(|t| {
        if let Body::Echo(echo) = t.message.body { Some(Body::EchoResponse(echo)) } else { None }
    });
    let returned = Message::new(0, returned.expect("it is asked to show itself"));
    engine.handle(at(ms(901)), &from, &returned).expect("it was sent there");
    let _ = engine.handle(at(ms(902)), &from, &message);
    assert!(engine.members().all(|(_, m)| m.is_proven()), "it keeps its proofs");
}

#[test]
fn a_hundred_thousand_names_do_not_keep_a_sender_busy() {
    // Each name costs logarithmic time; a pass over all members for each would take minutes here.
    let mut config = sender(300, 16, 200_000);
    config.group = Group::OpenLimited { limit: 200_000 };
    let mut engine = Sender::new(config).expect("valid");
    engine.open(Time::ZERO);
    for n in 0..100_000u32 {
        let Body::Registration(mut m) = accepts(0, Some(Proof([1; 8]))) else { unreachable!() };
        m.entries[0].client = ClientId(n);
        let from = SocketAddr::from(([10, 1, (n >> 8) as u8, n as u8], 4000));
        let message = Message::new(1, Body::Registration(m));
        assert_eq!(engine.handle(at(ms(1)), &Arrival::new(from, server()), &message), Ok(()));
        while engine.poll_transmit(at(ms(1)), at(ms(2))).is_some() {}
    }
    assert_eq!(engine.members().count(), 100_000);
}

#[test]
fn one_datagram_does_not_fill_a_group() {
    let mut engine = Sender::new(sender(300, 16, 9)).expect("valid");
    engine.open(Time::ZERO);
    let Body::Registration(mut m) = accepts(0, None) else { unreachable!() };
    m.entries = (0..1024)
        .map(|n| RegistrationEntry { client: ClientId(n), serial: None, response: Ok(()) })
        .collect();
    let message = Message::new(1, Body::Registration(m));
    let result = engine.handle(at(ms(1)), &Arrival::new(receiver_address(5), server()), &message);
    assert_eq!((result, engine.members().count()), (Err(Reject::Limit), 1));
}

#[test]
fn what_one_host_says_makes_no_other_be_asked() {
    // A claim to the receiver's name from an unused address, on another host or at another port of its own, is followed
    // by every message that the receiver may send without proofs.
    let mut port = receiver_address(0);
    port.set_port(41_000);
    for elsewhere in [receiver_address(9), port] {
        tokens_for(elsewhere);
    }
}

fn tokens_for(elsewhere: SocketAddr) {
    let mut engine = Sender::new(closed(1)).expect("valid");
    engine.open(Time::ZERO);
    let claim = Message::new(1, accepts(0, Some(Proof([9; 8]))));
    let _ = engine.handle(at(ms(10)), &Arrival::new(elsewhere, server()), &claim);
    let mut tokens = 0;
    for n in 0..50 {
        let now = at(ms(20 + n * 150));
        let _ = engine.handle(now, &Arrival::new(receiver_address(0), server()), &Message::new(1, done(0)));
        engine.handle_timeout(now);
        while let Some(transmit) = engine.poll_transmit(now, now) {
            tokens += u32::from(transmit.destination == elsewhere);
        }
    }
    assert_eq!(tokens, 1, "the one that its own claim asked for");
}

#[test]
fn one_that_takes_the_name_of_a_member_that_left_is_told() {
    let mut config = closed(2);
    config.late_announce_interval = ms(300);
    let mut session = Session::new("left", Setup::plain(1), config, 2, Link::clean(ms(100)));
    let member = session.clients[0].handle;
    session.net.at(at(ms(900)), member, |engine: &mut Receiver, now| engine.stop(now));
    newcomer(&mut session, ms(1000));
    let session = session.run();
    let replaced = session.engine().members().next().and_then(|(_, m)| m.replaced);
    assert_eq!((state(&session, 0), replaced), (MemberState::Done, Some(receiver_address(0))));
}

#[test]
fn who_starts_again_with_everything_in_the_drafts_way_stays_done() {
    // It registers from its new port, and its Done from there is lost until its old port has not answered.
    let mut config = SenderConfig { secret: None, ..closed(2) };
    config.late_announce_interval = ms(300);
    let mut session = Session::empty("again", Setup::plain(1), config, Link::clean(ms(100)));
    let holds_all = Ownership { lacks: Some(Vec::new()), ..Ownership::default() };
    let first = session.add(0, receiver(0), holds_all.clone()).handle;
    session.add(1, receiver(1), Ownership::default());
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let again = session.add_at(address, ReceiverConfig { secret: None, ..receiver(0) }, holds_all);
    session.net.vanish(at(ms(900)), first);
    session.net.appear(at(ms(1000)), again.handle);
    let new = again.handle.index();
    session.net.drop_if(move |leg| {
        leg.from == new && leg.at < at(secs(3)) && matches!(leg.message.body, Body::Done(_))
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
    let times =
        session.count(|event| matches!(event, SenderEvent::Registered { client: c, .. } if *c == client(0)));
    assert_eq!(times, 1, "it is not asked for what it has");
}

/// Returns the registration of receiver `n`, called `name`, which holds `held` segments.
fn registers(n: usize, name: &str, held: Option<u32>) -> Body {
    let (name, segments_held) = (Some(name.into()), held);
    Body::Registration(Registration { name, segments_held, ..Registration::new(server(), client(n), Ok(())) })
}

#[test]
fn a_claim_that_nobody_answers_leaves_no_sender_waiting() {
    let mut config = SenderConfig { secret: None, pass_wait: PassWait::FixedTimer, ..sender(20, 20, 1) };
    config.group = Group::OpenLimited { limit: 3 };
    config.start = Start { after: Some(secs(3)), with_first: true, ..Start::default() };
    let mut alone = Alone::new(config);
    let mut again = receiver_address(0);
    again.set_port(41_000);
    alone.now = at(ms(100));
    assert_eq!(alone.hear(receiver_address(0), registers(0, "one", None)), Ok(()));
    alone.run_until(at(ms(600)));
    assert_eq!(alone.hear(receiver_address(0), done(0)), Ok(()));
    // It starts again with everything, and is switched off before the sender has decided. Meanwhile the time ends for
    // which the group is open.
    alone.run_until(at(ms(2900)));
    assert_eq!(alone.hear(again, registers(0, "one", Some(20))), Ok(()));
    alone.run_until(at(secs(30)));
    let ended = alone.told.iter().find(|(_, event)| matches!(event, SenderEvent::Ended(_)));
    assert!(ended.is_some_and(|(time, _)| *time < at(secs(15))), "{:?}", alone.told);
}

#[test]
fn one_that_was_admitted_by_its_nak_may_start_again_with_its_name() {
    let invited = (0..40).map(|n| Invited { label: n.to_string(), id: client(n) });
    let mut config = SenderConfig { secret: None, turns: true, ..sender(20, 20, 1) };
    (config.group, config.parity_symbols) = (Group::Closed(invited.collect()), 5);
    (config.parity_ahead, config.early_data) = (true, ms(900));
    config.start = Start { with_first: true, ..Start::default() };
    let mut alone = Alone::new(config);
    alone.now = at(ms(100));
    assert_eq!(alone.hear(receiver_address(5), registers(5, "five", None)), Ok(()));
    alone.run_until(at(secs(4)));
    assert_eq!(alone.nak(0, 1, 0, &[3]), Ok(()));
    let mut again = receiver_address(0);
    again.set_port(41_000);
    assert_eq!(alone.hear(again, registers(0, "one", None)), Ok(()), "it is asked at its old port");
    // A host elsewhere does not get its place.
    assert_eq!(alone.hear(receiver_address(7), registers(0, "one", None)), Err(Reject::Collision));
}

#[test]
fn who_reported_before_it_had_its_token_proves_it_when_it_comes() {
    // It has everything, and its reports are lost for so long that it has stopped sending them when data begins.
    let mut config = closed(2);
    config.start = Start { after: Some(secs(120)), ..Start::default() };
    let mut session = Session::empty("again", Setup::plain(1), config, Link::clean(ms(100)));
    session.add(0, receiver(0), Ownership { lacks: Some(Vec::new()), ..Ownership::default() });
    session.add(1, receiver(1), Ownership::default());
    let (first, sender) = (session.clients[0].handle.index(), session.sender.index());
    session.net.outage(at(secs(0))..at(secs(119)), Some(first), Some(sender));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!((state(&session, 0), state(&session, 1)), (MemberState::Done, MemberState::Done));
    assert!(session.engine().members().all(|(_, m)| m.is_proven()));
    assert!(session.net.now() < at(secs(140)), "{:?}", session.net.now());
}

#[test]
fn while_data_runs_a_claim_makes_nobody_wait() {
    // A host claims every few seconds to be an invited receiver that is away.
    let mut config = closed(2);
    config.start = Start { receivers: Some(1), ..Start::default() };
    let mut session = Session::new("claims", Setup::plain(1), config, 1, Link::clean(ms(100)));
    for n in 0..100 {
        forge(&mut session, ms(500 + 3000 * n), receiver_address(9), accepts(1, Some(Proof([9; 8]))));
    }
    let session = session.run();
    assert_eq!((state(&session, 0), state(&session, 1)), (MemberState::Done, MemberState::Invited));
    assert!(session.when(|event| *event == SenderEvent::Delivered) < Some(at(secs(10))));
}
