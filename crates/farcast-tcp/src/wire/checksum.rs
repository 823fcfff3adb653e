//! The checksum of the Internet (RFC 1071) over a segment and its pseudo header.

use super::{Addresses, PROTOCOL};

/// A ones'-complement sum of 16-bit words that grows part by part; parts may have any length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checksum {
    /// The sum of the parts so far, each folded to 16 bits.
    sum: u64,
    /// An odd number of octets has been added: the next one is the low half of a word.
    odd: bool,
}

impl Checksum {
    pub(super) const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Returns the sum over the pseudo header of a segment of `len` octets (RFC 9293 section 3.1, RFC 8200 section
    /// 8.1). The headers of IPv4 and IPv6 differ only in the places of the length and the protocol, which do not matter
    /// to a sum.
    pub(super) fn of_pseudo_header(addresses: Addresses, len: usize) -> Self {
        let mut checksum = Self::new();
        match addresses {
            Addresses::V4 { source, destination } => {
                checksum.add(&source.octets());
                checksum.add(&destination.octets());
            }
            Addresses::V6 { source, destination } => {
                checksum.add(&source.octets());
                checksum.add(&destination.octets());
            }
        }
        checksum.add(&[0, PROTOCOL]);
        checksum.add(&(len as u32).to_be_bytes());
        checksum
    }

    /// Adds the next octets.
    pub(super) fn add(&mut self, octets: &[u8]) {
        let (words, rest) = octets.as_chunks::<4>();
        // Sums of 32-bit words fold to the same 16 bits (RFC 1071 section 2).
        let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        sum += u64::from(u32::from_be_bytes(last));
        let sum = fold(sum);
        // At an odd offset, every word has its halves exchanged, and so has the sum.
        self.sum += u64::from(if self.odd { sum.swap_bytes() } else { sum });
        self.odd ^= octets.len() % 2 == 1;
    }

    /// Returns the value of the checksum field: the complement of the sum.
    pub(super) fn finish(self) -> u16 {
        !fold(self.sum)
    }
}

/// Returns the ones'-complement sum of the 16-bit words of `sum`.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}
