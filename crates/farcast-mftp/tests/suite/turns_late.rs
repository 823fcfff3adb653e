//! Receivers that take turns and are switched on while data runs.

use farcast_core::{BitRate, Run, Span};
use farcast_delivery::Gone;
use farcast_mftp::message::DataKind;
use farcast_mftp::{Body, Sender, SenderConfig, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, at, data, ms, rate, receiver, secs, sent};
use crate::turns::{RECEIVERS, done, open};

/// Time at which half of the receivers are switched on, in the middle of a block.
const LATE: Span = Span::from_millis(7_700);

/// Returns a session half of whose receivers are late, which has not run yet.
fn late_session(config: SenderConfig) -> Session {
    let mut session = Session::empty("turns_late", Setup::plain(7), config, Link::lossy(ms(270), 0.01));
    for n in 0..RECEIVERS {
        let client = session.add(n, receiver(n), Ownership::default());
        if n % 2 == 1 {
            session.net.vanish(at(Span::ZERO), client.handle);
            session.net.appear(at(LATE), client.handle);
        }
    }
    session
}

/// Runs a session half of whose receivers are late.
fn half_late(config: SenderConfig) -> Session {
    late_session(config).run()
}

#[test]
fn the_beginning_comes_again_without_a_request_for_each_block() {
    // A round of registrations follows before the first pass ends.
    let session =
        half_late(SenderConfig { return_rate: BitRate::from_bps(16_000), pace: rate(300), ..open() });
    session.assert_complete();
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), RECEIVERS));
    let stats = session.engine().stats();
    // The second pass brings most of it.
    let [first, second, rest @ ..] = &stats.dtus_per_pass[..] else { panic!("{:?}", stats.dtus_per_pass) };
    assert!(*second > first / 4, "{:?}", stats.dtus_per_pass);
    assert!(rest.iter().sum::<u64>() < second / 4, "{:?}", stats.dtus_per_pass);
}

#[test]
fn receivers_that_have_just_come_do_not_all_ask_for_the_present_block() {
    // The return carries so much that the sender asks all receivers about each block.
    let mut session = half_late(SenderConfig { return_rate: BitRate::from_bps(40_000), ..open() });
    let log = session.net.take_log();
    let lates = (0..RECEIVERS).filter(|n| n % 2 == 1);
    let asked = lates.flat_map(|n| {
        let nak = |body: &Body| if let Body::Nak(nak) = body { Some(nak.block) } else { None };
        // Host 0 is the sender.
        sent(&log, n + 1, nak)
    });
    let soon = asked.filter(|(time, _)| *time < at(LATE + secs(2))).count();
    assert!(soon < 4, "{soon} requests");
}

#[test]
fn what_a_receiver_holds_does_not_come_again() {
    let config = SenderConfig { pace: rate(300), ..open() };
    let mut session = Session::empty("turns_late", Setup::plain(7), config, Link::clean(ms(270)));
    for n in 0..RECEIVERS {
        // Each third one lacks only the end.
        let lacks = (n % 3 == 0).then(|| (600..900).collect());
        session.add(n, receiver(n), Ownership { lacks, ..Ownership::default() });
    }
    let session = session.run();
    assert_eq!((session.outcome(), done(&session)), (Some(SenderOutcome::Finished), RECEIVERS));
    let again: u64 = session.engine().stats().dtus_per_pass.iter().skip(1).sum();
    assert!(again < 100, "{again} DTUs");
}

#[test]
fn what_is_withdrawn_does_not_come_again() {
    let return_rate = BitRate::from_bps(16_000);
    let mut session = late_session(SenderConfig { return_rate, pace: rate(300), ..open() });
    // All of it left before they came.
    let gone = Gone { whole: Run::new(91, 80), touched: Run::new(90, 82).expect("some") };
    let withdraw = move |engine: &mut Sender, _| engine.withdraw(&gone, "it changed");
    session.net.at(at(LATE + secs(1)), session.sender, withdraw);
    let mut session = session.run();
    let log = session.net.take_log();
    let again = data(&log, 0).into_iter().filter(|(_, data)| data.pass > 1 && data.kind == DataKind::Source);
    let segments: Vec<u32> = again
        .flat_map(|(_, data)| data.dtus.segments().map(move |dtu| data.block * 90 + dtu).collect::<Vec<_>>())
        .collect();
    assert!(segments.contains(&80) && segments.contains(&180), "the beginning comes again");
    assert!(!segments.iter().any(|segment| (91..171).contains(segment)), "{segments:?}");
}
