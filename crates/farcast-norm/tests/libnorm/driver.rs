//! A driver of NORM's engines that knows no files of ours: an object is octets in memory, as a foreign peer sends and
//! stores them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use farcast_core::engine::{Arrival, Engine, Message as _};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Time};
use farcast_delivery::{Codec as _, Content, Delivery as _, Geometry};
use farcast_fec::{ParitySymbol, PointSet, ReedSolomon};
use farcast_norm::{Codec, Fec, Message};
use socket2::{Domain, Protocol, Socket, Type};

const CODEC: Codec = Codec { fec: Fec::ReedSolomon8 };

/// Where a host hears the group, and where it speaks from.
pub(crate) struct Place {
    pub(crate) group: SocketAddr,
    hears: UdpSocket,
    speaks: UdpSocket,
    began: Instant,
    /// What it loses of DATA that it hears or says.
    loss: f64,
    random: RandomStream,
}

impl Place {
    /// On the loopback interface.
    pub(crate) fn new(port: u16, loss: f64, seed: u64) -> Self {
        let address = Ipv4Addr::new(239, 255, 57, 40);
        let hears = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        hears.set_reuse_address(true).unwrap();
        hears.set_recv_buffer_size(4 << 20).unwrap();
        hears.bind(&SocketAddr::from((address, port)).into()).unwrap();
        hears.join_multicast_v4(&address, &Ipv4Addr::LOCALHOST).unwrap();
        let speaks = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        speaks.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        speaks.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let random = RandomStream::derive(seed, &[]);
        let group = SocketAddr::from((address, port));
        Self { group, hears: hears.into(), speaks: speaks.into(), began: Instant::now(), loss, random }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.speaks.local_addr().unwrap()
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn loses(&mut self, message: &Message) -> bool {
        message.data().is_some() && self.random.chance(self.loss)
    }

    /// Drives `engine` until `over`, with what it sends of `object`, and hands its events and their datagrams to
    /// `owner`.
    pub(crate) fn drive<E: Engine<Message = Message>>(
        &mut self,
        engine: &mut E,
        object: &mut Object,
        mut owner: impl FnMut(&mut E, &mut Object, Time, E::Event, &[u8]) -> bool,
    ) {
        let mut buffer = vec![0; 65_536];
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut heard = 0..0;
        loop {
            let now = self.now();
            engine.handle_timeout(now);
            loop {
                while let Some(event) = engine.poll_event() {
                    if owner(engine, object, now, event, &buffer[heard.clone()]) {
                        return;
                    }
                }
                let Some(transmit) = engine.poll_transmit(now, now) else { break };
                self.send(&transmit.message, transmit.destination, object);
            }
            assert!(Instant::now() < deadline, "a minute is enough");
            let next = engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
            heard = self.hear(engine, &mut buffer, next);
        }
    }

    fn send(&mut self, message: &Message, to: SocketAddr, object: &mut Object) {
        for segment in 0..message.segments().get() {
            let mut datagram = Vec::new();
            CODEC.encode(message, segment, &mut datagram);
            match message.content() {
                Content::None => {}
                Content::Source { block, segments, .. } => {
                    assert_eq!(datagram.len(), CODEC.header_len());
                    datagram.extend(object.segment(block, segments.first() + segment));
                }
                Content::Parity { block, symbols, .. } => {
                    datagram.extend(object.parity(block, symbols.first() + segment));
                }
            }
            assert_eq!(datagram.len(), message.wire_len(segment));
            if !self.loses(message) {
                self.speaks.send_to(&datagram, to).unwrap();
            }
        }
    }

    /// Hears one datagram, or nothing until `next`; where its payload lies.
    fn hear<E: Engine<Message = Message>>(
        &mut self,
        engine: &mut E,
        buffer: &mut [u8],
        next: Time,
    ) -> core::ops::Range<usize> {
        let wait = next.since(self.now()).as_nanos().clamp(1000, 50_000_000);
        self.hears.set_read_timeout(Some(Duration::from_nanos(wait))).unwrap();
        let (len, source) = match self.hears.recv_from(buffer) {
            Ok(heard) => heard,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return 0..0,
            Err(error) => panic!("{error}"),
        };
        let packet = CODEC.decode(&buffer[..len]).expect("what the library says is NORM");
        if source != self.address() && !self.loses(&packet.message) {
            let _ = engine.handle(self.now(), &Arrival::new(source, self.group), &packet.message);
        }
        packet.payload
    }
}

/// An object in memory, and its code.
pub(crate) struct Object {
    pub(crate) octets: Vec<u8>,
    geometry: Geometry,
    code: ReedSolomon,
    /// Parity that has come, by block.
    held: BTreeMap<u32, BTreeMap<u32, Vec<u8>>>,
}

impl Object {
    pub(crate) fn new(mut octets: Vec<u8>, geometry: Geometry, parity: u32) -> Self {
        let len = usize::from(geometry.segment_size());
        let symbols = geometry.code_size() as usize;
        let code = ReedSolomon::new(PointSet::Rizzo, symbols, parity as usize, len).unwrap();
        octets.resize(geometry.segments() as usize * len, 0);
        Self { octets, geometry, code, held: BTreeMap::new() }
    }

    /// The octets of `block`, padded.
    fn block(&self, block: u32) -> core::ops::Range<usize> {
        let (run, len) = (self.geometry.block_run(block).unwrap(), usize::from(self.geometry.segment_size()));
        run.first() as usize * len..run.end() as usize * len
    }

    fn segment(&self, block: u32, segment: u32) -> &[u8] {
        let number = self.geometry.first_of(block) + segment;
        let at = number as usize * usize::from(self.geometry.segment_size());
        &self.octets[at..at + usize::from(self.geometry.payload_len(number))]
    }

    fn parity(&self, block: u32, symbol: u32) -> Vec<u8> {
        let mut parity = vec![0; usize::from(self.geometry.segment_size())];
        self.code.encode(&self.octets[self.block(block)], symbol as usize, &mut parity).unwrap();
        parity
    }

    pub(crate) fn store(&mut self, segment: u32, payload: &[u8]) {
        let at = segment as usize * usize::from(self.geometry.segment_size());
        self.octets[at..at + payload.len()].copy_from_slice(payload);
    }

    pub(crate) fn keep(&mut self, block: u32, symbol: u32, payload: &[u8]) {
        self.held.entry(block).or_default().insert(symbol, payload.to_vec());
    }

    /// Rebuilds `block`, of which there is what `have` says.
    pub(crate) fn rebuild(&mut self, block: u32, have: &Bitmap) {
        let run = self.geometry.block_run(block).unwrap();
        let lacking = run.segments().filter(|&segment| !have.contains(segment));
        let missing: Vec<usize> = lacking.map(|segment| (segment - run.first()) as usize).collect();
        let held = self.held.remove(&block).unwrap_or_default();
        let symbol = |(&index, bytes)| ParitySymbol { index: index as usize, bytes };
        let symbols: Vec<ParitySymbol<'_>> =
            held.iter().map(|(index, bytes)| symbol((index, bytes.as_slice()))).collect();
        let range = self.block(block);
        self.code.decode(&mut self.octets[range], &missing, &symbols).unwrap();
    }

    /// The object without padding.
    pub(crate) fn content(&self) -> &[u8] {
        &self.octets[..self.geometry.size() as usize]
    }
}
