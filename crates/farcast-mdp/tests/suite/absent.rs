//! Absent sources: each announces something once, or sends a little of it, and then nothing.

use std::net::SocketAddr;

use farcast_core::{Arrival, Run, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::nack::quantise::Rtt;
use farcast_mdp::config::Sync;
use farcast_mdp::message::{Data, Flags, FromSender, Head, Info};
use farcast_mdp::{Body, Message, NodeId, ReceiverConfig, ReceiverEvent, Sender};
use farcast_testkit::{Absent, Link, Setup, assert_cost_little};

use crate::common::{Session, group, ms, receiver, sender};
use crate::rules::about;

/// Returns the messages of source `n`, with the longest round trip on the wire: INFO, and a segment if it `sends`.
fn words(n: u32, sends: bool) -> Vec<(Arrival, Message)> {
    let about = about(0, Flags::FILE.with(Flags::INFO));
    let info =
        FromSender::Info(Info { about, segment_size: 1000, content: b"absent".to_vec(), vouched: None });
    let data = FromSender::Data(Data {
        about,
        block: 0,
        symbols: Run::one(0),
        parity: false,
        segment_size: 1000,
        len: 1000,
        ends_block: false,
    });
    let source = SocketAddr::from(([198, 51, (n >> 8) as u8, n as u8], 40_000));
    let all = std::iter::once(info).chain(sends.then_some(data));
    all.zip(0..)
        .map(|(said, sequence)| {
            let head = Head { sequence, grtt: Rtt(255) };
            let message = Message { source: NodeId(1 << 20 | n), body: Body::Sender(head, said) };
            (Arrival::new(source, group()), message)
        })
        .collect()
}

/// Returns the duration of a transfer beside absent sources.
fn takes(absent: Absent) -> Span {
    let mut session = Session::empty("absent", Setup::plain(1), sender(60, 1), Link::clean(ms(50)));
    session.add(0, ReceiverConfig { sync: Sync::Anywhere, ..receiver(0) });
    let (client, source) = (session.clients[0].handle, session.sender);
    let begins = absent.begins();
    session.net.appear(begins, source);
    session.net.at(begins, source, |engine: &mut Sender, now| engine.open(now));
    absent.speak(&mut session.net, client, words);
    session.net.run_until(Time::ZERO + Span::from_secs(60));
    let told = session.clients[0].told.borrow();
    // Only the present sender can complete an object: each absent one sends at most a segment.
    let ended = |event: &ReceiverEvent| matches!(event, ReceiverEvent::Ended(_, Outcome::Complete(_)));
    let complete = told.iter().find(|(_, event)| ended(event)).map_or(Time::NEVER, |&(at, _)| at);
    complete.since(begins)
}

#[test]
fn sources_that_are_not_there_cost_a_transfer_little() {
    assert_cost_little(takes);
}

#[test]
fn a_transfer_that_is_over_before_there_is_a_place_for_it_arrives() {
    for count in [1, 32, 1000] {
        let beside = takes(Absent { count, sends: true, later: Span::ZERO });
        assert!(beside <= Span::from_secs(8), "{count}: {beside:?}");
    }
}

/// A sender that was killed soon after it began holds the receiver for a moment only.
#[test]
fn who_was_killed_at_once_is_not_waited_for() {
    let alone = takes(Absent { count: 0, sends: false, later: Span::ZERO });
    for count in [1, 32, 1000] {
        let beside = takes(Absent { count, sends: true, later: ms(500) });
        assert!(beside <= alone + ms(100), "{count}: {beside:?}, alone {alone:?}");
    }
}
