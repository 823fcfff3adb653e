//! Messages of attackers and broken peers.

use std::net::SocketAddr;

use farcast_core::{Arrival, Bitmap, Engine as _, Span, Time};
use farcast_delivery::{Outcome, ReceiverEngine as _};
use farcast_norm::message::{Flags, FromSender, Fti, Info, Point, Symbol, Terms};
use farcast_norm::quantise::{GroupSize, Rtt};
use farcast_norm::{Body, Fec, Message, NodeId, Receiver, ReceiverConfig, ReceiverEvent};
use farcast_testkit::{Link, Setup, hostile};

use crate::common::{Local, Session, group, ms, receiver, sender};

fn session(seed: u64) -> Session {
    Session::new("words", Setup::plain(seed), sender(60, 3), 3, Link::lossy(ms(50), 0.1))
}

#[test]
fn messages_that_are_turned_down_leave_no_trace_at_a_sender() {
    let rejected = hostile::sender_rejects_without_trace::<Local>(0..10, session, |_| sender(60, 3));
    assert!(rejected > 500, "{rejected}");
}

#[test]
fn engines_stay_small() {
    let bounded = || ReceiverConfig { parity_memory: 100_000, largest: 1 << 20, ..receiver(0) };
    hostile::stay_small::<Local>(0..3, session, |_| sender(60, 3), bounded);
}

#[test]
fn a_receiver_never_panics() {
    for seed in 0..10 {
        let mut config = receiver(0);
        config.parity_memory = 100_000;
        config.largest = 1 << 20;
        let mut engine = Receiver::new(config).expect("valid");
        for (at, from, message) in hostile::conversation(session(seed), seed) {
            let _ = engine.handle(at, &from, &message);
            while let Some(event) = engine.poll_event() {
                match event {
                    ReceiverEvent::Offered(offer) => engine.accept(at, offer.object, &Bitmap::new(0)),
                    ReceiverEvent::Decode { object, block } => engine.decoded(object, block, seed % 2 == 0),
                    ReceiverEvent::Complete(object) => engine.verified(at, object),
                    _ => {}
                }
            }
            while engine.poll_transmit(at, at).is_some() {}
            engine.handle_timeout(at + Span::from_millis(seed));
        }
        assert!(engine.rejects().iter().map(|(_, count)| count).sum::<u64>() > 0);
    }
}

/// Returns a message of sender `n`, of which nothing else is heard: an announcement, or a flush.
fn absent(n: u32) -> (Arrival, Message) {
    let terms = Terms { instance: 1, grtt: Rtt(255), backoff: 15, group: GroupSize::of(1_000_000) };
    let fti = Fti { size: 1 << 20, segment_size: 1000, max_block_len: 64, last: 8, instance: 0, group: 1 };
    let (fec, object) = (Fec::ReedSolomon8, 0);
    let symbol = Symbol { block: 9, block_len: None, symbol: 0 };
    let said = match n % 2 {
        0 => FromSender::Flush { point: Point { fec, object, symbol }, ackers: Vec::new() },
        _ => FromSender::Info(Info {
            flags: Flags::INFO.with(Flags::FILE),
            fec,
            object,
            fti: Some(fti),
            vouched: None,
            content: b"absent".to_vec(),
        }),
    };
    let message = Message { source: NodeId(1 << 20 | n), sequence: 0, body: Body::Sender(terms, said) };
    let source = SocketAddr::from(([198, 51, (n >> 8) as u8, n as u8], 40_000));
    (Arrival::new(source, group()), message)
}

#[test]
fn senders_that_are_not_there_cost_a_transfer_nothing() {
    let complete = |count: u32, at: Span| {
        let setup = Setup::plain(1);
        let mut session = Session::new("absent", setup, sender(60, 1), 1, Link::lossy(ms(50), 0.05));
        let client = session.clients[0].handle;
        for n in 0..count {
            // The first 500 come at once, and then one each 20 ms.
            let when = Time::ZERO + at + if n < 500 { Span::ZERO } else { ms(20) * u64::from(n - 500) };
            session.net.at(when, client, move |engine: &mut Receiver, now| {
                let (from, message) = absent(n);
                let _ = engine.handle(now, &from, &message);
            });
        }
        // The last of them is given up long after.
        session.net.run_until(Time::ZERO + Span::from_secs(60));
        let told = session.clients[0].told.borrow();
        let ended = |event: &ReceiverEvent| matches!(event, ReceiverEvent::Ended(_, Outcome::Complete(_)));
        told.iter().find(|(_, event)| ended(event)).map(|&(at, _)| at).expect("complete")
    };
    let alone = complete(0, Span::ZERO);
    for count in [1, 32, 100, 1000] {
        for at in [ms(0), ms(200)] {
            let beside = complete(count, at);
            assert!(beside <= alone + Span::from_secs(2), "{count} from {at}: {beside:?}, alone {alone:?}");
        }
    }
}
