//! Scenarios: one sender, its receivers, and the links between them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Bitmap, Message as _, Run, Span, Time};
use farcast_delivery::ObjectId;
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_mdp::message::{Answer, Data, FromSender};
use farcast_mdp::{
    Body, Message, NodeId, Object, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig,
    SenderEvent, SenderOutcome, wire,
};
use farcast_testkit::{Handle, Host, Link, Log, Network, Setup};

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
    SocketAddr::from(([10, 0, (n / 250) as u8, (n % 250) as u8 + 1], 5555))
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

/// A receiver in a network, with the events that it reported.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) handle: Handle<Receiver>,
    pub(crate) told: Rc<RefCell<Vec<(Time, ReceiverEvent)>>>,
}

impl Client {
    /// Returns the outcomes of the objects, in the order in which they ended.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let told = self.told.borrow();
        let ended = told.iter().filter_map(|(_, event)| match event {
            ReceiverEvent::Ended(_, outcome) => Some(*outcome),
            _ => None,
        });
        ended.collect()
    }

    /// Returns the number of complete objects.
    pub(crate) fn complete(&self) -> usize {
        self.outcomes().iter().filter(|outcome| matches!(outcome, Outcome::Complete(_))).count()
    }

    /// Returns the segments that the owner was to store, by object.
    pub(crate) fn stored(&self) -> Vec<(ObjectId, u32)> {
        let told = self.told.borrow();
        let runs = told.iter().filter_map(|(_, event)| match event {
            ReceiverEvent::Store { object, segments, .. } => Some((*object, *segments)),
            _ => None,
        });
        runs.flat_map(|(object, run)| run.segments().map(move |segment| (object, segment))).collect()
    }
}

/// A sender and its receivers.
pub(crate) struct Session {
    pub(crate) net: Network<Message>,
    pub(crate) sender: Handle<Sender>,
    pub(crate) told: Rc<RefCell<Vec<(Time, SenderEvent)>>>,
    pub(crate) clients: Vec<Client>,
}

impl Session {
    /// Creates a sender that opens at time zero, over `link` in all directions.
    pub(crate) fn empty(name: &str, setup: Setup, config: SenderConfig, link: Link) -> Self {
        let mut net = Network::new(name, setup);
        net.links(link);
        net.corrupt_with(damage);
        let told = Rc::new(RefCell::new(Vec::new()));
        let mine = told.clone();
        let host = Host::new(Sender::new(config).expect("valid"), move |_: &mut Sender, now, event| {
            mine.borrow_mut().push((now, event));
        });
        let sender = net.add(server(), &[group().ip()], host);
        net.at(Time::ZERO, sender, |engine: &mut Sender, now| engine.open(now));
        Self { net, sender, told, clients: Vec::new() }
    }

    /// Creates a sender that opens at time zero, and `receivers` receivers with default settings.
    pub(crate) fn new(name: &str, setup: Setup, config: SenderConfig, receivers: u32, link: Link) -> Self {
        let mut session = Self::empty(name, setup, config, link);
        for n in 0..receivers {
            session.add(n, receiver(n));
        }
        session
    }

    /// Adds receiver `n`, whose owner takes everything.
    pub(crate) fn add(&mut self, n: u32, config: ReceiverConfig) -> Client {
        self.add_kept(n, config, 0)
    }

    /// Adds receiver `n`, whose owner has kept the first `kept` segments of each object.
    pub(crate) fn add_kept(&mut self, n: u32, config: ReceiverConfig, kept: u32) -> Client {
        let told = Rc::new(RefCell::new(Vec::new()));
        let mine = told.clone();
        let host =
            Host::new(Receiver::new(config).expect("valid"), move |engine: &mut Receiver, now, event| {
                match &event {
                    ReceiverEvent::Offered(offer) => {
                        let mut held = Bitmap::new(offer.geometry.segments());
                        if let Some(run) = Run::new(0, kept.min(held.len())) {
                            held.insert_run(run);
                        }
                        engine.accept(offer.object, &held);
                    }
                    ReceiverEvent::Decode { object, block } => engine.decoded(*object, *block, true),
                    ReceiverEvent::Complete(object) => engine.verified(now, *object),
                    _ => {}
                }
                mine.borrow_mut().push((now, event));
            });
        let host = host.without(|event| {
            matches!(event, ReceiverEvent::Store { .. } | ReceiverEvent::StoreParity { .. })
        });
        let handle = self.net.add(receiver_address(n), &[group().ip()], host);
        let client = Client { handle, told };
        self.clients.push(client.clone());
        client
    }

    pub(crate) fn run(mut self) -> Self {
        self.net.run();
        self
    }

    /// Returns the outcome of the sender.
    pub(crate) fn outcome(&self) -> Option<SenderOutcome> {
        self.told.borrow().iter().find_map(|(_, event)| match event {
            SenderEvent::Ended(outcome) => Some(*outcome),
            _ => None,
        })
    }

    /// Asserts that each receiver has `objects` objects, and stored no segment twice.
    pub(crate) fn assert_received(&self, objects: usize) {
        let context = self.net.context();
        for client in &self.clients {
            let outcomes = client.outcomes();
            assert_eq!(client.complete(), objects, "{context} {:?}: {outcomes:?}", client.handle);
            let mut stored = client.stored();
            let all = stored.len();
            stored.sort_unstable();
            stored.dedup();
            assert_eq!(stored.len(), all, "{context} {:?}: a segment was stored twice", client.handle);
        }
    }
}

/// Encodes a message of one segment, flips some bits, and decodes the rest.
pub(crate) fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(message.wire_len(0), 0);
    for _ in 0..=random.below(8) {
        let bit = random.below(datagram.len() as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
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
