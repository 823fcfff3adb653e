//! Choice of the interface and of our own address: as the options say, or as the routing table chooses.

use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::NetError;
use crate::listing::{ListedAddress, addresses};
use crate::socket::{SocketOptions, scoped};
use crate::ssm;

/// A chosen interface, in the forms that the socket calls want.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) address: IpAddr,
    /// The interface has a carrier.
    pub(crate) running: bool,
}

impl Interface {
    /// Returns the interface that `options` name, with an address of `group`'s family; `None` if they name none.
    pub(crate) fn choose(options: &SocketOptions, group: IpAddr) -> Result<Option<Self>, NetError> {
        let Some(wanted) = &options.interface else { return Ok(None) };
        let all = addresses()?;
        // An IPv6 address may name its interface behind a `%`.
        let (bare, zone) =
            wanted.split_once('%').map_or((&wanted[..], None), |(bare, zone)| (bare, Some(zone)));
        let by_address: Option<IpAddr> = bare.parse().ok();
        let on_zone =
            |i: &ListedAddress| zone.is_none_or(|zone| i.name == zone || i.index.to_string() == zone);
        let named = |i: &&ListedAddress| {
            by_address.map_or(i.name == *wanted, |address| i.address == address && on_zone(i))
        };
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
        let usable = found.into_iter().filter(|i| i.address.is_ipv4() == group.is_ipv4());
        // A link-local address is the last choice: hosts beyond the link cannot answer to it.
        let usable = usable.min_by_key(|i| i.is_link_local());
        let usable = usable.ok_or(NetError::NoAddress { name: wanted.clone(), family })?;
        Ok(Some(Self {
            name: usable.name.clone(),
            index: usable.index,
            address: usable.address,
            running: flags & libc::IFF_RUNNING != 0,
        }))
    }

    /// Returns the interface through which a listener at `address` receives: the one that `options` name, or for a
    /// group the routing table's choice. `None` if any interface will do.
    pub(crate) fn heard_through(
        options: &SocketOptions,
        address: SocketAddr,
    ) -> Result<Option<Self>, NetError> {
        if options.interface.is_some() || !address.ip().is_multicast() {
            return Self::choose(options, address.ip());
        }
        let source = route_source(address, None)?;
        if source.is_unspecified() {
            // The route's device has no address for others, as is so with the loopback interface.
            return Ok(None);
        }
        // The choice by address makes the same checks as one by name.
        Self::choose(&SocketOptions { interface: Some(source.to_string()), ..options.clone() }, source)
    }

    /// Returns the number of the interface for the scope of an IPv6 address; 0 if none was chosen.
    pub(crate) fn scope(interface: Option<&Self>) -> u32 {
        interface.map_or(0, |interface| interface.index)
    }

    pub(crate) fn label(interface: Option<&Self>) -> String {
        interface.map_or_else(|| "the default interface".into(), |interface| interface.name.clone())
    }
}

/// Returns the interface that `options` name and our own address, for datagrams to `destination`.
pub(crate) fn source_for(
    destination: SocketAddr,
    options: &SocketOptions,
) -> Result<(Option<Interface>, IpAddr), NetError> {
    let interface = Interface::choose(options, destination.ip())?;
    let address = match &interface {
        Some(interface) if destination.ip().is_multicast() => interface.address,
        _ => route_source(destination, interface.as_ref())?,
    };
    Ok((interface, address))
}

/// Returns the address that the kernel would send from.
pub(crate) fn route_source(
    destination: SocketAddr,
    interface: Option<&Interface>,
) -> Result<IpAddr, NetError> {
    let no_route =
        || NetError::NoRoute { to: destination.ip(), interface: interface.map(|one| one.name.clone()) };
    let to = SocketAddr::new(destination.ip(), destination.port().max(1));
    let to = scoped(to, Interface::scope(interface));
    let fresh = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP));
    let fresh = fresh.map_err(NetError::socket("make a socket"))?;
    fresh.connect(&SockAddr::from(to)).map_err(|_| no_route())?;
    let local = fresh.local_addr().map_err(NetError::socket("find our own address"))?;
    local.as_socket().map(|a| a.ip()).ok_or_else(no_route)
}

/// Returns `true` if `address` is one of ours, on an interface that is up.
pub(crate) fn is_ours(address: IpAddr) -> bool {
    let all = addresses().unwrap_or_default();
    let Ok(socket) = Socket::new(Domain::IPV4, Type::DGRAM, None) else { return false };
    let up = |name| ssm::interface_flags(&socket, name).is_some_and(|flags| flags & libc::IFF_UP != 0);
    all.iter().any(|interface| interface.address == address && up(&interface.name))
}

/// Returns our own address, as the network of `destination` sees it.
///
/// # Errors
/// If the interface is not there, or there is no route.
pub fn own_address(destination: SocketAddr, options: &SocketOptions) -> Result<IpAddr, NetError> {
    match Interface::choose(options, destination.ip())? {
        Some(interface) => Ok(interface.address),
        None => route_source(destination, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let options = SocketOptions { interface: Some("nosuch0".into()), ..SocketOptions::default() };
        let to = "239.255.1.1:5402".parse().expect("an address");
        let error = own_address(to, &options).expect_err("there is none");
        assert!(error.to_string().contains("nosuch0"), "{error}");
    }

    #[test]
    fn the_loopback_address_is_ours_and_another_is_not() {
        assert!(is_ours("127.0.0.1".parse().expect("an address")));
        assert!(!is_ours("192.0.2.1".parse().expect("an address")));
    }
}
