//! Changes of interfaces, addresses and routes, as the kernel reports them (rtnetlink(7)).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farcast_core::Span;
use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::link::LinkFlags;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::io::Errno;
use rustix::net::RecvFlags;

/// Size of the receive buffer, bytes. A kernel message is at most a page, and a datagram holds several.
const BUFFER_LEN: usize = 1 << 15;

/// Time to collect changes before they are looked at together: they come in crowds (a router's table, an interface with
/// its addresses).
pub(crate) const LOOK_EVERY: Span = Span::from_millis(100);

/// Bit mask of the message groups to subscribe to, `RTMGRP_*`.
const GROUPS: libc::c_int = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_ROUTE;

/// A subscription to changes of interfaces, addresses and routes of this thread's network namespace.
#[derive(Debug)]
pub(crate) struct Links {
    socket: Socket,
    buffer: Vec<u8>,
}

/// Changes since the last query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Changes {
    /// Anything has changed.
    pub(crate) any: bool,
    /// Interfaces, by number, that have gone, went down, or lost an address or the carrier. The kernel or a switch may
    /// have dropped group memberships there, even if everything is back by now. A family says that only an address of
    /// it was lost.
    shaken: Vec<(u32, Option<AddressFamily>)>,
    /// The kernel left changes out, since there were too many.
    overrun: bool,
}

impl Links {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, GROUPS.cast_unsigned()))?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket, buffer: vec![0; BUFFER_LEN] })
    }

    /// Returns the changes that the kernel has reported since the last call.
    pub(crate) fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        loop {
            match rustix::net::recv(&self.socket, &mut *self.buffer, RecvFlags::TRUNC) {
                Ok((_, len)) => {
                    changes.any = true;
                    changes.overrun |= len > self.buffer.len();
                    changes.read(&self.buffer[..len.min(BUFFER_LEN)]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => (changes.any, changes.overrun) = (true, true),
                // No more messages. An error would come again and again, and says nothing about interfaces.
                Err(_) => return changes,
            }
        }
    }
}

impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Changes {
    /// Returns `true` if memberships on interface `index` may have been lost.
    pub(crate) fn shake(&self, index: u32, ipv6: bool) -> bool {
        let family = if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let concerns = |of: &Option<AddressFamily>| of.is_none_or(|of| of == family);
        self.overrun || self.shaken.iter().any(|(shaken, of)| *shaken == index && concerns(of))
    }

    /// Adds the changes of `later`.
    pub(crate) fn add(&mut self, later: Self) {
        self.any |= later.any;
        self.overrun |= later.overrun;
        for (index, family) in later.shaken {
            self.note(index, family);
        }
    }

    fn read(&mut self, mut messages: &[u8]) {
        while !messages.is_empty() {
            let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(messages) else {
                // A message that this library cannot read may be any change.
                self.overrun = true;
                return;
            };
            // Messages begin at multiples of four octets.
            let len = (message.header.length as usize).next_multiple_of(4);
            messages = messages.get(len.max(16)..).unwrap_or_default();
            match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) => {
                    self.note(link.header.index, None);
                }
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))
                    if !link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp) =>
                {
                    self.note(link.header.index, None);
                }
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelAddress(address)) => {
                    self.note(address.header.index, Some(address.header.family));
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, index: u32, family: Option<AddressFamily>) {
        /// Most interfaces that are noted one by one; beyond these, all count as changed.
        const MOST: usize = 64;
        if self.shaken.len() >= MOST {
            self.overrun = true;
        } else if !self.shaken.contains(&(index, family)) {
            self.shaken.push((index, family));
        }
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::NetlinkHeader;
    use netlink_packet_route::address::AddressMessage;
    use netlink_packet_route::link::LinkMessage;

    use super::*;

    fn octets(messages: impl IntoIterator<Item = RouteNetlinkMessage>) -> Vec<u8> {
        let mut octets = Vec::new();
        for message in messages {
            let payload = NetlinkPayload::InnerMessage(message);
            let mut message = NetlinkMessage::new(NetlinkHeader::default(), payload);
            message.finalize();
            let start = octets.len();
            octets.resize(start + message.buffer_len().next_multiple_of(4), 0);
            message.serialize(&mut octets[start..]);
        }
        octets
    }

    fn link(index: u32, flags: LinkFlags) -> LinkMessage {
        let mut link = LinkMessage::default();
        (link.header.index, link.header.flags) = (index, flags);
        link
    }

    #[test]
    fn what_may_have_lost_memberships_is_noted() {
        let mut address = AddressMessage::default();
        (address.header.index, address.header.family) = (5, AddressFamily::Inet);
        let mut changes = Changes::default();
        changes.read(&octets([
            RouteNetlinkMessage::DelLink(link(2, LinkFlags::Up | LinkFlags::LowerUp)),
            RouteNetlinkMessage::NewLink(link(3, LinkFlags::Up)),
            RouteNetlinkMessage::NewLink(link(4, LinkFlags::Up | LinkFlags::LowerUp)),
            RouteNetlinkMessage::DelAddress(address.clone()),
            RouteNetlinkMessage::NewAddress(address),
        ]));
        let shaken: Vec<(bool, bool)> =
            (1..=5).map(|index| (changes.shake(index, false), changes.shake(index, true))).collect();
        let (all, none) = ((true, true), (false, false));
        assert_eq!(shaken, [none, all, all, none, (true, false)]);
    }

    #[test]
    fn what_cannot_be_read_may_have_been_anything() {
        let mut octets = octets([RouteNetlinkMessage::NewLink(link(4, LinkFlags::Up | LinkFlags::LowerUp))]);
        octets.truncate(octets.len() - 3);
        let mut changes = Changes::default();
        changes.read(&octets);
        assert!(changes.shake(1, false) && changes.shake(77, true));
    }
}
