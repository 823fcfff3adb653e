//! Data that begins with the first receivers, and those that come later or never.

use farcast_core::{Span, Time};
use farcast_mftp::message::Registration;
use farcast_mftp::{Body, Group, Invited, MemberState, SenderConfig, SenderEvent, SenderOutcome, Start};
use farcast_testkit::{Link, Setup};

use crate::alone::Alone;
use crate::common::{
    Ownership, Session, at, data, ms, rate, receiver, receiver_address, secs, sender, server,
};

/// Time from the beginning after which an absent receiver is no longer waited for.
const SILENCE: Span = secs(20);

/// Returns a sender of 600 DTUs at 4 Mbit/s that begins with the first receivers.
fn first(group: Group) -> SenderConfig {
    let start = Start { after: Some(secs(3)), with_first: true, ..Start::default() };
    let config = SenderConfig { group, start, early_data: ms(900), pace: rate(4000), ..sender(600, 60, 0) };
    SenderConfig { silence: SILENCE, ..config }
}

fn listed(receivers: usize) -> SenderConfig {
    let invited = (0..receivers).map(|n| {
        let id = receiver(n).id;
        Invited { label: id.to_string(), id }
    });
    first(Group::Closed(invited.collect()))
}

fn open() -> SenderConfig {
    first(Group::OpenLimited { limit: 100 })
}

/// Runs a session in which the last of `receivers` appears at `appears`; `None` if it never does.
fn run(config: SenderConfig, receivers: usize, appears: Option<Time>, link: Link) -> Session {
    let mut session = Session::empty("latecomers", Setup::plain(1), config, link);
    for n in 0..receivers {
        let client = session.add(n, receiver(n), Ownership::default());
        if n + 1 == receivers
            && let Some(appears) = appears
        {
            session.net.appear(appears, client.handle);
        }
    }
    session.run()
}

fn ended(session: &Session) -> Time {
    session.when(|event| matches!(event, SenderEvent::Ended(_))).expect("it ended")
}

/// Returns the time at which the `n`th receiver reported that it has everything.
fn done(session: &Session, n: usize) -> Time {
    let id = receiver(n).id;
    session.when(|event| matches!(event, SenderEvent::Done { client } if *client == id)).expect("it is done")
}

/// Returns the state of the last of `receivers`, which ids order as their numbers do.
fn state_of(session: &Session, n: usize) -> MemberState {
    let id = receiver(n).id;
    session.engine().members().find(|(of, _)| *of == id).expect("a member").1.state.clone()
}

#[test]
fn nobody_waits_for_an_absent_receiver() {
    // Without early data, receivers most likely hold a part, and are asked first.
    let configs = [(listed(4), ms(50)), (SenderConfig { early_data: Span::ZERO, ..listed(4) }, ms(250))];
    for (config, more) in configs {
        let all = run(config.clone(), 4, None, Link::clean(ms(250)));
        let mut three = run(config, 3, None, Link::clean(ms(250)));
        assert_eq!(all.outcome(), Some(SenderOutcome::Finished));
        assert!(ended(&all) < at(secs(5)), "{:?}", ended(&all));
        assert_eq!(three.outcome(), Some(SenderOutcome::Finished));
        for n in 0..3 {
            let (with, without) = (done(&three, n), done(&all, n));
            assert!(with <= without + more, "{n}: {with:?} with one absent, {without:?} without");
        }
        assert_eq!(state_of(&three, 3), MemberState::Invited);
        // It may come for as long as a silent receiver is waited for, and costs announcements only.
        assert!(ended(&three) >= at(SILENCE) && ended(&three) < at(SILENCE + secs(1)), "{:?}", ended(&three));
        let log = three.net.take_log();
        assert_eq!(data(&log, 0).len(), 600, "each DTU once");
        let late = log.departures.iter().filter(|d| d.from == 0 && d.at > at(secs(6)));
        let asked = late.filter(|d| matches!(d.message.body, Body::StatusRequest(_))).count();
        assert_eq!(asked, 0, "nobody is asked for what nobody can answer");
    }
}

#[test]
fn data_is_on_its_way_before_anybody_registers() {
    for config in [listed(3), open()] {
        let mut session = run(config, 3, None, Link::clean(ms(250)));
        session.assert_complete();
        let log = session.net.take_log();
        let sent = data(&log, 0);
        assert!(sent[0].0 < at(ms(60)) && sent.len() == 600, "{:?}, {}", sent[0].0, sent.len());
        // 600 DTUs of 1,080 octets take 1.3 s, and nothing pauses.
        assert!(done(&session, 0) < at(ms(50 + 1_300 + 2 * 250 + 100)), "{:?}", done(&session, 0));
    }
}

#[test]
fn who_comes_while_data_runs_gets_the_head_too() {
    for (late, config) in [(900, listed(3)), (900, open()), (1_900, open())] {
        let mut session = run(config, 3, Some(at(ms(late))), Link::lossy(ms(100), 0.02));
        session.assert_complete();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        let log = session.net.take_log();
        assert!(data(&log, 0).len() < 1_300, "{}", data(&log, 0).len());
        let by_name = |body: &Body| matches!(body, Body::StatusRequest(m) if m.hosts.is_some()).then_some(());
        let asked = crate::common::sent(&log, 0, by_name).len();
        assert_eq!(asked > 0, late < 1_000, "who comes while the first pass runs is asked at once");
    }
}

#[test]
fn who_comes_when_all_others_are_done_is_served() {
    let mut session = run(listed(3), 3, Some(at(secs(9))), Link::lossy(ms(100), 0.02));
    session.assert_complete();
    assert!(ended(&session) < at(secs(15)), "{:?}", ended(&session));
    let log = session.net.take_log();
    let idle = data(&log, 0).iter().filter(|(time, _)| (at(secs(4))..at(secs(9))).contains(time)).count();
    assert_eq!(idle, 0, "nothing is sent to nobody");
}

#[test]
fn an_open_group_stays_open_for_its_time() {
    let mut config = open();
    config.product.size = 20_000;
    let session = run(config.clone(), 2, Some(at(ms(1_500))), Link::clean(ms(50)));
    session.assert_complete();
    assert!(done(&session, 0) < at(ms(300)), "{:?}", done(&session, 0));
    // Nobody comes later: it ends three seconds after it has begun, and confirms.
    let session = run(config, 1, None, Link::clean(ms(50)));
    session.assert_complete();
    assert!(ended(&session) >= at(secs(3)) && ended(&session) < at(ms(3_500)), "{:?}", ended(&session));
}

#[test]
fn one_that_is_given_up_is_asked_while_another_is_awaited() {
    let mut config = listed(3);
    (config.silence, config.status_retry_count) = (secs(3), 2);
    config.start.after = None;
    let mut session = Session::empty("given up", Setup::plain(1), config, Link::clean(ms(50)));
    let only = session.add(0, receiver(0), Ownership::default());
    // The only one that is there is cut off in the middle for longer than the sender's patience.
    session.net.drop_if(move |leg| (at(ms(600))..at(ms(2_900))).contains(&leg.at));
    let session = session.run();
    assert!(only.owner.is_complete(), "{:?}", session.told.borrow());
}

#[test]
fn a_late_registration_counts_with_any_proof() {
    let mut session = Session::empty("proved", Setup::plain(1), listed(2), Link::clean(ms(50)));
    for n in 0..2 {
        session.add(n, receiver(n), Ownership::default());
    }
    let late = session.clients[1].handle;
    session.net.appear(at(ms(900)), late);
    // Only what it lacks reaches the sender with a proof.
    session.net.drop_if(move |leg| {
        let registers = matches!(leg.message.body, Body::Registration(_));
        leg.from == late.index() && registers && leg.message.proof.is_some()
    });
    session.run().assert_complete();
}

/// Returns a sender to listed `receivers` that most likely hold a part, so that no data leaves early.
fn asks_first(receivers: usize) -> SenderConfig {
    SenderConfig { early_data: Span::ZERO, secret: None, ..listed(receivers) }
}

#[test]
fn one_that_cannot_join_later_has_the_whole_time_to_register() {
    let config = SenderConfig { late_entry: false, early_data: Span::ZERO, ..listed(2) };
    let mut session = Session::new("far", Setup::plain(1), config, 2, Link::clean(ms(5)));
    let far = session.clients[1].handle;
    session.net.link(far, session.sender, Link::clean(ms(400)));
    let session = session.run();
    session.assert_complete();
    assert_eq!(state_of(&session, 1), MemberState::Done);
}

#[test]
fn registrations_that_go_on_coming_hold_data_for_a_while_only() {
    let mut alone = Alone::new(asks_first(60));
    for n in 0..60 {
        alone.run_until(at(ms(100 + 90 * n as u64)));
        let registration = Registration::new(server(), receiver(n).id, Ok(()));
        assert_eq!(alone.hear(receiver_address(n), Body::Registration(registration)), Ok(()));
    }
    let started = alone.told.iter().find(|(_, event)| matches!(event, SenderEvent::Started { .. }));
    // The first registration took 100 ms, which is the round trip.
    let latest = at(ms(100 + 100 + 1_000));
    assert!(started.is_some_and(|(time, _)| *time <= latest), "{started:?}");
}
