//! Segments that all receivers have in older versions are not sent.

use std::collections::BTreeSet;

use farcast_core::engine::{Arrival, Engine};
use farcast_core::{Bitmap, Span, Time};
use farcast_mftp::message::Nak;
use farcast_mftp::{Body, Message, PassWait, Receiver, ReceiverEvent, Sender, SenderConfig, SenderEvent};
use farcast_testkit::{Link, Setup};

use crate::common::{
    Comparison, Ownership, Session, at, data, ms, receiver, receiver_address, secs, sender, server,
};

const SEGMENTS: u32 = 300;
const LIST: u32 = 5;

fn listing(receivers: u32) -> SenderConfig {
    SenderConfig { list_segments: LIST, head_segments: 1, ..sender(SEGMENTS, 20, receivers) }
}

fn compares(lacks: &[u32]) -> Ownership {
    let comparison = Comparison { list: LIST, lacks: lacks.to_vec(), slow: false };
    Ownership { compares: Some(comparison), ..Ownership::default() }
}

fn slow(lacks: &[u32]) -> Ownership {
    let comparison = Comparison { list: LIST, lacks: lacks.to_vec(), slow: true };
    Ownership { compares: Some(comparison), ..Ownership::default() }
}

/// Returns the segments that the sender sent, with repetitions.
fn sent(session: &mut Session) -> Vec<u32> {
    let all = data(&session.net.take_log(), 0);
    all.iter()
        .flat_map(|(_, d)| d.dtus.segments().map(|dtu| d.block * 20 + dtu).collect::<Vec<_>>())
        .collect()
}

fn session(config: SenderConfig, owners: &[Ownership], link: Link, seed: u64) -> Session {
    let mut session = Session::empty("compares", Setup::plain(seed), config, link);
    for (n, owner) in owners.iter().enumerate() {
        session.add(n, receiver(n), owner.clone());
    }
    session
}

fn complete(session: &Session) {
    let context = session.net.context();
    assert!(session.clients.iter().all(|client| client.owner.is_complete()), "{context}");
    assert_eq!(
        session.count(|event| matches!(event, SenderEvent::Done { .. })),
        session.clients.len(),
        "{context}"
    );
}

#[test]
fn what_everybody_has_in_older_versions_is_not_sent() {
    let owners = [compares(&[100]), compares(&[100, 200, 201]), compares(&[])];
    let mut session = session(listing(3), &owners, Link::clean(ms(100)), 1).run();
    complete(&session);
    let mut sent = sent(&mut session);
    sent.sort_unstable();
    assert_eq!(sent, [0, 1, 2, 3, 4, 100, 200, 201], "the list, and what somebody lacks, each once");
}

#[test]
fn nothing_but_the_list_goes_to_who_has_everything() {
    for wait in [PassWait::Draft, PassWait::FixedTimer] {
        let config = SenderConfig { pass_wait: wait, ..listing(2) };
        let mut session = session(config, &[compares(&[]), compares(&[])], Link::clean(ms(100)), 1).run();
        complete(&session);
        assert_eq!(sent(&mut session), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn losses_bring_nothing_that_all_have() {
    let lacks = [vec![6, 7, 150], (120..180).collect(), vec![299], vec![]];
    let wanted: BTreeSet<u32> = lacks.iter().flatten().copied().chain(0..LIST).collect();
    for seed in 0..200 {
        let config = SenderConfig { parity_symbols: if seed % 2 == 0 { 0 } else { 40 }, ..listing(4) };
        let owners: Vec<Ownership> = lacks.iter().map(|lacks| compares(lacks)).collect();
        let mut session = session(config, &owners, Link::lossy(ms(100), 0.15), seed).run();
        complete(&session);
        let sources = data(&session.net.take_log(), 0)
            .into_iter()
            .filter(|(_, d)| d.kind == farcast_mftp::message::DataKind::Source);
        let sent: BTreeSet<u32> =
            sources.flat_map(|(_, d)| d.dtus.segments().map(move |dtu| d.block * 20 + dtu)).collect();
        assert!(sent.is_subset(&wanted), "seed {seed}: {:?}", sent.difference(&wanted));
    }
}

#[test]
fn one_who_has_nothing_gets_all_of_it() {
    let owners = [compares(&[100]), Ownership::default()];
    let mut session = session(listing(2), &owners, Link::clean(ms(100)), 1).run();
    complete(&session);
    let first = session.when(|event| matches!(event, SenderEvent::Started { restart: false, .. }));
    assert!(first.is_some(), "nobody waits for comparisons that save nothing");
    let told = session.clients[0].owner.told.borrow();
    assert!(!told.iter().any(|(_, event)| *event == ReceiverEvent::Compare), "nor makes them");
    drop(told);
    assert_eq!(sent(&mut session).len() as u32, SEGMENTS + 1, "all, and its first DTU twice");
}

/// Returns the time at which the first segment beyond the list left.
fn first_beyond_the_list(session: &mut Session) -> Option<Time> {
    let log = session.net.take_log();
    data(&log, 0).iter().find(|(_, d)| d.block * 20 + d.dtus.last() >= LIST).map(|(time, _)| *time)
}

fn answer(session: &mut Session, client: usize, when: Span, lacks: &[u32]) {
    let held = Comparison { list: LIST, lacks: lacks.to_vec(), slow: true }.held(SEGMENTS);
    let handle = session.clients[client].handle;
    session.net.at(at(when), handle, move |engine: &mut Receiver, now| engine.compared(now, &held));
}

#[test]
fn a_slow_comparison_is_waited_for() {
    let mut session = session(listing(2), &[compares(&[100]), slow(&[])], Link::clean(ms(100)), 1);
    answer(&mut session, 1, secs(20), &[100, 101]);
    let mut session = session.run();
    complete(&session);
    assert_eq!(session.count(|event| matches!(event, SenderEvent::Lost { .. })), 0);
    let begun = first_beyond_the_list(&mut session).expect("100 is missing");
    assert!(begun > at(secs(20)) && begun < at(secs(21)), "{begun:?}");
}

#[test]
fn the_others_do_not_wait_for_ever() {
    let mut session = session(listing(2), &[compares(&[100]), slow(&[])], Link::clean(ms(100)), 1);
    answer(&mut session, 1, secs(100), &[100, 101]);
    let mut session = session.run();
    complete(&session);
    let begun = first_beyond_the_list(&mut session).expect("100 is missing");
    assert!(begun > at(secs(60)) && begun < at(secs(63)), "{begun:?}");
}

#[test]
fn who_asks_for_the_list_for_ever_holds_nobody_up() {
    // Without proofs, so that the requests need not be proved.
    let config = SenderConfig { secret: None, ..listing(2) };
    let mut session = session(config, &[compares(&[100]), slow(&[])], Link::clean(ms(100)), 1);
    let (sender, client) = (session.sender, receiver(1).id);
    for time in (400..90_000).step_by(4) {
        session.net.at(at(ms(time)), sender, move |engine: &mut Sender, now| {
            let mut missing = Bitmap::new(24);
            missing.insert(2);
            let nak =
                Nak { server: server(), client, pass: 0, block: 0, missing, parity_held: 0, unstored: 0 };
            let from = Arrival::new(receiver_address(1), server());
            // Later NAKs are rejected, or schedule it.
            let _ = engine.handle(now, &from, &Message::new(1, Body::Nak(nak)));
        });
    }
    answer(&mut session, 1, secs(95), &[]);
    let mut session = session.run();
    let begun = first_beyond_the_list(&mut session).expect("100 is missing");
    assert!(begun < at(secs(70)), "{begun:?}");
}

#[test]
fn one_that_is_gone_is_not_waited_for() {
    let mut config = listing(2);
    config.silence = secs(30);
    let mut session = session(config, &[compares(&[100]), slow(&[])], Link::clean(ms(100)), 1);
    let gone = session.clients[1].handle;
    session.net.vanish(at(ms(500)), gone);
    let mut session = session.run();
    assert!(session.clients[0].owner.is_complete());
    let begun = first_beyond_the_list(&mut session).expect("100 is missing");
    assert!(begun < at(secs(8)), "{begun:?}");
}

#[test]
fn a_comparison_that_nobody_asked_for_changes_nothing() {
    let mut session = session(listing(1), &[Ownership::default()], Link::clean(ms(100)), 1);
    let handle = session.clients[0].handle;
    session.net.at(at(ms(400)), handle, |engine: &mut Receiver, now| {
        engine.listed();
        engine.compared(now, &Bitmap::full(SEGMENTS));
    });
    let mut session = session.run();
    session.assert_complete();
    assert!(sent(&mut session).len() as u32 > SEGMENTS);
}
