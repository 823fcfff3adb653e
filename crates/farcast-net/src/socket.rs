//! UDP sockets for multicast and unicast, with segmentation offload in both directions.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, InterfaceIndexOrAddress, MsgHdr, Protocol, SockAddr, Socket, Type};

use crate::error::NetError;
use crate::ssm;

/// How sockets are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// The interface for multicast, by name or address; the routing table chooses otherwise.
    pub interface: Option<String>,
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
            ttl: 1,
            dscp: 0,
            receive_buffer: 16 << 20,
            send_buffer: 4 << 20,
            offload: true,
        }
    }
}

/// An interface that was chosen, in the forms that the socket calls want.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) address: IpAddr,
}

impl Interface {
    /// The interface that `options` name, with an address of `group`'s family.
    pub(crate) fn choose(options: &SocketOptions, group: IpAddr) -> Result<Option<Self>, NetError> {
        let Some(wanted) = &options.interface else { return Ok(None) };
        let all = if_addrs::get_if_addrs().map_err(NetError::socket("list the interfaces"))?;
        let by_address: Option<IpAddr> = wanted.parse().ok();
        let named =
            |i: &&if_addrs::Interface| by_address.map_or(i.name == *wanted, |address| i.ip() == address);
        let found: Vec<_> = all.iter().filter(named).collect();
        // The list has interfaces with addresses only.
        let name = found.first().map_or(wanted, |interface| &interface.name);
        let socket =
            Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(NetError::socket("make a socket"))?;
        let flags = ssm::interface_flags(&socket, name);
        let flags = flags.ok_or_else(|| NetError::NoInterface(wanted.clone()))?;
        if flags & libc::IFF_UP == 0 {
            return Err(NetError::Down(name.clone()));
        }
        if group.is_multicast() && flags & (libc::IFF_MULTICAST | libc::IFF_LOOPBACK) == 0 {
            return Err(NetError::NoMulticast(name.clone()));
        }
        let family = if group.is_ipv4() { "IPv4" } else { "IPv6" };
        let usable = found.into_iter().filter(|i| i.ip().is_ipv4() == group.is_ipv4());
        // An address that others beyond the link can answer to, where there is one.
        let usable = usable.min_by_key(|i| i.is_link_local());
        let usable = usable.ok_or(NetError::NoAddress { name: wanted.clone(), family })?;
        Ok(Some(Self { name: usable.name.clone(), index: usable.index.unwrap_or(0), address: usable.ip() }))
    }

    /// What the kernel calls it in the address of a link; 0 where none was chosen.
    fn scope(interface: Option<&Self>) -> u32 {
        interface.map_or(0, |interface| interface.index)
    }

    fn label(interface: Option<&Self>) -> String {
        interface.map_or_else(|| "the default interface".into(), |interface| interface.name.clone())
    }
}

/// A bound UDP socket.
#[derive(Debug)]
pub(crate) struct Endpoint {
    socket: Socket,
    state: UdpSocketState,
    /// Without a scope, like every address that leaves here: the wire does not carry it, and engines compare.
    local: SocketAddr,
    /// The interface of link-local addresses; 0 for the system's choice.
    scope: u32,
    /// Whether batches may leave as one.
    offload: AtomicBool,
}

impl Endpoint {
    /// A socket to send to `destination` and to hear answers with, on a port of its own.
    pub(crate) fn sender(destination: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        let interface = Interface::choose(options, destination.ip())?;
        let socket = new_socket(destination, options)?;
        set_sending(&socket, destination.ip(), interface.as_ref(), options)?;
        let address = match &interface {
            Some(interface) if destination.ip().is_multicast() => interface.address,
            _ => route_source(scoped(destination, Interface::scope(interface.as_ref())))?,
        };
        Self::bound(socket, SocketAddr::new(address, 0), interface.as_ref(), options)
    }

    /// A socket that hears `address`: a group, joined on the chosen interface (and from `source` alone, where one is
    /// given), or one of our own addresses.
    pub(crate) fn listener(
        address: SocketAddr,
        source: Option<IpAddr>,
        options: &SocketOptions,
    ) -> Result<Self, NetError> {
        let socket = new_socket(address, options)?;
        let group = address.ip();
        let interface = Interface::choose(options, group)?;
        if !group.is_multicast() {
            if source.is_some() {
                return Err(NetError::SourceWithoutGroup(group));
            }
            return Self::bound(socket, address, interface.as_ref(), options);
        }
        // Receivers on one host share the group's port; each gets every datagram.
        socket.set_reuse_address(true).map_err(NetError::socket("share the group's port"))?;
        let endpoint = Self::bound(socket, address, interface.as_ref(), options)?;
        let joined = join(&endpoint.socket, group, source, interface.as_ref());
        match joined {
            Ok(()) => Ok(endpoint),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) && interface.is_none() => {
                Err(NetError::NoRoute(group))
            }
            Err(source) => {
                Err(NetError::Join { group, interface: Interface::label(interface.as_ref()), source })
            }
        }
    }

    /// A socket for answers, on a port of its own.
    pub(crate) fn answers(family: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        let socket = new_socket(family, options)?;
        let any: IpAddr =
            if family.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let interface = Interface::choose(options, family.ip())?;
        set_sending(&socket, family.ip(), interface.as_ref(), options)?;
        Self::bound(socket, SocketAddr::new(any, 0), interface.as_ref(), options)
    }

    fn bound(
        socket: Socket,
        address: SocketAddr,
        interface: Option<&Interface>,
        options: &SocketOptions,
    ) -> Result<Self, NetError> {
        let scope = Interface::scope(interface);
        let bind = socket.bind(&SockAddr::from(scoped(address, scope)));
        bind.map_err(|source| NetError::Bind { address, source })?;
        let state =
            UdpSocketState::new(UdpSockRef::from(&socket)).map_err(NetError::socket("set up a socket"))?;
        let local = socket.local_addr().ok().and_then(|a| a.as_socket()).map_or(address, unscoped);
        if !options.offload {
            ssm::disable_gro(&socket);
        }
        Ok(Self { socket, state, local, scope, offload: AtomicBool::new(options.offload) })
    }

    /// The address it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
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
        match self.state.recv(UdpSockRef::from(&self.socket), buffers, meta) {
            Ok(count) => {
                for one in &mut meta[..count] {
                    one.addr = unscoped(one.addr);
                }
                Ok(count)
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

    /// Sends `contents` as datagrams of `stride` bytes (the last may be shorter), waiting while the kernel's buffer
    /// is full.
    pub(crate) fn send(
        &self,
        destination: SocketAddr,
        contents: &[u8],
        stride: usize,
    ) -> Result<(), NetError> {
        if contents.len() > stride && self.batch() == 1 {
            return contents.chunks(stride).try_for_each(|one| self.send(destination, one, stride));
        }
        let segment_size = (contents.len() > stride).then_some(stride);
        loop {
            let Err(error) = self.send_once(destination, contents, segment_size) else {
                return Ok(());
            };
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => self.wait_writable(),
                // Refused: a unicast receiver that is not there yet, or gone; the protocol finds out by itself.
                Some(libc::EINTR | libc::ECONNREFUSED) => {}
                Some(libc::EMSGSIZE) => return Err(NetError::TooLarge { size: stride, destination }),
                Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENODEV) => {
                    return Err(NetError::NoRoute(destination.ip()));
                }
                // Some drivers take the option and then fail; one by one it must work.
                Some(libc::EIO | libc::EINVAL) if segment_size.is_some() => {
                    self.offload.store(false, Ordering::Relaxed);
                    return contents.chunks(stride).try_for_each(|one| self.send(destination, one, stride));
                }
                _ => return Err(NetError::Socket { action: "send", source: error }),
            }
        }
    }

    /// One system call. quinn-udp's sets the whole traffic class with every message, and so would undo the DSCP.
    fn send_once(
        &self,
        destination: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<usize> {
        let address = SockAddr::from(scoped(destination, self.scope));
        let parts = [IoSlice::new(contents)];
        let control = segment_size.map(segment_control);
        let message = MsgHdr::new().with_addr(&address).with_buffers(&parts);
        match &control {
            Some(control) => self.socket.sendmsg(&message.with_control(control), 0),
            None => self.socket.sendmsg(&message, 0),
        }
    }

    fn wait_writable(&self) {
        let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
        // ENOBUFS comes from a full device queue, which poll does not see: a millisecond at most.
        let timeout = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let _ = poll(&mut fds, Some(&timeout));
    }
}

/// A control message that lets the kernel cut what is sent into datagrams of `size` bytes: a length, a level, a type
/// and the size, as in cmsg(3).
fn segment_control(size: usize) -> [u8; size_of::<libc::cmsghdr>() + size_of::<usize>()] {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let size = u16::try_from(size).unwrap_or(u16::MAX).to_ne_bytes();
    let mut control = [0; HEADER + size_of::<usize>()];
    let (header, data) = control.split_at_mut(HEADER);
    let (len, kind) = header.split_at_mut(size_of::<usize>());
    len.copy_from_slice(&(HEADER + size.len()).to_ne_bytes());
    kind[..4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    kind[4..].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    data[..size.len()].copy_from_slice(&size);
    control
}

/// `address`, with the interface `scope` where it is one that only means something on a link (RFC 4007).
fn scoped(address: SocketAddr, scope: u32) -> SocketAddr {
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

fn new_socket(family: SocketAddr, options: &SocketOptions) -> Result<Socket, NetError> {
    let socket = Socket::new(Domain::for_address(family), Type::DGRAM, Some(Protocol::UDP));
    let socket = socket.map_err(NetError::socket("make a socket"))?;
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

/// The address that the kernel would send from.
fn route_source(destination: SocketAddr) -> Result<IpAddr, NetError> {
    let family = SocketAddr::new(destination.ip(), destination.port().max(1));
    let fresh = Socket::new(Domain::for_address(family), Type::DGRAM, Some(Protocol::UDP));
    let fresh = fresh.map_err(NetError::socket("make a socket"))?;
    fresh.connect(&SockAddr::from(family)).map_err(|_| NetError::NoRoute(destination.ip()))?;
    let local = fresh.local_addr().map_err(NetError::socket("find our own address"))?;
    local.as_socket().map(|a| a.ip()).ok_or(NetError::NoRoute(destination.ip()))
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

/// Our address as the network of `destination` sees it.
///
/// # Errors
/// If the interface is not there, or there is no route.
pub fn own_address(destination: SocketAddr, options: &SocketOptions) -> Result<IpAddr, NetError> {
    match Interface::choose(options, destination.ip())? {
        Some(interface) => Ok(interface.address),
        None => route_source(destination),
    }
}

/// The largest IP packet in bytes that the way to `destination` is known to carry.
///
/// # Errors
/// If the interface is not there, or there is no route.
pub fn path_mtu(destination: SocketAddr, options: &SocketOptions) -> Result<Option<u32>, NetError> {
    let interface = Interface::choose(options, destination.ip())?;
    let socket = new_socket(destination, options)?;
    set_sending(&socket, destination.ip(), interface.as_ref(), options)?;
    let to = SockAddr::from(scoped(destination, Interface::scope(interface.as_ref())));
    socket.connect(&to).map_err(|_| NetError::NoRoute(destination.ip()))?;
    Ok(ssm::connected_mtu(&socket, destination.is_ipv6()))
}

#[cfg(test)]
mod tests {
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
    fn an_interface_that_is_not_there_is_named() {
        let options = SocketOptions { interface: Some("nosuch0".into()), ..SocketOptions::default() };
        let to = "239.255.1.1:5402".parse().expect("an address");
        let error = own_address(to, &options).expect_err("there is none");
        assert!(error.to_string().contains("nosuch0"), "{error}");
    }

    #[test]
    fn a_batch_arrives_as_the_datagrams_that_were_put_in() {
        let options = SocketOptions::default();
        let any = "127.0.0.1:0".parse().expect("an address");
        let (to, from) = (Endpoint::listener(any, None, &options), Endpoint::sender(any, &options));
        let (to, from) = (to.expect("bound"), from.expect("bound"));
        let bytes: Vec<u8> = (0..2500u32).map(|n| n as u8).collect();
        from.send(to.local(), &bytes, 1000).expect("loopback carries it");
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
}
