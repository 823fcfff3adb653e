//! Bound on repairs, whoever asks for them.

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::{Span, Time};
use farcast_norm::message::{Answer, Flags, Form, FromReceiver, FromSender, Level, Point, Request, Symbol};
use farcast_norm::{Body, Fec, Message, NodeId, Sender, SenderConfig, SenderEvent, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, group, ms, receiver_address, said, sender};

/// Number of seconds with a forged request in each.
const FORGED: u64 = 2000;

const fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

/// Returns the number of repairs of an object of `segments` after which requests are ignored, and the greatest number
/// that may follow: everything that is being sent, and everything that has been gathered, for blocks of 10 with 4
/// parity symbols and INFO.
fn bounds(segments: u64) -> (u64, u64) {
    let most = 64 * segments + 1024;
    (most, most + 2 * (segments + segments.div_ceil(10) * 4 + 1))
}

/// Returns a forged request for objects `0 ..= last` at `level`.
fn forged(level: Level, last: u16) -> Request {
    let point = |object| Point {
        fec: Fec::ReedSolomon8,
        object,
        symbol: Symbol { block: 0, block_len: None, symbol: 0 },
    };
    Request { form: Form::Ranges, level, points: vec![point(0), point(last)] }
}

/// Returns a session in which another node sends the same request each second.
fn asked(config: SenderConfig, receivers: u32, requests: &[Request]) -> Session {
    let mut session = Session::new("forged", Setup::plain(1), config, receivers, Link::clean(ms(50)));
    session.net.limit(Span::from_secs(4 * FORGED));
    for second in 1..FORGED {
        let answer = Answer::Nack(requests.to_vec());
        let said = FromReceiver { sender: NodeId(1), instance: 1, response: None, feedback: None, answer };
        let source = NodeId(1000 + second as u32);
        let nack = Message { source, sequence: 0, body: Body::Receiver(said) };
        session.net.at(at(second), session.sender, move |engine: &mut Sender, now| {
            let _ = engine.handle(now, &Arrival::new(receiver_address(7), group()), &nack);
        });
    }
    session.run()
}

/// Returns the times and numbers of repairs of each object.
fn again(session: &mut Session, objects: usize) -> Vec<Vec<(Time, u64)>> {
    let mut again = vec![Vec::new(); objects];
    for departure in session.net.take_log().departures {
        let (object, count) = match said(&departure.message) {
            Some(FromSender::Data(data)) if data.flags.has(Flags::REPAIR) => {
                (data.object, data.symbols.count())
            }
            Some(FromSender::Info(info)) if info.flags.has(Flags::REPAIR) => (info.object, 1),
            _ => continue,
        };
        again[usize::from(object)].push((departure.at, u64::from(count)));
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
        let everything = [forged(Level::INFO, 0), forged(Level::OBJECT, 0)];
        let mut session = asked(sender(40, ackers), 1, &everything);
        session.assert_received(1);
        assert_eq!(session.outcome(), Some(outcome));
        assert!(ended(&session) < at(FORGED / 2), "while they still ask: {:?}", ended(&session));
        let (least, most) = bounds(40);
        let sent = sum(&again(&mut session, 1)[0]);
        assert!(sent <= most, "{sent} of {most}");
        // If all named receivers have acknowledged, the bound need not be reached.
        if outcome != SenderOutcome::Acknowledged {
            assert!(sent >= least && limited(&session) > 0, "{sent} of {least}");
        }
    }
}

#[test]
fn of_another_object_requests_are_heard_as_before() {
    let mut config = sender(10, 0);
    config.objects.push(config.objects[0].clone());
    let requests = [forged(Level::INFO, 1), forged(Level::OBJECT, 0)];
    let mut session = asked(config, 1, &requests);
    session.assert_received(2);
    assert!(limited(&session) > 100, "{}", limited(&session));
    let again = again(&mut session, 2);
    let (least, most) = bounds(10);
    assert!((least..=most).contains(&sum(&again[0])), "{} of {least} to {most}", sum(&again[0]));
    let until = |object: usize| again[object].last().expect("repairs").0;
    assert!(until(1) > until(0) + Span::from_secs(100), "{:?} {:?}", until(0), until(1));
}

#[test]
fn who_is_named_and_never_gets_it_is_lost_and_not_served_for_ever() {
    let mut session = Session::new("never", Setup::plain(2), sender(20, 1), 1, Link::clean(ms(50)));
    session.net.limit(Span::from_secs(100_000));
    session.net.drop_if(|leg| leg.message.data().is_some_and(|data| data.block == 1));
    let mut session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    let sent = sum(&again(&mut session, 1)[0]);
    assert!(sent <= bounds(20).1, "{sent}");
}

#[test]
fn half_lost_is_far_from_the_bound() {
    let link = Link::lossy(ms(50), 0.5);
    let mut session = Session::new("half", Setup::plain(4), sender(600, 5), 5, link).run();
    session.assert_received(1);
    assert_eq!((session.outcome(), limited(&session)), (Some(SenderOutcome::Acknowledged), 0));
    let sent = sum(&again(&mut session, 1)[0]);
    assert!(sent > 600 && sent * 8 < bounds(600).0, "{sent} of {}", bounds(600).0);
}
