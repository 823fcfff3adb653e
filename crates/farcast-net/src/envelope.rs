//! Where datagrams go, and how they are to leave.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use farcast_core::engine::Transmit;

use crate::error::NetError;

/// Everything about a datagram but its content: what an engine asks for besides, and its socket leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Envelope {
    /// A group or one host.
    pub(crate) to: SocketAddr,
    /// What it is sent from; the socket's own address where absent.
    pub(crate) source: Option<SocketAddr>,
    /// The index of the interface that it leaves by; 0 where that is the socket's choice.
    pub(crate) interface: u32,
    /// Time to live, or hop limit; the socket's own where absent.
    pub(crate) ttl: Option<u8>,
    /// Whether routers on the way must look at it.
    pub(crate) router_alert: bool,
}

impl Envelope {
    /// As an engine asks for it.
    pub(crate) fn of<M>(transmit: &Transmit<M>) -> Self {
        Self {
            to: transmit.destination,
            source: transmit.source,
            interface: transmit.interface,
            ttl: transmit.ttl,
            router_alert: transmit.router_alert,
        }
    }

    /// To `to`, all else left to the socket.
    pub(crate) fn to(to: SocketAddr) -> Self {
        Self { to, source: None, interface: 0, ttl: None, router_alert: false }
    }

    /// Turns down what a UDP socket bound to `own` cannot do.
    pub(crate) fn check(&self, own: SocketAddr) -> Result<(), NetError> {
        let refuse = |action| Err(NetError::Socket { action, source: io::ErrorKind::Unsupported.into() });
        if self.source.is_some_and(|source| ![0, own.port()].contains(&source.port())) {
            return refuse("send from another port than the socket's");
        }
        if self.router_alert && self.to.is_ipv6() {
            // RFC 2711 wants the number of what routers are to look for, which an engine does not say.
            return refuse("send a router alert over IPv6");
        }
        Ok(())
    }

    /// What the system is told of it besides the destination, for datagrams of `segment_size` octets where it is to cut
    /// them. `own` is the address that the socket is bound to: whoever names an interface names an address too.
    pub(crate) fn control(&self, own: SocketAddr, segment_size: Option<usize>) -> Control {
        let mut control = Control { octets: [0; CAPACITY], len: 0 };
        if let Some(size) = segment_size {
            let size = u16::try_from(size).unwrap_or(u16::MAX);
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &size.to_ne_bytes());
        }
        match self.to.ip() {
            IpAddr::V4(_) => self.control_v4(own, &mut control),
            IpAddr::V6(_) => self.control_v6(&mut control),
        }
        control
    }

    /// The options of ip(7).
    fn control_v4(&self, own: SocketAddr, control: &mut Control) {
        if self.source.is_some() || self.interface != 0 {
            let source = match self.source.unwrap_or(own).ip() {
                IpAddr::V4(source) => source,
                IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
            };
            // `struct in_pktinfo`: the interface, the source, and what only what has arrived has.
            let mut info = [0; 12];
            info[..4].copy_from_slice(&self.interface.to_ne_bytes());
            info[4..8].copy_from_slice(&source.octets());
            control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
        }
        if let Some(ttl) = self.ttl {
            control.push(libc::IPPROTO_IP, libc::IP_TTL, &i32::from(ttl).to_ne_bytes());
        }
        if self.router_alert {
            control.push(libc::IPPROTO_IP, libc::IP_RETOPTS, &ROUTER_ALERT);
        }
    }

    /// The options of RFC 3542.
    fn control_v6(&self, control: &mut Control) {
        if self.source.is_some() || self.interface != 0 {
            let source = match self.source {
                Some(SocketAddr::V6(source)) => *source.ip(),
                _ => Ipv6Addr::UNSPECIFIED,
            };
            // `struct in6_pktinfo`: the source, which may be left to the socket, and the interface.
            let mut info = [0; 20];
            info[..16].copy_from_slice(&source.octets());
            info[16..].copy_from_slice(&self.interface.to_ne_bytes());
            control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
        if let Some(ttl) = self.ttl {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &i32::from(ttl).to_ne_bytes());
        }
    }
}

/// The option of RFC 2113: its type, its length, and the value that says "examine the packet".
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];

/// Octets of the header of a control message: a length, a level and a type, as in cmsg(3).
const HEADER: usize = size_of::<libc::cmsghdr>();
/// Octets that it and its data are a multiple of.
const ALIGN: usize = size_of::<usize>();
/// Room for all that an envelope may ask for, IPv6's addresses included.
const CAPACITY: usize = 4 * HEADER + (2_usize.next_multiple_of(ALIGN) + 24 + ALIGN + ALIGN);

/// Control messages, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    octets: [u8; CAPACITY],
    len: usize,
}

impl Control {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    fn push(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let (header, rest) = self.octets[self.len..].split_at_mut(HEADER);
        let (len, kinds) = header.split_at_mut(size_of::<usize>());
        len.copy_from_slice(&(HEADER + data.len()).to_ne_bytes());
        kinds[..4].copy_from_slice(&level.to_ne_bytes());
        kinds[4..].copy_from_slice(&kind.to_ne_bytes());
        rest[..data.len()].copy_from_slice(data);
        self.len += HEADER + data.len().next_multiple_of(ALIGN);
    }
}

#[cfg(test)]
mod tests;
