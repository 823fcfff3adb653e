//! Driver of NORM's engines that does not use farcast's files.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine, Message as _};
use farcast_core::random::RandomStream;
use farcast_delivery::Outcome;
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::{Codec as _, Content, Delivery as _, ObjectId};
use farcast_norm::{
    Codec, Fec, Message, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig, SenderEvent,
    SenderOutcome,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::object::Object;

/// Time limit for everything.
const PATIENCE: Duration = Duration::from_mins(1);

/// Sockets of a host: one that hears the group, and one for sending and for messages to the host alone.
pub(crate) struct Place {
    pub(crate) group: SocketAddr,
    hears: UdpSocket,
    speaks: UdpSocket,
    codec: Codec,
    began: Instant,
    /// Fraction of all datagrams, in both directions, that are lost here.
    loss: f64,
    random: RandomStream,
}

type Objects = BTreeMap<ObjectId, Object>;

impl Place {
    /// Makes the sockets on the loopback interface.
    pub(crate) fn new(port: u16, fec: Fec, loss: f64, seed: u64) -> Self {
        let address = Ipv4Addr::new(239, 255, 57, 40);
        let hears = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        hears.set_reuse_address(true).unwrap();
        hears.set_recv_buffer_size(4 << 20).unwrap();
        hears.bind(&SocketAddr::from((address, port)).into()).unwrap();
        hears.join_multicast_v4(&address, &Ipv4Addr::LOCALHOST).unwrap();
        let speaks = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        speaks.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        speaks.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        speaks.set_nonblocking(true).unwrap();
        Self {
            group: SocketAddr::from((address, port)),
            hears: hears.into(),
            speaks: speaks.into(),
            codec: Codec { fec },
            began: Instant::now(),
            loss,
            random: RandomStream::derive(seed, &[]),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.speaks.local_addr().unwrap()
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Sends `contents`, one for each object of `config`. Returns the outcome and the engine.
    pub(crate) fn send(&mut self, config: SenderConfig, contents: &[&[u8]]) -> (SenderOutcome, Sender) {
        let (parity, fec) = (config.parity.into(), config.fec);
        let mut sender = Sender::new(config).unwrap();
        let mut objects = Objects::new();
        for (number, &content) in (0..).map(ObjectId::new).zip(contents) {
            let geometry = *sender.geometry(number).unwrap();
            objects.insert(number, Object::new(content.to_vec(), geometry, parity, fec));
        }
        sender.open(Time::ZERO);
        let mut outcome = None;
        let owner = |_: &mut Sender, _: &mut Objects, _, event, _: &[u8]| {
            if let SenderEvent::Ended(how) = event {
                outcome = Some(how);
            }
        };
        self.drive(&mut sender, &mut objects, owner, |sender| {
            sender.phase() == farcast_delivery::Phase::Ended
        });
        (outcome.unwrap(), sender)
    }

    /// Receives until `over`, called with the number of complete objects, returns `true`. Returns the objects by name.
    pub(crate) fn receive(
        &mut self,
        config: ReceiverConfig,
        mut over: impl FnMut(usize) -> bool,
    ) -> (BTreeMap<String, Vec<u8>>, Receiver) {
        let fec = self.codec.fec;
        let mut receiver = Receiver::new(config).unwrap();
        let mut names = BTreeMap::new();
        let mut objects = Objects::new();
        let complete = std::cell::RefCell::new(BTreeMap::new());
        let owner = |engine: &mut Receiver, objects: &mut Objects, now, event, payload: &[u8]| match event {
            ReceiverEvent::Offered(offer) => {
                objects
                    .insert(offer.object, Object::new(Vec::new(), offer.geometry, offer.parity_symbols, fec));
                engine.accept(now, offer.object, &farcast_core::Bitmap::new(0));
                names.insert(offer.object, String::from_utf8(offer.name).unwrap());
            }
            ReceiverEvent::Named(offer) => {
                names.insert(offer.object, String::from_utf8(offer.name).unwrap());
            }
            ReceiverEvent::Store { object, segments, .. } => {
                objects.get_mut(&object).unwrap().store(segments.first(), payload);
            }
            ReceiverEvent::StoreParity { object, block, symbols, .. } => {
                objects.get_mut(&object).unwrap().keep(block, symbols.first(), payload);
            }
            ReceiverEvent::Decode { object, block } => {
                let have = engine.have(object).unwrap().clone();
                objects.get_mut(&object).unwrap().rebuild(block, &have);
                engine.decoded(object, block, true);
            }
            ReceiverEvent::Complete(object) => engine.verified(now, object),
            ReceiverEvent::Ended(object, outcome) => {
                assert!(matches!(outcome, Outcome::Complete(_)), "{outcome:?}");
                let content = objects.remove(&object).unwrap().content().to_vec();
                complete.borrow_mut().insert(names.remove(&object).unwrap(), content);
            }
            ReceiverEvent::Own(_) => {}
        };
        self.drive(&mut receiver, &mut objects, owner, |_| over(complete.borrow().len()));
        (complete.into_inner(), receiver)
    }

    /// Drives `engine` until `over`, sends its symbols of `objects`, and passes its events with their datagrams to
    /// `owner`.
    fn drive<E: Engine<Message = Message>>(
        &mut self,
        engine: &mut E,
        objects: &mut Objects,
        mut owner: impl FnMut(&mut E, &mut Objects, Time, E::Event, &[u8]),
        mut over: impl FnMut(&E) -> bool,
    ) {
        let mut buffer = vec![0; 65_536];
        let deadline = Instant::now() + PATIENCE;
        let mut heard = 0..0;
        while !over(engine) {
            let now = self.now();
            engine.handle_timeout(now);
            loop {
                while let Some(event) = engine.poll_event() {
                    owner(engine, objects, now, event, &buffer[heard.clone()]);
                }
                let Some(transmit) = engine.poll_transmit(now, now) else { break };
                self.say(&transmit.message, transmit.destination, objects);
            }
            assert!(Instant::now() < deadline, "a minute is enough");
            let next = engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
            heard = self.hear(engine, &mut buffer, next);
        }
    }

    fn say(&mut self, message: &Message, to: SocketAddr, objects: &Objects) {
        for segment in 0..message.segments().get() {
            let mut datagram = Vec::new();
            self.codec.encode(message, segment, &mut datagram);
            match message.content() {
                Content::None | Content::Passing { .. } | Content::Kept { .. } => {}
                Content::Source { object, block, segments } => {
                    assert_eq!(datagram.len(), self.codec.header_len());
                    datagram.extend(objects[&object].segment(block, segments.first() + segment));
                }
                Content::Parity { object, block, symbols } => {
                    datagram.extend(objects[&object].parity(block, symbols.first() + segment));
                }
            }
            assert_eq!(datagram.len(), message.wire_len(segment));
            if !self.random.chance(self.loss) {
                self.speaks.send_to(&datagram, to).unwrap();
            }
        }
    }

    /// Handles one datagram, or none until `next`. Returns the range of the datagram's payload.
    fn hear<E: Engine<Message = Message>>(
        &mut self,
        engine: &mut E,
        buffer: &mut [u8],
        next: Time,
    ) -> core::ops::Range<usize> {
        // The wait is short, so that datagrams to the other socket are not delayed.
        let wait = next.since(self.now()).as_nanos().clamp(1000, 2_000_000);
        self.hears.set_read_timeout(Some(Duration::from_nanos(wait))).unwrap();
        let own = self.address();
        let alone = self.speaks.recv_from(buffer).map(|heard| (heard, own));
        let heard = alone.or_else(|_| self.hears.recv_from(buffer).map(|heard| (heard, self.group)));
        let ((len, source), to) = match heard {
            Ok(heard) => heard,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return 0..0,
            Err(error) => panic!("{error}"),
        };
        let packet = self.codec.decode(&buffer[..len]).expect("what the library says is NORM");
        if source != own && !self.random.chance(self.loss) {
            let _ = engine.handle(self.now(), &Arrival::new(source, to), &packet.message);
        }
        packet.payload
    }
}
