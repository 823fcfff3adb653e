//! PGMCC: the election of the acker, the rate, and complete delivery under it.

use std::net::IpAddr;

use farcast_core::{BitRate, Span, Time};
use farcast_pgm::cc::CcConfig;
use farcast_pgm::message::{DataKind, Opt};
use farcast_pgm::{Body, ReceiverConfig, SenderConfig, SenderOutcome};
use farcast_testkit::{Link, Setup, laws};

use crate::common::{Session, data, files, ms, receiver, receiver_address, sent};

fn listens(n: u32) -> ReceiverConfig {
    ReceiverConfig { address: Some(receiver_address(n).ip()), ..receiver(n) }
}

fn controlled(segments: u32, named: u32) -> SenderConfig {
    let mut config = files(&[segments], named);
    config.pace.rate = BitRate::from_bps(50_000_000).expect("positive");
    config.cc = Some(CcConfig::default());
    config
}

fn session(setup: Setup, segments: u32, receivers: u32, link: Link) -> Session {
    let mut session = Session::empty("PGMCC", setup, controlled(segments, receivers), link);
    session.net.limit(Span::from_secs(20_000));
    for n in 0..receivers {
        session.add(n, listens(n));
    }
    session
}

#[test]
fn the_laws_hold() {
    for (receivers, loss) in [(1, 0.0), (3, 0.05), (3, 0.2)] {
        let build = |setup| session(setup, 60, receivers, Link::lossy(ms(100), loss)).net;
        laws::all(0..3, ms(20), build, |_| true);
    }
    let rough = Link { duplication: 0.02, jitter: ms(3), corruption: 0.02, ..Link::lossy(ms(50), 0.05) };
    laws::all(0..3, ms(20), |setup| session(setup, 60, 3, rough).net, |_| true);
}

#[test]
fn everybody_completes_whatever_is_lost() {
    for seed in 0..3 {
        for loss in [0.0, 0.01, 0.1] {
            let session = session(Setup::plain(seed), 200, 4, Link::lossy(ms(50), loss)).run();
            assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{seed} {loss}");
            assert!(session.clients.iter().all(|client| client.stored_count() == 200));
        }
    }
}

/// Returns the acker that each data message named, from this time on.
fn ackers(session: &mut Session, from: Time) -> Vec<IpAddr> {
    let log = session.net.take_log();
    let named = data(&log, DataKind::Original).into_iter().filter(|(at, _)| *at >= from);
    named.filter_map(|(_, data)| data.options.cc).map(|cc| cc.acker).collect()
}

#[test]
fn who_loses_most_acknowledges() {
    let mut session = session(Setup::plain(1), 3000, 3, Link::clean(ms(50)));
    let (sender, lossy) = (session.sender, session.clients[1].handle);
    session.net.link(sender, lossy, Link::lossy(ms(50), 0.03));
    let mut session = session.run();
    let named = ackers(&mut session, Time::ZERO + Span::from_secs(5));
    let right = named.iter().filter(|&&acker| acker == receiver_address(1).ip()).count();
    assert!(named.len() > 500 && right * 20 > named.len() * 19, "{right} of {}", named.len());
}

#[test]
fn requests_say_how_their_sender_fares() {
    let mut session = session(Setup::plain(1), 300, 2, Link::lossy(ms(50), 0.05)).run();
    let log = session.net.take_log();
    let said = |from| {
        sent(&log, from, |message| match &message.body {
            Body::Nak(nak) => Some(nak.options.clone()),
            _ => None,
        })
    };
    let said = [said(1), said(2)].concat();
    assert!(said.len() > 5);
    assert!(said.iter().all(|(_, options)| matches!(options[..], [Opt::Feedback(_)])));
}

/// The throughput of the session is compared with TCP's equation in the draft, in packets a second.
#[test]
fn it_sends_as_fast_as_the_equation_says() {
    for (loss, delay) in [(0.01, 50), (0.03, 50), (0.01, 250)] {
        let mut session = session(Setup::plain(7), 6000, 1, Link::clean(ms(delay)));
        let (sender, receiver) = (session.sender, session.clients[0].handle);
        session.net.link(sender, receiver, Link::lossy(ms(delay), loss));
        let mut session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
        let log = session.net.take_log();
        let left = data(&log, DataKind::Original);
        let span = left.last().expect("data").0.since(left[0].0).as_secs_f64();
        let all = left.len() + data(&log, DataKind::Repair).len();
        let found = all as f64 / span;
        let retries = 1.0 + 9.0 * loss * (1.0 + 32.0 * loss * loss);
        let expected = 1.5f64.sqrt() / (0.002 * f64::from(delay as u32) * loss.sqrt() * retries);
        // It knows no timeouts of single losses, so it is a little faster than TCP where these weigh in.
        assert!((0.75..1.5).contains(&(found / expected)), "{loss} {delay}: {found}, {expected} expected");
    }
}

#[test]
fn an_acker_that_vanishes_is_replaced() {
    let mut session = session(Setup::plain(1), 600, 2, Link::lossy(ms(50), 0.02));
    session.net.vanish(Time::ZERO + Span::from_secs(1), session.clients[0].handle);
    let mut session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert_eq!(session.clients[1].complete(), 1);
    let named = ackers(&mut session, Time::ZERO + Span::from_secs(8));
    assert!(named.iter().all(|&acker| acker != receiver_address(0).ip()));
}
