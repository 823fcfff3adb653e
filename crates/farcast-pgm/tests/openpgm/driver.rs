//! A driver of PGM's engines for messages.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine, Message as _, Transmit};
use farcast_core::random::RandomStream;
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::{Codec as _, Content, Delivery as _};
use farcast_pgm::{
    Codec, IP_PROTOCOL, Message, MessageEvent, Receiver, ReceiverConfig, ReceiverEvent, Released, SendError,
    Sender, SenderConfig, SenderEvent,
};
use socket2::{Domain, Protocol, Socket, Type};

/// The longest time that a test may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Carrier of PGM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    Udp,
    /// IP itself, as protocol 113; needs root.
    Raw,
}

/// Our address over raw IP, which has no ports that would tell us from OpenPGM on the same interface.
const RAW_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Sockets of a host: one for the group, and one for its own address, which also sends.
pub(crate) struct Place {
    pub(crate) group: SocketAddr,
    carrier: Carrier,
    // A raw socket is used like one of UDP, ports apart.
    hears: UdpSocket,
    speaks: UdpSocket,
    codec: Codec,
    began: Instant,
    /// Share of datagrams that the host loses, both received and sent.
    loss: f64,
    random: RandomStream,
}

fn socket(carrier: Carrier, address: SocketAddr) -> Socket {
    let (kind, protocol) = match carrier {
        Carrier::Udp => (Type::DGRAM, Protocol::UDP),
        Carrier::Raw => (Type::RAW, Protocol::from(i32::from(IP_PROTOCOL))),
    };
    let socket =
        Socket::new(Domain::IPV4, kind, Some(protocol)).expect("raw IP needs root; run `sudo -E cargo test`");
    if carrier == Carrier::Udp {
        // OpenPGM shares its port only with sockets that share theirs.
        socket.set_reuse_port(true).unwrap();
    }
    socket.set_recv_buffer_size(4 << 20).unwrap();
    socket.bind(&address.into()).unwrap();
    socket
}

impl Place {
    /// Creates a host on the loopback interface. With `at_port`, datagrams to the host alone come to the group's port.
    pub(crate) fn new(carrier: Carrier, port: u16, at_port: bool, loss: f64, seed: u64) -> Self {
        let address = Ipv4Addr::new(239, 192, 57, 40);
        let (port, own) = match carrier {
            Carrier::Udp => (port, (Ipv4Addr::LOCALHOST, if at_port { port } else { 0 })),
            Carrier::Raw => (0, (RAW_SOURCE, 0)),
        };
        let hears = socket(carrier, (address, port).into());
        hears.join_multicast_v4(&address, &Ipv4Addr::LOCALHOST).unwrap();
        let speaks = socket(carrier, own.into());
        speaks.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        speaks.set_nonblocking(true).unwrap();
        Self {
            group: (address, port).into(),
            carrier,
            hears: hears.into(),
            speaks: speaks.into(),
            codec: Codec { raw: carrier == Carrier::Raw },
            began: Instant::now(),
            loss,
            random: RandomStream::derive(seed, &[]),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self.carrier {
            Carrier::Udp => self.speaks.local_addr().unwrap(),
            Carrier::Raw => (RAW_SOURCE, 0).into(),
        }
    }

    /// Returns the port to which requests go.
    pub(crate) fn unicast_port(&self, port: u16) -> u16 {
        if self.carrier == Carrier::Udp { port } else { 0 }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Sends `count` messages, and serves requests until `heard` has returned. Returns the TPDUs sent, and those
    /// repaired.
    pub(crate) fn send(
        &mut self,
        config: SenderConfig,
        count: u32,
        content: impl Fn(u32) -> Vec<u8>,
        heard: impl FnOnce() + Send,
    ) -> (u64, u64) {
        let mut engine = Sender::new(config).unwrap();
        let begin = self.now();
        engine.open(begin);
        let (mut contents, mut next) = (BTreeMap::new(), 0);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let heard = scope.spawn(|| {
                let ended = Ended(&is_over);
                heard();
                drop(ended);
            });
            let mut buffer = vec![0; 65_536];
            while !is_over.load(Ordering::Relaxed) {
                let now = self.now();
                // Messages begin after 300 ms, when every listener knows where the session begins.
                while next < count && now.since(begin).as_millis() > 300 {
                    let octets = content(next);
                    match engine.send(now, octets.len() as u32) {
                        Ok(object) => contents.insert(object, octets),
                        Err(SendError::Full) => break,
                        Err(error) => panic!("{error}"),
                    };
                    next += 1;
                }
                engine.handle_timeout(now);
                while let Some(transmit) = engine.poll_transmit(now, now) {
                    self.say(
                        &transmit,
                        |object, segments, geometry: Option<usize>| {
                            let octets: &Vec<u8> = &contents[&object];
                            let size = geometry.unwrap_or(octets.len());
                            octets.chunks(size.max(1)).nth(segments).unwrap().to_vec()
                        },
                        &engine,
                    );
                }
                while let Some(event) = engine.poll_event() {
                    if let SenderEvent::Own(Released(object)) = event {
                        contents.remove(&object);
                    }
                }
                assert!(self.began.elapsed() < PATIENCE, "that is enough");
                let until = engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
                self.hear(&mut engine, &mut buffer, until);
            }
            heard.join().unwrap();
        });
        engine.sent()
    }

    /// Receives `count` messages. Returns these, the number of TPDUs lost for good, and the number of requests sent.
    pub(crate) fn receive(&mut self, config: ReceiverConfig, count: usize) -> (Vec<Vec<u8>>, u32, u64) {
        let mut engine = Receiver::new(config).unwrap();
        let (mut parts, mut messages, mut lost) = (BTreeMap::new(), Vec::new(), 0);
        let mut buffer = vec![0; 65_536];
        let mut payload = 0..0;
        while messages.len() < count && lost == 0 {
            let now = self.now();
            while let Some(event) = engine.poll_event() {
                match event {
                    ReceiverEvent::Own(MessageEvent::Part { apdu, len, offset }) => {
                        let message: &mut Vec<u8> =
                            parts.entry(apdu).or_insert_with(|| vec![0; len as usize]);
                        let part = &buffer[payload.clone()];
                        message[offset as usize..][..part.len()].copy_from_slice(part);
                    }
                    ReceiverEvent::Own(MessageEvent::Apdu(apdu)) => {
                        messages.push(parts.remove(&apdu).unwrap());
                    }
                    ReceiverEvent::Own(MessageEvent::Lost { count, .. }) => lost += count,
                    other => panic!("{other:?}"),
                }
            }
            engine.handle_timeout(now);
            while let Some(transmit) = engine.poll_transmit(now, now) {
                self.say(&transmit, |_, _, _| Vec::new(), &engine);
            }
            assert!(self.began.elapsed() < PATIENCE, "that is enough: {} messages", messages.len());
            let until = engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
            payload = self.hear(&mut engine, &mut buffer, until);
        }
        (messages, lost, engine.naks())
    }

    fn say<E: Segments>(
        &mut self,
        transmit: &Transmit<Message>,
        content: impl Fn(farcast_delivery::ObjectId, usize, Option<usize>) -> Vec<u8>,
        engine: &E,
    ) {
        let message = &transmit.message;
        for segment in 0..message.segments().get() {
            let mut datagram = Vec::new();
            self.codec.encode(message, segment, &mut datagram);
            if let Content::Source { object, segments, .. } = message.content() {
                let place = (segments.first() + segment) as usize;
                datagram.extend(content(object, place, engine.segment_size(object)));
            }
            self.codec.finish(&mut datagram);
            assert_eq!(datagram.len(), message.wire_len(segment));
            if !self.random.chance(self.loss) {
                self.speaks.send_to(&datagram, transmit.destination).unwrap();
            }
        }
    }

    /// Receives one datagram, or nothing until `next`. Returns the range of its payload.
    fn hear<E: Engine<Message = Message>>(
        &mut self,
        engine: &mut E,
        buffer: &mut [u8],
        next: Time,
    ) -> core::ops::Range<usize> {
        let wait = next.since(self.now()).as_nanos().clamp(1000, 500_000);
        self.hears.set_read_timeout(Some(Duration::from_nanos(wait))).unwrap();
        let own = self.address();
        let alone = self.speaks.recv_from(buffer).map(|heard| (heard, own));
        let heard = alone.or_else(|_| self.hears.recv_from(buffer).map(|heard| (heard, self.group)));
        let ((len, source), to) = match heard {
            Ok(heard) => heard,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return 0..0,
            Err(error) => panic!("{error}"),
        };
        // Raw sockets give the header of IP, too.
        let header = match self.carrier {
            Carrier::Udp => 0,
            Carrier::Raw => usize::from(buffer[0] & 15) * 4,
        };
        let source = if header > 0 { SocketAddr::new(source.ip(), 0) } else { source };
        let packet = self.codec.decode(&buffer[header..len]).expect("what OpenPGM says is PGM");
        if source != own && !self.random.chance(self.loss) {
            let _ = engine.handle(self.now(), &Arrival::new(source, to), &packet.message);
        }
        packet.payload.start + header..packet.payload.end + header
    }
}

/// Segment sizes of an engine's objects.
trait Segments {
    fn segment_size(&self, object: farcast_delivery::ObjectId) -> Option<usize>;
}

impl Segments for Sender {
    fn segment_size(&self, object: farcast_delivery::ObjectId) -> Option<usize> {
        self.geometry(object).map(|geometry| geometry.segment_size().into())
    }
}

impl Segments for Receiver {
    fn segment_size(&self, _: farcast_delivery::ObjectId) -> Option<usize> {
        None
    }
}

/// Guard that sets a flag when it is dropped, whatever the outcome of the test.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
