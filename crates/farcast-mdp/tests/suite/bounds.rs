//! Repairs have a limit, whoever requests them.

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::{Span, Time};
use farcast_mdp::message::{Answer, Flags, FromReceiver, FromSender, ObjectNack, Request};
use farcast_mdp::{Body, Message, NodeId, Sender, SenderConfig, SenderEvent, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, group, ms, object, receiver_address, said, sender};

/// Time for which forged requests come, one each second.
const FORGED: u64 = 2000;

const fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

/// Returns the limit of repairs of an object of `segments` until requests are refused. The second number adds what is
/// being sent and what was gathered then: each of them once the object, in blocks of 10 with 4 parity symbols, and
/// INFO.
fn bounds(segments: u64) -> (u64, u64) {
    let most = 64 * segments + 1024;
    (most, most + 2 * (segments + segments.div_ceil(10) * 4 + 1))
}

/// Runs a session in which each second another forged node requests the same.
fn asked(config: SenderConfig, receivers: u32, nacks: &[ObjectNack]) -> Session {
    let mut session = Session::new("forged", Setup::plain(1), config, receivers, Link::clean(ms(50)));
    session.net.limit(Span::from_secs(4 * FORGED));
    for second in 1..FORGED {
        let answer = Answer::Nack(nacks.to_vec());
        let said = FromReceiver { server: NodeId(1), response: None, loss: 0, probe: 0, answer };
        let nack = Message { source: NodeId(1000 + second as u32), body: Body::Receiver(said) };
        session.net.at(at(second), session.sender, move |engine: &mut Sender, now| {
            let _ = engine.handle(now, &Arrival::new(receiver_address(7), group()), &nack);
        });
    }
    session.run()
}

/// Returns the time and the number of symbols of each repair, by object.
fn again(session: &mut Session, objects: usize) -> Vec<Vec<(Time, u64)>> {
    let mut again = vec![Vec::new(); objects];
    for departure in session.net.take_log().departures {
        let (about, count) = match said(&departure.message) {
            Some(FromSender::Data(data)) => (data.about, data.symbols.count()),
            Some(FromSender::Info(info)) => (info.about, 1),
            _ => continue,
        };
        if about.flags.has(Flags::REPAIR) {
            again[about.object as usize].push((departure.at, u64::from(count)));
        }
    }
    again
}

fn sum(again: &[(Time, u64)]) -> u64 {
    again.iter().map(|&(_, count)| count).sum()
}

fn limited(session: &Session) -> u64 {
    session.net.engine(session.sender).rejects().of(Reject::Limit)
}

fn ended(session: &Session) -> Time {
    let told = session.told.borrow();
    let end = told.iter().find(|(_, event)| matches!(event, SenderEvent::Ended(_)));
    end.expect("it ends").0
}

#[test]
fn forged_nacks_have_an_end() {
    for (ackers, outcome) in [
        (0, SenderOutcome::Unknown),
        (1, SenderOutcome::Acknowledged),
        (2, SenderOutcome::Incomplete { lacking: 1 }),
    ] {
        let everything = ObjectNack { object: 0, requests: vec![Request::Object] };
        let mut session = asked(sender(40, ackers), 1, &[everything]);
        session.assert_received(1);
        assert_eq!(session.outcome(), Some(outcome));
        assert!(ended(&session) < at(FORGED / 2), "while they still ask: {:?}", ended(&session));
        let (least, most) = bounds(40);
        let sent = sum(&again(&mut session, 1)[0]);
        assert!(sent <= most, "{sent} of {most}");
        // If all named receivers have acknowledged, the limit need not be reached.
        if outcome != SenderOutcome::Acknowledged {
            assert!(sent >= least && limited(&session) > 0, "{sent} of {least}");
        }
    }
}

#[test]
fn requests_for_what_is_said_of_an_object_have_an_end() {
    let info = ObjectNack { object: 0, requests: vec![Request::Info] };
    let mut session = asked(sender(1, 0), 1, &[info]);
    session.assert_received(1);
    assert_eq!(session.outcome(), Some(SenderOutcome::Unknown));
    assert!(ended(&session) < at(FORGED), "while they still ask: {:?}", ended(&session));
    let (least, most) = bounds(1);
    let sent = sum(&again(&mut session, 1)[0]);
    assert!((least..=most).contains(&sent), "{sent} of {least} to {most}");
}

#[test]
fn of_another_object_requests_are_heard_as_before() {
    let mut config = sender(10, 0);
    config.objects.push(object(10));
    let nacks = [
        ObjectNack { object: 0, requests: vec![Request::Object] },
        ObjectNack { object: 1, requests: vec![Request::Info] },
    ];
    let mut session = asked(config, 1, &nacks);
    session.assert_received(2);
    assert!(limited(&session) > 100, "{}", limited(&session));
    let again = again(&mut session, 2);
    let (least, most) = bounds(10);
    assert!((least..=most).contains(&sum(&again[0])), "{} of {least} to {most}", sum(&again[0]));
    let until = |object: usize| again[object].last().expect("repairs").0;
    assert!(until(1) > until(0) + Span::from_secs(100), "{:?} {:?}", until(0), until(1));
}

#[test]
fn half_lost_is_far_from_the_bound() {
    let link = Link::lossy(ms(50), 0.5);
    let mut session = Session::new("half", Setup::plain(3), sender(600, 5), 5, link).run();
    session.assert_received(1);
    assert_eq!((session.outcome(), limited(&session)), (Some(SenderOutcome::Acknowledged), 0));
    let sent = sum(&again(&mut session, 1)[0]);
    assert!(sent > 600 && sent * 8 < bounds(600).0, "{sent} of {}", bounds(600).0);
}
