//! A source and its receivers in a network in virtual time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Bitmap, Message as _, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::{Geometry, ObjectId};
use farcast_pgm::event::ApduId;
use farcast_pgm::message::{Data, DataKind, Nak, NakKind, Spm};
use farcast_pgm::{
    Body, Delivering, Gsi, Message, MessageEvent, NodeId, Object, Receiver, ReceiverConfig, ReceiverEvent,
    Sender, SenderConfig, SenderEvent, SenderOutcome, Sending, Tsi, wire,
};
use farcast_testkit::{Handle, Host, Link, Log, Network, Setup};

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
    SocketAddr::from(([10, 0, (n / 250) as u8, (n % 250) as u8 + 1], 3056))
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

/// Events that an engine reported to its owner, with their times.
pub(crate) type Told<E> = Rc<RefCell<Vec<(Time, E)>>>;

/// A receiver in a network, with the events that it reported.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) handle: Handle<Receiver>,
    pub(crate) told: Told<ReceiverEvent>,
}

impl Client {
    pub(crate) fn told<T>(&self, pick: impl Fn(&ReceiverEvent) -> Option<T>) -> Vec<T> {
        self.told.borrow().iter().filter_map(|(_, event)| pick(event)).collect()
    }

    /// Returns the number of complete files.
    pub(crate) fn complete(&self) -> usize {
        let complete = |event: &ReceiverEvent| match event {
            ReceiverEvent::Ended(_, Outcome::Complete(_)) => Some(()),
            _ => None,
        };
        self.told(complete).len()
    }

    /// Returns the number of segments of all files that the owner was to store.
    pub(crate) fn stored(&self) -> u32 {
        let count = |event: &ReceiverEvent| match event {
            ReceiverEvent::Store { segments, .. } => Some(segments.count()),
            _ => None,
        };
        self.told(count).iter().sum()
    }

    /// Returns the lengths of messages in the order of delivery, each the sum of its parts.
    pub(crate) fn messages(&self) -> Vec<u32> {
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

    /// Returns the number of TPDUs that were reported as lost.
    pub(crate) fn lost(&self) -> u32 {
        let count = |event: &ReceiverEvent| match event {
            ReceiverEvent::Own(MessageEvent::Lost { count, .. }) => Some(*count),
            _ => None,
        };
        self.told(count).iter().sum()
    }
}

/// Data of files that an owner keeps; it rebuilds groups.
#[derive(Default)]
pub(crate) struct Keeper(BTreeMap<ObjectId, (Geometry, Bitmap, Symbols)>);

/// Parity packets by their groups.
type Symbols = BTreeSet<(u32, u32)>;

impl Keeper {
    pub(crate) fn look(&mut self, event: &ReceiverEvent, held: &Bitmap) {
        match event {
            ReceiverEvent::Offered(offer) => {
                let mut have = Bitmap::new(offer.geometry.segments());
                if held.len() == have.len() {
                    have.union(held);
                }
                self.0.insert(offer.object, (offer.geometry, have, BTreeSet::new()));
            }
            ReceiverEvent::Store { object, segments, .. } => {
                self.0.get_mut(object).expect("it was offered").1.insert_run(*segments);
            }
            ReceiverEvent::StoreParity { object, block, symbols, .. } => {
                let (geometry, _, parity) = self.0.get_mut(object).expect("it was offered");
                let symbol = symbols.first();
                assert!(*block < geometry.blocks() && symbol < 255 - geometry.block_size());
                assert!(parity.insert((*block, symbol)), "kept twice");
            }
            ReceiverEvent::Complete(object) => {
                let (_, have, _) = &self.0[object];
                assert!(have.is_full(), "complete with {} of {}", have.count(), have.len());
            }
            _ => {}
        }
    }

    /// Rebuilds a group. It needs as many of its packets as it has data packets.
    pub(crate) fn rebuild(&mut self, object: ObjectId, block: u32) {
        let (geometry, have, parity) = self.0.get_mut(&object).expect("it was offered");
        let run = geometry.block_run(block).expect("a block");
        let symbols = parity.range((block, 0)..(block + 1, 0)).count() as u32;
        assert!(
            have.count_in(run) + symbols >= run.count(),
            "{} and {symbols} of {run:?}",
            have.count_in(run)
        );
        have.insert_run(run);
    }
}

/// A source and its receivers.
pub(crate) struct Session {
    pub(crate) net: Network<Message>,
    pub(crate) sender: Handle<Sender>,
    pub(crate) told: Told<SenderEvent>,
    pub(crate) clients: Vec<Client>,
}

impl Session {
    /// Creates a source that opens at time zero, over `link` in all directions.
    pub(crate) fn empty(name: &str, setup: Setup, config: SenderConfig, link: Link) -> Self {
        let mut net = Network::new(name, setup);
        net.links(link);
        net.corrupt_with(damage);
        let told = Rc::new(RefCell::new(Vec::new()));
        let mine = told.clone();
        let host = Host::new(Sender::new(config).expect("valid"), move |_: &mut Sender, now, event| {
            mine.borrow_mut().push((now, event));
        });
        let sender = net.add(source(), &[group().ip()], host);
        net.at(Time::ZERO, sender, |engine: &mut Sender, now| engine.open(now));
        Self { net, sender, told, clients: Vec::new() }
    }

    /// Creates a source that opens at time zero, and `receivers` receivers of files.
    pub(crate) fn new(name: &str, setup: Setup, config: SenderConfig, receivers: u32, link: Link) -> Self {
        let mut session = Self::empty(name, setup, config, link);
        for n in 0..receivers {
            session.add(n, receiver(n));
        }
        session
    }

    /// Adds receiver `n`, whose owner takes everything.
    pub(crate) fn add(&mut self, n: u32, config: ReceiverConfig) -> Client {
        self.add_with(n, config, Bitmap::new(0))
    }

    /// Adds receiver `n`, whose owner already has `held` of the first file.
    pub(crate) fn add_with(&mut self, n: u32, config: ReceiverConfig, held: Bitmap) -> Client {
        let told = Rc::new(RefCell::new(Vec::new()));
        let mine = told.clone();
        let mut keeper = Keeper::default();
        let owner = move |engine: &mut Receiver, now, event| {
            keeper.look(&event, &held);
            match &event {
                ReceiverEvent::Offered(offer) => engine.accept(now, offer.object, &held),
                ReceiverEvent::Decode { object, block } => {
                    keeper.rebuild(*object, *block);
                    engine.decoded(now, *object, *block, true);
                }
                ReceiverEvent::Complete(object) => engine.verified(now, *object),
                _ => {}
            }
            mine.borrow_mut().push((now, event));
        };
        let host = Host::new(Receiver::new(config).expect("valid"), owner);
        let host = host.without(|event| matches!(event, ReceiverEvent::Store { .. }));
        let handle = self.net.add(receiver_address(n), &[group().ip()], host);
        let client = Client { handle, told };
        self.clients.push(client.clone());
        client
    }

    /// Gives the source messages of these lengths, one each `every`, from `begin` on, and then closes it.
    pub(crate) fn say(&mut self, begin: Span, every: Span, lens: &[u32]) {
        let mut at = Time::ZERO + begin;
        for &len in lens {
            self.net.at(at, self.sender, move |engine: &mut Sender, now| {
                engine.send(now, len).expect("room");
            });
            at += every;
        }
        self.net.at(at, self.sender, |engine: &mut Sender, now| engine.finish(now));
    }

    pub(crate) fn run(mut self) -> Self {
        self.net.run();
        self
    }

    /// Returns the outcome of the source.
    pub(crate) fn outcome(&self) -> Option<SenderOutcome> {
        self.told.borrow().iter().find_map(|(_, event)| match event {
            SenderEvent::Ended(outcome) => Some(*outcome),
            _ => None,
        })
    }
}

/// Encodes a message of one segment, flips some bits, and decodes the rest. Half of the time the checksum is corrected,
/// as a forger does.
pub(crate) fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(message.wire_len(0), 0);
    wire::finish(&mut datagram);
    for _ in 0..=random.below(8) {
        let bit = random.below(datagram.len() as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
    wire::decode(&datagram).ok().map(|packet| packet.message)
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
