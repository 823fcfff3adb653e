//! The state machine of missing numbers: each timer, each retry, and the choice of receivers that ask.

use farcast_core::{Span, Time};
use farcast_delivery::ReceiverEngine as _;
use farcast_pgm::message::{DataKind, NakKind};
use farcast_pgm::{Body, Delivering, Message, MessageEvent, ReceiverConfig, ReceiverEvent};
use farcast_testkit::{Leg, Link, Setup};

use crate::common::{
    Reported, Session, data, files, hears_messages, messages, ms, naks, receiver, say, sent, spms,
};

const DELAY: Span = ms(10);

fn is_data(leg: &Leg<Message>, kind: DataKind, sqn: u32) -> bool {
    leg.message.data().is_some_and(|data| data.kind == kind && data.sqn.0 == sqn)
}

fn is_ncf(leg: &Leg<Message>) -> bool {
    matches!(&leg.message.body, Body::Nak(nak) if nak.kind == NakKind::Confirmation)
}

/// Runs a session with one receiver of messages, which loses number 5 and whatever `drop` tells.
fn one(name: &str, config: ReceiverConfig, drop: impl Fn(&Leg<Message>) -> bool + 'static) -> Session {
    let mut session = Session::empty(name, Setup::plain(1), messages(), Link::clean(DELAY));
    session.add(0, config);
    session.net.drop_if(move |leg| is_data(leg, DataKind::Original, 5) || drop(leg));
    say(&mut session, ms(100), ms(20), &[500; 20]);
    session.run()
}

fn asks() -> ReceiverConfig {
    let (confirm, repair) = (ms(200), ms(400));
    let retries = 3;
    let config = hears_messages(0, Delivering::Ordered);
    ReceiverConfig { confirm, repair, confirm_retries: retries, repair_retries: retries, ..config }
}

#[test]
fn a_gap_is_asked_for_within_the_back_off_confirmed_and_repaired() {
    let mut session = one("gap", asks(), |_| false);
    let log = session.net.take_log();
    let (asked, confirmed) = (naks(&log, 1, NakKind::Nak), naks(&log, 0, NakKind::Confirmation));
    let repaired = data(&log, DataKind::Repair);
    assert_eq!((asked.len(), confirmed.len(), repaired.len()), (1, 1, 1));
    let seen = data(&log, DataKind::Original)[6].0 + DELAY;
    let wait = asked[0].0.since(seen);
    assert!(wait > Span::ZERO && wait <= ms(50), "{wait:?}");
    // The times of a pair differ by some nanoseconds.
    assert!(confirmed[0].0.since(asked[0].0) < DELAY + Span::from_micros(1), "at once");
    assert!(repaired[0].0 >= confirmed[0].0);
    assert_eq!((asked[0].1.sqn, asked[0].1.source), (farcast_pgm::Sqn(5), crate::common::source().ip()));
    assert_eq!(session.clients[0].messages(), [500; 20]);
}

/// Returns the times between the requests of a receiver that is never repaired, and the number of TPDUs that it lost.
fn waits(name: &str, drop: impl Fn(&Leg<Message>) -> bool + 'static) -> (Vec<Span>, u32) {
    let mut session = one(name, asks(), move |leg| is_data(leg, DataKind::Repair, 5) || drop(leg));
    let log = session.net.take_log();
    let asked: Vec<Time> = naks(&log, 1, NakKind::Nak).into_iter().map(|(at, _)| at).collect();
    (asked.windows(2).map(|pair| pair[1].since(pair[0])).collect(), session.clients[0].lost())
}

#[test]
fn what_nobody_confirms_is_asked_for_again_and_then_given_up() {
    let (waits, lost) = waits("unconfirmed", is_ncf);
    assert_eq!((waits.len(), lost), (3, 1), "{waits:?}");
    assert!(waits.iter().all(|&wait| wait > ms(200) && wait <= ms(250)), "{waits:?}");
}

#[test]
fn what_does_not_come_is_asked_for_again_and_then_given_up() {
    let (waits, lost) = waits("unrepaired", |_| false);
    assert_eq!((waits.len(), lost), (3, 1), "{waits:?}");
    // The confirmation comes a round trip later.
    assert!(waits.iter().all(|&wait| wait > ms(420) && wait <= ms(470)), "{waits:?}");
}

#[test]
fn what_is_only_overtaken_is_not_asked_for() {
    let mut session = Session::empty(
        "overtaken",
        Setup::plain(4),
        messages(),
        Link { jitter: ms(30), ..Link::clean(DELAY) },
    );
    session.add(0, ReceiverConfig { reorder: ms(40), ..asks() });
    say(&mut session, ms(100), ms(20), &[500; 100]);
    let mut session = session.run();
    assert_eq!(naks(&session.net.take_log(), 1, NakKind::Nak).len(), 0);
    assert_eq!(session.clients[0].messages(), [500; 100]);
}

#[test]
fn a_burst_is_asked_for_by_a_list() {
    let mut session = Session::new("burst", Setup::plain(1), files(&[200], 1), 1, Link::clean(DELAY));
    session.net.drop_if(|leg| {
        leg.message
            .data()
            .is_some_and(|data| data.kind == DataKind::Original && (20..120).contains(&data.sqn.0))
    });
    let mut session = session.run();
    let log = session.net.take_log();
    let asked: Vec<u32> =
        naks(&log, 1, NakKind::Nak).iter().map(|(_, nak)| nak.also.len() as u32 + 1).collect();
    assert_eq!(asked, [63, 37]);
    assert_eq!(data(&log, DataKind::Repair).len(), 100);
    assert_eq!(naks(&log, 0, NakKind::Confirmation).len(), 2, "each list is confirmed by one");
}

#[test]
fn who_hears_others_ask_or_be_answered_need_not_ask() {
    let mut counts = Vec::new();
    for multicast_naks in [false, true] {
        let mut session = Session::empty("shared", Setup::plain(3), files(&[100], 20), Link::clean(DELAY));
        for n in 0..20 {
            session.add(n, ReceiverConfig { multicast_naks, backoff: ms(100), ..receiver(n) });
        }
        // All receivers lose the same packet.
        session.net.drop_if(|leg| is_data(leg, DataKind::Original, 50));
        let mut session = session.run();
        let log = session.net.take_log();
        let asked: usize = (1..=20).map(|from| naks(&log, from, NakKind::Nak).len()).sum();
        counts.push(if multicast_naks { asked / 2 } else { asked });
        assert_eq!(data(&log, DataKind::Repair).len(), 1, "it is repaired once");
    }
    // 20 requests are spread over 100 ms. Those within 20 ms of the first leave, about five; with multicast those
    // within 10 ms, about three.
    assert!(counts[0] < 10 && counts[1] < counts[0], "{counts:?}");
}

#[test]
fn a_lost_tail_is_found_by_heartbeats_that_come_slower_and_slower() {
    let mut session = Session::new("tail", Setup::plain(1), files(&[20], 1), 1, Link::clean(DELAY));
    session.net.drop_if(|leg| {
        leg.message.data().is_some_and(|data| data.kind == DataKind::Original && data.sqn.0 > 15)
            || leg.at < Time::ZERO + ms(900)
                && matches!(&leg.message.body, Body::Spm(spm) if (16..100).contains(&spm.lead.0))
    });
    let mut session = session.run();
    assert_eq!(session.clients[0].complete(), 1);
    let log = session.net.take_log();
    let end = data(&log, DataKind::Original).last().unwrap().0;
    let beats: Vec<u64> =
        spms(&log).iter().map(|(at, _)| at.since(end).as_millis()).filter(|&at| at > 0).take(3).collect();
    assert_eq!(beats, [100, 300, 700]);
}

#[test]
fn who_hears_data_and_no_spm_asks_for_one() {
    let mut session = Session::new("no SPM", Setup::plain(1), files(&[100], 3), 3, Link::clean(DELAY));
    session.net.drop_if(|leg| matches!(&leg.message.body, Body::Spm(spm) if spm.sqn.0 < 3));
    session.net.drop_if(|leg| matches!(&leg.message.body, Body::Spm(_)) && leg.at < Time::ZERO + ms(50));
    let mut session = session.run();
    let log = session.net.take_log();
    let is_spmr = |message: &Message| (message.body == Body::Spmr).then_some(());
    let asked: Vec<_> = (1..=3).flat_map(|from| sent(&log, from, is_spmr)).collect();
    assert_eq!(asked.len(), 2, "to its neighbours and to the source; the others hear that");
    assert!(asked[0].0 <= Time::ZERO + ms(300));
    assert!(session.clients.iter().all(|client| client.complete() == 1));
}

#[test]
fn a_silent_receiver_never_speaks() {
    let mut session = Session::empty("silent", Setup::plain(1), files(&[50], 0), Link::lossy(DELAY, 0.1));
    session.add(0, ReceiverConfig { silent: true, ..receiver(0) });
    let mut session = session.run();
    assert!(session.net.take_log().departures.iter().all(|departure| departure.from == 0));
}

#[test]
fn a_source_that_is_silent_is_gone_and_its_files_are_lost() {
    let mut session = Session::new("silent source", Setup::plain(1), files(&[100], 1), 1, Link::clean(DELAY));
    session.net.vanish(Time::ZERO + ms(300), session.sender);
    let session = session.run();
    let client = &session.clients[0];
    assert_eq!(
        client.pick(|event| matches!(event, ReceiverEvent::Own(MessageEvent::Gone(_))).then_some(())).len(),
        1
    );
    assert_eq!(client.complete(), 0);
    assert!(!session.net.engine(client.handle).is_busy());
}
