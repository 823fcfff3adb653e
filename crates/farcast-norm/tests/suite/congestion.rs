//! Congestion control: the rate for given losses and round trips, and the receiver that decides it.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_norm::message::{Answer, Feedback, FromReceiver, FromSender, Probe, Stamp, Terms, cc};
use farcast_norm::quantise::{GroupSize, Loss, Rate, Rtt};
use farcast_norm::{Body, Message, NodeId, Pacing, Receiver, Sender, SenderConfig, SenderOutcome};
use farcast_testkit::{Link, Setup, laws};

use crate::bottleneck::{Bottleneck, World};
use crate::common::{
    Session, group, is_nack, ms, node, receiver, receiver_address, said, sender, sent, server,
};

const LEAST: u64 = 8000;
const MOST: u64 = 20_000_000;

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps).expect("positive")
}

fn seconds(n: u64) -> Span {
    Span::from_secs(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + seconds(n)
}

/// Returns the configuration of a sender of `segments` segments of 1000 octets under congestion control.
pub(crate) fn controlled(segments: u32, ackers: u32) -> SenderConfig {
    let mut config = sender(segments, ackers);
    (config.block_len, config.parity) = (64, 16);
    config.pace.rate = rate(MOST);
    config.pacing = Pacing::NormCc { least: rate(LEAST) };
    config
}

/// Returns the segments per second at which TCP would send (RFC 5348 §3.1), where each segment is lost with probability
/// `loss` and the round trip is `trip`. Losses within a round trip of another loss belong to its event: one of 1 / loss
/// segments plus those of a round trip begins an event.
fn tcp(loss: f64, trip: Span) -> f64 {
    // The sender tells receivers their round trips in steps.
    let trip = Rtt::of(trip).span().as_secs_f64();
    let equation = |p: f64| {
        1.0 / (trip * ((2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)))
    };
    (0..100).fold(equation(loss), |rate, _| equation(1.0 / (1.0 / loss + rate * trip)))
}

/// Returns the number of segments and symbols that have been sent.
fn segments(session: &Session) -> u64 {
    session.net.engine(session.sender).sent_per_round().iter().sum()
}

/// Returns the segments per second that `session` sends from `from` to `until`, in seconds.
fn measure(session: &mut Session, from: u64, until: u64) -> f64 {
    session.net.run_until(at(from));
    let before = segments(session);
    session.net.run_until(at(until));
    (segments(session) - before) as f64 / (until - from) as f64
}

#[test]
fn at_a_loss_and_a_round_trip_the_rate_is_that_of_tcp() {
    for (loss, delay, until) in [(0.005, 20, 120), (0.01, 50, 300), (0.05, 50, 400), (0.02, 250, 1500)] {
        let link = Link::lossy(ms(delay), loss);
        let mut session = Session::new("equation", Setup::plain(1), controlled(200_000, 1), 1, link);
        session.net.forget();
        let (rate, expected) = (measure(&mut session, until / 5, until), tcp(loss, ms(delay) * 2));
        assert!((rate / expected - 1.0).abs() < 0.1, "{loss} {delay} ms: {rate} of {expected} segments/s");
    }
}

#[test]
fn at_a_bottleneck_it_fills_the_link_and_loses_little() {
    for (delay, bps, queue) in [(10, 10_000_000, 50), (50, 2_000_000, 100)] {
        let mut world = World::new(Bottleneck { rate: rate(bps), queue: ms(queue), delay: ms(delay) });
        world.add(controlled(400_000, 1));
        world.run_until(at(20));
        let flow = world.flow(0);
        let (entered, dropped, carried) = (flow.entered, flow.dropped, flow.carried);
        world.run_until(at(80));
        let flow = world.flow(0);
        let used = (flow.carried - carried) as f64 * 8.0 / 60.0 / bps as f64;
        let lost = (flow.dropped - dropped) as f64 / (flow.entered - entered) as f64;
        assert!(used > 0.85, "{used} of {bps} bit/s");
        assert!(lost < 0.03, "{lost} of what is sent at {bps} bit/s");
    }
}

#[test]
fn two_senders_share_a_bottleneck() {
    for (delay, bps, queue) in [(10, 10_000_000, 50), (50, 2_000_000, 100)] {
        let mut world = World::new(Bottleneck { rate: rate(bps), queue: ms(queue), delay: ms(delay) });
        world.add(controlled(400_000, 1));
        // The second sender finds the link full.
        world.run_until(at(20));
        world.add(controlled(400_000, 1));
        world.run_until(at(60));
        let before = [0, 1].map(|flow| world.flow(flow).carried);
        world.run_until(at(120));
        let carried = [0, 1].map(|flow| (world.flow(flow).carried - before[flow]) as f64);
        let ratio = carried[0] / carried[1];
        assert!((0.5..2.0).contains(&ratio), "{ratio} at {bps} bit/s");
        assert!(carried.iter().sum::<f64>() * 8.0 / 60.0 > 0.85 * bps as f64);
    }
}

#[test]
fn a_worse_receiver_limits_while_it_is_there() {
    let link = Link::lossy(ms(30), 0.002);
    let mut session = Session::new("worse", Setup::plain(3), controlled(400_000, 2), 2, link);
    session.net.forget();
    let [near, far] = [0, 1].map(|n| session.clients[n].handle);
    session.net.link(session.sender, far, Link::lossy(ms(60), 0.03));
    session.net.appear(at(30), far);
    session.net.vanish(at(90), far);
    let limiting = |session: &Session| session.net.engine(session.sender).limiting();
    let alone = measure(&mut session, 15, 29);
    assert_eq!(limiting(&session), Some(node(0)), "{near:?}");
    let both = measure(&mut session, 45, 89);
    assert_eq!(limiting(&session), Some(node(1)));
    // The path there and the path back differ.
    let expected = tcp(0.03, ms(90));
    assert!((both / expected - 1.0).abs() < 0.25, "{both} of {expected}");
    assert!(alone > 2.0 * both, "{alone} and {both}");
    let again = measure(&mut session, 130, 150);
    assert_eq!(limiting(&session), Some(node(0)));
    assert!(again > 2.0 * both, "{again} and {both}");
}

#[test]
fn everybody_completes() {
    for seed in 0..5 {
        let link = Link::lossy(ms(40), 0.04);
        let session = Session::new("complete", Setup::plain(seed), controlled(300, 4), 4, link).run();
        session.assert_received(1);
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    }
}

#[test]
fn after_an_outage_it_comes_back() {
    let mut session =
        Session::new("outage", Setup::plain(2), controlled(400_000, 1), 1, Link::lossy(ms(30), 0.002));
    session.net.forget();
    session.net.drop_if(|leg| (at(30)..at(45)).contains(&leg.at));
    let before = measure(&mut session, 15, 29);
    session.net.run_until(at(44));
    assert_eq!(session.net.engine(session.sender).rate(), rate(LEAST), "nobody answers");
    let after = measure(&mut session, 80, 100);
    assert!(after > before * 0.7, "{after} and {before}");
}

#[test]
fn of_many_like_receivers_few_answer() {
    let mut session =
        Session::new("many", Setup::plain(5), controlled(20_000, 0), 100, Link::lossy(ms(30), 0.002));
    session.net.run_until(at(30));
    let log = session.net.take_log();
    let probes = sent(&log, 0, |message| matches!(said(message), Some(FromSender::Probe(_))).then_some(()));
    let reports: Vec<usize> = (1..=100)
        .map(|host| sent(&log, host, |message| feedback(message).filter(|_| !is_nack(message))).len())
        .collect();
    // The limiting receiver and the four potential ones answer each probe, and hardly any of the others.
    let all: usize = reports.iter().sum();
    assert!(all < probes.len() * 7, "{all} answers to {} probes", probes.len());
    let few = reports.iter().filter(|&&count| count * 8 < probes.len()).count();
    assert!(few > 90, "{} probes: {reports:?}", probes.len());
}

fn feedback(message: &Message) -> Option<Feedback> {
    match &message.body {
        Body::Receiver(said) => said.feedback,
        Body::Sender(..) => None,
    }
}

#[test]
fn a_fixed_rate_asks_for_nothing() {
    let mut session =
        Session::new("fixed", Setup::plain(5), sender(60, 2), 2, Link::lossy(ms(30), 0.05)).run();
    let log = session.net.take_log();
    assert!(log.departures.iter().all(|departure| feedback(&departure.message).is_none()));
}

#[test]
fn who_stops_says_that_it_leaves() {
    let link = Link::lossy(ms(30), 0.01);
    let mut session = Session::new("leaves", Setup::plain(6), controlled(400_000, 2), 2, link);
    session.net.forget();
    let far = session.clients[1].handle;
    session.net.link(session.sender, far, Link::lossy(ms(30), 0.1));
    session.net.at(at(40), far, |engine: &mut Receiver, now| engine.stop(now));
    session.net.run_until(at(40) - ms(1));
    assert_eq!(session.net.engine(session.sender).limiting(), Some(node(1)));
    let before = session.net.engine(session.sender).rate();
    session.net.run_until(at(40) + ms(100));
    assert_eq!(session.net.engine(session.sender).limiting(), Some(node(0)));
    assert!(session.net.engine(session.sender).rate() >= before);
}

/// Returns a false answer of node `liar` to probe `sequence`.
fn lie(liar: u32, sequence: u16, random: &mut RandomStream, now: Time, kind: u8) -> Message {
    let (flags, rtt, loss, rate) = match kind {
        0 => (cc::RTT, Rtt(0), Loss(u32::MAX), Rate(0)),
        1 => (cc::RTT, Rtt(0), Loss(0), Rate(u16::MAX)),
        2 => (cc::START, Rtt(255), Loss(0), Rate(u16::MAX)),
        _ => (
            random.bits() as u8,
            Rtt(random.bits() as u8),
            Loss(random.bits() as u32),
            Rate(random.bits() as u16),
        ),
    };
    // A stamp of now claims a round trip of zero.
    let response = if random.chance(0.2) { None } else { Some(Stamp::of(now)) };
    let feedback = Some(Feedback { sequence, flags, rtt, loss, rate });
    let answer = Answer::Ack { kind: 1, id: 0, content: Vec::new() };
    let body = Body::Receiver(FromReceiver { sender: NodeId(1), instance: 1, response, feedback, answer });
    Message { source: NodeId(liar), sequence: 0, body }
}

/// Returns a session in which, from second 20 to 40, other nodes send false answers each ten milliseconds.
fn lied_to(kind: u8) -> Session {
    let link = Link::lossy(ms(30), 0.002);
    let mut session = Session::new("lies", Setup::plain(7), controlled(400_000, 1), 1, link);
    let mut random = RandomStream::derive(kind.into(), &[3]);
    for step in 0..2000u64 {
        let liar = 1000 + random.below(30) as u32;
        let (guess, mut random) = (random.below(300) as u16, RandomStream::derive(step, &[kind.into()]));
        session.net.at(at(20) + ms(step * 10), session.sender, move |engine: &mut Sender, now| {
            let from = Arrival::new(SocketAddr::from(([198, 51, 100, 1], 9)), group());
            // The attacker hears probes, or guesses.
            for sequence in [guess, engine.probes().wrapping_sub(1), engine.probes()] {
                let _ = engine.handle(now, &from, &lie(liar, sequence, &mut random, now, kind));
            }
        });
    }
    session
}

#[test]
fn lies_neither_stop_a_sender_for_good_nor_drive_it_over_its_most() {
    for kind in 0..5 {
        let mut session = lied_to(kind);
        let before = measure(&mut session, 10, 19);
        let mut least = u64::MAX;
        for step in 0..200 {
            session.net.run_until(at(20) + ms(step * 100));
            let rate = session.net.engine(session.sender).rate().as_bps();
            least = least.min(rate);
            assert!((LEAST..=MOST).contains(&rate), "{rate} bit/s among lies {kind}");
        }
        assert!(kind != 0 || least < 100_000, "{least}: it is believed as long as it speaks");
        let after = measure(&mut session, 250, 270);
        assert!(after > before * 0.6, "{after} and {before} after lies {kind}");
        let log = session.net.take_log();
        let departures: Vec<_> =
            log.departures.into_iter().filter(|d| d.from == 0 && d.message.data().is_some()).collect();
        laws::keeps_rate(&session.net.context(), &departures, rate(MOST), 28, ms(100));
    }
}

#[test]
fn reports_that_make_no_sense_are_counted() {
    let mut engine = Sender::new(controlled(60, 1)).expect("valid");
    engine.open(Time::ZERO);
    let mut random = RandomStream::derive(1, &[]);
    let from = Arrival::new(receiver_address(0), group());
    let before = engine.rate();
    for sequence in [1, 100, 0x8000, 0xFFF0 - 64] {
        let lie = lie(2, sequence, &mut random, at(1), 0);
        assert!(engine.handle(at(1), &from, &lie).is_err(), "a probe that was not sent");
    }
    assert_eq!((engine.rate(), engine.limiting()), (before, None));
    assert_eq!(engine.rejects().of(Reject::OutOfRange), 4);
}

/// Returns the time at which `engine` next sends DATA.
fn next_data(engine: &mut Sender) -> Time {
    loop {
        let now = engine.poll_timeout().expect("it goes on").at;
        engine.handle_timeout(now);
        while let Some(transmit) = engine.poll_transmit(now, now) {
            if transmit.message.data().is_some() {
                return now;
            }
        }
    }
}

#[test]
fn a_report_counts_at_once() {
    let mut engine = Sender::new(controlled(60, 1)).expect("valid");
    engine.open(Time::ZERO);
    while engine.poll_transmit(Time::ZERO, Time::ZERO).is_some() {}
    while next_data(&mut engine) < Time::ZERO + ms(500) {}
    let now = next_data(&mut engine);
    let from = Arrival::new(receiver_address(0), group());
    let (sequence, flags) = (engine.probes() - 1, cc::START);
    let feedback = Feedback { sequence, flags, rtt: Rtt(100), loss: Loss(0), rate: Rate::of(1e6) };
    let answer = Answer::Ack { kind: 1, id: 0, content: Vec::new() };
    let response = Some(Stamp::of(now - ms(100)));
    let said = FromReceiver { sender: NodeId(1), instance: 1, response, feedback: Some(feedback), answer };
    let report = Message { source: node(0), sequence: 0, body: Body::Receiver(said) };
    assert_eq!(engine.handle(now, &from, &report), Ok(()));
    // The rate of a segment a second has become two, and the last segment is charged at that rate.
    let wait = next_data(&mut engine).since(now);
    assert!(wait < ms(650), "{wait}");
}

#[test]
fn what_comes_after_a_pause_is_as_fast_as_it_may_be() {
    let mut config = controlled(3000, 2);
    config.pace.rate = rate(2_000_000);
    let mut session = Session::new("pause", Setup::plain(8), config, 2, Link::clean(ms(30)));
    let mut flushed = false;
    // One receiver hears nothing before everything was sent once, and then gets it all.
    session.net.drop_if(move |leg| {
        flushed |= matches!(said(&leg.message), Some(FromSender::Flush { .. }));
        leg.from == 0 && leg.to == 2 && !flushed
    });
    let session = session.run();
    session.assert_received(1);
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert!(session.net.now() < at(60), "{:?}", session.net.now());
}

#[test]
fn who_has_answered_rests() {
    let mut engine = Receiver::new(receiver(0)).expect("valid");
    let grtt = Rtt::of(ms(100));
    let terms = Terms { instance: 1, grtt, backoff: 4, group: GroupSize::of(10) };
    let (mut answers, from) = (0, Arrival::new(server(), group()));
    for sequence in 0..200 {
        let now = Time::ZERO + ms(50) * u64::from(sequence);
        let (sent, rate) = (Stamp::of(now), Some(Rate::of(1e5)));
        let probe = Probe { flags: 0, sequence, sent, rate, nodes: Vec::new() };
        let body = Body::Sender(terms, FromSender::Probe(probe));
        let _ = engine.handle(now, &from, &Message { source: NodeId(1), sequence, body });
        engine.handle_timeout(now + ms(49));
        while let Some(transmit) = engine.poll_transmit(now, now) {
            answers += u32::from(feedback(&transmit.message).is_some());
        }
    }
    // In ten seconds, each answer comes after a wait of up to 0.42 s, followed by a rest of the same length.
    assert!((12..=20).contains(&answers), "{answers}");
}
