//! Routes of packets: addresses of the hosts of a link, and packets that the link does not carry.

use std::net::Ipv4Addr;

/// The hub's address.
pub const HUB: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Address of terminal 0. Terminal n has this address plus n, in 10.64.0.0/10.
const FIRST_TERMINAL: u32 = Ipv4Addr::new(10, 64, 0, 1).to_bits();

/// Most terminals of a link: each is a host, with a device and a namespace.
pub const MOST_TERMINALS: u32 = 1000;

/// Returns the address of terminal `number`.
pub const fn terminal_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_TERMINAL.saturating_add(number))
}

/// Destination of a packet that a host sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// Over the link, to this terminal.
    Terminal(u32),
    /// Over the link, to all terminals.
    All,
    /// Over the link, to the hub.
    Hub,
    /// None: group membership (RFC 2236, RFC 3376) ends at the link, as at a router.
    Membership,
    /// None: the packet is not IPv4.
    Foreign,
    /// None: no host has the address.
    Unroutable,
}

/// Protocol number of IGMP.
const IGMP: u8 = 2;

/// Returns the protocol and the destination of an IPv4 packet (RFC 791 section 3.1).
fn look(packet: &[u8]) -> Option<(u8, Ipv4Addr)> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let destination = [header[16], header[17], header[18], header[19]];
    (header[0] >> 4 == 4).then(|| (header[9], destination.into()))
}

/// Returns the route of a packet of the hub, with this number of terminals. If there is only one terminal, it also gets
/// packets to unknown addresses: more hosts may be behind it.
pub(crate) fn from_hub(packet: &[u8], terminals: u32) -> Route {
    let Some((protocol, destination)) = look(packet) else { return Route::Foreign };
    if protocol == IGMP {
        return Route::Membership;
    }
    if destination.is_multicast() || destination.is_broadcast() {
        return Route::All;
    }
    match destination.to_bits().checked_sub(FIRST_TERMINAL) {
        Some(number) if number < terminals => Route::Terminal(number),
        _ if terminals == 1 => Route::Terminal(0),
        _ => Route::Unroutable,
    }
}

/// Returns the route of a packet of a terminal: to the hub, if anywhere.
pub(crate) fn from_terminal(packet: &[u8]) -> Route {
    match look(packet) {
        None => Route::Foreign,
        Some((IGMP, _)) => Route::Membership,
        Some(_) => Route::Hub,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, destination: Ipv4Addr) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[16..20].copy_from_slice(&destination.octets());
        packet
    }

    #[test]
    fn the_hub_reaches_each_terminal_and_all() {
        let to =
            |destination: &str, terminals| from_hub(&packet(17, destination.parse().unwrap()), terminals);
        assert_eq!(to("10.64.0.1", 3), Route::Terminal(0));
        assert_eq!(to("10.64.0.3", 3), Route::Terminal(2));
        assert_eq!(to("10.64.0.4", 3), Route::Unroutable);
        assert_eq!(to("10.63.255.255", 3), Route::Unroutable);
        assert_eq!(to("10.64.1.0", 256), Route::Terminal(255));
        assert_eq!(to("239.1.2.3", 3), Route::All);
        assert_eq!(to("255.255.255.255", 3), Route::All);
        assert_eq!(to("192.0.2.1", 1), Route::Terminal(0));
        assert_eq!(from_hub(&packet(2, "224.0.0.22".parse().unwrap()), 3), Route::Membership);
    }

    #[test]
    fn a_terminal_reaches_the_hub() {
        assert_eq!(from_terminal(&packet(6, HUB)), Route::Hub);
        assert_eq!(from_terminal(&packet(17, "239.1.2.3".parse().unwrap())), Route::Hub);
        assert_eq!(from_terminal(&packet(2, "224.0.0.22".parse().unwrap())), Route::Membership);
    }

    #[test]
    fn what_is_no_ipv4_goes_nowhere() {
        for octets in [&[][..], &[0x45; 19], &[0x60; 40]] {
            assert_eq!((from_hub(octets, 2), from_terminal(octets)), (Route::Foreign, Route::Foreign));
        }
    }
}
