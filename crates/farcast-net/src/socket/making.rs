//! Setup of sockets: making them, choosing their interface, joining groups.

use std::io;
use std::net::{IpAddr, SocketAddr};

use farcast_delivery::Transport;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};

use super::{SocketOptions, scoped};
use crate::error::NetError;
use crate::interface::Interface;
use crate::ssm;

pub(super) fn new_socket(
    family: SocketAddr,
    options: &SocketOptions,
    transport: Transport,
) -> Result<Socket, NetError> {
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
    // Buffer sizes are a wish: with privileges it is granted beyond the system's limit, otherwise up to it.
    ssm::force_receive_buffer(&socket, options.receive_buffer);
    let _ = socket.set_send_buffer_size(options.send_buffer);
    Ok(socket)
}

pub(super) fn set_sending(
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

/// Lets routers (IPv4) and the kernel (IPv4 and IPv6) fragment datagrams that are too long for the next link or the
/// known path. Otherwise these datagrams would be lost, because routers say nothing if ICMP is dropped. ICMP messages
/// about the path MTU over IPv4 are not believed, since nothing depends on them.
pub(super) fn may_be_cut(socket: &Socket, address: IpAddr) -> Result<(), NetError> {
    let set = if address.is_ipv4() {
        set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::OMIT).map_err(io::Error::from)
    } else {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)
            .map_err(io::Error::from)
            .and_then(|()| ssm::allow_ipv6_fragments(socket))
    };
    set.map_err(NetError::socket("let datagrams be cut on their way"))
}

/// Limits `socket` to the groups that it has joined itself. By default Linux also delivers what any other program has
/// joined on any interface, source-specific or not.
pub(super) fn hear_own_groups_only(socket: &Socket, group: IpAddr) -> Result<(), NetError> {
    let set =
        if group.is_ipv4() { socket.set_multicast_all_v4(false) } else { socket.set_multicast_all_v6(false) };
    set.map_err(NetError::socket("keep to our own groups"))
}

pub(super) fn join(
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

/// Returns the largest IP packet in bytes that the path to `destination` is known to carry.
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
