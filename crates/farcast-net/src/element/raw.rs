//! Ports over IP itself: whatever of a protocol passes a router's interfaces is heard, and forwarded here.
//!
//! A packet socket hears a copy of what comes, whatever the kernel makes of it and whoever has joined the group; the
//! kernel of a host forwards no multicast unless a daemon tells it to. Where one does, forwarding is left to it: the
//! socket that takes router alerts keeps what bears them out of its forwarding.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::RecvFlags;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, SockFilter, Socket, Type};

use super::packet::{Header, Packet, pass};
use super::{Heard, Port, Way};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::ssm;

/// Octets of the buffer that what is said is put together in, at first.
const DATAGRAM: usize = 2048;

/// The sockets.
#[derive(Debug)]
pub(super) struct RawPorts {
    hears: Socket,
    /// Takes router alerts out of the kernel's forwarding, and keeps it from calling the protocol unreachable; what
    /// comes to it nobody reads.
    _alerts: Socket,
    /// One for each port.
    speak: Vec<Socket>,
    ports: Vec<Port>,
    protocol: u8,
    /// Whether the kernel forwards multicast at each of the ports.
    routed: bool,
    buffer: Vec<u8>,
}

impl RawPorts {
    pub(super) fn open(
        ports: &[Port],
        groups: &[SocketAddr],
        protocol: u8,
        receive_buffer: usize,
    ) -> Result<Self, NetError> {
        let alerts = raw(i32::from(protocol), protocol)?;
        let set = |action, result: io::Result<()>| result.map_err(NetError::socket(action));
        set("take router alerts", ssm::take_router_alerts(&alerts))?;
        // Nothing of it is wanted here.
        set("filter what comes", alerts.attach_filter(&[SockFilter::new(RETURN, 0, 0, 0)]))?;
        let hears = listen(protocol)?;
        ssm::force_receive_buffer(&hears, receive_buffer);
        for port in ports {
            set("hear all groups of an interface", ssm::take_all_groups(&hears, port.index))?;
        }
        let routed = ports.iter().all(|port| forwards_multicast(&port.name));
        if !routed {
            join(&alerts, ports, groups)?;
        }
        let speak = ports.iter().map(|port| speaker(port, protocol)).collect::<Result<_, _>>()?;
        let buffer = Vec::with_capacity(DATAGRAM);
        Ok(Self { hears, _alerts: alerts, speak, ports: ports.to_vec(), protocol, routed, buffer })
    }

    /// Whether the kernel forwards multicast, so that only what it hands over is ours.
    pub(super) fn is_routed(&self) -> bool {
        self.routed
    }

    pub(super) fn protocol(&self) -> u8 {
        self.protocol
    }

    pub(super) fn ports(&self) -> &[Port] {
        &self.ports
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.hears.as_fd()
    }

    /// The next packet that came by one of the ports; `None` if there is none.
    pub(super) fn hear(&self, buffer: &mut [u8]) -> Result<Option<Heard>, NetError> {
        loop {
            let (_, len, address) = match rustix::net::recvfrom(&self.hears, &mut *buffer, RecvFlags::TRUNC) {
                Ok(heard) => heard,
                Err(rustix::io::Errno::INTR) => continue,
                // Nothing, or one of the interfaces went down; the others are heard.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NETDOWN) => return Ok(None),
                Err(errno) => return Err(NetError::socket("hear what passes")(errno.into())),
            };
            let Some(link) = address.as_ref().and_then(ssm::link) else { continue };
            let port = self.ports.iter().position(|port| i64::from(port.index) == i64::from(link.interface));
            // To this host, to everybody, or to a group: all else is of another host, or our own.
            let (Some(port), 0..=2) = (port, link.kind) else { continue };
            let Some(packet) = buffer.get(..len).and_then(Packet::read) else { continue };
            if packet.protocol != self.protocol {
                continue;
            }
            let way = if packet.alert || self.is_ours(packet.destination) {
                Way::Handed
            } else if packet.destination.is_multicast() {
                if packet.fragment { Way::PassesOnly } else { Way::Passes }
            } else {
                continue;
            };
            // A part of something that is for us alone cannot be put together here.
            if packet.fragment && way == Way::Handed {
                continue;
            }
            return Ok(Some(Heard {
                port,
                source: SocketAddr::new(packet.source.into(), 0),
                destination: SocketAddr::new(packet.destination.into(), 0),
                ttl: packet.ttl,
                way,
                content: packet.content,
            }));
        }
    }

    fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.ports.iter().any(|port| port.address == address)
    }

    /// Forwards what came to every other port, unless the kernel does; how many times it left.
    pub(super) fn forward(&mut self, heard: &Heard, buffer: &mut [u8]) -> Vec<io::Result<usize>> {
        let octets = &mut buffer[..heard.content.end];
        if self.routed || heard.ttl <= 1 {
            return Vec::new();
        }
        pass(octets);
        let others = self.speak.iter().enumerate().filter(|&(port, _)| port != heard.port);
        let to = SockAddr::from(heard.destination);
        others.map(|(_, socket)| socket.send_to(octets, &to)).collect()
    }

    /// Sends a datagram by port `port`.
    pub(super) fn say(
        &mut self,
        port: usize,
        envelope: &Envelope,
        ttl: u8,
        datagram: &[u8],
    ) -> io::Result<usize> {
        let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
        let (source, destination) = match (envelope.source.map(|source| source.ip()), envelope.to.ip()) {
            (None, IpAddr::V4(to)) => (self.ports.get(port).ok_or_else(unsupported)?.address, to),
            (Some(IpAddr::V4(source)), IpAddr::V4(to)) => (source, to),
            _ => return Err(unsupported()),
        };
        let header =
            Header { source, destination, protocol: self.protocol, ttl, alert: envelope.router_alert };
        self.buffer.clear();
        header.write(&mut self.buffer);
        self.buffer.extend_from_slice(datagram);
        self.speak.get(port).ok_or_else(unsupported)?.send_to(&self.buffer, &SockAddr::from(envelope.to))
    }
}

/// `BPF_RET | BPF_K`: with 0 nothing is taken.
const RETURN: u16 = 0x06;

/// A packet socket that hears IPv4 packets of `protocol`, at any interface.
fn listen(protocol: u8) -> Result<Socket, NetError> {
    /// `BPF_LD | BPF_B | BPF_ABS`.
    const LOAD_OCTET: u16 = 0x30;
    /// `BPF_JMP | BPF_JEQ | BPF_K`.
    const IF_EQUAL: u16 = 0x15;
    let ipv4 = i32::from((libc::ETH_P_IP as u16).to_be());
    let made = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(ipv4)));
    let socket = made.map_err(|error| refused(error, protocol))?;
    socket.set_nonblocking(true).map_err(NetError::socket("make a socket non-blocking"))?;
    // Where the protocol's number is in the header.
    let filter = [
        SockFilter::new(LOAD_OCTET, 0, 0, 9),
        SockFilter::new(IF_EQUAL, 0, 1, protocol.into()),
        SockFilter::new(RETURN, 0, 0, 0xffff),
        SockFilter::new(RETURN, 0, 0, 0),
    ];
    socket.attach_filter(&filter).map_err(NetError::socket("filter what comes"))?;
    Ok(socket)
}

/// A socket that sends whole packets by one interface.
fn speaker(port: &Port, protocol: u8) -> Result<Socket, NetError> {
    let socket = raw(libc::IPPROTO_RAW, protocol)?;
    let set = |action, result: io::Result<()>| result.map_err(NetError::socket(action));
    set("write IP headers", socket.set_header_included_v4(true))?;
    set("send by one interface", socket.bind_device(Some(port.name.as_bytes())))?;
    set("choose the interface", socket.set_multicast_if_v4(&port.address))?;
    set("keep from hearing itself", socket.set_multicast_loop_v4(false))?;
    Ok(socket)
}

fn raw(kind: i32, protocol: u8) -> Result<Socket, NetError> {
    let made = Socket::new(Domain::IPV4, Type::RAW, Some(kind.into()));
    let socket = made.map_err(|error| refused(error, protocol))?;
    socket.set_nonblocking(true).map_err(NetError::socket("make a socket non-blocking"))?;
    Ok(socket)
}

fn refused(error: io::Error, protocol: u8) -> NetError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => NetError::NoRawSocket(protocol),
        _ => NetError::socket("make a socket")(error),
    }
}

/// Tells switches and routers at each port that these groups are wanted here.
pub(super) fn join(socket: &Socket, ports: &[Port], groups: &[SocketAddr]) -> Result<(), NetError> {
    for (port, group) in ports.iter().flat_map(|port| groups.iter().map(move |group| (port, group.ip()))) {
        let IpAddr::V4(address) = group else { continue };
        let joined = socket.join_multicast_v4_n(&address, &InterfaceIndexOrAddress::Index(port.index));
        joined.map_err(|source| NetError::Join { group, interface: port.name.clone(), source })?;
    }
    Ok(())
}

/// Whether a multicast routing daemon has the kernel forward what comes by this interface.
fn forwards_multicast(name: &str) -> bool {
    let path = format!("/proc/sys/net/ipv4/conf/{name}/mc_forwarding");
    std::fs::read_to_string(path).is_ok_and(|said| said.trim() == "1")
}
