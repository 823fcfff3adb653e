//! TCP on the wire: segments to bytes and back (RFC 9293 section 3.1).
//!
//! A header is 20 octets and the options, padded to a multiple of four. Its checksum also covers the data and the
//! [`Addresses`] of the IP header. [`encode`] writes a header into the caller's buffer and reads the data in place;
//! [`decode`] returns the data as a slice of its input. Neither allocates.
//!
//! # Malformed segments
//!
//! An option with a valid length can be skipped: RFC 9293 (MUST-6) requires this for unknown kinds. A known kind with
//! an invalid length counts as unknown. Its information is then missing, which each of these options allows. Even SACK
//! blocks are only advice (RFC 2018 section 8), and the connection decides whether a segment may come without
//! timestamps (RFC 7323 section 3.2). A length of 0 or 1, or one that leads beyond the header, leaves no place to
//! continue, and the segment is refused. (RFC 9293, MUST-7, requires handling of such lengths. The reset that it
//! suggests would let one damaged segment end a connection.)
//!
//! If an option comes twice, the last counts. Reserved bits and the padding behind the end of the options are ignored.

mod checksum;
mod options;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Flags, Payload, Segment, SequenceNumber};
use checksum::Checksum;

/// Octets of a header without options.
pub const HEADER_LEN: usize = 20;
/// Octets of the longest header: the data offset counts to 15 words.
pub const MAX_HEADER_LEN: usize = 60;
/// Most octets of options.
pub const MAX_OPTIONS_LEN: usize = MAX_HEADER_LEN - HEADER_LEN;
/// Protocol number of TCP over IP.
pub const PROTOCOL: u8 = 6;

/// Octets of the longest segment with its header: an IP header has 16 bits for a length.
const MAX_SEGMENT_LEN: usize = u16::MAX as usize;

/// Addresses of a segment's sender and receiver. Its checksum covers them as the pseudo header (RFC 9293 section 3.1,
/// RFC 8200 section 8.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addresses {
    /// Over IPv4.
    V4 {
        /// The sender.
        source: Ipv4Addr,
        /// The receiver.
        destination: Ipv4Addr,
    },
    /// Over IPv6. If a routing header names several destinations, this is the last.
    V6 {
        /// The sender.
        source: Ipv6Addr,
        /// The receiver.
        destination: Ipv6Addr,
    },
}

impl Addresses {
    /// Returns the addresses for `source` and `destination`; `None` if one is IPv4 and the other IPv6.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Self::V4 { source, destination }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6 { source, destination }),
            _ => None,
        }
    }

    /// Returns the sender's address.
    pub const fn source(self) -> IpAddr {
        match self {
            Self::V4 { source, .. } => IpAddr::V4(source),
            Self::V6 { source, .. } => IpAddr::V6(source),
        }
    }

    /// Returns the receiver's address.
    pub const fn destination(self) -> IpAddr {
        match self {
            Self::V4 { destination, .. } => IpAddr::V4(destination),
            Self::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }
}

/// Reason for which a segment has no encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The options need more octets than a header has.
    #[error("options of {0} octets: a header has room for 40")]
    Options(usize),
    /// The header does not fit the buffer.
    #[error("a header of {header} octets does not fit a buffer of {buffer}")]
    Buffer {
        /// Octets of the header.
        header: usize,
        /// Octets of the buffer.
        buffer: usize,
    },
    /// The data do not have the length that the segment says.
    #[error("data of {given} octets: the segment has {claimed}")]
    Payload {
        /// Octets that the segment names.
        claimed: u16,
        /// Octets that were given.
        given: usize,
    },
    /// Header and data are longer than an IP packet.
    #[error("a segment of {0} octets: it may have 65535 with its header")]
    TooLong(usize),
}

/// Reason for which octets are not a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The octets end before a header does.
    #[error("{0} octets: a header has at least 20")]
    TooShort(usize),
    /// The octets are more than an IP packet holds.
    #[error("{0} octets: a segment has at most 65535")]
    TooLong(usize),
    /// The data would begin within the fixed header.
    #[error("data offset {0}: it must be at least 5")]
    DataOffset(u8),
    /// The data would begin behind the end.
    #[error("data offset {offset}: the header ends behind the segment's {len} octets")]
    HeaderBeyondEnd {
        /// The data offset in words of four octets.
        offset: u8,
        /// Octets of the segment.
        len: usize,
    },
    /// The checksum does not match.
    #[error("checksum does not match")]
    Checksum,
    /// An option's length is too small to count its kind and length octets.
    #[error("option {kind} has length {len}: it must be at least 2")]
    OptionLength {
        /// The option's kind.
        kind: u8,
        /// Value of the length octet, 0 or 1.
        len: u8,
    },
    /// An option ends behind the header, or has no octet left for its length.
    #[error("option {kind} goes on behind the header")]
    OptionBeyondHeader {
        /// The option's kind.
        kind: u8,
    },
}

/// Writes the header of `segment` to the front of `out`, and returns its length in octets. The segment goes between
/// `addresses` and carries the concatenation of `payload`.
///
/// The options have the order in which Linux writes them: MSS, SACK permitted, timestamps, window scale, SACK. The
/// reserved bits are 0, and a window scale above 14 is written as 14.
///
/// # Errors
/// The reason for which the segment has no encoding; `out` is then unchanged.
pub fn encode(
    segment: &Segment,
    addresses: Addresses,
    payload: &[&[u8]],
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let header_len = fitting_len(segment, payload, out.len())?;
    let header = &mut out[..header_len];
    put_fixed(segment, header);
    options::encode(&segment.options, &mut header[HEADER_LEN..]);
    let mut checksum = Checksum::of_pseudo_header(addresses, header_len + usize::from(segment.payload.len));
    checksum.add(header);
    for part in payload {
        checksum.add(part);
    }
    header[16..18].copy_from_slice(&checksum.finish().to_be_bytes());
    Ok(header_len)
}

/// Appends the header of `segment` to `out` without its data: as [`encode`] would write it, but with a checksum of 0.
/// Appends nothing if the options need more octets than a header has.
pub fn append_header(segment: &Segment, out: &mut Vec<u8>) {
    if segment.options.wire_len() > MAX_OPTIONS_LEN {
        return;
    }
    let start = out.len();
    out.resize(start + segment.header_len(), 0);
    let header = &mut out[start..];
    put_fixed(segment, header);
    options::encode(&segment.options, &mut header[HEADER_LEN..]);
}

/// Returns the length of the header, if the segment has an encoding and its header fits `buffer` octets.
fn fitting_len(segment: &Segment, payload: &[&[u8]], buffer: usize) -> Result<usize, EncodeError> {
    let (header, options) = (segment.header_len(), segment.options.wire_len());
    if options > MAX_OPTIONS_LEN {
        return Err(EncodeError::Options(options));
    }
    let claimed = segment.payload.len;
    let given = payload.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
    if given != usize::from(claimed) {
        return Err(EncodeError::Payload { claimed, given });
    }
    if header + given > MAX_SEGMENT_LEN {
        return Err(EncodeError::TooLong(header + given));
    }
    if header > buffer {
        return Err(EncodeError::Buffer { header, buffer });
    }
    Ok(header)
}

/// Writes the first 20 octets, with 0 for the checksum.
fn put_fixed(segment: &Segment, header: &mut [u8]) {
    // At most 15 words, because the options fit.
    let data_offset = (header.len() / 4) as u8;
    header[..2].copy_from_slice(&segment.source_port.to_be_bytes());
    header[2..4].copy_from_slice(&segment.destination_port.to_be_bytes());
    header[4..8].copy_from_slice(&segment.sequence.0.to_be_bytes());
    header[8..12].copy_from_slice(&segment.acknowledgment.0.to_be_bytes());
    header[12] = data_offset << 4;
    header[13] = segment.flags.0;
    header[14..16].copy_from_slice(&segment.window.to_be_bytes());
    header[16..18].fill(0);
    header[18..20].copy_from_slice(&segment.urgent.to_be_bytes());
}

/// Reads a segment that came between `addresses`, and the data that it carries. The payload's offset is 0: only the
/// connection can compute the place in the stream from the sequence number.
///
/// # Errors
/// The reason for which the octets are not a segment.
pub fn decode(octets: &[u8], addresses: Addresses) -> Result<(Segment, &[u8]), DecodeError> {
    let (header, payload) = split_header(octets)?;
    let mut checksum = Checksum::of_pseudo_header(addresses, octets.len());
    checksum.add(octets);
    // The sum over a segment that holds its own checksum is all ones, and its complement 0.
    if checksum.finish() != 0 {
        return Err(DecodeError::Checksum);
    }
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let long = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
    let segment = Segment {
        source_port: short(0),
        destination_port: short(2),
        sequence: SequenceNumber(long(4)),
        acknowledgment: SequenceNumber(long(8)),
        flags: Flags(header[13]),
        window: short(14),
        urgent: short(18),
        options: options::decode(&header[HEADER_LEN..])?,
        payload: Payload { offset: 0, len: payload.len() as u16 },
    };
    Ok((segment, payload))
}

/// Splits the octets into the header with its options, and the data.
fn split_header(octets: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let len = octets.len();
    if len < HEADER_LEN {
        return Err(DecodeError::TooShort(len));
    }
    if len > MAX_SEGMENT_LEN {
        return Err(DecodeError::TooLong(len));
    }
    let offset = octets[12] >> 4;
    if offset < 5 {
        return Err(DecodeError::DataOffset(offset));
    }
    octets.split_at_checked(usize::from(offset) * 4).ok_or(DecodeError::HeaderBeyondEnd { offset, len })
}
