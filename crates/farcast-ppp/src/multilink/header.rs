//! The header of a fragment, and numbers that wrap (RFC 1990 §3).

use smallvec::SmallVec;

const BEGINS: u8 = 0x80;
const ENDS: u8 = 0x40;

/// The two formats of the header; both ends of a bundle use the same one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Format {
    /// 4 octets with a sequence number of 24 bits, in use unless the other is negotiated.
    #[default]
    Long,
    /// 2 octets with a sequence number of 12 bits (LCP option 18).
    Short,
}

impl Format {
    /// Returns the length of the header in octets, 4 or 2.
    pub const fn octets(self) -> usize {
        match self {
            Self::Long => 4,
            Self::Short => 2,
        }
    }

    /// Returns the largest sequence number: 2^24 - 1 or 2^12 - 1.
    pub const fn largest(self) -> u32 {
        match self {
            Self::Long => 0xFF_FFFF,
            Self::Short => 0xFFF,
        }
    }

    /// Returns the number in the header for a count of fragments since the bundle began.
    pub const fn wrap(self, count: u64) -> u32 {
        (count & self.largest() as u64) as u32
    }

    /// Returns the count nearest to `near` whose number in the header is `sequence`: at most half the numbers ahead of
    /// it, or just under half behind. Counts begin at 0; the result is `None` if the count would lie before it.
    pub const fn unwrap(self, sequence: u32, near: u64) -> Option<u64> {
        let numbers = self.largest() as u64 + 1;
        let ahead = (sequence as u64).wrapping_sub(near) & (numbers - 1);
        if ahead <= numbers / 2 { near.checked_add(ahead) } else { near.checked_sub(numbers - ahead) }
    }
}

/// Header of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// B: the fragment begins a packet.
    pub begins: bool,
    /// E: the fragment ends a packet.
    pub ends: bool,
    /// The sequence number, at most [`Format::largest`].
    pub sequence: u32,
}

/// Reason for which octets are no header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The octets are too few.
    #[error("a fragment of {0} octets is shorter than its multilink header; it must have at least {1}")]
    Short(usize, usize),
    /// A bit is set that RFC 1990 §3 keeps for later use.
    #[error("the reserved bits of the multilink header are {0:#04x}; they must be zero")]
    Reserved(u8),
}

impl Header {
    /// Returns the header as octets. Only the low bits of a number that is too large for the format are written.
    pub fn encode(self, format: Format) -> SmallVec<[u8; 4]> {
        let flags = if self.begins { BEGINS } else { 0 } | if self.ends { ENDS } else { 0 };
        let [_, high, middle, low] = (self.sequence & format.largest()).to_be_bytes();
        match format {
            Format::Long => SmallVec::from_slice(&[flags, high, middle, low]),
            Format::Short => SmallVec::from_slice(&[flags | middle, low]),
        }
    }

    /// Reads the header off the front of `octets`. Returns it and the fragment behind it.
    ///
    /// # Errors
    /// [`HeaderError`] if the octets are too few, or reserved bits are set.
    pub fn decode(format: Format, octets: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let short = HeaderError::Short(octets.len(), format.octets());
        let (header, fragment) = octets.split_at_checked(format.octets()).ok_or(short)?;
        let (first, sequence) = match *header {
            [first, high, middle, low] => (first, u32::from_be_bytes([0, high, middle, low])),
            [first, low] => (first & 0xF0, u32::from_be_bytes([0, 0, first & 0x0F, low])),
            _ => return Err(short),
        };
        let reserved = first & !(BEGINS | ENDS);
        if reserved != 0 {
            return Err(HeaderError::Reserved(reserved));
        }
        Ok((Self { begins: first & BEGINS != 0, ends: first & ENDS != 0, sequence }, fragment))
    }
}

#[cfg(test)]
mod tests;
