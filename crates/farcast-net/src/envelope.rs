//! The delivery instructions of a datagram (destination, source, interface, hops), and how the kernel is told of them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use farcast_core::engine::Transmit;

use crate::error::NetError;

/// Everything that an engine may ask for a datagram besides its content, where the socket leaves it open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Envelope {
    /// Destination: a group or one host.
    pub(crate) to: SocketAddr,
    /// Source address; the socket's own if absent.
    pub(crate) source: Option<SocketAddr>,
    /// Index of the interface that the datagram leaves by; 0 leaves the choice to the socket.
    pub(crate) interface: u32,
    /// Time to live, or hop limit; the socket's own if absent.
    pub(crate) ttl: Option<u8>,
    /// Routers on the path must examine the datagram (RFC 2113).
    pub(crate) router_alert: bool,
}

impl Envelope {
    /// Returns the envelope that an engine asks for.
    pub(crate) fn of<M>(transmit: &Transmit<M>) -> Self {
        Self {
            to: transmit.destination,
            source: transmit.source,
            interface: transmit.interface,
            ttl: transmit.ttl,
            router_alert: transmit.router_alert,
        }
    }

    /// Returns an envelope to `to` that leaves all else to the socket.
    pub(crate) fn to(to: SocketAddr) -> Self {
        Self { to, source: None, interface: 0, ttl: None, router_alert: false }
    }

    /// Checks that a UDP socket bound to `own` can do what the envelope asks for.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the source has another port than `own`, or a router alert is to leave over IPv6.
    pub(crate) fn check(&self, own: SocketAddr) -> Result<(), NetError> {
        let refuse = |action| Err(NetError::Socket { action, source: io::ErrorKind::Unsupported.into() });
        if self.source.is_some_and(|source| ![0, own.port()].contains(&source.port())) {
            return refuse("send from another port than the socket's");
        }
        if self.router_alert && self.to.is_ipv6() {
            // RFC 2711 wants a number for what routers are to look for, which an engine does not give.
            return refuse("send a router alert over IPv6");
        }
        Ok(())
    }

    /// Returns the control messages for the kernel, with everything but the destination. With a `segment_size` the
    /// kernel is to cut the buffer into datagrams of so many octets. `own` is the address that the socket is bound to:
    /// IPv4 packet information that names an interface must name an address too.
    pub(crate) fn control(&self, own: SocketAddr, segment_size: Option<usize>) -> ControlMessages {
        let mut control = ControlMessages { octets: [0; CAPACITY], len: 0 };
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

    /// Appends the options of ip(7).
    fn control_v4(&self, own: SocketAddr, control: &mut ControlMessages) {
        if self.source.is_some() || self.interface != 0 {
            let source = match self.source.unwrap_or(own).ip() {
                IpAddr::V4(source) => source,
                IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
            };
            // `struct in_pktinfo`: the interface, the source, and a field that only received datagrams have.
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

    /// Appends the options of RFC 3542.
    fn control_v6(&self, control: &mut ControlMessages) {
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

/// Option of RFC 2113: its type, its length, and the value that says "examine the packet".
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];

/// Octets of the header of a control message: a length, a level and a type, as in cmsg(3).
const HEADER: usize = size_of::<libc::cmsghdr>();
/// Alignment of a control message's header and data, octets.
const ALIGN: usize = size_of::<usize>();
/// Room for all that an envelope may ask for, IPv6 addresses included, octets.
const CAPACITY: usize = 4 * HEADER + (2_usize.next_multiple_of(ALIGN) + 24 + ALIGN + ALIGN);

/// Control messages for sendmsg(2), one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlMessages {
    octets: [u8; CAPACITY],
    len: usize,
}

impl ControlMessages {
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
