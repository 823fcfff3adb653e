//! Attacks on a session by hosts that see no unicast, and the possibilities of hosts without proofs.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_core::{Span, Time};
use farcast_mftp::message::{
    Abort, Completion, DeclineReason, Done, Echo, End, Nak, Quit, Registration, RegistrationEntry, cancel,
};
use farcast_mftp::{
    Body, ClientId, GivenUp, Group, Invited, MemberState, Message, Proof, Receiver, ReceiverConfig,
    ReceiverOutcome, Sender, SenderConfig, SenderEvent, SenderOutcome, Start,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, at, group, ms, receiver, receiver_address, secs, sender, server};

/// Returns a sender of 300 DTUs to a closed group of `receivers`, which waits a minute for silent ones.
pub(crate) fn closed(receivers: usize) -> SenderConfig {
    let mut config = sender(300, 16, receivers as u32);
    let invited = (0..receivers).map(|n| Invited::new(&receiver_address(n).ip().to_string()));
    config.group = Group::Closed(invited.collect());
    config.silence = secs(60);
    config
}

pub(crate) fn client(n: usize) -> ClientId {
    ClientId::from_address(receiver_address(n).ip())
}

pub(crate) fn accepts(n: usize, nonce: Option<Proof>) -> Body {
    Body::Registration(Registration {
        heard: None,
        complete: None,
        round: None,
        server: server(),
        entries: vec![RegistrationEntry { client: client(n), serial: None, response: Ok(()) }],
        name: None,
        segments_held: None,
        receive_buffer_bytes: None,
        nonce,
    })
}

pub(crate) fn done(n: usize) -> Body {
    Body::Done(Done { round: None, server: server(), client: client(n), naked_dtus: 0, duration_s: 1 })
}

/// Hands the sender `body` from `source` at `when`.
pub(crate) fn forge(session: &mut Session, when: Span, source: SocketAddr, body: Body) {
    let sender = session.sender;
    let message = Message::new(1, body);
    session.net.at(at(when), sender, move |engine: &mut Sender, now| {
        // The tests look at the consequences.
        let _ = engine.handle(now, &Arrival::new(source, server()), &message);
    });
}

/// Hands receiver `n` a `message` at `when`, as if from the session's sender.
pub(crate) fn forge_at_receiver(session: &mut Session, when: Span, n: usize, message: Message) {
    let handle = session.clients[n].handle;
    session.net.at(at(when), handle, move |engine: &mut Receiver, now| {
        let _ = engine.handle(now, &Arrival::new(server(), group()), &message);
    });
}

pub(crate) fn state(session: &Session, n: usize) -> MemberState {
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
        assert_eq!(
            state(&session, 0),
            MemberState::Lost(GivenUp::Silent),
            "it has not everything, and is gone"
        );
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        assert_eq!(session.engine().rejects().of(Reject::Unproven), 1);
    }
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
        Body::Completion(Completion { turn: None, hosts: None }),
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
fn nobody_speaks_for_a_member_without_its_token() {
    let mut session = Session::new("speaks", Setup::plain(1), closed(1), 1, Link::clean(ms(100)));
    session.net.run_until(at(ms(900)));
    let mut engine = session.engine().clone();
    let mut missing = farcast_core::Bitmap::new(16);
    missing.insert(3);
    let nak =
        Nak { server: server(), client: client(0), pass: 1, block: 0, missing, parity_held: 0, unstored: 0 };
    let from = Arrival::new(receiver_address(0), server());
    for proof in [None, Some(Proof([3; 8]))] {
        let message = Message { transmission: 1, body: Body::Nak(nak.clone()), proof };
        assert_eq!(engine.handle(at(ms(900)), &from, &message), Err(Reject::Unproven));
    }
    assert_eq!(engine.stats().naks, 0);
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
    // A receiver of the draft that declines is at its address, and nobody is waited for.
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
    config.start = Start::default();
    let mut session = Session::new("refused", Setup::plain(1), config, 2, Link::clean(ms(100)));
    let Body::Registration(mut refusal) = accepts(1, None) else { unreachable!() };
    refusal.entries[0].response = Err(DeclineReason::Disk);
    forge(&mut session, ms(500), receiver_address(1), Body::Registration(refusal));
    let late = session.clients[1].handle;
    session.net.appear(at(secs(20)), late);
    session.run().assert_complete();
}

#[test]
fn who_has_everything_already_ends_it_before_data() {
    // The same command twice: all receivers hold everything, and report that while the sender still announces.
    for group in [None, Some(Group::OpenLimited { limit: 1024 })] {
        let mut config = closed(2);
        config.start = Start { after: Some(secs(3)), ..Start::default() };
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
    // One receiver is near and confirms at once; the others are half a second away.
    let mut config = closed(3);
    config.start = Start::default();
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
    // Claims without proofs come from the address where the receiver answers. So the sender's echo, which is to be
    // returned, reaches the receiver.
    let mut refusal = accepts(0, None);
    if let Body::Registration(m) = &mut refusal {
        m.entries[0].response = Err(DeclineReason::Disk);
    }
    let quit = Body::Quit(Quit { reason: cancel::QUIT_APPLICATION, client: Some(client(0)), text: None });
    // Before the receiver has registered, and when it is a member.
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
fn forged_naks_of_an_unlimited_group_have_an_end() {
    let mut config = sender(40, 16, 1);
    (config.group, config.start.after) = (Group::OpenUnlimited, Some(ms(500)));
    let mut session = Session::new("naks", Setup::plain(1), config, 1, Link::clean(ms(100)));
    session.net.limit(secs(40_000));
    for second in 1..10_000 {
        let mut missing = farcast_core::Bitmap::new(16);
        missing.insert_run(farcast_core::Run::new(0, 16).expect("a run"));
        let nak = Nak {
            server: server(),
            client: client(7),
            pass: 1,
            block: 0,
            missing,
            parity_held: 0,
            unstored: 0,
        };
        let sender = session.sender;
        session.net.at(at(secs(second)), sender, move |engine: &mut Sender, now| {
            // The NAK answers the current pass.
            let nak = Nak { pass: engine.pass().round, ..nak };
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
fn requests_in_the_senders_name_draw_little_from_a_member() {
    // A receiver that has heard only a third of the data lacks the rest, and is asked for it a thousand times.
    let mut config = closed(1);
    config.block_size = 4;
    config.backoff_window = Span::ZERO;
    let mut session = Session::new("drawn", Setup::plain(1), config, 1, Link::clean(ms(100)));
    let receiver = session.clients[0].handle.index();
    let said = std::rc::Rc::new(std::cell::Cell::new(0));
    let heard = said.clone();
    session.net.drop_if(move |leg| {
        if leg.from == receiver && (at(secs(2))..at(secs(4))).contains(&leg.at) {
            heard.set(heard.get() + farcast_core::engine::Message::wire_len(&leg.message, 0));
        }
        leg.at >= at(ms(600)) && leg.from != receiver
    });
    let run = |count| farcast_core::Run::new(0, count).expect("not empty");
    for n in 0..1000 {
        let request = farcast_mftp::message::StatusRequest {
            turn: None,
            pass: 1,
            blocks: run(75),
            dtus: run(4),
            status: farcast_mftp::message::StatusType::NakOnly,
            hosts: None,
        };
        forge_at_receiver(&mut session, secs(2) + ms(n), 0, Message::new(1, Body::StatusRequest(request)));
    }
    session.run();
    // Three times the requests, an eighth of the data, and the receiver's allowance of three seconds.
    let most = 3 * 1000 * 52 + 300_000 / 8 + 3 * (8 << 10);
    assert!(said.get() <= most, "{} octets, {most} at most", said.get());
}
