//! Messages of attackers and broken peers.

use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::{Arrival, Bitmap, Engine as _, Message as _, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_norm::message::{Flags, FromSender, Fti, Info, Point, Symbol, Terms};
use farcast_norm::quantise::{GroupSize, Rtt};
use farcast_norm::{Body, Fec, Message, NodeId, Receiver, ReceiverEvent, Sender};
use farcast_testkit::{Link, Setup, laws};

use crate::common::{Session, damage, group, ms, receiver, receiver_address, sender, server};

/// Returns all messages of a session with losses, every other one damaged.
fn conversation(seed: u64) -> Vec<(Time, Arrival, Message)> {
    let mut session =
        Session::new("words", Setup::plain(seed), sender(60, 3), 3, Link::lossy(ms(50), 0.1)).run();
    let log = session.net.take_log();
    let mut random = RandomStream::derive(seed, &[1]);
    let mut said = Vec::new();
    for departure in log.departures {
        let source: SocketAddr =
            if departure.from == 0 { server() } else { receiver_address(departure.from as u32 - 1) };
        let from = Arrival::new(source, group());
        let (message, _) = departure.message.split(core::num::NonZeroU32::MIN);
        if random.chance(0.5) {
            said.extend(
                (0..3).filter_map(|_| damage(&message, &mut random)).map(|m| (departure.at, from, m)),
            );
        }
        said.push((departure.at, from, message));
    }
    said
}

#[test]
fn what_is_turned_down_leaves_no_trace_at_a_sender() {
    for seed in 0..10 {
        let mut engine = Sender::new(sender(60, 3)).expect("valid");
        engine.open(Time::ZERO);
        while engine.poll_transmit(Time::ZERO, Time::ZERO).is_some() {}
        while engine.poll_event().is_some() {}
        let trace =
            |engine: &Sender| format!("{:?} {:?} {:?}", engine.phase(), engine.grtt(), engine.progress());
        let looked = laws::rejects_without_trace(
            &format!("[seed {seed}]"),
            &mut engine,
            conversation(seed),
            trace,
            |_, _| false,
        );
        assert!(looked > 50, "{looked}");
    }
}

#[test]
fn a_receiver_stays_small_and_never_panics() {
    for seed in 0..10 {
        let mut config = receiver(0);
        config.parity_memory = 100_000;
        config.largest = 1 << 20;
        let mut engine = Receiver::new(config).expect("valid");
        for (at, from, message) in conversation(seed) {
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
