//! Scenarios: one sender, its receivers, the links between them.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use farcast_core::{BitRate, Bitmap, Message as _, Run, Span, Time};
use farcast_delivery::Offer;
use farcast_mftp::message::{Data, DeclineReason};
use farcast_mftp::{
    Body, ClientId, Message, Pace, Product, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome, Secret,
    Sender, SenderConfig, SenderEvent, SenderOutcome, StatusRetry, wire,
};
use farcast_testkit::{Departure, Handle, Host, Link, Log, Network, Setup};

/// Network of MFTP hosts.
pub(crate) type Net = Network<Message>;
/// Log of such a network.
pub(crate) type MftpLog = Log<Message>;

/// Bytes of the UDP and IPv4 headers, as the default pace counts them.
pub(crate) const OVERHEAD: usize = 28;

pub(crate) const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub(crate) const fn secs(n: u64) -> Span {
    Span::from_secs(n)
}

/// Returns the time `span` after the beginning.
pub(crate) fn at(span: Span) -> Time {
    Time::ZERO + span
}

pub(crate) fn group() -> SocketAddr {
    "239.255.54.2:5402".parse().expect("address")
}

pub(crate) fn server() -> SocketAddr {
    "192.0.2.1:40000".parse().expect("address")
}

/// Returns the address at which receiver `n` answers and listens.
pub(crate) fn receiver_address(n: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (n / 250) as u8, (n % 250) as u8 + 1], 5402))
}

pub(crate) fn product(size: u64) -> Product {
    Product { id: [7; 32], size, name: "file".into() }
}

pub(crate) fn rate(kbps: u64) -> Pace {
    let rate = BitRate::from_bps(kbps * 1000).expect("positive");
    Pace::Rate { rate, overhead: OVERHEAD as u16, credit: ms(5), granule: 1 }
}

/// Returns the configuration of a sender of `dtus` DTUs of 1000 bytes in blocks of `block_size`, at 1 Mbit/s, to a
/// group that starts with its first `receivers`.
pub(crate) fn sender(dtus: u32, block_size: u32, receivers: u32) -> SenderConfig {
    let mut config = SenderConfig::new(product(u64::from(dtus) * 1000), server(), group());
    (config.dtu_size, config.block_size, config.pace) = (1000, block_size, rate(1000));
    config.start.receivers = Some(receivers);
    config.start.after = None;
    (config.status_retry, config.silence) = (StatusRetry::Fixed(ms(800)), Span::ZERO);
    config.secret = Some(Secret([1; 32]));
    config
}

pub(crate) fn receiver(n: usize) -> ReceiverConfig {
    let id = ClientId::from_address(receiver_address(n).ip());
    let secret = Some(Secret([(n % 251) as u8 + 2; 32]));
    ReceiverConfig { seed: n as u64, secret, ..ReceiverConfig::new(id, group().port()) }
}

/// Result of a comparison with the list of files.
#[derive(Clone)]
pub(crate) struct Comparison {
    /// Number of segments of the list.
    pub(crate) list: u32,
    /// Segments that are still missing afterwards.
    pub(crate) lacks: Vec<u32>,
    /// `true` if a script answers instead.
    pub(crate) slow: bool,
}

impl Comparison {
    pub(crate) fn held(&self, segments: u32) -> Bitmap {
        let mut held = Bitmap::full(segments);
        for &segment in &self.lacks {
            held.remove(segment);
        }
        held
    }
}

/// Answers of a receiver's owner.
#[derive(Clone, Default)]
pub(crate) struct Ownership {
    /// Segments that the owner lacks at the start; `None` if it holds none.
    pub(crate) lacks: Option<Vec<u32>>,
    /// Result of the comparison with an older version, if there is one.
    pub(crate) compares: Option<Comparison>,
    /// Reason to decline, if the owner declines.
    pub(crate) declines: Option<DeclineReason>,
    /// `true` if blocks cannot be rebuilt from parity.
    pub(crate) cannot_decode: bool,
    /// `true` if a script answers `Complete` instead.
    pub(crate) slow: bool,
    /// Damaged segments found after completion, one run each time.
    pub(crate) loses: Rc<RefCell<Vec<Run>>>,
    /// Events of the engine, in order.
    pub(crate) told: Rc<RefCell<Vec<(Time, ReceiverEvent)>>>,
}

impl Ownership {
    fn answer(&self, engine: &mut Receiver, now: Time, event: &ReceiverEvent) {
        match event {
            ReceiverEvent::Offered(offer) => match self.declines {
                Some(reason) => engine.decline(reason),
                None if self.compares.is_some() => engine.accept_comparing(now, Bitmap::new(0), false),
                None => engine.accept(now, self.held(offer)),
            },
            ReceiverEvent::Store { .. } => {
                let list = self.compares.as_ref().and_then(|comparison| Run::new(0, comparison.list));
                if let Some(list) = list.filter(|_| engine.have().is_some_and(|have| have.contains(0))) {
                    engine.list_is(list.count());
                }
                if list.is_some_and(|list| engine.have().is_some_and(|h| h.count_in(list) == list.count())) {
                    engine.listed();
                }
            }
            ReceiverEvent::Compare => {
                if let Some(comparison) = self.compares.as_ref().filter(|comparison| !comparison.slow) {
                    let segments = engine.have().map_or(0, Bitmap::len);
                    engine.compared(now, &comparison.held(segments));
                }
            }
            ReceiverEvent::Decode { block } => engine.decoded(*block, !self.cannot_decode),
            ReceiverEvent::Complete if !self.slow => match self.loses.borrow_mut().pop() {
                Some(run) => engine.lost(run),
                None => engine.verified(now),
            },
            _ => {}
        }
    }

    fn held(&self, offer: &Offer) -> Bitmap {
        let segments = offer.geometry.segments();
        let Some(lacks) = &self.lacks else { return Bitmap::new(segments) };
        let mut held = Bitmap::full(segments);
        for &segment in lacks {
            held.remove(segment);
        }
        held
    }

    /// Returns the outcomes of the receiver's transmissions.
    pub(crate) fn outcomes(&self) -> Vec<ReceiverOutcome> {
        let told = self.told.borrow();
        let ended = told.iter().filter_map(|(_, event)| match event {
            ReceiverEvent::Ended(outcome) => Some(outcome.clone()),
            _ => None,
        });
        ended.collect()
    }

    /// Returns `true` if the product is complete here.
    pub(crate) fn is_complete(&self) -> bool {
        self.outcomes().iter().any(|outcome| matches!(outcome, ReceiverOutcome::Complete { .. }))
    }

    /// Returns each segment that the owner was asked to store, in order.
    pub(crate) fn stored(&self) -> Vec<u32> {
        let told = self.told.borrow();
        let runs = told.iter().filter_map(|(_, event)| match event {
            ReceiverEvent::Store { segments, .. } => Some(*segments),
            _ => None,
        });
        runs.flat_map(Run::segments).collect()
    }
}

/// Receiver in a network, and its owner.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) handle: Handle<Receiver>,
    pub(crate) owner: Ownership,
}

/// Events of a sender.
pub(crate) type Told = Rc<RefCell<Vec<(Time, SenderEvent)>>>;

/// Sender and its receivers.
pub(crate) struct Session {
    pub(crate) net: Net,
    pub(crate) sender: Handle<Sender>,
    pub(crate) told: Told,
    pub(crate) clients: Vec<Client>,
}

impl Session {
    /// Creates a sender that opens at time zero and `receivers` default receivers, over `link` in both directions.
    pub(crate) fn new(name: &str, setup: Setup, config: SenderConfig, receivers: usize, link: Link) -> Self {
        let mut session = Self::empty(name, setup, config, link);
        for n in 0..receivers {
            session.add(n, receiver(n), Ownership::default());
        }
        session
    }

    /// Creates a sender that opens at time zero, without receivers.
    pub(crate) fn empty(name: &str, setup: Setup, config: SenderConfig, link: Link) -> Self {
        let mut net = Net::new(name, setup);
        net.links(link);
        net.corrupt_with(damage);
        let (sender, told) = add_sender(&mut net, config, Time::ZERO);
        Self { net, sender, told, clients: Vec::new() }
    }

    /// Adds a receiver at address `n`.
    pub(crate) fn add(&mut self, n: usize, config: ReceiverConfig, owner: Ownership) -> Client {
        self.add_at(receiver_address(n), config, owner)
    }

    /// Adds a receiver at `address`.
    pub(crate) fn add_at(&mut self, address: SocketAddr, config: ReceiverConfig, owner: Ownership) -> Client {
        let engine = Receiver::new(config).expect("valid");
        let mine = owner.clone();
        let host = Host::new(engine, move |engine: &mut Receiver, now, event| {
            mine.answer(engine, now, &event);
            mine.told.borrow_mut().push((now, event));
        });
        let host = host.without(|event| matches!(event, ReceiverEvent::Store { .. }));
        let client = Client { handle: self.net.add(address, &[group().ip(), response_group()], host), owner };
        self.clients.push(client.clone());
        client
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) -> Self {
        self.net.run();
        self
    }

    /// Returns the sender's engine.
    pub(crate) fn engine(&self) -> &Sender {
        self.net.engine(self.sender)
    }

    /// Returns the sender's outcome.
    pub(crate) fn outcome(&self) -> Option<SenderOutcome> {
        self.told.borrow().iter().find_map(|(_, event)| match event {
            SenderEvent::Ended(outcome) => Some(outcome.clone()),
            _ => None,
        })
    }

    /// Returns the time of the sender's first `event`.
    pub(crate) fn when(&self, event: impl Fn(&SenderEvent) -> bool) -> Option<Time> {
        self.told.borrow().iter().find(|(_, told)| event(told)).map(|&(time, _)| time)
    }

    /// Returns the times of the sender's events `event`, in order.
    pub(crate) fn times(&self, event: impl Fn(&SenderEvent) -> bool) -> Vec<Time> {
        self.told.borrow().iter().filter(|(_, told)| event(told)).map(|&(time, _)| time).collect()
    }

    /// Returns the number of the sender's events `event`.
    pub(crate) fn count(&self, event: impl Fn(&SenderEvent) -> bool) -> usize {
        self.told.borrow().iter().filter(|(_, told)| event(told)).count()
    }

    /// Asserts that the sender finished and every receiver has the product, each segment stored once.
    pub(crate) fn assert_complete(&self) {
        let context = self.net.context();
        assert_eq!(self.outcome(), Some(SenderOutcome::Finished), "{context}");
        self.assert_received(&self.clients);
    }

    /// Asserts that each of `clients` has the product, each segment stored once.
    pub(crate) fn assert_received(&self, clients: &[Client]) {
        let context = self.net.context();
        for client in clients {
            let outcomes = client.owner.outcomes();
            let told = self.told.borrow();
            assert!(client.owner.is_complete(), "{context} {:?}: {outcomes:?}, {told:?}", client.handle);
            client.assert_stored_once(&context);
        }
    }
}

impl Client {
    fn assert_stored_once(&self, context: &str) {
        let mut stored = self.owner.stored();
        let all = stored.len();
        stored.sort_unstable();
        stored.dedup();
        assert_eq!(stored.len(), all, "{context} {:?}: a segment was stored twice", self.handle);
    }
}

/// Adds a sender that opens at `opens`.
pub(crate) fn add_sender(net: &mut Net, config: SenderConfig, opens: Time) -> (Handle<Sender>, Told) {
    let told = Told::default();
    let mine = told.clone();
    let address = config.server;
    let host = Host::new(Sender::new(config).expect("valid"), move |_: &mut Sender, now, event| {
        mine.borrow_mut().push((now, event));
    });
    let sender = net.add(address, &[group().ip(), response_group()], host);
    net.at(opens, sender, |engine: &mut Sender, now| engine.open(now));
    (sender, told)
}

/// Returns a group for answers, where receivers hear one another.
pub(crate) fn response_group() -> IpAddr {
    IpAddr::from([239, 255, 54, 3])
}

/// Encodes a message of one segment, flips one to eight bits, and decodes the result.
pub(crate) fn damage(message: &Message, random: &mut farcast_core::random::RandomStream) -> Option<Message> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(message.wire_len(0), 0);
    for _ in 0..=random.below(8) {
        let bit = random.below(datagram.len() as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
    wire::decode(&datagram).ok().map(|packet| packet.message)
}

/// Returns the DATA that host `from` sent.
pub(crate) fn data(log: &MftpLog, from: usize) -> Vec<(Time, Data)> {
    sent(log, from, |body| if let Body::Data(data) = body { Some(data.clone()) } else { None })
}

/// Returns the messages that host `from` sent and `pick` selects.
pub(crate) fn sent<T>(log: &MftpLog, from: usize, pick: impl Fn(&Body) -> Option<T>) -> Vec<(Time, T)> {
    let mine = log.departures.iter().filter(|departure| departure.from == from);
    mine.filter_map(|Departure { at, message, .. }| pick(&message.body).map(|t| (*at, t))).collect()
}

/// Loses only DATA, with probability `p`.
pub(crate) fn lose_data(net: &mut Net, seed: u64, p: f64) {
    let mut random = farcast_core::random::RandomStream::derive(seed, &[99]);
    net.drop_if(move |leg| matches!(leg.message.body, Body::Data(_)) && random.chance(p));
}

/// Returns the time that a message of the sender takes at `kbps`.
pub(crate) fn duration(body_len: usize, kbps: u64) -> Span {
    BitRate::from_bps(kbps * 1000).expect("positive").time_of_bytes((body_len + OVERHEAD) as u64)
}
