//! Who says what: what a host that sees no unicast can make of a session, and what those without proofs can.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_core::{Span, Time};
use farcast_mftp::message::{
    Abort, Completion, DeclineReason, Done, Echo, End, Nak, Quit, Registration, RegistrationEntry, cancel,
};
use farcast_mftp::{
    Body, ClientId, Group, Invited, MemberState, Message, Proof, Receiver, ReceiverConfig, ReceiverOutcome,
    Secret, Sender, SenderConfig, SenderEvent, SenderOutcome, Start,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, at, group, ms, receiver, receiver_address, secs, sender, server};

/// A sender of 300 DTUs to a closed group of the receivers 0 and 1, which waits a minute for the silent.
fn closed(receivers: usize) -> SenderConfig {
    let mut config = sender(300, 16, receivers as u32);
    let invited = (0..receivers).map(|n| Invited::new(&receiver_address(n).ip().to_string()));
    config.group = Group::Closed(invited.collect());
    config.silence = secs(60);
    config
}

fn client(n: usize) -> ClientId {
    ClientId::from_address(receiver_address(n).ip())
}

fn accepts(n: usize, nonce: Option<Proof>) -> Body {
    Body::Registration(Registration {
        server: server(),
        entries: vec![RegistrationEntry { client: client(n), serial: None, response: Ok(()) }],
        name: None,
        segments_held: None,
        receive_buffer_bytes: None,
        nonce,
    })
}

fn done(n: usize) -> Body {
    Body::Done(Done { server: server(), client: client(n), naked_dtus: 0, duration_s: 1 })
}

/// Has the sender hear `body` from `source` at `when`.
fn forge(session: &mut Session, when: Span, source: SocketAddr, body: Body) {
    let sender = session.sender;
    let message = Message::new(1, body);
    session.net.at(at(when), sender, move |engine: &mut Sender, now| {
        // What comes of it is what the tests look at.
        let _ = engine.handle(now, &Arrival::new(source, server()), &message);
    });
}

/// Has receiver `n` hear `message` at `when`, as if the session's sender had sent it.
fn forge_at_receiver(session: &mut Session, when: Span, n: usize, message: Message) {
    let handle = session.clients[n].handle;
    session.net.at(at(when), handle, move |engine: &mut Receiver, now| {
        let _ = engine.handle(now, &Arrival::new(server(), group()), &message);
    });
}

fn state(session: &Session, n: usize) -> MemberState {
    let found = session.engine().members().find(|(id, _)| *id == client(n));
    found.map(|(_, member)| member.state.clone()).expect("a member")
}

#[test]
fn a_forged_done_is_not_believed() {
    // From the receiver's host, at any port, even its own.
    for port in [5402, 40_404] {
        let mut session = Session::new("done", Setup::plain(1), closed(2), 2, Link::clean(ms(100)));
        let mut source = receiver_address(0);
        source.set_port(port);
        forge(&mut session, ms(900), source, done(0));
        let gone = session.clients[0].handle;
        session.net.vanish(at(ms(800)), gone);
        let session = session.run();
        assert_eq!(state(&session, 0), MemberState::Lost, "it has not everything, and is gone");
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        assert_eq!(session.engine().rejects().of(Reject::Unproven), 1);
    }
}

#[test]
fn a_receiver_that_does_not_exist_is_not_done() {
    // It registers as the draft has it, or asks for a token, from an address where nobody is.
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
    // Somebody registers under the name of a receiver that comes later, from an address where nobody is.
    let mut session = Session::new("squatter", Setup::plain(1), closed(2), 2, Link::clean(ms(100)));
    forge(&mut session, ms(50), receiver_address(9), accepts(1, Some(Proof([9; 8]))));
    let late = session.clients[1].handle;
    session.net.appear(at(ms(900)), late);
    let session = session.run();
    session.assert_complete();
}

#[test]
fn a_newcomer_does_not_take_the_name_of_a_member_that_pauses() {
    // The newcomer is a whole receiver; the member is away for three seconds in the middle.
    let mut config = closed(1);
    config.late_announce_interval = ms(300);
    let mut session = Session::new("newcomer", Setup::plain(1), config, 1, Link::clean(ms(100)));
    let member = session.clients[0].handle;
    session.net.freeze(at(ms(900)), member, secs(3), 100);
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let other = ReceiverConfig { secret: Some(Secret([99; 32])), ..receiver(0) };
    let newcomer = session.add_at(address, other, Ownership::default());
    session.net.appear(at(ms(1000)), newcomer.handle);
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
    // The other has a long way to go, so that the session goes on.
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
fn a_forged_farewell_ends_nothing() {
    let quit = Body::Quit(Quit { reason: cancel::QUIT_APPLICATION, client: Some(client(0)), text: None });
    let refusal = |nonce| {
        let Body::Registration(mut m) = accepts(0, nonce) else { unreachable!() };
        m.entries[0].response = Err(DeclineReason::Disk);
        Body::Registration(m)
    };
    for (when, body) in [
        (ms(20), refusal(None)),
        (ms(20), refusal(Some(Proof([9; 8])))),
        (ms(150), refusal(None)),
        (ms(900), refusal(Some(Proof([9; 8])))),
        (ms(900), quit),
    ] {
        let mut session = Session::new("farewell", Setup::plain(1), closed(1), 1, Link::clean(ms(100)));
        forge(&mut session, when, receiver_address(0), body);
        session.run().assert_complete();
    }
}

#[test]
fn a_receiver_that_declines_is_believed_when_it_has_shown_who_it_is() {
    let mut session = Session::empty("declines", Setup::plain(1), closed(1), Link::clean(ms(100)));
    let declines = Some(DeclineReason::Disk);
    session.add(0, receiver(0), Ownership { declines, ..Ownership::default() });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::NoReceivers));
    assert!(session.net.now() < at(secs(5)), "nobody waits for it");
}

#[test]
fn a_forged_end_is_not_believed() {
    let abort = Abort { reason: cancel::ABORT_SOURCE_CHANGED, hosts: None, text: None };
    let mine = Abort { reason: cancel::ABORT_COLLISION, hosts: Some(vec![client(0)]), text: None };
    let bodies = [
        Body::Abort(abort),
        Body::Abort(mine),
        Body::End(End { server: server(), response: server() }),
        Body::Completion(Completion { hosts: None }),
    ];
    for body in bodies {
        for proof in [None, Some(Proof([7; 8]))] {
            let mut session = Session::new("end", Setup::plain(1), closed(1), 1, Link::clean(ms(100)));
            let message = Message { transmission: 1, body: body.clone(), proof };
            forge_at_receiver(&mut session, ms(900), 0, message);
            let session = session.run();
            session.assert_complete();
            assert_eq!(session.clients[0].owner.outcomes().len(), 1, "{body:?} did not interrupt it");
        }
    }
}

#[test]
fn what_a_sender_of_the_draft_seemed_to_end_is_taken_up_again_while_it_flows() {
    let mut config = SenderConfig { secret: None, ..closed(1) };
    config.late_announce_interval = ms(300);
    let link = Link::clean(ms(100));
    let mut session = Session::new("flows on", Setup::plain(1), config, 1, link);
    forge_at_receiver(
        &mut session,
        ms(600),
        0,
        Message::new(1, Body::Abort(Abort { reason: cancel::ABORT_APPLICATION, hosts: None, text: None })),
    );
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    let outcomes = session.clients[0].owner.outcomes();
    assert!(
        matches!(
            outcomes[..],
            [ReceiverOutcome::Aborted { .. }, ReceiverOutcome::Complete { confirmed: true, .. }]
        ),
        "{outcomes:?}"
    );
}

#[test]
fn a_receiver_of_the_draft_is_served_and_not_proven() {
    let mut session = Session::empty("foreign", Setup::plain(1), closed(2), Link::clean(ms(100)));
    session.add(0, receiver(0), Ownership::default());
    session.add(1, ReceiverConfig { secret: None, ..receiver(1) }, Ownership::default());
    let session = session.run();
    session.assert_complete();
    let proven: Vec<bool> = session.engine().members().map(|(_, m)| m.is_proven()).collect();
    assert_eq!(proven, [true, false]);
}

#[test]
fn a_receiver_with_proofs_takes_part_in_the_drafts_way() {
    let config = SenderConfig { secret: None, ..closed(2) };
    let session = Session::new("draft", Setup::plain(1), config, 2, Link::lossy(ms(100), 0.1)).run();
    session.assert_complete();
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
fn nobody_speaks_for_a_member_without_its_token() {
    let mut session = Session::new("speaks", Setup::plain(1), closed(1), 1, Link::clean(ms(100)));
    session.net.run_until(at(ms(900)));
    let mut engine = session.engine().clone();
    let mut missing = farcast_core::Bitmap::new(16);
    missing.insert(3);
    let nak = Nak { server: server(), client: client(0), pass: 1, block: 0, missing, parity_held: 0 };
    let from = Arrival::new(receiver_address(0), server());
    for proof in [None, Some(Proof([3; 8]))] {
        let message = Message { transmission: 1, body: Body::Nak(nak.clone()), proof };
        assert_eq!(engine.handle(at(ms(900)), &from, &message), Err(Reject::Unproven));
    }
    assert_eq!(engine.stats().naks, 0);
}

#[test]
fn a_remembered_receiver_confirms_now_or_is_not_done() {
    for comes in [true, false] {
        let mut config = closed(2);
        config.start = Start { receivers: None, after: None };
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
fn an_echo_of_strangers_is_answered_within_bounds() {
    let mut engine = Receiver::new(receiver(0)).expect("valid");
    let mut said = 0;
    for n in 0..100_000u32 {
        let echo = Echo { sequence: n, data: Some(vec![0; 1000]), hosts: None };
        let now = at(Span::from_micros(u64::from(n) * 10));
        let _ = engine.handle(
            now,
            &Arrival::new(receiver_address(3), group()),
            &Message::new(0, Body::Echo(echo)),
        );
        while let Some(transmit) = engine.poll_transmit(now, now) {
            said += farcast_core::Message::wire_len(&transmit.message, 0);
        }
    }
    assert!(said < 6000, "{said} octets in a second for whoever asks");
    assert!(engine.poll_event().is_none(), "and nobody is told");
}

#[test]
fn a_refusal_without_proofs_counts_once_its_host_has_answered() {
    // A receiver of the draft that declines is where it says; nobody is waited for.
    let mut session = Session::empty("declines", Setup::plain(1), closed(1), Link::clean(ms(100)));
    let declines = Some(DeclineReason::Disk);
    let draft = ReceiverConfig { secret: None, ..receiver(0) };
    session.add(0, draft, Ownership { declines, ..Ownership::default() });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::NoReceivers));
    assert_eq!(state(&session, 0), MemberState::Declined(DeclineReason::Disk));
    assert!(session.net.now() < at(secs(5)), "nobody waits for it");
}

#[test]
fn a_forged_refusal_does_not_begin_without_who_comes_later() {
    let mut config = closed(2);
    config.start = Start { receivers: None, after: None };
    let mut session = Session::new("refused", Setup::plain(1), config, 2, Link::clean(ms(100)));
    let Body::Registration(mut refusal) = accepts(1, None) else { unreachable!() };
    refusal.entries[0].response = Err(DeclineReason::Disk);
    forge(&mut session, ms(500), receiver_address(1), Body::Registration(refusal));
    let late = session.clients[1].handle;
    session.net.appear(at(secs(20)), late);
    session.run().assert_complete();
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
    // It gets its token for the registration without a proof; all with one are lost.
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
    // It holds everything and says so before its token comes; somebody forges the confirmation at once.
    let mut session = Session::empty("confirmed", Setup::plain(1), closed(1), Link::clean(ms(100)));
    let holds_all = Ownership { lacks: Some(Vec::new()), ..Ownership::default() };
    session.add(0, receiver(0), holds_all);
    let confirmation = Body::Completion(Completion { hosts: Some(vec![client(0)]) });
    forge_at_receiver(&mut session, ms(150), 0, Message::new(1, confirmation));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
    let outcomes = session.clients[0].owner.outcomes();
    assert!(matches!(outcomes[..], [ReceiverOutcome::Complete { confirmed: true, .. }]), "{outcomes:?}");
}

#[test]
fn a_session_of_the_draft_that_falls_silent_gives_way() {
    // Somebody announces a product in the draft's way, sends one DTU of it, and no more.
    let mut session = Session::new("gives way", Setup::plain(1), closed(1), 1, Link::clean(ms(100)));
    let sender = session.sender;
    session.net.appear(at(secs(1)), sender);
    session.net.at(at(secs(1)), sender, |engine: &mut Sender, now| engine.open(now));
    let stranger = SocketAddr::from(([203, 0, 113, 1], 666));
    let mut draft = SenderConfig::new(crate::common::product(90_000), stranger, group());
    draft.transmission = 9;
    draft.product.id = [9; 32];
    let mut other = Sender::new(draft).expect("valid");
    other.open(Time::ZERO);
    let announcement = other.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message;
    let data = farcast_mftp::message::Data {
        pass: 1,
        block: 0,
        kind: farcast_mftp::message::DataKind::Source,
        dtus: farcast_core::Run::one(0),
        len: 1440,
        last_len: 1440,
    };
    let handle = session.clients[0].handle;
    for (when, message) in [(ms(100), announcement), (ms(200), Message::new(9, Body::Data(data)))] {
        session.net.at(at(when), handle, move |engine: &mut Receiver, now| {
            let _ = engine.handle(now, &Arrival::new(stranger, group()), &message);
        });
    }
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
    let joined = session.when(|event| matches!(event, SenderEvent::Registered { .. })).expect("registered");
    assert!(joined < at(secs(13)), "the silent session held it until {joined:?}");
}

#[test]
fn who_has_everything_already_ends_it_before_data() {
    // The same command twice: everybody holds everything, and says so while the sender still announces.
    for group in [None, Some(Group::OpenLimited { limit: 1024 })] {
        let mut config = closed(2);
        config.start = Start { receivers: None, after: Some(secs(3)) };
        config.group = group.unwrap_or(config.group);
        let mut session = Session::empty("twice", Setup::plain(1), config, Link::clean(ms(100)));
        for n in 0..2 {
            session.add(n, receiver(n), Ownership { lacks: Some(Vec::new()), ..Ownership::default() });
        }
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        assert_eq!((state(&session, 0), state(&session, 1)), (MemberState::Done, MemberState::Done));
        assert!(session.when(|event| *event == SenderEvent::Delivered) < Some(at(secs(4))));
    }
}

#[test]
fn those_who_had_everything_get_the_time_to_confirm_it() {
    // One is near and confirms at once, the others are half a second away.
    let mut config = closed(3);
    config.start = Start { receivers: None, after: None };
    let mut session = Session::empty("confirm", Setup::plain(1), config, Link::clean(ms(500)));
    let sender = session.sender;
    for n in 0..3 {
        session.add(n, receiver(n), Ownership { lacks: Some(Vec::new()), ..Ownership::default() });
        session.net.at(Time::ZERO, sender, move |engine: &mut Sender, _| engine.remember(client(n)));
    }
    let near = session.clients[0].handle;
    session.net.link(sender, near, Link::clean(ms(2)));
    session.net.link(near, sender, Link::clean(ms(2)));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    for n in 0..3 {
        assert_eq!(state(&session, n), MemberState::Done, "receiver {n}");
    }
    assert!(session.net.now() < at(secs(9)), "and nobody waits longer than it takes");
}

#[test]
fn nobody_has_a_receiver_vouch_for_him() {
    // Claims without proofs from the very address where the receiver answers: what the sender sends there to be returned
    // reaches the receiver.
    let mut refusal = accepts(0, None);
    if let Body::Registration(m) = &mut refusal {
        m.entries[0].response = Err(DeclineReason::Disk);
    }
    let quit = Body::Quit(Quit { reason: cancel::QUIT_APPLICATION, client: Some(client(0)), text: None });
    // Before it has registered, and when it is a member.
    for start in [ms(10), ms(700)] {
        let mut config = closed(1);
        config.late_announce_interval = ms(300);
        let mut session = Session::new("vouches", Setup::plain(1), config, 1, Link::clean(ms(100)));
        for (n, body) in [accepts(0, None), refusal.clone(), accepts(0, None), refusal.clone(), quit.clone()]
            .into_iter()
            .enumerate()
        {
            forge(&mut session, start + ms(300) * n as u64, receiver_address(0), body);
        }
        let session = session.run();
        session.assert_complete();
        assert_eq!(state(&session, 0), MemberState::Done);
        assert!(session.engine().members().all(|(_, m)| m.is_proven()));
    }
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
    // Even if its host returns what was sent there.
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
    // Each costs the logarithm of how many there are; a look at all for each would take minutes here.
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
    // A claim to the receiver's name from where nobody is, on another host or at another port of its own, and then whatever
    // the receiver may say without proofs.
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
fn a_forged_announcement_in_the_senders_name_does_not_last() {
    // Before its own arrives, somebody announces the same transmission with something else in it.
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
        let mut engine = Sender::new(config.clone()).expect("valid");
        engine.open(Time::ZERO);
        let mut message = engine.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message;
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
    // Announced in the draft's way in the sender's name, and ended so, before the sender is heard; or declined.
    for declines in [false, true] {
        let mut config = closed(1);
        config.start = Start { receivers: None, after: None };
        let mut engine = Sender::new(config.clone()).expect("valid");
        engine.open(Time::ZERO);
        let mut message = engine.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message;
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
                Message::new(1, Body::Completion(Completion { hosts: None })),
            );
        }
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished), "declines: {declines}");
        assert_eq!(state(&session, 0), MemberState::Done, "declines: {declines}");
    }
}

#[test]
fn who_follows_another_sender_forgets_what_the_first_one_announced() {
    // Somebody else announces the same product, to be received within five seconds, before the sender begins.
    let mut config = closed(1);
    config.start = Start { receivers: None, after: None };
    let mut engine = Sender::new(config.clone()).expect("valid");
    engine.open(Time::ZERO);
    let mut message = engine.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message;
    let Body::Announce(m) = &mut message.body else { unreachable!() };
    (m.transfer_duration_s, m.hosts) = (5, Some(vec![(client(0), farcast_mftp::message::Standing::Pending)]));
    let mut session = Session::new("forgets", Setup::plain(1), config, 1, Link::clean(ms(100)));
    let sender = session.sender;
    session.net.appear(at(ms(4500)), sender);
    let (handle, stranger) = (session.clients[0].handle, SocketAddr::from(([203, 0, 113, 1], 666)));
    session.net.at(at(ms(100)), handle, move |engine: &mut Receiver, now| {
        let _ = engine.handle(now, &Arrival::new(stranger, group()), &message);
    });
    session.net.at(at(ms(4500)), sender, |engine: &mut Sender, now| engine.open(now));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
}

#[test]
fn a_nonce_is_for_the_sender_alone() {
    // Where answers are multicast, so that receivers hear one another, registrations are not.
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
fn one_that_takes_the_name_of_a_member_that_left_is_told() {
    let mut config = closed(2);
    config.late_announce_interval = ms(300);
    let mut session = Session::new("left", Setup::plain(1), config, 2, Link::clean(ms(100)));
    let member = session.clients[0].handle;
    session.net.at(at(ms(900)), member, |engine: &mut Receiver, now| engine.stop(now));
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let other = ReceiverConfig { secret: Some(Secret([99; 32])), ..receiver(0) };
    let newcomer = session.add_at(address, other, Ownership::default());
    session.net.appear(at(ms(1000)), newcomer.handle);
    let session = session.run();
    let replaced = session.engine().members().next().and_then(|(_, m)| m.replaced);
    assert_eq!((state(&session, 0), replaced), (MemberState::Done, Some(receiver_address(0))));
}

#[test]
fn forged_naks_of_an_unlimited_group_have_an_end() {
    let mut config = sender(40, 16, 1);
    (config.group, config.start.after) = (Group::OpenUnlimited, Some(ms(500)));
    let mut session = Session::new("naks", Setup::plain(1), config, 1, Link::clean(ms(100)));
    session.net.limit(secs(40_000));
    for second in 1..10_000 {
        let mut missing = farcast_core::Bitmap::new(16);
        missing.insert_run(farcast_core::Run::new(0, 16).expect("a run"));
        let nak = Nak { server: server(), client: client(7), pass: 1, block: 0, missing, parity_held: 0 };
        let sender = session.sender;
        session.net.at(at(secs(second)), sender, move |engine: &mut Sender, now| {
            // It answers whatever pass is at hand.
            let nak = Nak { pass: engine.pass().0, ..nak };
            let _ = engine.handle(
                now,
                &Arrival::new(receiver_address(7), server()),
                &Message::new(1, Body::Nak(nak)),
            );
        });
    }
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    let sent: u64 = session.engine().stats().dtus_per_pass.iter().sum();
    assert!(sent < 40 * 70 + 4096 + 64, "{sent} DTUs of 40");
}

#[test]
fn an_announcement_from_another_port_of_the_senders_host_gets_no_token() {
    // Everything in it is true, but data does not come from there. A token for it would make the receiver known under a nonce that
    // it has for nobody but that port: started again, it would be a newcomer under its own name.
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

#[test]
fn who_starts_again_with_everything_in_the_drafts_way_stays_done() {
    // It registers from its new port and is done before its old one has not answered.
    let mut config = SenderConfig { secret: None, ..closed(2) };
    config.late_announce_interval = ms(300);
    let mut session = Session::new("again", Setup::plain(1), config, 2, Link::clean(ms(100)));
    let first = session.clients[0].handle;
    let mut address = receiver_address(0);
    address.set_port(41_000);
    let holds_all = Ownership { lacks: Some(Vec::new()), ..Ownership::default() };
    let again = session.add_at(address, ReceiverConfig { secret: None, ..receiver(0) }, holds_all);
    session.net.vanish(at(ms(900)), first);
    session.net.appear(at(ms(1000)), again.handle);
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    assert_eq!(state(&session, 0), MemberState::Done);
    let times =
        session.count(|event| matches!(event, SenderEvent::Registered { client: c, .. } if *c == client(0)));
    assert_eq!(times, 1, "it is not asked for what it has");
}
