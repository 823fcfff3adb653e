//! Group models, and the start of data (rules 10 to 17).

use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_core::{Span, Time};
use farcast_mftp::message::{DeclineReason, Registration, cancel};
use farcast_mftp::{
    Body, ClientId, ConfigError, Group, Invited, MemberState, Message, ReceiverConfig, ReceiverEvent,
    ReceiverOutcome, Sender, SenderConfig, SenderEvent, SenderOutcome, Start,
};
use farcast_testkit::{Link, Setup};

use crate::common::{
    Ownership, Session, add_sender, at, data, ms, receiver, receiver_address, secs, sender, sent, server,
};

/// Returns a sender to a closed group of these receivers.
fn closed(labels: &[&str]) -> SenderConfig {
    let mut config = sender(40, 16, 1);
    config.group = Group::Closed(labels.iter().map(|label| Invited::new(label)).collect());
    config.start = Start::default();
    config
}

fn started(session: &Session) -> Option<Time> {
    session.when(|event| matches!(event, SenderEvent::Started { .. }))
}

#[test]
fn a_closed_group_by_name_and_by_address() {
    let link = Link::lossy(ms(100), 0.05);
    let mut session = Session::empty("closed", Setup::plain(1), closed(&["aurora", "10.0.0.2"]), link);
    let aurora = session.add(0, receiver(0).named("aurora"), Ownership::default());
    let by_address = session.add(1, receiver(1), Ownership::default());
    let stranger = session.add(2, receiver(2).named("pirate"), Ownership::default());
    let mut session = session.run();
    session.assert_received(&[aurora, by_address]);
    let told: Vec<_> = stranger.owner.told.borrow().iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(told, [ReceiverEvent::NotInvited { server: server() }], "who is not listed stays out");
    let log = session.net.take_log();
    assert!(log.departures.iter().all(|d| d.from != stranger.handle.index()), "and silent");
    let labels: Vec<_> = session.engine().members().map(|(_, m)| m.label.clone()).collect();
    assert!(labels.contains(&"aurora".to_string()) && labels.contains(&"10.0.0.2".to_string()));
}

#[test]
fn two_invitations_to_one_id_are_refused() {
    let error = Sender::new(closed(&["aurora", "10.0.0.2", "aurora"])).expect_err("twice");
    assert!(matches!(error, ConfigError::SameId { .. }), "{error}");
}

fn registration(client: ClientId) -> Message {
    let body = Body::Registration(Registration::new(server(), client, Ok(())));
    Message::new(1, body)
}

#[test]
fn the_uninvited_are_told_so() {
    let mut engine = Sender::new(closed(&["aurora"])).expect("valid");
    engine.open(Time::ZERO);
    while engine.poll_transmit(Time::ZERO, Time::NEVER).is_some() {}
    let from = Arrival::new(receiver_address(5), server());
    let client = ClientId::from_name("pirate");
    assert_eq!(engine.handle(at(ms(1)), &from, &registration(client)), Err(Reject::Stranger));
    let answer = engine.poll_transmit(at(ms(1)), Time::NEVER).expect("an answer");
    assert_eq!(answer.destination, receiver_address(5));
    assert!(matches!(answer.message.body, Body::Abort(ref m) if m.reason == cancel::ABORT_NOT_INVITED));
    let event = engine.poll_event();
    assert!(matches!(event, Some(SenderEvent::Refused { collision: false, .. })), "{event:?}");
}

#[test]
fn who_declines_is_not_waited_for() {
    let mut session =
        Session::empty("declines", Setup::plain(1), closed(&["10.0.0.1", "10.0.0.2"]), Link::clean(ms(100)));
    let here = session.add(0, receiver(0), Ownership::default());
    let declines = Some(DeclineReason::Disk);
    session.add(1, receiver(1), Ownership { declines, ..Ownership::default() });
    let session = session.run();
    session.assert_received(&[here]);
    let full =
        |event: &SenderEvent| matches!(event, SenderEvent::Declined { reason: DeclineReason::Disk, .. });
    assert_eq!(session.count(full), 1);
    // An announcement, the refusal, the token that asks for a proof, and the refusal again.
    assert!(started(&session).expect("started") < at(ms(450)));
}

#[test]
fn a_closed_group_of_decliners_ends() {
    let mut session = Session::empty("nobody", Setup::plain(1), closed(&["10.0.0.1"]), Link::clean(ms(100)));
    let declines = Some(DeclineReason::AlreadyHave);
    session.add(0, receiver(0), Ownership { declines, ..Ownership::default() });
    assert_eq!(session.run().outcome(), Some(SenderOutcome::NoReceivers));
}

#[test]
fn an_open_group_takes_as_many_as_it_may() {
    let mut config = sender(40, 16, 9);
    config.group = Group::OpenLimited { limit: 3 };
    config.start = Start::default();
    let session = Session::new("limit", Setup::plain(1), config, 5, Link::clean(ms(100))).run();
    // The others may listen, but nobody waits for them or answers them.
    let confirmed = |o: &ReceiverOutcome| matches!(o, ReceiverOutcome::Complete { confirmed: true, .. });
    let served =
        session.clients.iter().filter(|client| client.owner.outcomes().iter().any(confirmed)).count();
    assert_eq!((session.outcome(), served), (Some(SenderOutcome::Finished), 3));
    assert_eq!(session.engine().members().count(), 3);
    assert!(session.engine().rejects().of(Reject::Limit) >= 2);
    assert!(started(&session).expect("started") < at(ms(250)), "full is enough to start");
}

#[test]
fn nobody_registers_in_an_unlimited_group_and_it_ends() {
    for seed in 0..10 {
        let mut config = sender(40, 16, 1);
        (config.group, config.status_retry_count) = (Group::OpenUnlimited, 20);
        config.start.after = Some(ms(500));
        let link = Link::lossy(ms(100), 0.1);
        let mut session = Session::new("unlimited", Setup::plain(seed), config, 3, link).run();
        session.assert_complete();
        assert_eq!(session.engine().members().count(), 0);
        let log = session.net.take_log();
        let tell = |body: &Body| matches!(body, Body::Registration(_) | Body::Done(_)).then_some(());
        assert!((1..=3).all(|host| sent(&log, host, tell).is_empty()), "nobody registers or reports");
        let ends = sent(&log, 0, |body| match body {
            Body::Completion(m) => Some(m.hosts.is_none()),
            _ => None,
        });
        assert!(!ends.is_empty() && ends.iter().all(|(_, whole)| *whole));
    }
}

#[test]
fn data_begins_with_enough_receivers() {
    let link = Link::clean(ms(100));
    let mut session = Session::empty("start on 2", Setup::plain(1), sender(40, 16, 2), link);
    for n in 0..2 {
        session.add(n, receiver(n), Ownership::default());
    }
    let second = session.clients[1].handle;
    // The receiver hears the third announcement: the second follows the first by a tenth of the interval.
    session.net.appear(at(ms(700)), second);
    let round_trip = session.net.delay(session.sender, second) + session.net.delay(second, session.sender);
    let session = session.run();
    session.assert_complete();
    assert_eq!(started(&session), Some(at(ms(1100)) + round_trip));
}

#[test]
fn data_begins_on_time_out() {
    let mut config = sender(40, 16, 99);
    config.start.after = Some(ms(3210));
    let session = Session::new("time-out", Setup::plain(1), config, 2, Link::clean(ms(100))).run();
    session.assert_complete();
    assert_eq!(started(&session), Some(at(ms(3210))));
}

#[test]
fn data_begins_on_demand() {
    let link = Link::clean(ms(100));
    let mut session = Session::new("on demand", Setup::plain(1), sender(40, 16, 99), 2, link);
    let sender = session.sender;
    session.net.at(at(ms(50)), sender, Sender::start);
    session.net.at(at(ms(1700)), sender, Sender::start);
    let session = session.run();
    session.assert_complete();
    assert_eq!(started(&session), Some(at(ms(1700))), "without receivers a demand is passed over");
}

#[test]
fn nobody_comes() {
    let mut config = sender(40, 16, 1);
    config.start.after = Some(secs(3));
    let session = Session::new("nobody", Setup::plain(1), config, 0, Link::clean(ms(100))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::NoReceivers));
    assert_eq!(session.when(|event| matches!(event, SenderEvent::Ended(_))), Some(at(secs(180))));
}

/// Runs a session in which the last of three receivers appears in the middle of pass 1.
fn late(late_entry: bool) -> Session {
    let mut config = SenderConfig { late_entry, ..sender(200, 16, 2) };
    config.late_announce_interval = ms(300);
    let mut session = Session::new("late", Setup::plain(1), config, 3, Link::lossy(ms(100), 0.02));
    let late = session.clients[2].handle;
    session.net.appear(at(ms(900)), late);
    session.run()
}

#[test]
fn a_late_joiner_is_served_in_the_same_session() {
    let mut session = late(true);
    session.assert_complete();
    let registered = |event: &SenderEvent| matches!(event, SenderEvent::Registered { .. });
    assert_eq!(session.count(registered), 3);
    let log = session.net.take_log();
    let missed = log.departures.iter().filter(|d| d.from == 0 && d.at < at(ms(800)));
    let missed = missed.filter(|d| matches!(d.message.body, Body::Data(_))).count();
    let all = data(&log, 0).len();
    assert!(missed > 50 && all >= 200 + missed && all < 200 + missed + 60, "{all} DTUs, {missed} missed");
}

#[test]
fn a_late_joiner_may_be_left_out() {
    let session = late(false);
    session.assert_received(&session.clients[..2]);
    assert!(!session.clients[2].owner.is_complete());
    assert_eq!(session.engine().members().count(), 2);
}

#[test]
fn two_receivers_with_one_name() {
    // The first receiver keeps the name and is served; the second is refused.
    let link = Link::clean(ms(100));
    let mut session = Session::empty("one name", Setup::plain(1), sender(200, 16, 1), link);
    let first = session.add(0, receiver(0).named("aurora"), Ownership::default());
    let second = session.add(1, receiver(1).named("aurora"), Ownership::default());
    session.net.appear(at(ms(300)), second.handle);
    let session = session.run();
    session.assert_received(&[first]);
    let outcome = second.owner.outcomes();
    assert!(
        matches!(outcome[..], [ReceiverOutcome::Aborted { reason: cancel::ABORT_COLLISION, .. }, ..]),
        "{outcome:?}"
    );
    assert_eq!(session.count(|event| matches!(event, SenderEvent::Refused { collision: true, .. })), 1);
}

#[test]
fn a_group_in_use_is_left_alone() {
    for opens in [ms(0), ms(50), ms(500), ms(1000)] {
        let link = Link::clean(ms(100));
        let mut session = Session::new("in use", Setup::plain(1), sender(300, 16, 2), 2, link);
        let mut other = sender(10, 16, 9);
        (other.server, other.transmission) = ("192.0.2.2:40000".parse().expect("address"), 9);
        other.response = other.server;
        let (_, told) = add_sender(&mut session.net, other, at(opens));
        let session = session.run();
        session.assert_complete();
        let ended = told.borrow().last().map(|(_, event)| event.clone());
        let expected = SenderEvent::Ended(SenderOutcome::GroupInUse { by: server(), transmission: 1 });
        assert_eq!(ended, Some(expected), "opened at {opens}");
    }
}

#[test]
fn a_busy_receiver_says_so_once() {
    // Both public groups' announcements reach the receivers; the private groups differ.
    let link = Link::clean(ms(100));
    let mut session = Session::new("busy", Setup::plain(1), sender(300, 16, 2), 2, link);
    let mut other = sender(10, 16, 9);
    (other.server, other.transmission) = ("192.0.2.2:40000".parse().expect("address"), 9);
    other.private = "239.255.54.9:5402".parse().expect("address");
    other.announce_limit = secs(2);
    add_sender(&mut session.net, other, at(ms(400)));
    let session = session.run();
    session.assert_complete();
    for client in &session.clients {
        let told = client.owner.told.borrow();
        assert_eq!(told.iter().filter(|(_, e)| matches!(e, ReceiverEvent::Busy { .. })).count(), 1);
    }
}

#[test]
fn early_data_is_kept_or_not() {
    // A late joiner hears data before its registration is confirmed.
    let stored = |keep: bool| {
        let mut config = sender(200, 16, 1);
        config.late_announce_interval = ms(300);
        let mut session = Session::new("early data", Setup::plain(1), config, 1, Link::clean(ms(100)));
        let mine = ReceiverConfig { keep_early_data: keep, ..receiver(1) };
        let late = session.add(1, mine, Ownership::default());
        session.net.appear(at(ms(900)), late.handle);
        let session = session.run();
        session.assert_complete();
        let told = late.owner.told.borrow();
        let accepted = told.iter().find(|(_, e)| *e == ReceiverEvent::Accepted).expect("accepted").0;
        told.iter().filter(|(at, e)| *at < accepted && matches!(e, ReceiverEvent::Store { .. })).count()
    };
    assert!(stored(true) > 0);
    assert_eq!(stored(false), 0);
}

#[test]
fn a_member_that_registers_again_is_confirmed_again() {
    // Every announcement that would confirm it is lost for three seconds.
    let link = Link::clean(ms(100));
    let mut session = Session::new("unconfirmed", Setup::plain(1), sender(40, 16, 1), 1, link);
    let until = at(secs(3));
    session.net.drop_if(move |leg| {
        matches!(&leg.message.body, Body::Announce(m) if m.hosts.is_some()) && leg.at < until
    });
    let session = session.run();
    session.assert_complete();
    let state = session.engine().members().next().map(|(_, m)| m.state.clone());
    assert_eq!(state, Some(MemberState::Done));
    assert!(session.net.now().since(Time::ZERO) < Span::from_secs(60));
}

#[test]
fn a_stranger_cannot_decline_for_a_member() {
    // Without proofs the host is all that is known of a member.
    let config = SenderConfig { secret: None, ..closed(&["ant", "bee"]) };
    let mut engine = Sender::new(config).expect("valid");
    engine.open(at(ms(0)));
    let client = ClientId::from_name("ant");
    let from = |source: &str| Arrival::new(source.parse().expect("address"), server());
    let decline = |client| {
        let mut message = registration(client);
        if let Body::Registration(m) = &mut message.body {
            m.entries[0].response = Err(DeclineReason::Disk);
        }
        message
    };
    engine.handle(at(ms(1)), &from("10.0.0.7:5000"), &registration(client)).expect("invited");
    let stranger = engine.handle(at(ms(2)), &from("10.0.0.8:5000"), &decline(client));
    assert_eq!(stranger, Err(Reject::Stranger));
    assert!(engine.members().any(|(id, member)| id == client && member.is_active()));
    // Its own host may decline.
    engine.handle(at(ms(3)), &from("10.0.0.7:5001"), &decline(client)).expect("its own");
    assert!(engine.members().all(|(_, member)| !member.is_active()));
}
