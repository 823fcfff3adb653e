//! Absent sources: each announces something once, or sends a little of it, and then nothing.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::{Arrival, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_pgm::message::{Data, DataKind, DataOptions, Descriptor, Opt, Origin, Spm};
use farcast_pgm::{Body, Gsi, Message, ReceiverEvent, Sender, Sqn, Tsi};
use farcast_testkit::{Absent, Link, Setup, assert_cost_little};

use crate::common::{Session, TSDU, files, group, ms, receiver};

/// Returns the messages of source `n`: an SPM, the descriptor of a file, and a segment of it if it `sends`.
fn words(n: u32, sends: bool) -> Vec<(Arrival, Message)> {
    let source = SocketAddr::from(([198, 51, (n >> 8) as u8, n as u8], 3056));
    let tsi = Tsi { gsi: Gsi([9, 9, (n >> 24) as u8, (n >> 16) as u8, (n >> 8) as u8, n as u8]), port: 9 };
    let spm = Spm {
        sqn: Sqn(1),
        trail: Sqn(1),
        lead: Sqn(100),
        path: source.ip(),
        options: vec![Opt::Join(Sqn(1))],
    };
    let descriptor = Descriptor {
        number: 0,
        behind: 1,
        segment_size: TSDU,
        size: 100 * u64::from(TSDU),
        vouched: None,
        withdrawn: false,
        name: b"absent".to_vec(),
    };
    let data = |sqn, descriptor: Option<Descriptor>, len| {
        Body::Data(Data {
            kind: DataKind::Original,
            sqn: Sqn(sqn),
            count: NonZeroU32::MIN,
            trail: Sqn(1),
            parity: None,
            options: DataOptions::default(),
            descriptor: descriptor.map(Box::new),
            len,
            last_len: len,
            origin: Origin::UNKNOWN,
        })
    };
    let mut bodies = vec![Body::Spm(spm), data(1, Some(descriptor), 0)];
    bodies.extend(sends.then(|| data(2, None, TSDU)));
    let from = Arrival::new(source, group());
    bodies.into_iter().map(|body| (from, Message { tsi, port: 3056, body })).collect()
}

/// Returns the duration of a transfer beside absent sources.
fn takes(absent: Absent) -> Span {
    let mut session = Session::empty("absent", Setup::plain(1), files(&[60], 1), Link::clean(ms(50)));
    session.add(0, receiver(0));
    let (client, source) = (session.clients[0].handle, session.sender);
    let begins = absent.begins();
    session.net.appear(begins, source);
    session.net.at(begins, source, |engine: &mut Sender, now| engine.open(now));
    absent.speak(&mut session.net, client, words);
    session.net.run_until(Time::ZERO + Span::from_secs(60));
    let told = session.clients[0].told.borrow();
    // Only the present source can complete a file: each absent one sends at most a segment.
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
