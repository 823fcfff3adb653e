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
use socket2::{MsgHdr, SockAddr, Socket};

use crate::clock::Clock;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::interface::{Interface, source_for};
use crate::ssm;

mod address;
mod making;
mod narrow;

use address::unscoped;
pub(crate) use address::{is_source_specific, scoped};
pub use making::path_mtu;
use making::{hear_own_groups_only, join, may_be_cut, new_socket, set_sending};
pub(crate) use narrow::NarrowReport;

/// Options of sockets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// Interface for multicast, by name or address; the routing table chooses if absent.
    pub interface: Option<String>,
    /// UDP port that a sender sends from, and that a receiver of a group answers from; 0 for any free one. Answers to a
    /// sender come to it.
    pub port: u16,
    /// Time to live, or hop limit, of outgoing datagrams.
    pub ttl: u32,
    /// Differentiated services code point of outgoing datagrams, 0 to 63.
    pub dscp: u8,
    /// Kernel buffer wanted for receiving, bytes.
    pub receive_buffer: usize,
    /// Kernel buffer wanted for sending, bytes.
    pub send_buffer: usize,
    /// Let batches leave and arrive as one (GSO and GRO), if the kernel can.
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

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Endpoint {
    socket: Socket,
    state: UdpSocketState,
    /// Own address without a scope, like every address that leaves here. The wire does not carry a scope, and engines
    /// compare addresses.
    local: SocketAddr,
    /// Interface that was asked for.
    interface: Option<Interface>,
    /// Group that the socket listens to, if any.
    group: Option<IpAddr>,
    transport: Transport,
    /// Batches may leave as one.
    offload: AtomicBool,
    /// Length of the longest datagram that has left whole, of those that do not pass everywhere; octets.
    longest: Cell<usize>,
    /// Length of the IP packet above which the kernel sends fragments, if it was found to; octets.
    carried: Cell<Option<usize>>,
    narrowness: RefCell<narrow::Narrowness>,
    /// Datagrams are fetched one by one, since the kernel has no call that fetches several.
    singly: AtomicBool,
    refusals: Refusals,
}

/// Longest time to wait while a buffer of the kernel is full.
const LONGEST_FULL: Span = Span::from_secs(5);

/// Errors by which this host itself refused to send, as errno; 0 for none.
#[derive(Debug, Default)]
struct Refusals {
    /// Error of the last datagram.
    last: AtomicI32,
    /// First error since the last query.
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
    /// Returns a socket that sends to `destination` and receives answers, on the port that was asked for or any free
    /// one.
    pub(crate) fn sender(
        destination: SocketAddr,
        options: &SocketOptions,
        transport: Transport,
    ) -> Result<Self, NetError> {
        let (interface, address) = source_for(destination, options)?;
        let socket = new_socket(destination, options, transport)?;
        set_sending(&socket, destination.ip(), interface.as_ref(), options)?;
        let address = SocketAddr::new(address, options.port);
        Self::bound(socket, address, interface, transport, options.offload).map(Self::marking)
    }

    /// Returns a socket that listens at `address`: a group, or one of our own addresses. A group is joined on the
    /// chosen interface, and for datagrams from `source` alone if that is given.
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
            return Self::bound(socket, address, interface, transport, options.offload);
        }
        // Receivers on one host share the group's port; each gets every datagram.
        socket.set_reuse_address(true).map_err(NetError::socket("share the group's port"))?;
        hear_own_groups_only(&socket, group)?;
        let mut endpoint = Self::bound(socket, address, interface, transport, options.offload)?;
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

    /// Returns a socket for answers, on the port that was asked for or any free one.
    pub(crate) fn answers(
        family: SocketAddr,
        options: &SocketOptions,
        transport: Transport,
    ) -> Result<Self, NetError> {
        let socket = new_socket(family, options, transport)?;
        if transport != Transport::Udp {
            // The socket has no port of its own, so whatever comes to a group would come here too.
            hear_own_groups_only(&socket, family.ip())?;
        }
        let any: IpAddr =
            if family.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let interface = Interface::choose(options, family.ip())?;
        set_sending(&socket, family.ip(), interface.as_ref(), options)?;
        Self::bound(socket, SocketAddr::new(any, options.port), interface, transport, options.offload)
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
        transport: Transport,
        offload: bool,
    ) -> Result<Self, NetError> {
        // Without UDP there are no ports, whatever number stands for one.
        let address = if transport == Transport::Udp { address } else { SocketAddr::new(address.ip(), 0) };
        let scope = Interface::scope(interface.as_ref());
        let bind = socket.bind(&SockAddr::from(scoped(address, scope)));
        bind.map_err(|source| NetError::Bind { address, source })?;
        let state =
            UdpSocketState::new(UdpSockRef::from(&socket)).map_err(NetError::socket("set up a socket"))?;
        may_be_cut(&socket, address.ip())?;
        let local = socket.local_addr().ok().and_then(|a| a.as_socket()).map_or(address, unscoped);
        // A raw socket has its protocol's number in place of the port.
        let local = if transport == Transport::Udp { local } else { SocketAddr::new(local.ip(), 0) };
        let is_udp = transport == Transport::Udp;
        if is_udp && !offload {
            ssm::disable_gro(&socket);
        }
        Ok(Self {
            socket,
            state,
            local,
            interface,
            group: None,
            transport,
            offload: AtomicBool::new(offload && is_udp),
            longest: Cell::new(0),
            carried: Cell::new(None),
            narrowness: RefCell::default(),
            singly: AtomicBool::new(false),
            refusals: Refusals::default(),
        })
    }

    /// Returns the address that the socket is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the interface that was asked for.
    pub(crate) fn interface(&self) -> Option<&Interface> {
        self.interface.as_ref()
    }

    /// Returns the group that the socket listens to, if any.
    pub(crate) fn group(&self) -> Option<IpAddr> {
        self.group
    }

    /// Returns `true` if a received datagram was sent to the group of this endpoint, or if the endpoint has none.
    pub(crate) fn is_meant(&self, meta: &RecvMeta) -> bool {
        self.group.is_none_or(|group| meta.dst_ip.is_none_or(|to| to == group))
    }

    /// Returns the length of the longest IP packet that the path to `to` carries, as far as this host knows, in octets.
    /// Returns `None` unless longer packets have left, which the kernel sends in fragments.
    pub(crate) fn fragments_to(&self, to: SocketAddr, options: &SocketOptions) -> Option<usize> {
        let longest = self.longest.get() + self.headers(to);
        let carried = path_mtu(to, options).ok().flatten().map(|carried| carried as usize);
        self.carried.set(carried.filter(|&carried| carried < longest));
        self.carried.get()
    }

    /// Returns the octets of the longest datagram that has left whole, if it does not pass everywhere; 0 otherwise.
    pub(crate) fn longest(&self) -> usize {
        self.longest.get()
    }

    /// Returns the octets of the headers of UDP and IP.
    pub(crate) fn headers(&self, to: SocketAddr) -> usize {
        let udp = if self.transport == Transport::Udp { 8 } else { 0 };
        udp + if to.is_ipv4() { 20 } else { 40 }
    }

    /// Returns the approximate size of the kernel's receive buffer in bytes of payload. The kernel counts its own
    /// overhead too, and reports twice the requested size to make up for it.
    pub(crate) fn receive_buffer(&self) -> usize {
        self.socket.recv_buffer_size().unwrap_or(0) / 2
    }

    /// Returns the number of datagrams that may leave as one batch; 1 if the kernel takes no batches.
    pub(crate) fn batch(&self) -> usize {
        if self.offload.load(Ordering::Relaxed) { self.state.max_gso_segments() } else { 1 }
    }

    /// Receives datagrams into `buffers`. Returns the number of buffers that were filled, 0 if no datagram waits.
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
            // An error here tells of an earlier datagram of ours that was refused: its receiver is not there yet, or
            // gone.
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

    /// Fetches the datagrams that wait: several at once, or one if the system has no such call (or a sandbox refuses
    /// it).
    fn fetch(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        if !self.singly.load(Ordering::Relaxed) {
            match self.state.recv(UdpSockRef::from(&self.socket), buffers, meta) {
                Err(error) if is_missing(&error) => {}
                other => return other,
            }
            self.singly.store(true, Ordering::Relaxed);
            // Without that call, nothing would say where one datagram ends and the next begins.
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

    /// Returns the range of the datagrams in `received`; there are several only if the kernel has joined them. On a raw
    /// socket the range is behind the IPv4 header; `None` if there is no such header.
    pub(crate) fn content(&self, received: &[u8]) -> Option<Range<usize>> {
        match self.transport {
            _ if received.is_empty() => Some(0..0),
            Transport::Udp => Some(0..received.len()),
            Transport::Ip(protocol) => behind_header(received, protocol),
        }
    }

    /// Sends `contents` as datagrams of `stride` bytes, whatever the path carries. Notes the error if this host
    /// refuses.
    fn send_batch(&self, envelope: &Envelope, contents: &[u8], stride: usize) -> Result<(), NetError> {
        let sent = self.try_send(envelope, contents, stride);
        match &sent {
            Ok(()) => self.refusals.last.store(0, Ordering::Relaxed),
            Err(error) => self.refusals.note(error),
        }
        sent
    }

    /// Returns the error by which this host itself refused to send the last datagram.
    pub(crate) fn refused(&self) -> Option<NetError> {
        refusal(self.refusals.last.load(Ordering::Relaxed))
    }

    /// Returns the first such error since the last call.
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
                // Refused: a unicast receiver is not there yet, or gone. The protocol finds that out by itself.
                Some(libc::EINTR | libc::ECONNREFUSED) if refused < MOST_REFUSED => refused += 1,
                // Some drivers accept the option and then fail, and no batch has segments that need fragments. If a
                // missing interface refuses single datagrams too, the error says nothing about batches.
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

    /// Makes one system call. The call of quinn-udp sets the whole traffic class with every message, and so would undo
    /// the DSCP.
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
        // ENOBUFS comes from a full device queue, which poll does not see, so the wait is a millisecond at most.
        let timeout = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let _ = poll(&mut fds, Some(&timeout));
    }
}

/// Most attempts to send again after an error that only tells of an earlier datagram.
const MOST_REFUSED: u32 = 64;

/// Returns `true` if `error` says that the system has no such call, or that a sandbox forbids it.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP))
}

/// Returns the error of a call that sends, as a [`NetError`].
pub(crate) fn send_error(source: io::Error) -> NetError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => NetError::Refused(source),
        _ => NetError::Socket { action: "send", source },
    }
}

fn refusal(code: i32) -> Option<NetError> {
    (code != 0).then(|| send_error(io::Error::from_raw_os_error(code)))
}

/// Returns the range of the payload in an IPv4 packet of `protocol`.
fn behind_header(packet: &[u8], protocol: u8) -> Option<Range<usize>> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let (version, words) = (header[0] >> 4, usize::from(header[0] & 0x0f));
    let (start, end) = (words * 4, usize::from(u16::from_be_bytes([header[2], header[3]])));
    let fits = version == 4 && start >= header.len() && start <= end && end <= packet.len();
    (fits && header[9] == protocol).then_some(start..end)
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
