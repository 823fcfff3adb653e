//! IPv4 headers of forwarded packets and of packets to be sent (RFC 791, RFC 2113).

use std::net::Ipv4Addr;
use std::ops::Range;

/// Octets of a header without options.
const PLAIN: usize = 20;
/// Option of RFC 2113: its type, its length, and the value that says "examine the packet".
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
/// Offset of the time to live in the header.
const TTL: usize = 8;

/// Fields of a received packet's header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Packet {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) protocol: u8,
    pub(super) ttl: u8,
    /// The packet asks routers to examine it (RFC 2113).
    pub(super) alert: bool,
    /// The packet is a fragment of a longer one.
    pub(super) fragment: bool,
    /// Range of the content behind the header; octets behind it are padding of the link.
    pub(super) content: Range<usize>,
}

impl Packet {
    /// Reads the header of a packet that anybody may have sent; `None` if it contradicts itself. The kernel checks the
    /// checksum only of packets to this host. An element sees packets before that, so it checks as well.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let header: &[u8; PLAIN] = octets.first_chunk()?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|octet| header[at + octet]));
        let (start, end) = (usize::from(header[0] & 0x0f) * 4, usize::from(word(2)));
        if header[0] >> 4 != 4 || start < PLAIN || start > end || end > octets.len() {
            return None;
        }
        if sum(&octets[..start]) != 0xffff {
            return None;
        }
        Some(Self {
            source: address(12),
            destination: address(16),
            protocol: header[9],
            ttl: header[TTL],
            alert: has_alert(&octets[PLAIN..start]),
            // More fragments follow, or this is not the first.
            fragment: word(6) & 0x3fff != 0,
            content: start..end,
        })
    }
}

/// Returns `true` if RFC 2113's option is among `options`.
fn has_alert(mut options: &[u8]) -> bool {
    loop {
        match *options {
            // No operation.
            [1, ref rest @ ..] => options = rest,
            [kind, len, ..] if kind != 0 && len >= 2 => {
                if kind == ROUTER_ALERT[0] && options.starts_with(&ROUTER_ALERT) {
                    return true;
                }
                let Some(rest) = options.get(usize::from(len)..) else { return false };
                options = rest;
            }
            _ => return false,
        }
    }
}

/// Returns the one's-complement sum of RFC 1071 over whole words.
fn sum(octets: &[u8]) -> u16 {
    let (words, _) = octets.as_chunks::<2>();
    let sum: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// A header to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) protocol: u8,
    pub(super) ttl: u8,
    pub(super) alert: bool,
}

impl Header {
    /// Appends the header to `out`. Length, identification and checksum are left to the kernel (raw(7), `IP_HDRINCL`).
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let options: &[u8] = if self.alert { &ROUTER_ALERT } else { &[] };
        let words = (PLAIN + options.len()) / 4;
        out.extend([0x40 | words as u8, 0, 0, 0, 0, 0, 0, 0, self.ttl, self.protocol, 0, 0]);
        out.extend(self.source.octets());
        out.extend(self.destination.octets());
        out.extend(options);
    }
}

/// Takes one hop from the time to live of a packet to be forwarded. The checksum is left to the kernel.
pub(super) fn pass(octets: &mut [u8]) {
    if let Some(ttl) = octets.get_mut(TTL) {
        *ttl = ttl.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets the length and the checksum, as routers compute it.
    fn seal(octets: &mut [u8]) {
        let start = usize::from(octets[0] & 0x0f) * 4;
        let len = octets.len() as u16;
        octets[2..4].copy_from_slice(&len.to_be_bytes());
        octets[10..12].fill(0);
        let checksum = !sum(&octets[..start]);
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn packet(alert: bool) -> Vec<u8> {
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(239, 1, 2, 3));
        let mut out = Vec::new();
        Header { source, destination, protocol: 113, ttl: 9, alert }.write(&mut out);
        out.extend([7; 10]);
        seal(&mut out);
        out
    }

    #[test]
    fn what_is_written_is_read() {
        for (alert, content) in [(false, 20..30), (true, 24..34)] {
            let octets = packet(alert);
            let said = Packet::read(&octets).expect("a packet");
            assert_eq!((said.alert, said.content, said.ttl, said.protocol), (alert, content, 9, 113));
            assert_eq!(said.source, Ipv4Addr::new(192, 0, 2, 1));
            assert_eq!(said.destination, Ipv4Addr::new(239, 1, 2, 3));
            assert!(!said.fragment);
        }
    }

    #[test]
    fn a_packet_that_passes_has_one_hop_less() {
        let mut octets = packet(true);
        pass(&mut octets);
        seal(&mut octets);
        assert_eq!(Packet::read(&octets).expect("a packet").ttl, 8);
    }

    #[test]
    fn the_alert_is_found_among_options_and_nowhere_else() {
        assert!(has_alert(&[1, 1, 0x94, 4, 0, 0]));
        assert!(has_alert(&[7, 3, 0, 0x94, 4, 0, 0, 0]));
        // The option is behind the end, inside another, with another value, cut, and after an option without a length.
        for options in [
            &[0, 0x94, 4, 0, 0][..],
            &[7, 6, 0x94, 4, 0, 0],
            &[0x94, 4, 0, 1],
            &[0x94, 4, 0],
            &[7, 0, 0x94, 4, 0, 0],
        ] {
            assert!(!has_alert(options), "{options:?}");
        }
    }

    #[test]
    fn a_header_that_contradicts_itself_is_none() {
        let good = packet(true);
        for at in 0..24 {
            let mut bad = good.clone();
            bad[at] ^= 0x21;
            assert_eq!(Packet::read(&bad), None, "octet {at}");
        }
        for len in 0..good.len() {
            assert_eq!(Packet::read(&good[..len]), None, "{len} octets");
        }
        let mut short = good.clone();
        short[0] = 0x44;
        seal(&mut short);
        assert_eq!(Packet::read(&short), None, "a header of 16 octets");
    }

    #[test]
    fn parts_are_known() {
        for (octet, value) in [(6, 0x20), (7, 1), (6, 0x1f)] {
            let mut part = packet(false);
            part[octet] |= value;
            seal(&mut part);
            assert!(Packet::read(&part).expect("a packet").fragment);
        }
        let mut whole = packet(false);
        whole[6] |= 0x40;
        seal(&mut whole);
        assert!(!Packet::read(&whole).expect("a packet").fragment, "it only must not be cut");
    }
}
