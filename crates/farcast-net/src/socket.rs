//! UDP sockets for multicast and unicast, with segmentation offload in both directions.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};

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
        let mut found = all.iter().filter(named).peekable();
        if found.peek().is_none() {
            return Err(NetError::NoInterface(wanted.clone()));
        }
        let family = if group.is_ipv4() { "IPv4" } else { "IPv6" };
        let usable = found.find(|i| i.ip().is_ipv4() == group.is_ipv4());
        let usable = usable.ok_or(NetError::NoAddress { name: wanted.clone(), family })?;
        Ok(Some(Self { name: usable.name.clone(), index: usable.index.unwrap_or(0), address: usable.ip() }))
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
    local: SocketAddr,
    offload: bool,
}

impl Endpoint {
    /// A socket to send to `destination` and to hear answers with, on a port of its own.
    pub(crate) fn sender(destination: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        let interface = Interface::choose(options, destination.ip())?;
        let socket = new_socket(destination, options)?;
        set_sending(&socket, destination.ip(), interface.as_ref(), options)?;
        let address = match interface {
            Some(interface) if destination.ip().is_multicast() => interface.address,
            _ => route_source(destination)?,
        };
        Self::bound(socket, SocketAddr::new(address, 0), options)
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
        if !group.is_multicast() {
            if source.is_some() {
                return Err(NetError::SourceWithoutGroup(group));
            }
            return Self::bound(socket, address, options);
        }
        // Receivers on one host share the group's port; each gets every datagram.
        socket.set_reuse_address(true).map_err(NetError::socket("share the group's port"))?;
        let interface = Interface::choose(options, group)?;
        let endpoint = Self::bound(socket, address, options)?;
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
        Self::bound(socket, SocketAddr::new(any, 0), options)
    }

    fn bound(socket: Socket, address: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        socket.bind(&SockAddr::from(address)).map_err(|source| NetError::Bind { address, source })?;
        let state =
            UdpSocketState::new(UdpSockRef::from(&socket)).map_err(NetError::socket("set up a socket"))?;
        let local = socket.local_addr().ok().and_then(|a| a.as_socket()).unwrap_or(address);
        if !options.offload {
            ssm::disable_gro(&socket);
        }
        Ok(Self { socket, state, local, offload: options.offload })
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
        if self.offload { self.state.max_gso_segments() } else { 1 }
    }

    /// Receives into `buffers`; how many of them were filled, 0 if nothing is there.
    pub(crate) fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Result<usize, NetError> {
        match self.state.recv(UdpSockRef::from(&self.socket), buffers, meta) {
            Ok(count) => Ok(count),
            // A refused datagram of ours comes back as an error here: its receiver is not there yet, or gone.
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {
                Ok(0)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
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
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        loop {
            let Err(error) = self.state.try_send(UdpSockRef::from(&self.socket), &transmit) else {
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
                    return contents.chunks(stride).try_for_each(|one| self.send(destination, one, stride));
                }
                _ => return Err(NetError::Socket { action: "send", source: error }),
            }
        }
    }

    fn wait_writable(&self) {
        let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
        // ENOBUFS comes from a full device queue, which poll does not see: a millisecond at most.
        let timeout = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let _ = poll(&mut fds, Some(&timeout));
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
