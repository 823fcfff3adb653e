//! Sessions for tests: one sender, its receivers, and the links between them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Bitmap, Message as _, Span, Time};
use farcast_delivery::ObjectId;
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_norm::message::{Answer, Data, FromSender};
use farcast_norm::{
    Body, Message, NodeId, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig, SenderEvent,
    SenderOutcome, wire,
};
use farcast_testkit::{Handle, Host, Link, Log, Network, Setup};

pub(crate) const SEGMENT: u16 = 1000;

pub(crate) const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub(crate) fn group() -> SocketAddr {
    "239.255.57.40:6003".parse().expect("address")
}

pub(crate) fn server() -> SocketAddr {
    "192.0.2.1:40000".parse().expect("address")
}

/// Returns the address that receiver `n` answers from.
pub(crate) fn receiver_address(n: u32) -> SocketAddr {
    SocketAddr::from(([10, 0, (n / 250) as u8, (n % 250) as u8 + 1], 6003))
}

/// Returns the node id of receiver `n`.
pub(crate) const fn node(n: u32) -> NodeId {
    NodeId(n + 2)
}

/// Returns the configuration of a sender of `segments` segments, the last of them short, in blocks of at most 10 with 4
/// parity symbols, at 1 Mbit/s. The first `ackers` receivers are to acknowledge.
pub(crate) fn sender(segments: u32, ackers: u32) -> SenderConfig {
    let rate = BitRate::from_bps(1_000_000).expect("positive");
    let size = u64::from(segments) * u64::from(SEGMENT) - 1;
    let mut config = SenderConfig::new(NodeId(1), size, server(), group(), rate);
    (config.segment_size, config.block_len, config.parity) = (SEGMENT, 10, 4);
    config.objects[0].info = b"file".to_vec();
    config.ackers = (0..ackers).map(node).collect();
    config
}

pub(crate) fn receiver(n: u32) -> ReceiverConfig {
    ReceiverConfig { seed: u64::from(n), ..ReceiverConfig::new(node(n), group()) }
}

/// Receiver in a network, with the events for its owner.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) handle: Handle<Receiver>,
    pub(crate) told: Rc<RefCell<Vec<(Time, ReceiverEvent)>>>,
}

impl Client {
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let told = self.told.borrow();
        told.iter().find_map(|(_, event)| match event {
            ReceiverEvent::Ended(_, outcome) => Some(*outcome),
            _ => None,
        })
    }

    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Complete(_)))
    }

    /// Returns the names of the complete objects, in the order of their completion.
    pub(crate) fn complete(&self) -> Vec<String> {
        let told = self.told.borrow();
        let named = |object| {
            told.iter().rev().find_map(|(_, event)| match event {
                ReceiverEvent::Offered(offer) | ReceiverEvent::Named(offer) if offer.object == object => {
                    Some(String::from_utf8_lossy(&offer.name).into_owned())
                }
                _ => None,
            })
        };
        let complete = told.iter().filter_map(|(_, event)| match event {
            ReceiverEvent::Ended(object, Outcome::Complete(_)) => Some(*object),
            _ => None,
        });
        complete.map(|object| named(object).expect("offered")).collect()
    }

    /// Returns the stored segments with their objects.
    pub(crate) fn stored(&self) -> Vec<(ObjectId, u32)> {
        let told = self.told.borrow();
        let runs = told.iter().filter_map(|(_, event)| match event {
            ReceiverEvent::Store { object, segments, .. } => Some((*object, *segments)),
            _ => None,
        });
        runs.flat_map(|(object, run)| run.segments().map(move |segment| (object, segment))).collect()
    }
}

/// Sender with its receivers.
pub(crate) struct Session {
    pub(crate) net: Network<Message>,
    pub(crate) sender: Handle<Sender>,
    pub(crate) told: Rc<RefCell<Vec<(Time, SenderEvent)>>>,
    pub(crate) clients: Vec<Client>,
    /// Number of objects.
    objects: usize,
}

impl Session {
    /// Makes a session with a sender that opens at time zero, over `link` in all directions.
    pub(crate) fn empty(name: &str, setup: Setup, config: SenderConfig, link: Link) -> Self {
        let mut net = Network::new(name, setup);
        net.links(link);
        net.corrupt_with(damage);
        let objects = config.objects.len();
        let told = Rc::new(RefCell::new(Vec::new()));
        let mine = told.clone();
        let host = Host::new(Sender::new(config).expect("valid"), move |_: &mut Sender, now, event| {
            mine.borrow_mut().push((now, event));
        });
        let sender = net.add(server(), &[group().ip()], host);
        net.at(Time::ZERO, sender, |engine: &mut Sender, now| engine.open(now));
        Self { net, sender, told, clients: Vec::new(), objects }
    }

    /// Makes a session with `receivers` receivers of default settings.
    pub(crate) fn new(name: &str, setup: Setup, config: SenderConfig, receivers: u32, link: Link) -> Self {
        let mut session = Self::empty(name, setup, config, link);
        for n in 0..receivers {
            session.add(n, receiver(n));
        }
        session
    }

    /// Adds receiver `n`, whose owner accepts everything.
    pub(crate) fn add(&mut self, n: u32, config: ReceiverConfig) -> Client {
        let told = Rc::new(RefCell::new(Vec::new()));
        let mine = told.clone();
        let host =
            Host::new(Receiver::new(config).expect("valid"), move |engine: &mut Receiver, now, event| {
                match &event {
                    ReceiverEvent::Offered(offer) => engine.accept(now, offer.object, &Bitmap::new(0)),
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

    /// Returns the sender's outcome.
    pub(crate) fn outcome(&self) -> Option<SenderOutcome> {
        self.told.borrow().iter().find_map(|(_, event)| match event {
            SenderEvent::Ended(outcome) => Some(*outcome),
            _ => None,
        })
    }

    /// Asserts that each receiver has all objects, and stored no segment twice.
    pub(crate) fn assert_received(&self) {
        let context = self.net.context();
        for client in &self.clients {
            let outcome = client.outcome();
            let complete = client.complete();
            assert_eq!(complete.len(), self.objects, "{context} {:?}: {outcome:?}", client.handle);
            let mut stored = client.stored();
            let all = stored.len();
            stored.sort_unstable();
            stored.dedup();
            assert_eq!(stored.len(), all, "{context} {:?}: a segment was stored twice", client.handle);
        }
    }
}

/// Encodes a message of one segment, flips some bits, and decodes what is left.
pub(crate) fn damage(message: &Message, random: &mut RandomStream) -> Option<Message> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(message.wire_len(0), 0);
    for _ in 0..=random.below(8) {
        let bit = random.below(datagram.len() as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
    wire::decode(&datagram, 8).ok().map(|packet| packet.message)
}

/// Returns the messages of host `from` that `pick` selects.
pub(crate) fn sent<T>(
    log: &Log<Message>,
    from: usize,
    pick: impl Fn(&Message) -> Option<T>,
) -> Vec<(Time, T)> {
    let mine = log.departures.iter().filter(|departure| departure.from == from);
    mine.filter_map(|departure| pick(&departure.message).map(|t| (departure.at, t))).collect()
}

/// Returns the DATA of the sender.
pub(crate) fn data(log: &Log<Message>) -> Vec<(Time, Data)> {
    sent(log, 0, |message| message.data().cloned())
}

/// Returns the content of a sender's message.
pub(crate) fn said(message: &Message) -> Option<&FromSender> {
    match &message.body {
        Body::Sender(_, said) => Some(said),
        Body::Receiver(_) => None,
    }
}

/// Returns `true` for a repair request.
pub(crate) fn is_nack(message: &Message) -> bool {
    matches!(&message.body, Body::Receiver(said) if matches!(said.answer, Answer::Nack(_)))
}
