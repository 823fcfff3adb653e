//! The Frame Check Sequence (RFC 1662 §3.1 and appendix C).

use crc::{CRC_16_IBM_SDLC, CRC_32_ISO_HDLC, Crc, Table};

/// Tables of the CRC, for sixteen octets at a time.
static CRC_16: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_IBM_SDLC);
static CRC_32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// Remainder of a CRC over a good frame and its FCS: RFC 1662 appendix C gives 0xF0B8 and 0xDEBB20E3 before the final
/// complement.
const GOOD_16: u16 = !0xF0B8;
const GOOD_32: u32 = !0xDEBB_20E3;

/// The length of the Frame Check Sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Fcs {
    /// 16 bits.
    #[default]
    Fcs16,
    /// 32 bits (negotiated as in RFC 1570 §2.1).
    Fcs32,
}

impl Fcs {
    /// Returns the length in octets, 2 or 4.
    pub const fn octets(self) -> u64 {
        match self {
            Self::Fcs16 => 2,
            Self::Fcs32 => 4,
        }
    }

    /// Returns the sequence that goes behind `header` and `information`: 4 octets, low octet first. Only the first
    /// [`octets`](Self::octets) of them count.
    pub fn of(self, header: &[u8], information: &[u8]) -> [u8; 4] {
        match self {
            Self::Fcs16 => {
                let mut digest = CRC_16.digest();
                digest.update(header);
                digest.update(information);
                u32::from(digest.finalize()).to_le_bytes()
            }
            Self::Fcs32 => {
                let mut digest = CRC_32.digest();
                digest.update(header);
                digest.update(information);
                digest.finalize().to_le_bytes()
            }
        }
    }

    /// Returns `true` if the check sequence at the end of `frame` fits: `frame` is as it was sent, as far as that
    /// tells.
    pub fn is_good(self, frame: &[u8]) -> bool {
        match self {
            Self::Fcs16 => CRC_16.checksum(frame) == GOOD_16,
            Self::Fcs32 => CRC_32.checksum(frame) == GOOD_32,
        }
    }
}
