//! The ports of a network element over UDP.
//!
//! Each port receives every datagram to the groups. A datagram that merely passes is sent again at the other ports. It
//! leaves with our own address, so receivers take this host for the source.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::RecvFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::raw::join;
use super::{Heard, Port, Way};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::ssm;

/// A receiving socket.
#[derive(Debug)]
struct Ear {
    socket: Socket,
    port: usize,
    address: SocketAddr,
}

/// The sockets of all ports.
#[derive(Debug)]
pub(super) struct UdpPorts {
    /// Receiving sockets: for each port first the one of its own address, then one for each group.
    ears: Vec<Ear>,
    /// Index into `ears` of the socket that sends, for each port.
    speak: Vec<usize>,
    ports: Vec<Port>,
    /// Index of the socket that is read next.
    turn: usize,
}

impl UdpPorts {
    pub(super) fn open(
        ports: &[Port],
        groups: &[SocketAddr],
        (receive_buffer, ttl): (usize, u8),
    ) -> Result<Self, NetError> {
        let (mut ears, mut speak) = (Vec::new(), Vec::new());
        for (number, port) in ports.iter().enumerate() {
            speak.push(ears.len());
            // Requests for repair arrive at the UDP port that we send from.
            let udp = groups.first().map_or(0, SocketAddr::port);
            let own = SocketAddr::V4(SocketAddrV4::new(port.address, udp));
            let socket = bound(own, receive_buffer)?;
            let set = |action, result: io::Result<()>| result.map_err(NetError::socket(action));
            set("choose the interface", socket.set_multicast_if_v4(&port.address))?;
            set("keep from hearing itself", socket.set_multicast_loop_v4(false))?;
            set("set the time to live", socket.set_multicast_ttl_v4(ttl.into()))?;
            ears.push(Ear { socket, port: number, address: own });
            for &group in groups {
                let socket = bound(group, receive_buffer)?;
                set("keep to our own groups", socket.set_multicast_all_v4(false))?;
                join(&socket, std::slice::from_ref(port), &[group])?;
                ears.push(Ear { socket, port: number, address: group });
            }
        }
        Ok(Self { ears, speak, ports: ports.to_vec(), turn: 0 })
    }

    pub(super) fn ports(&self) -> &[Port] {
        &self.ports
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ears.iter().map(|ear| ear.socket.as_fd())
    }

    /// Returns the next datagram; `None` if none was found at any socket. Sockets take turns, so that a busy one leaves
    /// room for the others. What is passed over at one socket leaves the rest of that socket to the next call.
    pub(super) fn hear(&mut self, buffer: &mut [u8]) -> Result<Option<Heard>, NetError> {
        for _ in 0..self.ears.len() {
            let Some(ear) = self.ears.get(self.turn) else { return Ok(None) };
            self.turn = (self.turn + 1) % self.ears.len();
            match rustix::net::recvfrom(&ear.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((_, len, from)) => {
                    let Some(from) = from.and_then(|from| SocketAddr::try_from(from).ok()) else { continue };
                    let of_ours = |port: &Port| IpAddr::V4(port.address) == from.ip();
                    if self.ports.iter().any(of_ours) {
                        continue;
                    }
                    let way = if ear.address.ip().is_multicast() { Way::Either } else { Way::Handed };
                    let (port, destination) = (ear.port, ear.address);
                    return Ok(Some(Heard { port, source: from, destination, ttl: 2, way, content: 0..len }));
                }
                Err(
                    rustix::io::Errno::AGAIN
                    | rustix::io::Errno::CONNREFUSED
                    | rustix::io::Errno::INTR
                    | rustix::io::Errno::NETDOWN
                    | rustix::io::Errno::NETUNREACH
                    | rustix::io::Errno::HOSTUNREACH,
                ) => {}
                Err(errno) => return Err(NetError::socket("receive")(errno.into())),
            }
        }
        Ok(None)
    }

    /// Sends a received datagram again at every other port. Returns the result of each sending.
    pub(super) fn forward(&self, heard: &Heard, buffer: &[u8]) -> Vec<io::Result<usize>> {
        let octets = &buffer[heard.content.clone()];
        let others = (0..self.ports.len()).filter(|&port| port != heard.port);
        others.map(|port| self.send(port, octets, heard.destination)).collect()
    }

    /// Sends a datagram by port `port`. Its source is our own address whatever the engine asks for: another's takes
    /// privileges.
    pub(super) fn say(&self, port: usize, envelope: &Envelope, datagram: &[u8]) -> io::Result<usize> {
        self.send(port, datagram, envelope.to)
    }

    fn send(&self, port: usize, octets: &[u8], to: SocketAddr) -> io::Result<usize> {
        let ear = self.speak.get(port).and_then(|&ear| self.ears.get(ear));
        let ear = ear.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        ear.socket.send_to(octets, &SockAddr::from(to))
    }
}

fn bound(address: SocketAddr, receive_buffer: usize) -> Result<Socket, NetError> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP));
    let socket = socket.map_err(NetError::socket("make a socket"))?;
    socket.set_nonblocking(true).map_err(NetError::socket("make a socket non-blocking"))?;
    socket.set_reuse_address(true).map_err(NetError::socket("share the group's port"))?;
    ssm::force_receive_buffer(&socket, receive_buffer);
    socket.bind(&SockAddr::from(address)).map_err(|source| NetError::Bind { address, source })?;
    Ok(socket)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a stranger's socket needs none of our settings")]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    #[test]
    fn a_busy_port_leaves_room_for_the_others() {
        let port = |last| Port { name: "lo".into(), address: Ipv4Addr::new(127, 0, 0, last), index: 1 };
        let group = SocketAddr::from(([239, 255, 78, 77], 0));
        let mut ports = UdpPorts::open(&[port(2), port(3)], &[group], (1 << 20, 1)).expect("sockets");
        let stranger = UdpSocket::bind("127.0.0.9:0").expect("a socket");
        let send = |ports: &UdpPorts, port: usize| {
            let ear = &ports.ears[ports.speak[port]];
            let to = ear.socket.local_addr().ok().and_then(|to| to.as_socket()).expect("an address");
            stranger.send_to(b"datagram", to).expect("it leaves");
        };
        (0..100).for_each(|_| send(&ports, 0));
        send(&ports, 1);
        let mut buffer = [0; 64];
        let mut heard = || ports.hear(&mut buffer).expect("no error").map(|heard| heard.port);
        let first: Vec<_> = (0..3).map(|_| heard()).collect();
        assert_eq!(first, [Some(0), Some(1), Some(0)]);
        assert_eq!((0..98).filter(|_| heard() == Some(0)).count(), 98, "nothing is lost");
        assert_eq!(heard(), None);
    }
}
