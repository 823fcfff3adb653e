//! Scenarios: one sender, its receivers, the links between them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Bitmap, Engine, Message as _, Run, Span, Time};
use farcast_delivery::{Answer, Outcome};
use farcast_oneway::{
    Description, Duration, Kind, Message, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig,
    Shape, Symbols, wire,
};
use farcast_testkit::{Handle, Host, Link, Network, Setup};

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

/// Receiver in a network, and its events.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) handle: Handle<Receiver>,
    pub(crate) told: Rc<RefCell<Vec<(Time, ReceiverEvent)>>>,
}

impl Client {
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let told = self.told.borrow();
        let ended = |event: &ReceiverEvent| match event {
            ReceiverEvent::Ended(_, outcome) => Some(*outcome),
            _ => None,
        };
        told.iter().filter_map(|(_, event)| ended(event)).collect()
    }

    pub(crate) fn completed(&self) -> Option<Time> {
        self.outcomes().into_iter().find_map(|outcome| match outcome {
            Outcome::Complete(at) => Some(at),
            _ => None,
        })
    }

    pub(crate) fn count(&self, which: impl Fn(&ReceiverEvent) -> u32) -> u32 {
        self.told.borrow().iter().map(|(_, event)| which(event)).sum()
    }

    /// Returns the numbers of segments and of parity symbols to be stored, and of blocks to be rebuilt.
    pub(crate) fn stored(&self) -> (u32, u32, u32) {
        let segments = |event: &ReceiverEvent| match event {
            ReceiverEvent::Store { segments, .. } => segments.count(),
            _ => 0,
        };
        let parity = |event: &ReceiverEvent| match event {
            ReceiverEvent::Parity { symbols, .. } => symbols.count(),
            _ => 0,
        };
        let blocks = |event: &ReceiverEvent| u32::from(matches!(event, ReceiverEvent::Decode { .. }));
        (self.count(segments), self.count(parity), self.count(blocks))
    }
}

/// Sender and its receivers.
pub(crate) struct Session {
    pub(crate) net: Network<Message>,
    pub(crate) clients: Vec<Client>,
}

impl Session {
    /// Creates a sender that opens at time zero, over `link`, and receivers whose owners accept everything.
    pub(crate) fn new(name: &str, setup: Setup, config: SenderConfig, receivers: u32, link: Link) -> Self {
        let mut net = Network::new(name, setup);
        net.links(link);
        net.corrupt_with(damage);
        let host = Host::alone(Sender::new(config).expect("valid"));
        let sender = net.add(server(), &[group().ip()], host);
        net.at(Time::ZERO, sender, |engine: &mut Sender, now| engine.open(now));
        let mut session = Self { net, clients: Vec::new() };
        for n in 0..receivers {
            session.add(n);
        }
        session
    }

    pub(crate) fn add(&mut self, n: u32) -> Client {
        let told = Rc::new(RefCell::new(Vec::new()));
        let mine = told.clone();
        let engine = Receiver::new(ReceiverConfig::default());
        let host = Host::new(engine, move |engine: &mut Receiver, now, event| {
            own(engine, now, &event);
            mine.borrow_mut().push((now, event));
        });
        let host =
            host.without(|event| matches!(event, ReceiverEvent::Store { .. } | ReceiverEvent::Parity { .. }));
        let address = SocketAddr::from(([10, 0, (n / 250) as u8, (n % 250) as u8 + 1], 6004));
        let handle = self.net.add(address, &[group().ip()], host);
        let client = Client { handle, told };
        self.clients.push(client.clone());
        client
    }

    pub(crate) fn run(mut self) -> Self {
        self.net.run();
        self
    }
}

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
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(message.wire_len(0), 0);
    for _ in 0..=random.below(8) {
        let bit = random.below(datagram.len() as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
    wire::decode(&datagram).ok().map(|packet| packet.message)
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
        Message::Description(_) => None,
    });
    symbols.collect()
}

pub(crate) fn described(sent: &[(Time, Message)]) -> Vec<(Time, Description)> {
    let described = sent.iter().filter_map(|(at, message)| match message {
        Message::Description(description) => Some((*at, description.clone())),
        Message::Symbols(_) => None,
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
