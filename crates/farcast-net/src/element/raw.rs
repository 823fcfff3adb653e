//! The ports of a network element over IP itself: a packet socket hears the protocol's packets, raw sockets send.
//!
//! The packet socket receives a copy of every packet that arrives. It does so whatever the kernel does with the packet,
//! and whoever has joined the group. The kernel of a host forwards no multicast unless a routing daemon tells it to, so
//! this module forwards. Where the kernel forwards, this module does not. Then a socket that takes router alerts keeps
//! packets with an alert out of the kernel's forwarding.

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

/// Initial capacity of the buffer in which an outgoing packet is assembled, octets.
const DATAGRAM: usize = 2048;
/// Most packets that one call passes over, so that a flood of foreign packets does not keep the engine from its timers.
const MOST_PASSED_OVER: usize = 64;

/// The sockets of all ports.
#[derive(Debug)]
pub(super) struct RawPorts {
    hears: Socket,
    /// Takes router alerts out of the kernel's forwarding, and keeps the kernel from calling the protocol unreachable.
    /// A filter drops everything that arrives here.
    _alerts: Socket,
    /// Sending sockets, one for each port.
    speak: Vec<Socket>,
    ports: Vec<Port>,
    protocol: u8,
    /// The kernel forwards multicast at every port.
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
        // No packet is wanted from this socket.
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

    /// Returns `true` if the kernel forwards multicast, so that this module must not.
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

    /// Returns the next packet that arrived at one of the ports; `None` if there is none, or if it lies behind more
    /// foreign packets than one call passes over.
    pub(super) fn hear(&self, buffer: &mut [u8]) -> Result<Option<Heard>, NetError> {
        for _ in 0..MOST_PASSED_OVER {
            let (_, len, address) = match rustix::net::recvfrom(&self.hears, &mut *buffer, RecvFlags::TRUNC) {
                Ok(heard) => heard,
                Err(rustix::io::Errno::INTR) => continue,
                // No packet waits, or one of the interfaces went down; the others still receive.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NETDOWN) => return Ok(None),
                Err(errno) => return Err(NetError::socket("hear what passes")(errno.into())),
            };
            let Some(link) = address.as_ref().and_then(ssm::link) else { continue };
            let port = self.ports.iter().position(|port| i64::from(port.index) == i64::from(link.interface));
            // Kinds 0 to 2 are packets to this host, to everybody or to a group. All others are for another host, or
            // our own.
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
            // A fragment for this host alone cannot be reassembled here.
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
        Ok(None)
    }

    fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.ports.iter().any(|port| port.address == address)
    }

    /// Forwards a received packet to every other port, unless the kernel does. Returns the result of each sending.
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

/// `BPF_RET | BPF_K`: returns the number of octets to accept; 0 drops the packet.
const RETURN: u16 = 0x06;

/// Opens a packet socket that hears IPv4 packets of `protocol`, at any interface.
fn listen(protocol: u8) -> Result<Socket, NetError> {
    /// `BPF_LD | BPF_B | BPF_ABS`.
    const LOAD_OCTET: u16 = 0x30;
    /// `BPF_JMP | BPF_JEQ | BPF_K`.
    const IF_EQUAL: u16 = 0x15;
    let ipv4 = i32::from((libc::ETH_P_IP as u16).to_be());
    let made = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(ipv4)));
    let socket = made.map_err(|error| refused(error, protocol))?;
    socket.set_nonblocking(true).map_err(NetError::socket("make a socket non-blocking"))?;
    // Octet 9 of the IPv4 header is the protocol's number.
    let filter = [
        SockFilter::new(LOAD_OCTET, 0, 0, 9),
        SockFilter::new(IF_EQUAL, 0, 1, protocol.into()),
        SockFilter::new(RETURN, 0, 0, 0xffff),
        SockFilter::new(RETURN, 0, 0, 0),
    ];
    socket.attach_filter(&filter).map_err(NetError::socket("filter what comes"))?;
    Ok(socket)
}

/// Opens a socket that sends whole IP packets through one interface.
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

/// Joins the groups at each port, so that switches and routers send them here.
pub(super) fn join(socket: &Socket, ports: &[Port], groups: &[SocketAddr]) -> Result<(), NetError> {
    for (port, group) in ports.iter().flat_map(|port| groups.iter().map(move |group| (port, group.ip()))) {
        let IpAddr::V4(address) = group else { continue };
        let joined = socket.join_multicast_v4_n(&address, &InterfaceIndexOrAddress::Index(port.index));
        joined.map_err(|source| NetError::Join { group, interface: port.name.clone(), source })?;
    }
    Ok(())
}

/// Returns `true` if a multicast routing daemon has the kernel forward what arrives at this interface.
fn forwards_multicast(name: &str) -> bool {
    let path = format!("/proc/sys/net/ipv4/conf/{name}/mc_forwarding");
    std::fs::read_to_string(path).is_ok_and(|said| said.trim() == "1")
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a stranger's socket needs none of our settings")]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn foreign_packets_are_passed_over_a_few_at_a_time() {
        // A datagram that comes with no address of a link stands for a foreign packet; such a socket needs no rights.
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (hears, stranger) = (socket(), socket());
        hears.set_nonblocking(true).expect("a setting");
        for _ in 0..MOST_PASSED_OVER + 3 {
            stranger.send_to(b"foreign", hears.local_addr().expect("an address")).expect("it leaves");
        }
        let ports = RawPorts {
            hears: hears.try_clone().expect("a descriptor").into(),
            _alerts: socket().into(),
            speak: Vec::new(),
            ports: Vec::new(),
            protocol: 113,
            routed: false,
            buffer: Vec::new(),
        };
        assert!(ports.hear(&mut [0; 64]).expect("no error").is_none());
        let left = std::iter::from_fn(|| hears.recv(&mut [0; 64]).ok()).count();
        assert_eq!(left, 3);
    }
}
