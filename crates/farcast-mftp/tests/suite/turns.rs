//! Receivers that take turns, because they are too many for the return channel.

use farcast_core::engine::{Arrival, Engine as _, Message as _};
use farcast_core::{BitRate, Span, Time};
use farcast_mftp::message::Registration;
use farcast_mftp::{
    Body, ClientId, Group, HeardData, Invited, MemberState, Message, Proof, Secret, Sender, SenderConfig,
    SenderEvent, SenderOutcome, Start,
};
use farcast_testkit::{Link, Setup};

use crate::common::{
    Ownership, Session, at, ms, product, rate, receiver, receiver_address, secs, sender, sent, server,
};

pub(crate) const RECEIVERS: usize = 60;
/// Rate of the return in bit/s: a registration and a report of all receivers take 20 s.
const RETURN: u64 = 4_000;
/// Octets of a datagram's headers.
const HEADERS: usize = 28;

/// Returns a sender of 900 DTUs in blocks of 90 that is told what the return carries.
pub(crate) fn by_turns(group: Group) -> SenderConfig {
    let start = Start { after: Some(secs(3)), with_first: true, ..Start::default() };
    let config = SenderConfig { group, start, early_data: ms(900), pace: rate(600), ..sender(900, 90, 0) };
    let (parity_symbols, parity_ahead) = (100, true);
    let return_rate = BitRate::from_bps(RETURN);
    SenderConfig { turns: true, return_rate, parity_symbols, parity_ahead, silence: secs(20), ..config }
}

pub(crate) fn open() -> SenderConfig {
    by_turns(Group::OpenLimited { limit: 10_000 })
}

pub(crate) fn listed() -> SenderConfig {
    let invited = (0..RECEIVERS).map(|n| {
        let id = receiver(n).id;
        Invited { label: id.to_string(), id }
    });
    by_turns(Group::Closed(invited.collect()))
}

pub(crate) fn run(config: SenderConfig, link: Link, receivers: usize) -> Session {
    let proofs = config.secret.is_some();
    let mut session = Session::empty("turns", Setup::plain(7), config, link);
    for n in 0..receivers {
        let mut config = receiver(n);
        config.secret = proofs.then_some(Secret([n as u8; 32]));
        session.add(n, config, Ownership::default());
    }
    session.run()
}

/// Returns the most octets that receivers sent to the sender within any `span`.
fn most_within(session: &mut Session, span: Span) -> usize {
    let log = session.net.take_log();
    let said: Vec<_> = log
        .departures
        .iter()
        .filter(|departure| departure.from != 0)
        .map(|departure| (departure.at, departure.message.wire_len(0) + HEADERS))
        .collect();
    let within = |(index, &(from, _)): (usize, &(Time, usize))| {
        said[index..].iter().take_while(|(at, _)| *at < from + span).map(|(_, octets)| octets).sum()
    };
    said.iter().enumerate().map(within).max().unwrap_or(0)
}

pub(crate) fn done(session: &Session) -> usize {
    session.count(|event| matches!(event, SenderEvent::Done { .. }))
}

#[test]
fn what_comes_back_is_less_than_the_return_carries() {
    for config in [open(), listed()] {
        let mut session = run(config, Link::lossy(ms(270), 0.01), RECEIVERS);
        session.assert_complete();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        assert_eq!(done(&session), RECEIVERS, "everyone is confirmed");
        let most = most_within(&mut session, secs(10));
        let carried = RETURN as usize / 8 * 10;
        assert!(most <= carried, "{most} of {carried} octets in 10 s");
    }
}

#[test]
fn all_at_once_is_more_than_it_carries() {
    let config = SenderConfig { turns: false, ..open() };
    let mut session = run(config, Link::lossy(ms(270), 0.01), RECEIVERS);
    let most = most_within(&mut session, secs(10));
    assert!(most > RETURN as usize / 8 * 10 * 2, "{most}");
}

#[test]
fn proofs_take_turns_too() {
    let config = SenderConfig { secret: Some(Secret([9; 32])), ..open() };
    let session = run(config, Link::lossy(ms(270), 0.01), RECEIVERS);
    session.assert_complete();
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), RECEIVERS));
    assert!(session.engine().members().all(|(_, member)| member.is_proven()));
}

#[test]
fn a_sender_calls_no_more_than_it_can_ask_for_proofs() {
    // The return carries as much as the way out, of which strangers may take a fiftieth: five tokens a second.
    const MANY: usize = 1000;
    let pace = rate(128);
    let config = SenderConfig { secret: Some(Secret([9; 32])), return_rate: None, pace, ..open() };
    let config = SenderConfig { product: product(20_000), ..config };
    let session = run(config, Link::clean(ms(30)), MANY);
    session.assert_complete();
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), MANY));
    let confirmed = session.times(|event| matches!(event, SenderEvent::Done { .. }));
    assert!(confirmed.last() < Some(&at(secs(100))), "{:?}", confirmed.last());
}

#[test]
fn a_few_receivers_of_a_large_group_soon_speak_at_once() {
    let mut session = run(open(), Link::clean(ms(100)), 3);
    session.assert_complete();
    let log = session.net.take_log();
    let asked = sent(&log, 0, |body| if let Body::StatusRequest(m) = body { Some(m.turn) } else { None });
    assert!(asked.last().is_some_and(|(_, turn)| turn.is_none()), "no turns at the end");
    let registered = session.count(|event| matches!(event, SenderEvent::Registered { .. }));
    assert_eq!(registered, 3);
}

#[test]
fn an_absent_receiver_ends_the_turns() {
    let session = run(listed(), Link::clean(ms(100)), RECEIVERS - 1);
    session.assert_complete();
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), RECEIVERS - 1));
    let absent =
        session.engine().members().filter(|(_, member)| member.state == MemberState::Invited).count();
    assert_eq!(absent, 1, "it is named");
}

/// Returns the parity symbols that a sender with proofs has sent by 10 s, after strangers registered with `heard`.
fn parity_after(heard: Option<HeardData>) -> u64 {
    let config = SenderConfig { secret: Some(Secret([9; 32])), ..open() };
    let mut engine = Sender::new(config).expect("settings");
    engine.open(Time::ZERO);
    for n in 0..500_u32 {
        let registration = Registration {
            nonce: Some(Proof([n as u8; 8])),
            heard,
            round: Some(0),
            ..Registration::new(server(), ClientId(0x0A00_0100 + n), Ok(()))
        };
        let message = Message::new(engine.config().transmission, Body::Registration(registration));
        let from = Arrival::new(receiver_address(n as usize % 200), server());
        let _ = engine.handle(at(ms(10)), &from, &message);
    }
    let end = at(secs(10));
    while let Some(due) = engine.poll_timeout().map(|deadline| deadline.at).filter(|due| *due < end) {
        engine.handle_timeout(due);
        while engine.poll_transmit(due, end).is_some() {}
    }
    engine.stats().parity_sent
}

#[test]
fn losses_that_nobody_has_proved_bring_no_parity() {
    let none = parity_after(Some(HeardData { missed: 0, sent: 900, lost: 0 }));
    // Each report is near enough to the mean so far to count, were it proved.
    let many = parity_after(Some(HeardData { missed: 0, sent: u32::MAX, lost: u32::MAX / 20 }));
    assert!(none > 0, "data has begun");
    assert_eq!(many, none);
}
