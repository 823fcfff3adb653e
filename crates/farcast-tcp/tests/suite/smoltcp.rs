//! Against another implementation: smoltcp at the other end of a path that loses a twentieth each way, in virtual time,
//! over real IPv4 and TCP headers.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_tcp::wire::{self, Addresses};
use farcast_tcp::{Config, Connection, Event, Payload, Recovery, State, Window};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpProtocol, Ipv4Packet, Ipv4Repr};

use crate::common::{CLIENT, SERVER, Side, address, initial, ms};

const LENGTH: usize = 1_000_000;
const MTU: usize = 1500;

/// Packets that smoltcp receives and sends.
#[derive(Default)]
struct Wire {
    heard: VecDeque<Vec<u8>>,
    said: Vec<Vec<u8>>,
}

struct Heard(Vec<u8>);

struct Said<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Heard {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, look: F) -> R {
        look(&self.0)
    }
}

impl TxToken for Said<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut packet = vec![0; len];
        let result = fill(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Heard;
    type TxToken<'a> = Said<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Heard, Said<'_>)> {
        Some((Heard(self.heard.pop_front()?), Said(&mut self.said)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Said<'_>> {
        Some(Said(&mut self.said))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

/// smoltcp with one connection, and its owner.
struct Peer {
    side: Side,
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    written: usize,
    arrived: Vec<u8>,
}

impl Peer {
    fn new(side: Side) -> Self {
        let mut wire = Wire::default();
        let config = smoltcp::iface::Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        let own = IpAddress::from(host(side));
        interface.update_ip_addrs(|all| all.push(IpCidr::new(own, 24)).expect("room for one"));
        let buffer = || tcp::SocketBuffer::new(vec![0; 65_535]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        let (there, here) = ((host(1 - side), address(1 - side).port()), address(side).port());
        if side == CLIENT {
            socket.connect(interface.context(), there, here).expect("it may connect");
        } else {
            socket.listen(here).expect("it may listen");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self { side, wire, interface, sockets, handle, written: 0, arrived: Vec::new() }
    }

    /// Serves smoltcp. Returns its packets.
    fn serve(&mut self, now: Time, stream: &[u8]) -> Vec<Vec<u8>> {
        loop {
            self.interface.poll(instant(now), &mut self.wire, &mut self.sockets);
            let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.handle);
            let mut moved = 0;
            while socket.can_recv() {
                let taken = socket.recv(|octets| (octets.len(), octets.to_vec())).expect("it can receive");
                moved += taken.len();
                self.arrived.extend(taken);
            }
            if socket.can_send() && self.written < stream.len() {
                let taken = socket.send_slice(&stream[self.written..]).expect("it can send");
                (self.written, moved) = (self.written + taken, moved + taken);
            }
            if socket.can_send() && self.written == stream.len() {
                socket.close();
                moved += 1;
            }
            if moved == 0 {
                return std::mem::take(&mut self.wire.said);
            }
        }
    }

    fn due(&mut self, now: Time) -> Option<Time> {
        let due = self.interface.poll_at(instant(now), &self.sockets)?;
        // smoltcp counts microseconds: a timer due within this one is served in the next.
        Some(Time::from_nanos(due.total_micros().max(0) as u64 * 1000).max(now + Span::from_micros(1)))
    }

    fn state(&self) -> tcp::State {
        self.sockets.get::<tcp::Socket<'_>>(self.handle).state()
    }
}

fn host(side: Side) -> Ipv4Addr {
    match address(side).ip() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => panic!("hosts have IPv4 addresses here"),
    }
}

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_nanos() / 1000).cast_signed())
}

/// farcast's connection and its owner.
struct Ours {
    side: Side,
    connection: Connection,
    arrived: Vec<u8>,
    events: Vec<Event>,
}

impl Ours {
    fn new(side: Side, config: Config) -> Self {
        let connection = if side == CLIENT {
            Connection::connect(config, address(side), address(1 - side), initial(side))
        } else {
            Connection::listen(config, address(side), initial(side))
        };
        Self { side, connection: connection.expect("settings"), arrived: Vec::new(), events: Vec::new() }
    }

    /// Writes as much of the rest as the send buffer takes, and closes behind the last octet.
    fn write(&mut self, length: u64) {
        let left = length - self.connection.written();
        if left > 0 {
            self.connection.write(left);
        }
        if self.connection.written() == length && self.events.contains(&Event::Connected) {
            self.connection.close();
        }
    }

    fn hear(&mut self, now: Time, packet: &[u8], stream: &[u8]) -> Vec<Vec<u8>> {
        let packet = Ipv4Packet::new_checked(packet).expect("a packet");
        assert!(packet.verify_checksum() && packet.next_header() == IpProtocol::Tcp);
        let (source, destination) = (packet.src_addr().into(), packet.dst_addr().into());
        let addresses = Addresses::new(source, destination).expect("one family");
        let (segment, payload) = wire::decode(packet.payload(), addresses).expect("a segment");
        let from = Arrival::new(address(1 - self.side), address(self.side));
        let _ = self.connection.handle(now, &from, &segment);
        self.tell(payload);
        self.say(now, stream)
    }

    fn tell(&mut self, payload: &[u8]) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Store { offset, skip, len } => {
                    let (offset, skip, len) = (offset as usize, usize::from(skip), usize::from(len));
                    self.arrived.resize(self.arrived.len().max(offset + len), 0);
                    self.arrived[offset..offset + len].copy_from_slice(&payload[skip..skip + len]);
                }
                Event::Readable => self.connection.consume(u64::MAX),
                other => self.events.push(other),
            }
        }
        self.connection.check();
    }

    fn say(&mut self, now: Time, stream: &[u8]) -> Vec<Vec<u8>> {
        let mut said = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(now, Time::NEVER) {
            let Payload { offset, len } = transmit.message.payload;
            let payload = &stream[offset as usize..][..usize::from(len)];
            let addresses = Addresses::new(address(self.side).ip(), transmit.destination.ip());
            let mut octets = vec![0; wire::MAX_HEADER_LEN];
            let header =
                wire::encode(&transmit.message, addresses.expect("one family"), &[payload], &mut octets);
            octets.truncate(header.expect("it has an encoding"));
            octets.extend_from_slice(payload);
            said.push(self.packet(&octets));
            self.tell(&[]);
        }
        said
    }

    fn packet(&self, segment: &[u8]) -> Vec<u8> {
        let header = Ipv4Repr {
            src_addr: host(self.side),
            dst_addr: host(1 - self.side),
            next_header: IpProtocol::Tcp,
            payload_len: segment.len(),
            hop_limit: 64,
        };
        let mut octets = vec![0; header.buffer_len() + segment.len()];
        header.emit(&mut Ipv4Packet::new_unchecked(&mut octets[..]), &ChecksumCapabilities::default());
        octets[header.buffer_len()..].copy_from_slice(segment);
        assert!(octets.len() <= MTU);
        octets
    }
}

/// Both send a stream, over a path that loses with probability `loss`; gives ours when both are closed.
fn exchange(side: Side, config: Config, lengths: [usize; 2], loss: f64, seed: u64) -> Ours {
    let mut content = RandomStream::derive(seed, &[0]);
    let streams = lengths.map(|len| (0..len).map(|_| content.bits() as u8).collect::<Vec<u8>>());
    let mut losses = [1, 2].map(|label| RandomStream::derive(seed, &[label]));
    let mut ours = Ours::new(side, config);
    let mut peer = Peer::new(1 - side);
    let mut flying: BTreeMap<(Time, u64), (Side, Vec<u8>)> = BTreeMap::new();
    let (mut now, mut entered) = (Time::ZERO, 0);
    loop {
        let mut said: Vec<(Side, Vec<u8>)> = Vec::new();
        // Arrivals at this instant come before timers.
        while flying.first_key_value().is_some_and(|(key, _)| key.0 <= now) {
            let Some((_, (to, packet))) = flying.pop_first() else { break };
            if to == side {
                said.extend(ours.hear(now, &packet, &streams[side]).into_iter().map(|packet| (side, packet)));
            } else {
                peer.wire.heard.push_back(packet);
            }
        }
        ours.connection.handle_timeout(now);
        ours.write(lengths[side] as u64);
        ours.tell(&[]);
        said.extend(ours.say(now, &streams[side]).into_iter().map(|packet| (side, packet)));
        let from_peer = peer.serve(now, &streams[peer.side]);
        said.extend(from_peer.into_iter().map(|packet| (peer.side, packet)));
        for (from, packet) in said {
            if losses[from].unit() >= loss {
                entered += 1;
                flying.insert((now + ms(25), entered), (1 - from, packet));
            }
        }
        let timers = [ours.connection.poll_timeout().map(|due| due.at), peer.due(now)];
        let arrival = flying.first_key_value().map(|(key, _)| key.0);
        let Some(next) = timers.into_iter().flatten().chain(arrival).min() else { break };
        assert!(
            next < Time::ZERO + Span::from_secs(36_000),
            "seed {seed}: {:?} {:?}",
            ours.connection,
            peer.state()
        );
        now = next.max(now);
    }
    let told = format!(
        "seed {seed}: {:?} {:?}, {:?}, {} and {} arrived",
        ours.connection.state(),
        peer.state(),
        ours.events,
        ours.arrived.len(),
        peer.arrived.len()
    );
    assert!(ours.arrived == streams[peer.side], "{told}: what we received");
    assert!(peer.arrived == streams[side], "{told}: what smoltcp received");
    assert_eq!(ours.connection.acknowledged(), lengths[side] as u64, "{told}");
    assert!(ours.events.contains(&Event::PeerClosed), "{told}");
    ours
}

/// The settings that matter to a peer without SACK blocks to say and without timestamps, and with them.
fn variants() -> [Config; 4] {
    let small = farcast_tcp::ReceiveWindow { size: Window::Octets(30_000), first: None };
    [
        Config::default(),
        Config::modern(),
        Config::linux_2_4(),
        Config { recovery: Recovery::NewReno, sack: false, receive_window: small, ..Config::default() },
    ]
}

#[test]
fn without_losses() {
    for side in [CLIENT, SERVER] {
        for config in variants() {
            let ours = exchange(side, config, [100_000, 70_000], 0.0, 0);
            assert_eq!((ours.connection.stats().retransmits, ours.connection.state()), (0, State::Closed));
        }
    }
}

#[test]
fn a_megabyte_to_smoltcp() {
    for side in [CLIENT, SERVER] {
        for (seed, config) in (1..).zip(variants()) {
            let mut lengths = [0; 2];
            lengths[side] = LENGTH;
            let ours = exchange(side, config, lengths, 0.05, seed);
            assert!(ours.connection.stats().retransmits > 20, "a twentieth is lost");
        }
    }
}

#[test]
fn a_megabyte_from_smoltcp() {
    for side in [CLIENT, SERVER] {
        for (seed, config) in (10..).zip(variants()) {
            let mut lengths = [0; 2];
            lengths[1 - side] = LENGTH;
            exchange(side, config, lengths, 0.05, seed);
        }
    }
}

#[test]
fn both_ways_at_once() {
    for seed in 20..30 {
        let config = variants()[seed as usize % 4].clone();
        exchange((seed % 2) as Side, config, [300_000, 200_000], 0.05, seed);
    }
}
