//! Scenarios: one sender, its receivers, and the links between them.

use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::Outcome;
use farcast_mdp::message::{Answer, Data, FromSender};
use farcast_mdp::{
    Body, Codec, Message, NodeId, Object, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig,
    SenderEvent, SenderOutcome,
};
use farcast_testkit::{Fixture, Log, session};

pub(crate) const SEGMENT: u16 = 1000;

pub(crate) const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub(crate) fn group() -> SocketAddr {
    "239.255.57.40:5555".parse().expect("address")
}

pub(crate) fn server() -> SocketAddr {
    "192.0.2.1:40000".parse().expect("address")
}

/// Returns the address of receiver `n`.
pub(crate) fn receiver_address(n: u32) -> SocketAddr {
    session::receiver_address(n, group())
}

/// Returns the node id of receiver `n`.
pub(crate) const fn node(n: u32) -> NodeId {
    NodeId(n + 2)
}

/// Returns an object of `segments` segments, of which the last is short.
pub(crate) fn object(segments: u32) -> Object {
    let size = u64::from(segments) * u64::from(SEGMENT) - 1;
    Object { size, info: b"file".to_vec(), vouched: None }
}

/// Returns a sender of one object in blocks of at most 10 segments with 4 parity symbols, at 1 Mbit/s; `ackers` are the
/// first receivers.
pub(crate) fn sender(segments: u32, ackers: u32) -> SenderConfig {
    let rate = BitRate::from_bps(1_000_000).expect("positive");
    let mut config = SenderConfig::new(NodeId(1), vec![object(segments)], server(), group(), rate);
    (config.segment_size, config.block_len, config.parity) = (SEGMENT, 10, 4);
    config.grtt = ms(300);
    config.ackers = (0..ackers).map(node).collect();
    config
}

pub(crate) fn receiver(n: u32) -> ReceiverConfig {
    ReceiverConfig { seed: u64::from(n), ..ReceiverConfig::new(node(n), group()) }
}

/// MDP as its tests set it up.
pub(crate) struct Local;

impl Fixture for Local {
    type Protocol = farcast_mdp::Mdp;
    type SenderConfig = SenderConfig;
    type ReceiverConfig = ReceiverConfig;
    type SenderOutcome = SenderOutcome;
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
        Receiver::new(config).expect("valid")
    }

    fn receiver_config(n: u32) -> ReceiverConfig {
        receiver(n)
    }

    fn ended(event: &SenderEvent) -> Option<SenderOutcome> {
        if let SenderEvent::Ended(outcome) = event { Some(*outcome) } else { None }
    }

    fn object_ended(event: &ReceiverEvent) -> Option<Outcome> {
        if let ReceiverEvent::Ended(_, outcome) = event { Some(*outcome) } else { None }
    }

    fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
        damage(message, random)
    }
}

/// Receiver in a network, with the events for its owner.
pub(crate) type Client = farcast_testkit::Client<Local>;
/// Sender with its receivers.
pub(crate) type Session = farcast_testkit::Session<Local>;

/// Encodes a message of one segment, flips some bits, and decodes the rest.
pub(crate) fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
    session::damage(&Codec, message, random)
}

/// Returns the values that `pick` takes from the messages of host `from`.
pub(crate) fn sent<T>(
    log: &Log<Message>,
    from: usize,
    pick: impl Fn(&Message) -> Option<T>,
) -> Vec<(Time, T)> {
    let mine = log.departures.iter().filter(|departure| departure.from == from);
    mine.filter_map(|departure| pick(&departure.message).map(|t| (departure.at, t))).collect()
}

/// Returns the DATA that the sender sent.
pub(crate) fn data(log: &Log<Message>) -> Vec<(Time, Data)> {
    sent(log, 0, |message| message.data().cloned())
}

/// Returns the sender's own part of the message, if it is a sender's.
pub(crate) fn said(message: &Message) -> Option<&FromSender> {
    match &message.body {
        Body::Sender(_, said) => Some(said),
        Body::Receiver(_) => None,
    }
}

/// Returns `true` if the message is a request for repair.
pub(crate) fn is_nack(message: &Message) -> bool {
    matches!(&message.body, Body::Receiver(said) if matches!(said.answer, Answer::Nack(_)))
}
