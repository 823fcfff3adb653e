//! What attackers and broken peers say.

use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::{Arrival, Bitmap, Engine as _, Message as _, Span, Time};
use farcast_norm::{Message, Receiver, ReceiverEvent, Sender};
use farcast_testkit::{Link, Setup, laws};

use crate::common::{Session, damage, group, ms, receiver, receiver_address, sender, server};

/// Everything that is said in a session with losses, damaged every other time.
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
