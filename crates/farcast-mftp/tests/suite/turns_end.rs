//! The end of turns, which nothing but news puts off.

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::{BitRate, Bitmap, Run, Span};
use farcast_delivery::Gone;
use farcast_mftp::message::{Completion, Done, Nak, Registration, StatusRequest, StatusType};
use farcast_mftp::{
    Body, ClientId, Group, MemberState, Message, Receiver, ReceiverConfig, ReceiverEvent, Secret, Sender,
    SenderConfig, SenderEvent, SenderOutcome,
};
use farcast_testkit::{Leg, Link, Setup, Transmitter};

use crate::common::{
    Ownership, Session, at, group, ms, rate, receiver, receiver_address, secs, sent, server,
};
use crate::turns::{RECEIVERS, done, listed, open, run};

/// Returns a session of the usual receivers with proofs, which has not run yet.
fn session(config: SenderConfig, link: Link) -> Session {
    let secret = Some(Secret([9; 32]));
    let mut session = Session::empty("turns_end", Setup::plain(7), SenderConfig { secret, ..config }, link);
    for n in 0..RECEIVERS {
        session.add(n, receiver(n), Ownership::default());
    }
    session
}

/// Returns an unproved registration of a host that does not exist, as if it was called in `round`.
fn forged(engine: &Sender, n: u32, round: u16) -> (Arrival, Message) {
    let registration = Registration {
        round: Some(round),
        complete: Some(0),
        ..Registration::new(server(), ClientId(0x0B00_0000 + n), Ok(()))
    };
    let message = Message::new(engine.config().transmission, Body::Registration(registration));
    (Arrival::new(receiver_address(200), server()), message)
}

#[test]
fn receivers_that_lack_only_withdrawn_segments_end_them() {
    let mut session = session(open(), Link::clean(ms(100)));
    let gone = Gone { whole: Run::new(91, 80), touched: Run::new(90, 82).expect("some") };
    session
        .net
        .at(at(ms(400)), session.sender, move |engine: &mut Sender, _| engine.withdraw(&gone, "it changed"));
    let session = session.run();
    assert!(matches!(session.outcome(), Some(SenderOutcome::Aborted { .. })), "{:?}", session.outcome());
    let ended = session.when(|event| matches!(event, SenderEvent::Ended(_)));
    assert!(ended.is_some_and(|ended| ended < at(secs(240))), "{ended:?}");
}

#[test]
fn surplus_receivers_do_not_put_it_off() {
    let config = open();
    let config = SenderConfig { group: Group::OpenLimited { limit: 50 }, ..config };
    let session = run(config, Link::clean(ms(100)), RECEIVERS);
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), 50));
}

#[test]
fn forged_registrations_do_not_put_it_off() {
    let ended = |forgeries: u32| {
        let mut session = session(open(), Link::clean(ms(100)));
        for n in 0..forgeries {
            let forge = move |engine: &mut Sender, now| {
                for round in 0..200 {
                    let (from, message) = forged(engine, n * 200 + u32::from(round), round);
                    let _ = engine.handle(now, &from, &message);
                }
            };
            session.net.at(at(secs(2)) + secs(3) * u64::from(n), session.sender, forge);
        }
        let session = session.run();
        assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), RECEIVERS));
        session.when(|event| matches!(event, SenderEvent::Ended(_))).expect("it ended")
    };
    let (without, with) = (ended(0), ended(200));
    assert!(with < without + secs(60), "{with:?}, {without:?} without");
}

#[test]
fn a_report_that_somebody_repeats_does_not_put_it_off() {
    let ended = |repeats: u64| {
        // Without proofs, a repeated report is as good as the receiver's own.
        let config = SenderConfig { secret: None, ..open() };
        let mut session = Session::empty("turns_end", Setup::plain(7), config, Link::clean(ms(100)));
        for n in 0..RECEIVERS {
            session.add(n, receiver(n), Ownership::default());
        }
        for n in 0..repeats {
            let repeat = |engine: &mut Sender, now| {
                let client = receiver(0).id;
                let done = Done { server: server(), client, naked_dtus: 0, duration_s: 1, round: Some(1) };
                let is_done = engine.members().any(|(id, m)| id == client && m.state == MemberState::Done);
                if is_done {
                    let message = Message::new(engine.config().transmission, Body::Done(done));
                    let _ = engine.handle(now, &Arrival::new(receiver_address(0), server()), &message);
                }
            };
            session.net.at(at(secs(2)) + secs(1) * n, session.sender, repeat);
        }
        let session = session.run();
        assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), RECEIVERS));
        session.when(|event| matches!(event, SenderEvent::Ended(_))).expect("it ended")
    };
    let (without, with) = (ended(0), ended(600));
    assert!(with < without + secs(30), "{with:?}, {without:?} without");
}

#[test]
fn forged_requests_change_nothing_of_a_member() {
    let mut session = session(open(), Link::clean(ms(100)));
    for n in 0..300_u64 {
        let forge = |engine: &mut Sender, now| {
            let missing = Bitmap::full(96);
            let client = receiver(0).id;
            let mut missing_of_block = Bitmap::new(missing.len());
            missing_of_block.insert_run(Run::new(0, 90).expect("some"));
            let nak = Nak {
                server: server(),
                client,
                pass: 1,
                block: 0,
                missing: missing_of_block,
                parity_held: 0,
                unstored: 0,
            };
            let message = Message::new(engine.config().transmission, Body::Nak(nak));
            let _ = engine.handle(now, &Arrival::new(receiver_address(201), server()), &message);
        };
        session.net.at(at(secs(2)) + ms(350) * n, session.sender, forge);
    }
    let session = session.run();
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), RECEIVERS));
    let naks: Vec<u64> = session.engine().members().map(|(_, member)| member.naks).collect();
    assert!(session.engine().stats().naks > 0, "the forged ones were taken");
    assert!(naks.iter().all(|&naks| naks == 0), "{naks:?}");
    let (stats, product) = (session.engine().stats(), 900);
    assert!(stats.scheduled <= 4 * product + 4096 + 90, "{}", stats.scheduled);
}

#[test]
fn complete_receivers_do_not_answer_for_others() {
    let answers = |hosts: Option<Vec<ClientId>>| {
        let mut session = session(listed(), Link::clean(ms(100)));
        let client = session.clients[3].handle;
        let transmission = session.engine().config().transmission;
        let (begin, end) = (secs(200), secs(210));
        session.net.at(at(begin), client, move |engine: &mut Receiver, now| {
            let dtus = Run::new(0, 90).expect("some");
            let blocks = Run::new(0, 10).expect("some");
            let request =
                StatusRequest { pass: 1, blocks, dtus, status: StatusType::NakOnly, hosts, turn: None };
            let message = Message::new(transmission, Body::StatusRequest(request));
            let _ = engine.handle(now, &Arrival::new(server(), group()), &message);
        });
        let mut session = session.run();
        session.assert_complete();
        let log = session.net.take_log();
        log.departures.iter().filter(|d| d.from == 4 && d.at >= at(begin) && d.at < at(end)).count()
    };
    assert!(answers(None) > 0, "it reports again when everyone is asked");
    assert!(answers(Some(vec![receiver(3).id])) > 0, "and when it is asked");
    assert_eq!(answers(Some(vec![receiver(4).id])), 0);
}

#[test]
fn a_very_slow_sender_counts_its_receivers_too() {
    // A thirtieth of this rate is less than the least that is assumed of any return.
    let config = SenderConfig { pace: rate(1), return_rate: None, silence: secs(60), ..open() };
    let config = SenderConfig { product: crate::common::product(20_000), ..config };
    let mut session = run(config, Link::lossy(ms(900), 0.05), 6);
    session.assert_complete();
    assert_eq!(done(&session), 6);
    let _ = session.net.take_log();
    let lost = session.engine().members().filter(|(_, m)| matches!(m.state, MemberState::Lost(_))).count();
    assert_eq!(lost, 0);
}

#[test]
fn a_handful_of_listed_receivers_takes_no_turns() {
    let group = |count: usize| {
        let Group::Closed(all) = listed().group else { unreachable!("it is listed") };
        Group::Closed(all.into_iter().take(count).collect())
    };
    for (count, turns) in [(4, false), (5, true)] {
        let config = SenderConfig { group: group(count), ..listed() };
        let mut session = run(config, Link::clean(Span::from_millis(100)), count);
        session.assert_complete();
        let log = session.net.take_log();
        let called = log.departures.iter().any(|departure| match &departure.message.body {
            Body::Announce(m) => m.turn.is_some(),
            _ => false,
        });
        assert_eq!(called, turns, "{count}");
    }
}

/// Number of receivers that are not all asked by name in one message.
const MANY: usize = 150;
/// Time of the forged confirmations.
const FORGED: Span = Span::from_millis(26_500);

#[test]
fn receivers_with_a_forged_confirmation_are_asked_by_name() {
    ask_by_name(None);
}

#[test]
fn those_whose_answers_a_short_queue_drops_are_asked_again() {
    let rate = BitRate::from_bps(40_000).expect("positive");
    ask_by_name(Some(Transmitter { rate, overhead: 28, queue: ms(250), shared: true }));
}

/// Runs a session with forged confirmations, with a `narrow` return.
fn ask_by_name(narrow: Option<Transmitter>) {
    // All have registered before the data ends, and none has reported the product.
    let (return_rate, pace) = (BitRate::from_bps(40_000), rate(300));
    let config =
        SenderConfig { return_rate, pace, silence: secs(5), secret: Some(Secret([9; 32])), ..open() };
    let mut session = Session::empty("turns_end", Setup::plain(7), config, Link::clean(ms(100)));
    let transmission = session.engine().config().transmission;
    for n in 0..MANY {
        let config = ReceiverConfig { secret: Some(Secret([n as u8; 32])), ..receiver(n) };
        let client = session.add(n, config, Ownership::default());
        session.net.link(client.handle, session.sender, Link { narrow, ..Link::clean(ms(100)) });
        let forge = move |engine: &mut Receiver, now| {
            let confirmation = Completion { turn: None, hosts: Some(vec![receiver(n).id]) };
            let message = Message::new(transmission, Body::Completion(confirmation));
            let _ = engine.handle(now, &Arrival::new(server(), group()), &message);
        };
        session.net.at(at(FORGED), client.handle, forge);
    }
    let session = session.run();
    let ended = session.clients.iter().filter(|client| {
        let told = client.owner.told.borrow();
        told.iter().any(|(time, event)| *time == at(FORGED) && matches!(event, ReceiverEvent::Ended(_)))
    });
    assert!(ended.count() > MANY / 2, "most believe the confirmation");
    let first = session.when(|event| matches!(event, SenderEvent::Done { .. })).expect("some");
    assert!(first > at(FORGED), "{first:?}");
    assert_eq!(session.count(|event| matches!(event, SenderEvent::Lost { .. })), 0, "nobody is given up");
    session.assert_complete();
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), MANY));
}

#[test]
fn receivers_that_answer_a_request_by_name_are_not_given_up() {
    let config = SenderConfig { silence: secs(10), return_rate: BitRate::from_bps(40_000), ..open() };
    // Half of them hear nothing, and are not heard, from the middle of the data until they are asked by name.
    for until in [28, 30, 32, 33] {
        let mut session = Session::empty("turns_end", Setup::plain(7), config.clone(), Link::clean(ms(100)));
        for n in 0..MANY {
            session.add(n, receiver(n), Ownership::default());
        }
        let cut = |leg: &Leg<Message>| leg.from.max(leg.to).is_multiple_of(2);
        session.net.drop_if(move |leg| cut(leg) && (at(secs(6))..at(secs(until))).contains(&leg.at));
        let session = session.run();
        let lost = session.count(|event| matches!(event, SenderEvent::Lost { .. }));
        assert_eq!((lost, done(&session)), (0, MANY), "they come back after {until} s");
    }
}

#[test]
fn receivers_that_are_gone_are_given_up_soon() {
    let config = SenderConfig { silence: secs(10), return_rate: BitRate::from_bps(40_000), ..open() };
    let mut session = Session::empty("turns_end", Setup::plain(7), config, Link::clean(ms(100)));
    for n in 0..MANY {
        let client = session.add(n, receiver(n), Ownership::default());
        if n % 2 == 0 {
            // Data takes until 13 s.
            session.net.vanish(at(secs(12)), client.handle);
        }
    }
    let session = session.run();
    let ended = session.when(|event| matches!(event, SenderEvent::Ended(_))).expect("it ends");
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), MANY / 2));
    assert!(ended < at(secs(120)), "{ended:?}");
}

#[test]
fn those_that_lack_something_are_named_once_many_have_ended() {
    const COUNT: usize = 20;
    /// Number of receivers that have ended from which the others are named.
    const ENDED: usize = 16;
    let Group::Closed(all) = listed().group else { unreachable!("it is listed") };
    let group = Group::Closed(all.into_iter().take(COUNT).collect());
    // A sender that is so fast supposes a return that carries all answers at once.
    let config = SenderConfig { group, pace: rate(5000), return_rate: None, ..listed() };
    let mut session = run(config, Link::lossy(ms(100), 0.3), COUNT);
    session.assert_complete();
    assert_eq!(done(&session), COUNT);
    let ends = session.times(|event| matches!(event, SenderEvent::Done { .. }));
    let log = session.net.take_log();
    let asked = sent(&log, 0, |body| if let Body::StatusRequest(m) = body { Some(m.clone()) } else { None });
    assert!(asked.iter().all(|(_, request)| request.turn.is_none()), "there are no turns");
    // A request that is not repeated may name a receiver that has just come.
    let all = |request: &StatusRequest| request.blocks.count() > 1;
    let repeated = |n: usize| {
        let (now, request) = &asked[n];
        asked[..n].iter().any(|(when, before)| when < now && all(before) && before.pass == request.pass)
    };
    let named = asked.iter().enumerate().filter(|&(n, (_, request))| all(request) && repeated(n));
    let named: Vec<_> =
        named.filter_map(|(_, (when, request))| Some((*when, request.hosts.as_ref()?))).collect();
    assert!(!named.is_empty(), "a request that is repeated names those that are left");
    for (when, hosts) in named {
        assert!(when > ends[ENDED - 1] && hosts.len() <= COUNT - ENDED, "{when:?} {hosts:?}");
    }
}
