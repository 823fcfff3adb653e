//! Judgements of the losses of the first pass (rules 40 to 43).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use farcast_core::{Message as _, Time};
use farcast_mftp::message::cancel;
use farcast_mftp::{Body, ClientId, Judgement, Receiver, Sender, SenderConfig, Start, Survey};
use farcast_testkit::{Leg, Link, Setup};

use crate::common::{OVERHEAD, Ownership, Session, at, ms, receiver, secs, sender};

type Drop = Box<dyn FnMut(&Leg<farcast_mftp::Message>) -> bool>;

/// Maximum octets of a datagram with a DTU.
const FULL: f64 = 1100.0;
/// Seeds for each kind of loss.
const SEEDS: std::ops::Range<u64> = 0..8;

/// Models a queue of `bytes` before a link of `kbps` to `to`, or to everybody. It drops requests as it drops DTUs, as a
/// queue that counts datagrams does.
fn narrow(kbps: u64, bytes: f64, to: Option<usize>) -> Drop {
    let mut queues: BTreeMap<usize, (Time, f64)> = BTreeMap::new();
    Box::new(move |leg| {
        if leg.from != 0 || to.is_some_and(|to| to != leg.to) {
            return false;
        }
        let (last, held) = queues.entry(leg.to).or_insert((leg.at, 0.0));
        let drained = leg.at.since(*last).as_secs_f64() * kbps as f64 * 125.0;
        (*last, *held) = (leg.at, (*held - drained).max(0.0));
        let len = (leg.message.wire_len(0) + OVERHEAD) as f64;
        let full = *held + FULL > bytes;
        *held += if full { 0.0 } else { len };
        full
    })
}

/// Models random losses of the sender's datagrams with probability `p`. They are `alike` at all receivers if they
/// happen on the shared path.
fn random(seed: u64, p: f64, alike: bool) -> Drop {
    let mut drawn: BTreeMap<(Time, usize), bool> = BTreeMap::new();
    let mut random = farcast_core::random::RandomStream::derive(seed, &[77]);
    Box::new(move |leg| {
        let place = if alike { 0 } else { leg.to };
        leg.from == 0 && *drawn.entry((leg.at, place)).or_insert_with(|| random.chance(p))
    })
}

/// Creates a session with 1800 DTUs in 60 blocks at 1 Mbit/s, and these losses.
fn session(receivers: usize, seed: u64, drop: Drop) -> Session {
    let config = SenderConfig { parity_symbols: 8, silence: secs(60), ..sender(1800, 30, receivers as u32) };
    session_of(config, receivers, seed, drop)
}

fn session_of(config: SenderConfig, receivers: usize, seed: u64, mut drop: Drop) -> Session {
    let mut session = Session::new("survey", Setup::plain(seed), config, receivers, Link::clean(ms(50)));
    // Nothing is lost before the data.
    session
        .net
        .drop_if(move |leg| matches!(leg.message.body, Body::Data(_) | Body::StatusRequest(_)) && drop(leg));
    session
}

/// Returns the survey at the end, and the judgements during the session, each once.
fn judged(mut session: Session) -> (Survey, Vec<Judgement>) {
    let during: Rc<RefCell<Vec<Judgement>>> = Rc::default();
    for tenth in 0..200 {
        let during = Rc::clone(&during);
        session.net.at(at(ms(100) * tenth), session.sender, move |engine: &mut Sender, _| {
            during.borrow_mut().push(engine.survey().judge());
        });
    }
    let session = session.run();
    session.assert_complete();
    let mut during = during.take();
    during.dedup_by_key(|judgement| core::mem::discriminant(judgement));
    (session.engine().survey(), during)
}

fn id(session: &Session, n: usize) -> ClientId {
    session.net.engine::<Receiver>(session.clients[n].handle).id()
}

#[test]
fn a_narrow_way_is_told_from_the_beginning_to_the_end() {
    for seed in SEEDS {
        // Down to a quarter of the rate, with queues from a few datagrams to half a second of the link.
        for (receivers, kbps, queue) in
            [(1, 260, 4_000.0), (1, 500, 30_000.0), (3, 700, 4_000.0), (5, 260, 16_000.0), (20, 500, 9_000.0)]
        {
            let kbps = kbps + seed * 7;
            let (survey, during) = judged(session(receivers, seed, narrow(kbps, queue, None)));
            let context = format!("seed {seed}, {receivers} at {kbps} kbit/s: {during:?}, {survey:?}");
            let Judgement::Narrow { received } = survey.judge() else { panic!("{context}") };
            let expected = kbps as f64 / 1000.0;
            // Of 30 DTUs one less may have come if the request found room.
            let right = expected - 1.0 / 30.0..expected * 1.04;
            assert!(right.contains(&received), "{received} of {expected}, {context}");
            let told = |judgement: &Judgement| matches!(judgement, Judgement::Narrow { .. });
            assert!(during.iter().any(told), "while it runs, {context}");
            assert!(!during.iter().any(|j| matches!(j, Judgement::OneSlow { .. })), "{context}");
        }
    }
}

#[test]
fn losses_by_chance_are_no_narrow_way() {
    for seed in SEEDS {
        for (receivers, p, alike) in [
            (1, 0.1, false),
            (1, 0.5, false),
            (3, 0.2, false),
            (8, 0.07, false),
            (2, 0.3, true),
            (5, 0.1, true),
        ] {
            let (survey, during) = judged(session(receivers, seed, random(seed, p, alike)));
            let context = format!("seed {seed}, {receivers} lose {p}: {during:?}, {survey:?}");
            assert_eq!(survey.judge(), Judgement::Random, "{context}");
            let wrong = |j: &Judgement| matches!(j, Judgement::Narrow { .. } | Judgement::OneSlow { .. });
            assert!(!during.iter().any(wrong), "{context}");
        }
    }
}

#[test]
fn little_loss_means_nothing() {
    for seed in SEEDS {
        let (survey, during) = judged(session(5, seed, random(seed, 0.01, false)));
        let context = format!("seed {seed}: {survey:?}");
        assert_eq!((survey.judge(), during), (Judgement::Nothing, vec![Judgement::Nothing]), "{context}");
    }
}

#[test]
fn one_slow_receiver_is_named() {
    for seed in SEEDS {
        for (receivers, spread) in [(3, 0), (10, 0), (10, 2000)] {
            let slow = seed as usize % receivers;
            // The slow receiver has a narrow path, or losses by chance; the others lose a little.
            let mut wide = random(seed, 0.005, false);
            let mut of_it = if seed % 2 == 0 {
                narrow(500, 6_000.0, Some(slow + 1))
            } else {
                let mut random = random(seed + 99, 0.25, false);
                Box::new(move |leg: &Leg<_>| leg.to == slow + 1 && random(leg)) as Drop
            };
            let backoff_window = ms(spread);
            let config = SenderConfig { backoff_window, ..sender(1200, 30, receivers as u32) };
            let drop = Box::new(move |leg: &Leg<_>| of_it(leg) || wide(leg));
            let session = session_of(config, receivers, seed, drop);
            let expected = id(&session, slow);
            let (survey, during) = judged(session);
            let context = format!("seed {seed}, {receivers}, {spread} ms: {during:?}, {survey:?}");
            let named = |j: &Judgement| matches!(j, Judgement::OneSlow { client, others: 0, .. } if *client == expected);
            assert!(named(&survey.judge()), "{context}");
            assert!(during.iter().any(named), "{context}");
            let right = |j: &Judgement| named(j) || *j == Judgement::Nothing || *j == Judgement::Random;
            assert!(during.iter().all(right), "{context}");
        }
    }
}

#[test]
fn answers_that_are_spread_do_not_make_one_slow() {
    // Answers about a block come over the time of eight blocks, so the early ones are not those with more losses.
    for seed in SEEDS {
        let config = SenderConfig { backoff_window: ms(2000), ..sender(1200, 30, 5) };
        let (survey, during) = judged(session_of(config, 5, seed, narrow(500, 4_000.0, None)));
        let context = format!("seed {seed}: {during:?}, {survey:?}");
        assert!(!during.iter().any(|j| matches!(j, Judgement::OneSlow { .. })), "{context}");
        assert!(matches!(survey.judge(), Judgement::Narrow { .. }), "{context}");
    }
}

#[test]
fn a_report_that_comes_twice_counts_once() {
    let survey = |copies: bool| {
        let mut session = session(2, 1, narrow(500, 4_000.0, None));
        if copies {
            session.net.links(Link { duplication: 0.5, ..Link::clean(ms(50)) });
        }
        let session = session.run();
        session.assert_complete();
        session.engine().survey()
    };
    let (once, twice) = (survey(false), survey(true));
    assert!(once.union > 200, "{once:?}");
    assert_eq!(once, twice);
}

#[test]
fn who_came_late_or_left_or_held_something_does_not_count() {
    let config =
        SenderConfig { start: Start { receivers: Some(4), ..Start::default() }, ..sender(1200, 30, 4) };
    let mut session = Session::empty("late", Setup::plain(1), config, Link::clean(ms(50)));
    let half = Ownership { lacks: Some((0..600).collect()), ..Ownership::default() };
    for (n, owner) in
        [Ownership::default(), Ownership::default(), Ownership::default(), Ownership::default(), half]
            .into_iter()
            .enumerate()
    {
        session.add(n, receiver(n), owner);
    }
    // The first two receivers have a narrow path. The others lose nothing.
    let (mut first, mut second) = (narrow(500, 4_000.0, Some(1)), narrow(500, 4_000.0, Some(2)));
    session.net.drop_if(move |leg| matches!(leg.message.body, Body::Data(_)) && (first(leg) || second(leg)));
    session.net.appear(at(secs(5)), session.clients[2].handle);
    session.net.at(at(secs(6)), session.clients[3].handle, |engine: &mut Receiver, _| {
        engine.fail(cancel::QUIT_SYSTEM, None);
    });
    let session = session.run();
    assert_eq!(session.engine().members().count(), 5);
    let survey = session.engine().survey();
    let clients: Vec<ClientId> = survey.members.iter().map(|member| member.client).collect();
    assert_eq!(clients, [id(&session, 0), id(&session, 1)]);
    assert!(matches!(survey.judge(), Judgement::Narrow { .. }), "{survey:?}");
}

#[test]
fn where_only_what_is_missing_is_sent_nothing_is_surveyed() {
    let mut session = Session::empty("restart", Setup::plain(1), sender(1200, 30, 1), Link::clean(ms(50)));
    session.add(0, receiver(0), Ownership { lacks: Some((1..1200).collect()), ..Ownership::default() });
    let mut narrow = narrow(500, 4_000.0, None);
    session.net.drop_if(move |leg| matches!(leg.message.body, Body::Data(_)) && narrow(leg));
    let session = session.run();
    session.assert_complete();
    assert_eq!(session.engine().survey(), Survey::default());
}
