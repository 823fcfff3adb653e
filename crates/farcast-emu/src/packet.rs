//! IP headers, read and written: the headers before a TCP segment in a packet of a TUN device.
//!
//! IPv4 options and IPv6 extension headers are skipped. Fragments are refused: the kernel sends TCP with "don't
//! fragment", and so do we.

use etherparse::err::ip::SliceError;
use etherparse::{IpNumber, IpSlice, Ipv4Header, Ipv6Header};
use farcast_tcp::wire::Addresses;

/// Octets of the longest header that [`encode_header`] writes.
pub const MAX_HEADER_LEN: usize = Ipv6Header::LEN;

/// Time to live, or hop limit, of packets that we send: Linux's.
const TIME_TO_LIVE: u8 = 64;

/// A packet, split into header fields and payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Source and destination.
    pub addresses: Addresses,
    /// Protocol number of the payload: 6 is TCP, 1 ICMP.
    pub protocol: u8,
    /// The two ECN bits (RFC 3168 section 5).
    pub ecn: u8,
    /// Octets behind the headers, without the padding of a link.
    pub payload: &'a [u8],
}

/// Reason for which octets are not a packet that is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The version is neither IPv4 nor IPv6.
    #[error("the version is not 4 or 6")]
    Version,
    /// The packet ends before its headers do, or before its length field says.
    #[error("the packet is cut short")]
    Truncated,
    /// The headers are inconsistent.
    #[error("the header is malformed")]
    Header,
    /// The IPv4 header has a wrong checksum.
    #[error("the header's checksum does not match")]
    Checksum,
    /// The packet is a fragment.
    #[error("the packet is a fragment")]
    Fragment,
}

/// Reads a packet.
///
/// # Errors
/// The reason for which the octets are not an accepted packet.
pub fn decode(octets: &[u8]) -> Result<Packet<'_>, PacketError> {
    match octets.first().map(|first| first >> 4) {
        None => return Err(PacketError::Truncated),
        Some(4 | 6) => {}
        Some(_) => return Err(PacketError::Version),
    }
    let slice = IpSlice::from_slice(octets).map_err(|error| match error {
        SliceError::Len(_) => PacketError::Truncated,
        SliceError::IpHeaders(_) => PacketError::Header,
    })?;
    let (ecn, intact) = match &slice {
        IpSlice::Ipv4(v4) => {
            let header = v4.header();
            (header.ecn(), header.header_checksum() == header.to_header().calc_header_checksum())
        }
        IpSlice::Ipv6(v6) => (v6.header().ecn(), true),
    };
    if !intact {
        return Err(PacketError::Checksum);
    }
    if slice.is_fragmenting_payload() {
        return Err(PacketError::Fragment);
    }
    let addresses = Addresses::new(slice.source_addr(), slice.destination_addr());
    Ok(Packet {
        addresses: addresses.ok_or(PacketError::Header)?,
        protocol: slice.payload_ip_number().0,
        ecn: ecn.value(),
        payload: slice.payload().payload,
    })
}

/// Writes the header of a packet with `payload` octets of TCP to the front of `out`, and returns its length in octets.
/// Returns `None` if an IP packet cannot hold so many.
///
/// The packet must not be fragmented, and so needs no identification (RFC 6864 section 4.1).
pub fn encode_header(addresses: Addresses, payload: usize, out: &mut [u8; MAX_HEADER_LEN]) -> Option<usize> {
    let payload = u16::try_from(payload).ok()?;
    match addresses {
        Addresses::V4 { source, destination } => {
            let (source, destination) = (source.octets(), destination.octets());
            let mut header =
                Ipv4Header::new(payload, TIME_TO_LIVE, IpNumber::TCP, source, destination).ok()?;
            header.header_checksum = header.calc_header_checksum();
            out[..Ipv4Header::MIN_LEN].copy_from_slice(&header.to_bytes());
            Some(Ipv4Header::MIN_LEN)
        }
        Addresses::V6 { source, destination } => {
            let header = Ipv6Header {
                payload_length: payload,
                next_header: IpNumber::TCP,
                hop_limit: TIME_TO_LIVE,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            out[..Ipv6Header::LEN].copy_from_slice(&header.to_bytes());
            Some(Ipv6Header::LEN)
        }
    }
}

#[cfg(test)]
mod tests;
