//! Headers of IPv4 and UDP or TCP around a message (RFC 791, RFC 768, RFC 9293).

use std::net::{Ipv4Addr, SocketAddrV4};

use farcast_core::engine::Message as _;
use farcast_tcp::{Segment, wire as tcp};

use crate::traffic::{Datagram, FlowMessage};

/// Octets of the IPv4 header without options.
pub(super) const IPV4_LEN: usize = 20;
/// Octets of the UDP header.
const UDP_LEN: usize = 8;
/// Octets of headers before the message.
pub(super) const HEADERS_LEN: usize = IPV4_LEN + UDP_LEN;
/// Protocol number of UDP in IPv4.
const UDP: u8 = 17;
/// Time to live of a datagram; nothing counts it down here.
const TTL: u8 = 64;

/// Variable fields of the headers, besides lengths and checksums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) source: SocketAddrV4,
    pub(super) destination: SocketAddrV4,
    /// Identification of the IPv4 datagram.
    pub(super) id: u16,
}

/// Reason for which no IPv4 datagram can hold a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum BuildError {
    /// The message is too long.
    #[error(
        "a message of {octets} octets does not fit an IPv4 datagram, which holds at most 65,515 behind its header"
    )]
    TooLong {
        /// Length with the transport's header, in octets.
        octets: usize,
    },
    /// A TCP segment has no encoding.
    #[error(transparent)]
    Tcp(#[from] tcp::EncodeError),
}

/// Builds a datagram around a message of `octets` in `out`, and returns its length in octets before it was cut.
/// `encode` appends the message; of a message with content it appends the header, behind which `content` octets of
/// zeros are kept. `finish` gets the whole message.
///
/// The UDP checksum is that of the whole datagram. After an error `out` holds headers of zeros.
pub(super) fn build(
    out: &mut Vec<u8>,
    header: Header,
    octets: usize,
    content: Option<u32>,
    encode: impl FnOnce(&mut Vec<u8>),
    finish: impl FnOnce(&mut [u8]),
) -> Result<u32, BuildError> {
    out.clear();
    out.resize(HEADERS_LEN, 0);
    let total = total(octets + UDP_LEN)?;
    encode(out);
    let before_content = out.len();
    if content.is_some() {
        out.resize(usize::from(total), 0);
    }
    finish(&mut out[HEADERS_LEN..]);
    fill_udp(out, header, total - IPV4_LEN as u16);
    fill_ipv4(out, header, total, UDP);
    if let Some(kept) = content {
        out.truncate(before_content.saturating_add(kept as usize));
    }
    Ok(u32::from(total))
}

/// Builds the packet of a flow in `out`, with at most `payload_octets` of its data, and returns its length in octets
/// before this cut. The data is zeros except for the number and time in a datagram. Only the addresses of `header`
/// count: a segment has its own ports, and a datagram goes to the port of the discard protocol (RFC 863).
pub(super) fn build_flow(
    out: &mut Vec<u8>,
    header: Header,
    message: &FlowMessage,
    payload_octets: u32,
) -> Result<u32, BuildError> {
    let total = total(message.wire_len(0))?;
    out.clear();
    out.resize(IPV4_LEN, 0);
    let protocol = match message {
        FlowMessage::Tcp(segment) => {
            add_segment(out, header, segment, payload_octets)?;
            tcp::PROTOCOL
        }
        FlowMessage::Datagram(datagram) => {
            add_datagram(out, header, datagram);
            out.truncate(HEADERS_LEN + usize::from(datagram.octets).min(payload_octets as usize));
            UDP
        }
    };
    fill_ipv4(out, header, total, protocol);
    Ok(u32::from(total))
}

/// Appends a segment with at most `payload_octets` of its data. Its checksum is that of the whole segment.
fn add_segment(
    out: &mut Vec<u8>,
    header: Header,
    segment: &Segment,
    payload_octets: u32,
) -> Result<(), BuildError> {
    let (source, destination) = (*header.source.ip(), *header.destination.ip());
    let data = &ZEROS[..usize::from(segment.payload.len)];
    let mut front = [0; tcp::MAX_HEADER_LEN];
    let len = tcp::encode(segment, tcp::Addresses::V4 { source, destination }, &[data], &mut front)?;
    out.extend_from_slice(&front[..len]);
    out.extend_from_slice(&data[..data.len().min(payload_octets as usize)]);
    Ok(())
}

/// Appends a whole datagram, whose payload begins with its number and its departure time.
fn add_datagram(out: &mut Vec<u8>, header: Header, datagram: &Datagram) {
    let said = [datagram.number.to_be_bytes(), datagram.sent.as_nanos().to_be_bytes()];
    out.resize(HEADERS_LEN, 0);
    out.extend_from_slice(said.as_flattened());
    let octets = usize::from(datagram.octets);
    out.resize(HEADERS_LEN + octets, 0);
    let port = |end: SocketAddrV4, port| SocketAddrV4::new(*end.ip(), port);
    let (source, destination) = (port(header.source, PROBE_PORT), port(header.destination, DISCARD_PORT));
    fill_udp(out, Header { source, destination, ..header }, (UDP_LEN + octets) as u16);
}

/// Data of every segment.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
/// Source port of datagrams.
const PROBE_PORT: u16 = 49_152;
/// Destination port of datagrams.
const DISCARD_PORT: u16 = 9;

/// Returns the length of an IPv4 datagram with `octets` behind its header.
fn total(octets: usize) -> Result<u16, BuildError> {
    u16::try_from(octets + IPV4_LEN).map_err(|_| BuildError::TooLong { octets })
}

/// Changes the identification of a datagram from [`build`], and its header checksum.
pub(super) fn set_id(datagram: &mut [u8], id: u16) {
    datagram[4..6].copy_from_slice(&id.to_be_bytes());
    datagram[10..12].fill(0);
    let sum = !folded(sum(&datagram[..IPV4_LEN]));
    datagram[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn fill_ipv4(out: &mut [u8], header: Header, total: u16, protocol: u8) {
    // Version 4, five words of header.
    out[0] = 0x45;
    out[2..4].copy_from_slice(&total.to_be_bytes());
    (out[8], out[9]) = (TTL, protocol);
    out[12..16].copy_from_slice(&header.source.ip().octets());
    out[16..20].copy_from_slice(&header.destination.ip().octets());
    set_id(out, header.id);
}

fn fill_udp(out: &mut [u8], header: Header, octets: u16) {
    let udp = &mut out[IPV4_LEN..];
    udp[0..2].copy_from_slice(&header.source.port().to_be_bytes());
    udp[2..4].copy_from_slice(&header.destination.port().to_be_bytes());
    udp[4..6].copy_from_slice(&octets.to_be_bytes());
    let address = |ip: &Ipv4Addr| sum(&ip.octets());
    let pseudo =
        address(header.source.ip()) + address(header.destination.ip()) + u32::from(UDP) + u32::from(octets);
    // A checksum of zero would mean that there is none, so its other form is sent (RFC 768).
    let sum = match !folded(pseudo + sum(udp)) {
        0 => 0xFFFF,
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the sum of the 16-bit words of at most a datagram, which fits 32 bits. An odd last octet is the high half of
/// a word.
fn sum(octets: &[u8]) -> u32 {
    let (words, rest) = octets.as_chunks::<2>();
    let words: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    words + rest.first().map_or(0, |&octet| u32::from(octet) << 8)
}

/// Returns the ones'-complement sum that `sum` stands for (RFC 1071).
fn folded(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_rfc_1071_does() {
        // Its example in §3.
        let sum = sum(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]);
        assert_eq!((sum, folded(sum)), (0x2_DDF0, 0xDDF2));
    }

    #[test]
    fn an_odd_octet_is_the_high_half_of_a_word() {
        assert_eq!(sum(&[1, 2, 3]), 0x0102 + 0x0300);
    }

    #[test]
    fn the_checksum_of_a_known_header() {
        // The example of Wikipedia's article on the header checksum: 0xB861.
        let mut header = [
            0x45, 0x00, 0x00, 0x73, 0xFF, 0xFF, 0x40, 0x00, 0x40, 0x11, 0xFF, 0xFF, 0xC0, 0xA8, 0x00, 0x01,
            0xC0, 0xA8, 0x00, 0xC7,
        ];
        set_id(&mut header, 0);
        assert_eq!((header[4..6].to_vec(), header[10..12].to_vec()), (vec![0, 0], vec![0xB8, 0x61]));
    }

    #[test]
    fn a_sum_of_zero_is_not_sent_as_none() {
        let server = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 1);
        let (mut out, mut written) = (Vec::new(), Vec::new());
        for port in 0..=u16::MAX {
            let header = Header { source: SocketAddrV4::new(*server.ip(), port), destination: server, id: 0 };
            let encode = |out: &mut Vec<u8>| out.extend_from_slice(&[1, 2, 3, 4]);
            build(&mut out, header, 4, None, encode, |_| ()).unwrap();
            written.push(u16::from_be_bytes([out[26], out[27]]));
        }
        // Two of 65,536 ports have the same residue modulo 65,535. Zero never appears, but its other form does.
        assert!(!written.contains(&0) && written.contains(&0xFFFF));
    }
}
