//! A source and its receivers in a network in virtual time.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Message as _, Span, Time};
use farcast_delivery::Outcome;
use farcast_pgm::event::ApduId;
use farcast_pgm::message::{Data, DataKind, Nak, NakKind, Spm};
use farcast_pgm::{
    Body, Codec, Delivering, Gsi, Message, MessageEvent, NodeId, Object, Receiver, ReceiverConfig,
    ReceiverEvent, Sender, SenderConfig, SenderEvent, SenderOutcome, Sending, Tsi, wire,
};
use farcast_testkit::{Fixture, Log, session};

pub(crate) const TSDU: u16 = 1000;
pub(crate) const TSI: Tsi = Tsi { gsi: Gsi([1, 2, 3, 4, 5, 6]), port: 4000 };

pub(crate) const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub(crate) fn group() -> SocketAddr {
    "239.192.0.1:3056".parse().expect("address")
}

pub(crate) fn source() -> SocketAddr {
    "192.0.2.1:3056".parse().expect("address")
}

/// Returns the address of receiver `n`.
pub(crate) fn receiver_address(n: u32) -> SocketAddr {
    session::receiver_address(n, group())
}

fn config(sending: Sending) -> SenderConfig {
    let rate = BitRate::from_bps(1_000_000).expect("positive");
    let mut config = SenderConfig::new(TSI, sending, source(), group(), rate);
    config.tsdu = TSDU;
    config.linger = Span::from_secs(10);
    config
}

/// Returns a source of files at 1 Mbit/s with these numbers of segments, of which the last is short. The first `named`
/// receivers are to acknowledge.
pub(crate) fn files(segments: &[u32], named: u32) -> SenderConfig {
    let object = |(number, &count): (usize, &u32)| Object {
        size: (u64::from(count) * u64::from(TSDU)).saturating_sub(1),
        name: format!("file-{number}").into_bytes(),
        vouched: None,
    };
    let mut config = config(Sending::Files(segments.iter().enumerate().map(object).collect()));
    config.named = (0..named).map(NodeId).collect();
    config
}

/// Returns a source of messages.
pub(crate) fn messages() -> SenderConfig {
    config(Sending::Messages)
}

pub(crate) fn receiver(n: u32) -> ReceiverConfig {
    ReceiverConfig { seed: u64::from(n), ..ReceiverConfig::new(NodeId(n), group()) }
}

pub(crate) fn hears_messages(n: u32, delivering: Delivering) -> ReceiverConfig {
    ReceiverConfig { delivering, ..receiver(n) }
}

/// PGM as its tests set it up.
pub(crate) struct Local;

impl Fixture for Local {
    type Protocol = farcast_pgm::Pgm;
    type SenderConfig = SenderConfig;
    type ReceiverConfig = ReceiverConfig;
    type SenderOutcome = SenderOutcome;
    type ReceiverOutcome = Outcome;

    fn source() -> SocketAddr {
        source()
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

/// Messages and losses that a receiver reported.
pub(crate) trait Reported {
    /// Returns the lengths of messages in the order of delivery, each the sum of its parts.
    fn messages(&self) -> Vec<u32>;

    /// Returns the number of TPDUs that were reported as lost.
    fn lost(&self) -> u32;
}

impl Reported for Client {
    fn messages(&self) -> Vec<u32> {
        let mut lens = BTreeMap::<ApduId, u32>::new();
        let mut delivered = Vec::new();
        for (_, event) in self.told.borrow().iter() {
            match event {
                ReceiverEvent::Own(MessageEvent::Part { apdu, len, .. }) => {
                    lens.insert(*apdu, *len);
                }
                ReceiverEvent::Own(MessageEvent::Apdu(apdu)) => {
                    delivered.push(lens.remove(apdu).expect("a part of it came"));
                }
                ReceiverEvent::Own(MessageEvent::Dropped(apdu)) => drop(lens.remove(apdu)),
                _ => {}
            }
        }
        delivered
    }

    fn lost(&self) -> u32 {
        let count = |event: &ReceiverEvent| match event {
            ReceiverEvent::Own(MessageEvent::Lost { count, .. }) => Some(*count),
            _ => None,
        };
        self.pick(count).iter().sum()
    }
}

/// Gives the source messages of these lengths, one each `every`, from `begin` on, and then closes it.
pub(crate) fn say(session: &mut Session, begin: Span, every: Span, lens: &[u32]) {
    let mut at = Time::ZERO + begin;
    for &len in lens {
        session.net.at(at, session.sender, move |engine: &mut Sender, now| {
            engine.send(now, len).expect("room");
        });
        at += every;
    }
    session.net.at(at, session.sender, |engine: &mut Sender, now| engine.finish(now));
}

/// Encodes a message of one segment, flips some bits, and decodes the rest.
pub(crate) fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
    session::damage(&Codec { raw: false }, message, random)
}

/// Encodes a message of one segment, flips some bits, corrects the checksum, and decodes it.
pub(crate) fn forge(message: &Message, random: &mut RandomStream) -> Option<Message> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(message.wire_len(0), 0);
    for _ in 0..=random.below(4) {
        // Behind the session's name, so that it is listened to.
        let bit = 128 + random.below((datagram.len() as u64 * 8).saturating_sub(128).max(1)) as usize;
        if let Some(octet) = datagram.get_mut(bit / 8) {
            *octet ^= 1 << (bit % 8);
        }
    }
    wire::finish(&mut datagram);
    wire::decode(&datagram).ok().map(|packet| packet.message)
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

/// Returns the data of this kind that the source sent.
pub(crate) fn data(log: &Log<Message>, kind: DataKind) -> Vec<(Time, Data)> {
    sent(log, 0, |message| message.data().filter(|data| data.kind == kind).cloned())
}

/// Returns the SPMs that the source sent.
pub(crate) fn spms(log: &Log<Message>) -> Vec<(Time, Spm)> {
    sent(log, 0, |message| match &message.body {
        Body::Spm(spm) => Some(spm.clone()),
        _ => None,
    })
}

/// Returns the messages about repair of host `from`.
pub(crate) fn naks(log: &Log<Message>, from: usize, kind: NakKind) -> Vec<(Time, Nak)> {
    sent(log, from, |message| match &message.body {
        Body::Nak(nak) if nak.kind == kind => Some(nak.clone()),
        _ => None,
    })
}
