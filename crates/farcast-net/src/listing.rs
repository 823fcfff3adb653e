//! Addresses of this host's interfaces, also inside a sandbox that forbids netlink(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use socket2::{Domain, Socket, Type};

use crate::error::NetError;
use crate::ssm;

/// An address, and the interface that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListedAddress {
    /// Name of the interface.
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    /// Number by which the kernel knows the interface.
    pub(crate) index: u32,
}

impl ListedAddress {
    /// Returns `true` if the address is valid on its link only.
    pub(crate) fn is_link_local(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }
}

/// Returns all addresses of all interfaces.
///
/// # Errors
/// If neither netlink(7) nor netdevice(7) can list them.
pub(crate) fn addresses() -> Result<Vec<ListedAddress>, NetError> {
    match if_addrs::get_if_addrs() {
        Ok(found) => Ok(found.into_iter().map(listed).collect()),
        Err(error) => without_netlink().map_err(|_| NetError::socket("list the interfaces")(error)),
    }
}

fn listed(found: if_addrs::Interface) -> ListedAddress {
    ListedAddress { address: found.ip(), index: found.index.unwrap_or(0), name: found.name }
}

/// Returns the same list by netdevice(7), which covers IPv4, and by the file that lists IPv6.
fn without_netlink() -> io::Result<Vec<ListedAddress>> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let index = |name: &str| rustix::net::netdevice::name_to_index(&socket, name).unwrap_or(0);
    let v4 = ssm::ipv4_addresses(&socket)?;
    let one = |(name, address): (String, Ipv4Addr)| ListedAddress {
        index: index(&name),
        address: address.into(),
        name,
    };
    let mut all: Vec<ListedAddress> = v4.into_iter().map(one).collect();
    // A kernel without IPv6 has no such file.
    all.extend(std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default().lines().filter_map(ipv6));
    Ok(all)
}

/// Parses a line of `/proc/net/if_inet6`: the address; in hexadecimal the interface, the prefix, the scope and the
/// flags; the name.
fn ipv6(line: &str) -> Option<ListedAddress> {
    let mut fields = line.split_whitespace();
    let (address, index, name) = (fields.next()?, fields.next()?, fields.nth(3)?);
    let address = Ipv6Addr::from_bits(u128::from_str_radix(address, 16).ok()?);
    Some(ListedAddress {
        name: name.into(),
        address: address.into(),
        index: u32::from_str_radix(index, 16).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_list_the_same() {
        let sorted = |mut all: Vec<ListedAddress>| {
            all.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
            all
        };
        let found = sorted(addresses().expect("there is the loopback interface"));
        assert!(found.iter().any(|one| one.name == "lo" && one.index == 1), "{found:?}");
        assert_eq!(sorted(without_netlink().expect("netdevice(7)")), found);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what a sandbox refuses it refuses to a thread")]
    fn a_sandbox_without_netlink_has_interfaces() {
        let listed = std::thread::spawn(|| {
            let family = u32::try_from(libc::AF_NETLINK).expect("a number");
            ssm::sandbox::refuse(libc::SYS_socket, Some(family), libc::EAFNOSUPPORT).expect("a filter");
            assert!(if_addrs::get_if_addrs().is_err(), "the filter works");
            addresses()
        });
        let listed = listed.join().expect("no panic").expect("by other ways");
        assert!(listed.iter().any(|one| one.name == "lo"), "{listed:?}");
    }

    #[test]
    fn a_line_of_the_kernels_is_read_and_another_is_not() {
        let line = "fe80000000000000001122fffe334455 0d 40 20 80     eth0";
        let found = ipv6(line).expect("a line");
        assert_eq!((found.name.as_str(), found.index), ("eth0", 13));
        assert_eq!(found.address.to_string(), "fe80::11:22ff:fe33:4455");
        assert!(found.is_link_local());
        for bad in ["", "fe80 0d", "xyz 0d 40 20 80 eth0", "00 zz 40 20 80 eth0"] {
            assert_eq!(ipv6(bad), None, "{bad:?}");
        }
    }
}
