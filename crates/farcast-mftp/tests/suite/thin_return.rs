//! Returns that carry less than receivers say: a receiver that is there is not given up while its answers cannot arrive.

use farcast_core::{BitRate, Span, Time};
use farcast_mftp::message::Registration;
use farcast_mftp::{
    Body, Group, Invited, MemberState, SenderConfig, SenderEvent, SenderOutcome, Start, StatusRetry,
};
use farcast_testkit::{Link, Setup, Transmitter};

use crate::alone::Alone;
use crate::common::{Ownership, Session, at, ms, receiver, receiver_address, secs, sender, sent, server};

/// Number of receivers. All but one of them answer at the same instant, and before the last one.
const RECEIVERS: usize = 5;

/// Returns a sender of 60 DTUs to `receivers` listed ones, which waits `silence` for an answer.
fn listed(receivers: usize, silence: Span) -> SenderConfig {
    let invited = (0..receivers).map(|n| {
        let id = receiver(n).id;
        Invited { label: id.to_string(), id }
    });
    let start = Start { after: Some(secs(1)), with_first: true, ..Start::default() };
    let (group, status_retry) = (Group::Closed(invited.collect()), StatusRetry::Measured);
    SenderConfig { group, start, status_retry, turns: true, silence, ..sender(60, 30, 0) }
}

/// Returns a session whose receivers share a return with room for a message or two.
fn thin_session(silence: Span) -> Session {
    let rate = BitRate::from_bps(20_000).expect("positive");
    let thin = Transmitter { rate, overhead: 28, queue: ms(100), shared: true };
    let config = listed(RECEIVERS, silence);
    let mut session = Session::new("thin", Setup::plain(3), config, RECEIVERS, Link::clean(ms(50)));
    for client in &session.clients {
        let back = Link { narrow: Some(thin), ..Link::clean(ms(50)) };
        session.net.link(client.handle, session.sender, back);
    }
    session
}

fn assert_all_done(session: &Session) {
    session.assert_complete();
    let states: Vec<_> = session.engine().members().map(|(_, member)| member.state.clone()).collect();
    assert!(states.iter().all(|state| *state == MemberState::Done), "{states:?}");
}

#[test]
fn answers_of_complete_receivers_do_not_drown_those_of_another() {
    let mut session = thin_session(secs(20));
    let last = session.clients[RECEIVERS - 1].handle.index();
    // The others are through when the last one hears its first data.
    session.net.drop_if(move |leg| {
        leg.to == last && leg.at < at(secs(10)) && matches!(leg.message.body, Body::Data(_))
    });
    assert_all_done(&session.run());
}

#[test]
fn complete_receivers_are_not_asked_for_the_proof_of_another() {
    let mut session = thin_session(secs(40));
    let last = session.clients[RECEIVERS - 1].handle.index();
    // Its proofs are late, so that the sender asks for one.
    session.net.drop_if(move |leg| leg.from == last && leg.message.proof.is_some() && leg.at < at(secs(20)));
    let mut session = session.run();
    assert_all_done(&session);
    let log = session.net.take_log();
    let asked =
        sent(&log, 0, |body| if let Body::StatusRequest(m) = body { Some(m.hosts.clone()) } else { None });
    let late: Vec<_> = asked.into_iter().filter(|(time, _)| *time > at(secs(10))).collect();
    let only = Some(vec![receiver(RECEIVERS - 1).id]);
    assert!(!late.is_empty() && late.iter().all(|(_, hosts)| *hosts == only), "{late:?}");
}

#[test]
fn listed_receivers_are_waited_for_while_others_come() {
    const SILENCE: Span = secs(12);
    /// Times before which the registrations of the receivers are lost, one that is off aside. They repeat it each 2 s.
    const HEARD: [Span; 4] = [Span::ZERO, ms(7_000), ms(9_500), ms(12_100)];
    let mut session =
        Session::empty("others come", Setup::plain(3), listed(HEARD.len() + 1, SILENCE), Link::clean(ms(50)));
    for n in 0..HEARD.len() {
        session.add(n, receiver(n), Ownership::default());
    }
    session.net.drop_if(|leg| {
        let registers = matches!(leg.message.body, Body::Registration(_));
        registers && leg.from.checked_sub(1).is_some_and(|n| leg.at < at(HEARD[n]))
    });
    let session = session.run();
    session.assert_complete();
    let came = session.times(|event| matches!(event, SenderEvent::Registered { .. }));
    let ended = session.when(|event| matches!(event, SenderEvent::Ended(_))).expect("it ends");
    assert!(came.len() == HEARD.len() && came.last() > Some(&at(SILENCE)), "{came:?}");
    // The one that is off is not waited for any longer than a quarter of the silence after the last one.
    let last = came.last().copied().unwrap_or(Time::ZERO);
    assert!(ended < last + SILENCE / 4 + secs(1), "{ended:?}, {last:?}");
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
}

#[test]
fn a_late_answer_to_an_earlier_pass_prolongs_the_round_trip() {
    let mut config = SenderConfig { secret: None, ..sender(40, 20, 1) };
    config.status_retry = StatusRetry::Measured;
    let mut alone = Alone::new(config);
    alone.now = at(ms(100));
    let registration = Registration::new(server(), receiver(0).id, Ok(()));
    assert_eq!(alone.hear(receiver_address(0), Body::Registration(registration)), Ok(()));
    alone.run_until(at(secs(2)));
    assert_eq!(alone.nak(0, 1, 0, &[3]), Ok(()));
    let began = alone.run_to_pass(2);
    let short = alone.engine.round_trip();
    assert!(short < secs(1), "{short:?}");
    // The answer has waited in a queue before the return.
    alone.run_until(began + secs(5));
    assert_eq!(alone.nak(0, 1, 1, &[5]), Ok(()));
    assert_eq!(alone.engine.round_trip(), secs(5));
    assert!(alone.engine.status_retry() > secs(5));
}

#[test]
fn an_answer_that_comes_after_the_next_pass_began_is_timed_from_its_request() {
    let mut config = SenderConfig { secret: None, parity_symbols: 0, ..sender(40, 20, 2) };
    config.status_retry = StatusRetry::Measured;
    let mut alone = Alone::new(config);
    for n in 0..2 {
        alone.now = at(ms(10));
        let registration = Registration::new(server(), receiver(n).id, Ok(()));
        assert_eq!(alone.hear(receiver_address(n), Body::Registration(registration)), Ok(()));
    }
    alone.run_until(at(ms(370)));
    let asked = alone.asked(1).last().copied().expect("asked");
    // The near receiver's answer begins the next pass, and the far one's comes before the next request leaves.
    assert_eq!(alone.nak(0, 1, 1, &[1, 2, 3, 4, 5, 6, 7, 8, 9]), Ok(()));
    let began = alone.run_to_pass(2);
    alone.run_until(began + ms(20));
    assert_eq!(alone.asked(2), [], "the pass is under way");
    assert_eq!(alone.nak(1, 1, 1, &[7]), Ok(()));
    assert_eq!(alone.engine.round_trip(), alone.now.since(asked));
}
