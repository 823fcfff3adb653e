//! Narrow paths: paths that carry only shorter datagrams than the first link, and give no sign of it.
//!
//! A bridge, a tunnel or a firewall may silently drop datagrams beyond some length. Then all short datagrams arrive and
//! no long ones do. Sockets at both ends find this out, and the protocols know nothing of it:
//!
//! * A sender's socket sends marks beside its long datagrams. A mark says how many long datagrams there were
//!   ([`Marks`]).
//! * A receiver's socket counts marks and long datagrams. If marks arrive and long datagrams never do, it tells the
//!   sender ([`NarrowWatch`]).
//! * From then on the sender's socket cuts long datagrams into pieces, and into smaller ones if those do not pass
//!   either. The smallest pieces pass every network that IP passes.
//! * The receiver's socket puts the pieces together again ([`Assembly`]).

mod assembly;
mod marks;
mod watch;
mod wire;

use farcast_delivery::Transport;

pub(crate) use assembly::Assembly;
pub(crate) use marks::Marks;
pub(crate) use watch::NarrowWatch;
pub(crate) use wire::{DatagramPart, PIECE_HEADER, Small, narrow};

/// Octets of an IP packet that every IPv4 network takes (RFC 791 §3.1).
const LEAST_V4: usize = 576;
/// Octets of an IP packet that every IPv6 network takes (RFC 8200 §5).
const LEAST_V6: usize = 1280;

/// Octets of an IP packet that nearly every IPv4 network takes: the minimum of IPv6, which tunnels keep.
const USUAL_V4: usize = 1280;

/// Returns the length of the datagrams to try if datagrams of `length` octets do not pass. All lengths are in octets,
/// without headers of UDP and IP.
pub(crate) fn tried_below(length: usize, ipv4: bool, transport: Transport) -> usize {
    let least = passes_everywhere(ipv4, transport);
    let usual = if ipv4 { least + USUAL_V4 - LEAST_V4 } else { least };
    if usual < length { usual } else { least }
}

/// Returns the octets of the longest datagram that passes everywhere, without headers of UDP and IP.
pub(crate) fn passes_everywhere(ipv4: bool, transport: Transport) -> usize {
    let udp = if transport == Transport::Udp { 8 } else { 0 };
    if ipv4 { LEAST_V4 - 20 - udp } else { LEAST_V6 - 40 - udp }
}

/// Returns the octets of the IP header.
pub(crate) fn header_of_ip(ipv4: bool) -> usize {
    if ipv4 { 20 } else { 40 }
}

/// Returns the octets of additional headers if `payload` octets of an IP packet leave in fragments of at most `carried`
/// octets each.
pub(crate) fn headers_of_fragments(payload: usize, carried: usize, ipv4: bool) -> usize {
    let (header, extension) = (header_of_ip(ipv4), if ipv4 { 0 } else { 8 });
    let unit = carried.saturating_sub(header + extension) / 8 * 8;
    if header + payload <= carried || unit == 0 {
        return 0;
    }
    let fragments = payload.div_ceil(unit);
    (fragments - 1) * header + fragments * extension
}

/// Traffic besides the datagrams that an engine asked for: marks, and the overhead of cutting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct OtherTraffic {
    /// Number of datagrams.
    pub(crate) datagrams: usize,
    /// Octets of these datagrams without headers of UDP and IP, and octets of headers of fragments.
    pub(crate) octets: usize,
}

impl OtherTraffic {
    /// Adds datagrams and octets that have left.
    pub(crate) fn add(&mut self, datagrams: usize, octets: usize) {
        self.datagrams += datagrams;
        self.octets += octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_have_headers_of_their_own() {
        // RFC 791 §3.2: all but the last carry multiples of 8 octets.
        assert_eq!(headers_of_fragments(1480, 1500, true), 0);
        assert_eq!(headers_of_fragments(1480, 1400, true), 20);
        assert_eq!(headers_of_fragments(1480, 576, true), 2 * 20);
        // RFC 8200 §4.5: a header of 8 octets more in each, the first one too.
        assert_eq!(headers_of_fragments(1460, 1500, false), 0);
        assert_eq!(headers_of_fragments(1460, 1400, false), 40 + 2 * 8);
        assert_eq!(headers_of_fragments(1460, 0, false), 0, "no MTU at all");
    }
}
