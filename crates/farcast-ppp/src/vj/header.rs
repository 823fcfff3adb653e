//! The headers of a TCP segment over IPv4, as octets.

/// Octets of the shortest IPv4 header, and of the shortest TCP header.
const SHORTEST: usize = 20;

/// Protocol number of TCP over IP.
pub(super) const TCP: u8 = 6;

/// Places in an IPv4 header.
pub(super) const TOTAL_LENGTH: usize = 2;
pub(super) const IDENTIFICATION: usize = 4;
pub(super) const FRAGMENT: usize = 6;
pub(super) const PROTOCOL: usize = 9;
pub(super) const IP_CHECKSUM: usize = 10;
pub(super) const ADDRESSES: usize = 12;

/// Places in a TCP header.
pub(super) const SEQUENCE: usize = 4;
pub(super) const ACKNOWLEDGMENT: usize = 8;
pub(super) const OFFSET: usize = 12;
pub(super) const FLAGS: usize = 13;
pub(super) const WINDOW: usize = 14;
pub(super) const TCP_CHECKSUM: usize = 16;
pub(super) const URGENT: usize = 18;

/// Bits of TCP's flags.
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const URG: u8 = 0x20;
/// CWR and ECE, which RFC 1144 knew as reserved.
pub(super) const RESERVED: u8 = 0xC0;

/// Offsets of the parts of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Layout {
    /// The TCP header.
    pub(super) tcp: usize,
    /// The data.
    pub(super) data: usize,
}

impl Layout {
    /// Finds the parts of a packet that has at least its headers. Returns `None` if it is not IPv4 with a TCP header
    /// behind it, whatever its protocol field says, or if its total length ends within the headers.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let &first = packet.first()?;
        let tcp = usize::from(first & 0x0F) * 4;
        if first >> 4 != 4 || tcp < SHORTEST || packet.len() < tcp + SHORTEST {
            return None;
        }
        let words = packet[tcp + OFFSET] >> 4;
        let data = tcp + usize::from(words) * 4;
        let whole = usize::from(words) * 4 >= SHORTEST && packet.len() >= data;
        (whole && usize::from(short(packet, TOTAL_LENGTH)) >= data).then_some(Self { tcp, data })
    }
}

/// Returns the number of 16 bits at `at`.
pub(super) fn short(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// Returns the number of 32 bits at `at`.
pub(super) fn long(octets: &[u8], at: usize) -> u32 {
    u32::from(short(octets, at)) << 16 | u32::from(short(octets, at + 2))
}

pub(super) fn put_short(octets: &mut [u8], at: usize, value: u16) {
    octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(super) fn put_long(octets: &mut [u8], at: usize, value: u32) {
    octets[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Returns the complement of the ones' complement sum over a header (RFC 791 §3.1): 0 if it holds the right checksum.
/// Headers have a whole number of 16-bit words.
pub(super) fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    // At most 30 words: two folds leave 16 bits.
    let sum: u32 = words.sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}
