//! Scenarios: one sender, its receivers, the links between them.

use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Bitmap, Engine, Run, Span, Time};
use farcast_delivery::{Answer, Outcome};
use farcast_oneway::{
    Codec, Description, Duration, Kind, Message, Receiver, ReceiverConfig, ReceiverEvent, Sender,
    SenderConfig, SenderEvent, Shape, Symbols,
};
use farcast_testkit::{Fixture, session};

pub(crate) const SEGMENT: u16 = 1000;
pub(crate) const ID: [u8; 32] = [7; 32];
pub(crate) const RATE: u64 = 10_000_000;

pub(crate) const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub(crate) fn group() -> SocketAddr {
    "239.255.57.41:6004".parse().expect("address")
}

pub(crate) fn server() -> SocketAddr {
    "192.0.2.1:40000".parse().expect("address")
}

/// Returns the configuration for `segments` segments, the last one short, in blocks of at most `most`, at 10 Mbit/s.
pub(crate) fn sender(segments: u32, most: u32) -> SenderConfig {
    let size = u64::from(segments) * u64::from(SEGMENT) - 1;
    let shape = Shape::with_blocks(size, SEGMENT, most).expect("valid");
    let rate = BitRate::from_bps(RATE).expect("positive");
    let config = SenderConfig::new(ID, shape, server(), group(), rate);
    SenderConfig { name: b"file".to_vec(), ..config }
}

/// One-way delivery as its tests set it up.
pub(crate) struct Local;

impl Fixture for Local {
    type Protocol = farcast_oneway::OneWay;
    type SenderConfig = SenderConfig;
    type ReceiverConfig = ReceiverConfig;
    type SenderOutcome = ();
    type ReceiverOutcome = Outcome;

    fn source() -> SocketAddr {
        server()
    }

    fn group() -> SocketAddr {
        group()
    }

    fn sender(config: SenderConfig) -> Sender {
        Sender::new(config).expect("valid")
    }

    fn receiver(config: ReceiverConfig) -> Receiver {
        Receiver::new(config)
    }

    fn receiver_config(_n: u32) -> ReceiverConfig {
        ReceiverConfig::default()
    }

    fn ended(_event: &SenderEvent) -> Option<()> {
        None
    }

    fn object_ended(event: &ReceiverEvent) -> Option<Outcome> {
        match event {
            ReceiverEvent::Ended(_, outcome) | ReceiverEvent::Withdrawn { outcome, .. } => Some(*outcome),
            _ => None,
        }
    }

    fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
        damage(message, random)
    }
}

/// Receiver in a network, with the events for its owner.
pub(crate) type Client = farcast_testkit::Client<Local>;

/// Returns the numbers of segments and of parity symbols to be stored, and of blocks to be rebuilt.
pub(crate) fn kept(client: &Client) -> (u32, u32, u32) {
    let count = |which: fn(&ReceiverEvent) -> Option<u32>| client.pick(which).iter().sum();
    let parity = count(|event| match event {
        ReceiverEvent::Parity { symbols, .. } => Some(symbols.count()),
        _ => None,
    });
    let blocks = count(|event| matches!(event, ReceiverEvent::Decode { .. }).then_some(1));
    (client.stored_count(), parity, blocks)
}

/// Sender with its receivers.
pub(crate) type Session = farcast_testkit::Session<Local>;

/// Answers an event as an owner that accepts everything.
pub(crate) fn own(engine: &mut Receiver, now: Time, event: &ReceiverEvent) {
    match event {
        ReceiverEvent::Offered(offer) => {
            engine.answer(now, offer.object, Answer::Open(Bitmap::new(offer.geometry.segments())));
        }
        ReceiverEvent::Decode { object, block } => {
            engine.answer(now, *object, Answer::Decoded { block: *block, rebuilt: true });
        }
        ReceiverEvent::Complete(object) => engine.answer(now, *object, Answer::Verified),
        _ => {}
    }
}

/// Encodes a message of one datagram, flips some bits, and decodes the result.
pub(crate) fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
    session::damage(&Codec, message, random)
}

/// Returns all datagrams of a sender from time zero on, one by one, with their times.
pub(crate) fn everything(config: SenderConfig) -> Vec<(Time, Message)> {
    let mut sender = Sender::new(config).expect("valid");
    sender.open(Time::ZERO);
    let (mut now, mut sent) = (Time::ZERO, Vec::new());
    loop {
        while let Some(transmit) = sender.poll_transmit(now, now) {
            sent.push((now, transmit.message));
        }
        while sender.poll_event().is_some() {}
        match sender.poll_timeout() {
            Some(deadline) => now = deadline.at,
            None => return sent,
        }
    }
}

/// Returns the symbols among `sent`, including repeated segments of the head.
pub(crate) fn symbols(sent: &[(Time, Message)]) -> Vec<(Time, Symbols)> {
    let symbols = sent.iter().filter_map(|(at, message)| match message {
        Message::Symbols(symbols) => Some((*at, *symbols)),
        Message::Description(_) | Message::Withdrawn(_) => None,
    });
    symbols.collect()
}

pub(crate) fn described(sent: &[(Time, Message)]) -> Vec<(Time, Description)> {
    let described = sent.iter().filter_map(|(at, message)| match message {
        Message::Description(description) => Some((*at, description.clone())),
        Message::Symbols(_) | Message::Withdrawn(_) => None,
    });
    described.collect()
}

/// Returns a message with one symbol.
pub(crate) fn symbol(shape: &Shape, kind: Kind, block: u32, symbol: u32) -> Message {
    let geometry = shape.geometry();
    let len = match kind {
        Kind::Source => geometry.payload_len(geometry.first_of(block) + symbol),
        Kind::Parity => geometry.segment_size(),
    };
    Message::Symbols(Symbols { session: 1, round: 1, kind, block, run: Run::one(symbol), len, last: len })
}

pub(crate) const ONCE: Duration = Duration::Rounds(1);
