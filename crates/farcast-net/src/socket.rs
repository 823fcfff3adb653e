//! Sockets for multicast and unicast, over UDP or IP itself, with segmentation offload in both directions.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use farcast_core::{Span, Time};
use farcast_delivery::Transport;
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, InterfaceIndexOrAddress, MsgHdr, Protocol, SockAddr, Socket, Type};

use crate::clock::Clock;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::interface::{Interface, source_for};
use crate::ssm;

mod narrow;

pub(crate) use narrow::Narrow;

/// How sockets are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// The interface for multicast, by name or address; the routing table chooses otherwise.
    pub interface: Option<String>,
    /// UDP port that a sender sends from, and that a receiver of a group answers from; 0: any that is free. Answers to
    /// a sender come to it.
    pub port: u16,
    /// Time to live, or hop limit, of what is sent.
    pub ttl: u32,
    /// The differentiated services code point of what is sent, 0 to 63.
    pub dscp: u8,
    /// Kernel buffer wanted for receiving, bytes.
    pub receive_buffer: usize,
    /// Kernel buffer wanted for sending, bytes.
    pub send_buffer: usize,
    /// Whether batches leave and arrive as one (GSO and GRO), where the kernel can.
    pub offload: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        // 16 MiB hold half a second of 250 Mbit/s; without privileges the kernel gives less.
        Self {
            interface: None,
            port: 0,
            ttl: 1,
            dscp: 0,
            receive_buffer: 16 << 20,
            send_buffer: 4 << 20,
            offload: true,
        }
    }
}

/// Whether `group` is one of those that are for source-specific multicast (RFC 4607).
pub(crate) fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => matches!(group.segments(), [first, 0, ..] if first & 0xfff0 == 0xff30),
    }
}

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Endpoint {
    socket: Socket,
    state: UdpSocketState,
    /// Without a scope, like every address that leaves here: the wire does not carry it, and engines compare.
    local: SocketAddr,
    /// The interface that was asked for.
    interface: Option<Interface>,
    /// The group that it hears, if it does.
    group: Option<IpAddr>,
    transport: Transport,
    /// Whether batches may leave as one.
    offload: AtomicBool,
    /// Octets of the longest datagram that has left whole, of those that do not pass everywhere.
    longest: Cell<usize>,
    narrowness: RefCell<narrow::Narrowness>,
    /// Whether datagrams are fetched one by one, as the kernel has no call that fetches several.
    singly: AtomicBool,
    refusals: Refusals,
}

/// The longest time for which a full buffer of the kernel is waited for.
const LONGEST_FULL: Span = Span::from_secs(5);

/// Errors by which this host itself would not send; errno, 0 for none.
#[derive(Debug, Default)]
struct Refusals {
    /// That of the last datagram.
    last: AtomicI32,
    /// The first since somebody asked.
    untold: AtomicI32,
}

impl Refusals {
    fn note(&self, error: &NetError) {
        let (NetError::Refused(source) | NetError::Socket { source, .. }) = error else { return };
        let code = source.raw_os_error().unwrap_or(libc::EIO);
        self.last.store(code, Ordering::Relaxed);
        let _ = self.untold.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Endpoint {
    /// A socket to send to `destination` and to hear answers with, on the port that was asked for, or one of its own.
    pub(crate) fn sender(
        destination: SocketAddr,
        options: &SocketOptions,
        transport: Transport,
    ) -> Result<Self, NetError> {
        let (interface, address) = source_for(destination, options)?;
        let socket = new_socket(destination, options, transport)?;
        set_sending(&socket, destination.ip(), interface.as_ref(), options)?;
        let address = SocketAddr::new(address, options.port);
        Self::bound(socket, address, interface, (options, transport)).map(Self::marking)
    }

    /// A socket that hears `address`: a group, joined on the chosen interface (and from `source` alone, where one is
    /// given), or one of our own addresses.
    pub(crate) fn listener(
        address: SocketAddr,
        source: Option<IpAddr>,
        options: &SocketOptions,
        transport: Transport,
    ) -> Result<Self, NetError> {
        let socket = new_socket(address, options, transport)?;
        let group = address.ip();
        let interface = Interface::choose(options, group)?;
        if !group.is_multicast() {
            if source.is_some() {
                return Err(NetError::SourceWithoutGroup(group));
            }
            return Self::bound(socket, address, interface, (options, transport));
        }
        // Receivers on one host share the group's port; each gets every datagram.
        socket.set_reuse_address(true).map_err(NetError::socket("share the group's port"))?;
        hear_own_groups_only(&socket, group)?;
        let mut endpoint = Self::bound(socket, address, interface, (options, transport))?;
        endpoint.group = Some(group);
        let interface = endpoint.interface.as_ref();
        match join(&endpoint.socket, group, source, interface) {
            Ok(()) => Ok(endpoint),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) && interface.is_none() => {
                Err(NetError::NoRoute { to: group, interface: None })
            }
            Err(source) => Err(NetError::Join { group, interface: Interface::label(interface), source }),
        }
    }

    /// A socket for answers, on a port of its own or the one that was asked for.
    pub(crate) fn answers(
        family: SocketAddr,
        options: &SocketOptions,
        transport: Transport,
    ) -> Result<Self, NetError> {
        let socket = new_socket(family, options, transport)?;
        if transport != Transport::Udp {
            // It has no port of its own, so whatever comes to a group would come here too.
            hear_own_groups_only(&socket, family.ip())?;
        }
        let any: IpAddr =
            if family.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let interface = Interface::choose(options, family.ip())?;
        set_sending(&socket, family.ip(), interface.as_ref(), options)?;
        Self::bound(socket, SocketAddr::new(any, options.port), interface, (options, transport))
    }

    /// Sends multicast through the interface as it is now: its number changes when it comes back.
    pub(crate) fn aim(&mut self, destination: IpAddr, options: &SocketOptions) -> Result<(), NetError> {
        self.interface = Interface::choose(options, destination)?;
        set_sending(&self.socket, destination, self.interface.as_ref(), options)
    }

    fn bound(
        socket: Socket,
        address: SocketAddr,
        interface: Option<Interface>,
        (options, transport): (&SocketOptions, Transport),
    ) -> Result<Self, NetError> {
        // There are no ports without UDP, whatever number stands for one.
        let address = if transport == Transport::Udp { address } else { SocketAddr::new(address.ip(), 0) };
        let scope = Interface::scope(interface.as_ref());
        let bind = socket.bind(&SockAddr::from(scoped(address, scope)));
        bind.map_err(|source| NetError::Bind { address, source })?;
        let state =
            UdpSocketState::new(UdpSockRef::from(&socket)).map_err(NetError::socket("set up a socket"))?;
        may_be_cut(&socket, address.ip())?;
        let local = socket.local_addr().ok().and_then(|a| a.as_socket()).map_or(address, unscoped);
        // A raw socket has its protocol there.
        let local = if transport == Transport::Udp { local } else { SocketAddr::new(local.ip(), 0) };
        let offload = options.offload && transport == Transport::Udp;
        if transport == Transport::Udp && !options.offload {
            ssm::disable_gro(&socket);
        }
        Ok(Self {
            socket,
            state,
            local,
            interface,
            group: None,
            transport,
            offload: AtomicBool::new(offload),
            longest: Cell::new(0),
            narrowness: RefCell::default(),
            singly: AtomicBool::new(false),
            refusals: Refusals::default(),
        })
    }

    /// The address it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The interface that was asked for.
    pub(crate) fn interface(&self) -> Option<&Interface> {
        self.interface.as_ref()
    }

    /// The group that it hears, if it does.
    pub(crate) fn group(&self) -> Option<IpAddr> {
        self.group
    }

    /// Whether what came with `meta` was sent to what this endpoint is for: its group, if it hears one.
    pub(crate) fn is_meant(&self, meta: &RecvMeta) -> bool {
        self.group.is_none_or(|group| meta.dst_ip.is_none_or(|to| to == group))
    }

    /// Octets of an IP packet that the way to `to` carries, as far as this host knows, where longer ones have left: the
    /// kernel sends them in fragments.
    pub(crate) fn fragments_to(&self, to: SocketAddr, options: &SocketOptions) -> Option<usize> {
        let longest = self.longest.get() + self.headers(to);
        let carried = path_mtu(to, options).ok().flatten()? as usize;
        (carried < longest).then_some(carried)
    }

    /// Octets of the longest datagram that has left whole, if it does not pass everywhere; 0 otherwise.
    pub(crate) fn longest(&self) -> usize {
        self.longest.get()
    }

    /// Octets of the headers of UDP and IP.
    pub(crate) fn headers(&self, to: SocketAddr) -> usize {
        let udp = if self.transport == Transport::Udp { 8 } else { 0 };
        udp + if to.is_ipv4() { 20 } else { 40 }
    }

    /// The kernel's receive buffer in bytes of payload, about: the kernel counts its own overhead too, and reports
    /// twice what was asked for to make up for it.
    pub(crate) fn receive_buffer(&self) -> usize {
        self.socket.recv_buffer_size().unwrap_or(0) / 2
    }

    /// How many datagrams may leave as one batch; 1 where the kernel cannot do more.
    pub(crate) fn batch(&self) -> usize {
        if self.offload.load(Ordering::Relaxed) { self.state.max_gso_segments() } else { 1 }
    }

    /// Receives into `buffers`; how many of them were filled, 0 if nothing is there.
    pub(crate) fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Result<usize, NetError> {
        match self.fetch(buffers, meta) {
            Ok(count) => {
                for one in &mut meta[..count] {
                    one.addr = unscoped(one.addr);
                    if self.transport != Transport::Udp {
                        one.addr.set_port(0);
                    }
                }
                Ok(self.sift(buffers, meta, count))
            }
            // A refused datagram of ours comes back as an error here: its receiver is not there yet, or gone.
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {
                Ok(0)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
            // The network may be back in a moment; until then nothing comes.
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::ENETDOWN | libc::ENETUNREACH | libc::EHOSTUNREACH)
                ) =>
            {
                Ok(0)
            }
            Err(e) => Err(NetError::Socket { action: "receive", source: e }),
        }
    }

    /// Fetches what is there: several at once, or one where the system has no such call (or a sandbox refuses it).
    fn fetch(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        if !self.singly.load(Ordering::Relaxed) {
            match self.state.recv(UdpSockRef::from(&self.socket), buffers, meta) {
                Err(error) if is_missing(&error) => {}
                other => return other,
            }
            self.singly.store(true, Ordering::Relaxed);
            // Nothing would say where one datagram ends and the next begins.
            ssm::disable_gro(&self.socket);
        }
        let (Some(buffer), Some(one)) = (buffers.first_mut(), meta.first_mut()) else { return Ok(0) };
        let (len, _, from) = rustix::net::recvfrom(&self.socket, &mut **buffer, RecvFlags::empty())?;
        let from = from.and_then(|from| SocketAddr::try_from(from).ok());
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        *one = RecvMeta::default();
        (one.addr, one.len, one.stride) = (from, len, len);
        Ok(1)
    }

    /// Where in what was received the datagrams lie, several of them only where the kernel has joined them: behind the
    /// IPv4 header, where that comes too. `None` if there is no such header after all.
    pub(crate) fn content(&self, received: &[u8]) -> Option<Range<usize>> {
        match self.transport {
            _ if received.is_empty() => Some(0..0),
            Transport::Udp => Some(0..received.len()),
            Transport::Ip(protocol) => behind_header(received, protocol),
        }
    }

    /// Sends `contents` as datagrams of `stride` bytes, whatever the way carries, and notes why that was refused.
    fn send_batch(&self, envelope: &Envelope, contents: &[u8], stride: usize) -> Result<(), NetError> {
        let sent = self.try_send(envelope, contents, stride);
        match &sent {
            Ok(()) => self.refusals.last.store(0, Ordering::Relaxed),
            Err(error) => self.refusals.note(error),
        }
        sent
    }

    /// Why the last datagram did not leave, where this host itself would not send it.
    pub(crate) fn refused(&self) -> Option<NetError> {
        refusal(self.refusals.last.load(Ordering::Relaxed))
    }

    /// The first such error since this was asked.
    pub(crate) fn newly_refused(&self) -> Option<NetError> {
        refusal(self.refusals.untold.swap(0, Ordering::Relaxed))
    }

    fn try_send(&self, envelope: &Envelope, contents: &[u8], stride: usize) -> Result<(), NetError> {
        if contents.len() > stride && self.batch() == 1 {
            return contents.chunks(stride).try_for_each(|one| self.try_send(envelope, one, stride));
        }
        let destination = envelope.to;
        let segment_size = (contents.len() > stride).then_some(stride);
        let (mut full, mut refused) = (None, 0);
        loop {
            let Err(error) = self.send_once(envelope, contents, segment_size) else {
                return Ok(());
            };
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM)
                    if full.get_or_insert_with(Clock::start).now() < Time::ZERO + LONGEST_FULL =>
                {
                    self.wait_writable();
                }
                // Refused: a unicast receiver that is not there yet, or gone; the protocol finds out by itself.
                Some(libc::EINTR | libc::ECONNREFUSED) if refused < MOST_REFUSED => refused += 1,
                // Some drivers take the option and then fail, and no batch has segments that need fragments. What a
                // missing interface refuses one by one too says nothing about batches.
                Some(
                    libc::EIO
                    | libc::EINVAL
                    | libc::EMSGSIZE
                    | libc::EOPNOTSUPP
                    | libc::ENOPROTOOPT
                    | libc::ENOSYS,
                ) if segment_size.is_some() => {
                    let (first, rest) = contents.split_at(stride);
                    self.try_send(envelope, first, stride)?;
                    self.offload.store(false, Ordering::Relaxed);
                    return self.try_send(envelope, rest, stride);
                }
                Some(libc::EMSGSIZE) => return Err(NetError::TooLarge { size: stride, destination }),
                Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENODEV) => {
                    let interface = self.interface.as_ref().map(|interface| interface.name.clone());
                    return Err(NetError::NoRoute { to: destination.ip(), interface });
                }
                _ => return Err(send_error(error)),
            }
        }
    }

    /// One system call. quinn-udp's sets the whole traffic class with every message, and so would undo the DSCP.
    fn send_once(
        &self,
        envelope: &Envelope,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<usize> {
        let scope = Interface::scope(self.interface.as_ref());
        let address = SockAddr::from(scoped(envelope.to, scope));
        let parts = [IoSlice::new(contents)];
        let control = envelope.control(self.local, segment_size);
        let message = MsgHdr::new().with_addr(&address).with_buffers(&parts);
        match control.as_slice() {
            [] => self.socket.sendmsg(&message, 0),
            control => self.socket.sendmsg(&message.with_control(control), 0),
        }
    }

    fn wait_writable(&self) {
        let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
        // ENOBUFS comes from a full device queue, which poll does not see: a millisecond at most.
        let timeout = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let _ = poll(&mut fds, Some(&timeout));
    }
}

/// How often a send that only tells of an earlier datagram is tried again.
const MOST_REFUSED: u32 = 64;

/// Whether `error` says that the system has no such call, or lets nobody make it.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP))
}

/// What an error of a call that sends means.
pub(crate) fn send_error(source: io::Error) -> NetError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => NetError::Refused(source),
        _ => NetError::Socket { action: "send", source },
    }
}

fn refusal(code: i32) -> Option<NetError> {
    (code != 0).then(|| send_error(io::Error::from_raw_os_error(code)))
}

/// Where the payload of an IPv4 packet of `protocol` lies in it.
fn behind_header(packet: &[u8], protocol: u8) -> Option<Range<usize>> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let (version, words) = (header[0] >> 4, usize::from(header[0] & 0x0f));
    let (start, end) = (words * 4, usize::from(u16::from_be_bytes([header[2], header[3]])));
    let fits = version == 4 && start >= header.len() && start <= end && end <= packet.len();
    (fits && header[9] == protocol).then_some(start..end)
}

/// `address`, with the interface `scope` where it is one that only means something on a link (RFC 4007).
pub(crate) fn scoped(address: SocketAddr, scope: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) if v6.scope_id() == 0 => {
            let [first, second, ..] = v6.ip().octets();
            let on_a_link = matches!((first, second & 0xc0), (0xfe, 0x80));
            let to_a_link = first == 0xff && matches!(second & 0x0f, 1 | 2);
            if on_a_link || to_a_link {
                v6.set_scope_id(scope);
            }
            v6.into()
        }
        other => other,
    }
}

fn unscoped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) => {
            v6.set_scope_id(0);
            v6.into()
        }
        v4 @ SocketAddr::V4(_) => v4,
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn new_socket(family: SocketAddr, options: &SocketOptions, transport: Transport) -> Result<Socket, NetError> {
    let socket = match transport {
        Transport::Udp => Socket::new(Domain::for_address(family), Type::DGRAM, Some(Protocol::UDP)),
        Transport::Ip(protocol) if family.is_ipv6() => return Err(NetError::RawOverIpv6(protocol)),
        Transport::Ip(protocol) => Socket::new(Domain::IPV4, Type::RAW, Some(i32::from(protocol).into())),
    };
    let socket = socket.map_err(|error| match (transport, error.kind()) {
        (Transport::Ip(protocol), io::ErrorKind::PermissionDenied) => NetError::NoRawSocket(protocol),
        _ => NetError::socket("make a socket")(error),
    })?;
    socket.set_nonblocking(true).map_err(NetError::socket("make a socket non-blocking"))?;
    if family.is_ipv6() {
        socket.set_only_v6(true).map_err(NetError::socket("restrict a socket to IPv6"))?;
    }
    // Buffers are a wish: with privileges it is granted beyond the system's limit, otherwise up to it.
    ssm::force_receive_buffer(&socket, options.receive_buffer);
    let _ = socket.set_send_buffer_size(options.send_buffer);
    Ok(socket)
}

fn set_sending(
    socket: &Socket,
    destination: IpAddr,
    interface: Option<&Interface>,
    options: &SocketOptions,
) -> Result<(), NetError> {
    let set = |action, result: io::Result<()>| result.map_err(NetError::socket(action));
    let tos = u32::from(options.dscp) << 2;
    if destination.is_ipv4() {
        set("set the time to live", socket.set_multicast_ttl_v4(options.ttl))?;
        set("set the DSCP", socket.set_tos_v4(tos))?;
        if let Some(Interface { address: IpAddr::V4(address), name, .. }) = interface {
            let chosen = socket.set_multicast_if_v4(address);
            chosen.map_err(|source| NetError::Join {
                group: destination,
                interface: name.clone(),
                source,
            })?;
        }
    } else {
        set("set the hop limit", socket.set_multicast_hops_v6(options.ttl))?;
        set("set the DSCP", socket.set_tclass_v6(tos))?;
        if let Some(interface) = interface {
            set("choose the interface", socket.set_multicast_if_v6(interface.index))?;
        }
    }
    Ok(())
}

/// Lets routers cut what is too long for the next link (IPv4), and the kernel what is too long for the way as it knows it
/// (both), instead of losing it. Routers on the way say nothing where ICMP is dropped. What they say of IPv4 is not
/// believed: nothing depends on it.
fn may_be_cut(socket: &Socket, address: IpAddr) -> Result<(), NetError> {
    let set = if address.is_ipv4() {
        set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::OMIT)
    } else {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)
    };
    set.map_err(|errno| NetError::socket("let datagrams be cut on their way")(errno.into()))
}

/// Without this Linux gives a socket what any other program has joined on any interface, source-specific or not.
fn hear_own_groups_only(socket: &Socket, group: IpAddr) -> Result<(), NetError> {
    let set =
        if group.is_ipv4() { socket.set_multicast_all_v4(false) } else { socket.set_multicast_all_v6(false) };
    set.map_err(NetError::socket("keep to our own groups"))
}

fn join(
    socket: &Socket,
    group: IpAddr,
    source: Option<IpAddr>,
    interface: Option<&Interface>,
) -> io::Result<()> {
    let index = interface.map_or(0, |interface| interface.index);
    match (group, source) {
        (IpAddr::V4(group), None) => {
            socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))
        }
        (IpAddr::V6(group), None) => socket.join_multicast_v6(&group, index),
        (group, Some(source)) => ssm::join_source(socket, group, source, index),
    }
}

/// The largest IP packet in bytes that the way to `destination` is known to carry.
///
/// # Errors
/// If the interface is not there, or there is no route.
pub fn path_mtu(destination: SocketAddr, options: &SocketOptions) -> Result<Option<u32>, NetError> {
    let interface = Interface::choose(options, destination.ip())?;
    let socket = new_socket(destination, options, Transport::Udp)?;
    set_sending(&socket, destination.ip(), interface.as_ref(), options)?;
    let to = SockAddr::from(scoped(destination, Interface::scope(interface.as_ref())));
    let no_route = |_| NetError::NoRoute {
        to: destination.ip(),
        interface: interface.as_ref().map(|interface| interface.name.clone()),
    };
    socket.connect(&to).map_err(no_route)?;
    Ok(ssm::connected_mtu(&socket, destination.is_ipv6()))
}

#[cfg(test)]
mod tests {
    use farcast_core::engine::Transmit;

    use super::*;

    #[test]
    fn the_mtu_is_what_the_system_says() {
        let said = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("Linux has it");
        let said: u32 = said.trim().parse().expect("a number");
        let to = "127.0.0.1:5402".parse().expect("an address");
        let mtu = path_mtu(to, &SocketOptions::default()).expect("loopback is there");
        // No IPv4 packet is longer than its length field can say.
        assert_eq!(mtu, Some(said.min(65_535)));
    }

    #[test]
    fn a_batch_arrives_as_the_datagrams_that_were_put_in() {
        let options = SocketOptions::default();
        let any = "127.0.0.1:0".parse().expect("an address");
        let (to, from) = (
            Endpoint::listener(any, None, &options, Transport::Udp),
            Endpoint::sender(any, &options, Transport::Udp),
        );
        let (to, from) = (to.expect("bound"), from.expect("bound"));
        let bytes: Vec<u8> = (0..2500u32).map(|n| n as u8).collect();
        from.send(&Envelope::of(&Transmit::new((), to.local())), &bytes, 1000).expect("loopback carries it");
        let mut got = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        while got.len() < 3 {
            let mut meta = [RecvMeta::default()];
            let count = to.receive(&mut [IoSliceMut::new(&mut buffer)], &mut meta).expect("bound");
            let chunks = buffer[..if count > 0 { meta[0].len } else { 0 }].chunks(meta[0].stride.max(1));
            got.extend(chunks.map(<[u8]>::to_vec));
        }
        assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000, 500]);
        assert_eq!(got.concat(), bytes);
    }

    /// Two datagrams that were sent to a host whose sandbox answers `errno` to the call that fetches several.
    fn received_without_recvmmsg(errno: i32) -> Vec<Vec<u8>> {
        let options = SocketOptions::default();
        let any = "127.0.0.1:0".parse().expect("an address");
        let to = Endpoint::listener(any, None, &options, Transport::Udp).expect("bound");
        let from = Endpoint::sender(any, &options, Transport::Udp).expect("bound");
        ssm::sandbox::refuse(libc::SYS_recvmmsg, None, errno).expect("a filter");
        let (mut got, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        let mut hear = |got: &mut Vec<Vec<u8>>| {
            let mut meta = [RecvMeta::default()];
            let count = to.receive(&mut [IoSliceMut::new(&mut buffer)], &mut meta).expect("another call");
            if count > 0 {
                assert_eq!(meta[0].addr, from.local());
                got.extend(buffer[..meta[0].len].chunks(meta[0].stride).map(<[u8]>::to_vec));
            }
        };
        // The first that is heard may find the kernel joining datagrams.
        hear(&mut got);
        from.send(&Envelope::of(&Transmit::new((), to.local())), &[7; 1500], 1000)
            .expect("loopback carries it");
        while got.len() < 2 {
            hear(&mut got);
        }
        got
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what a sandbox refuses it refuses to a thread")]
    fn datagrams_are_fetched_one_by_one_where_several_cannot_be() {
        for errno in [libc::ENOSYS, libc::EPERM, libc::EOPNOTSUPP] {
            let got = std::thread::spawn(move || received_without_recvmmsg(errno)).join().expect("no panic");
            assert_eq!(got, [vec![7; 1000], vec![7; 500]], "errno {errno}");
        }
    }

    #[test]
    fn of_an_ip_packet_only_what_its_header_allows_is_taken() {
        // 24 octets of header, 4 of content, and 2 of padding that a short frame may have.
        let mut packet = [0; 30];
        (packet[0], packet[3], packet[9]) = (0x46, 28, 113);
        assert_eq!(behind_header(&packet, 113), Some(24..28));
        assert_eq!(behind_header(&packet[..28], 113), Some(24..28));
        assert_eq!(behind_header(&packet[..27], 113), None, "cut");
        assert_eq!(behind_header(&packet[..19], 113), None, "no header");
        assert_eq!(behind_header(&packet, 17), None, "another protocol");
        for (at, value) in [(0, 0x66), (0, 0x44), (0, 0x4f), (3, 23), (3, 31), (2, 1)] {
            let mut bad = packet;
            bad[at] = value;
            assert_eq!(behind_header(&bad, 113), None, "{at}: {value}");
        }
    }
}
