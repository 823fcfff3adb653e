//! Van Jacobson's compression of TCP/IP headers (RFC 1144), as IPCP option 2 asks for it (RFC 1332 §4).
//!
//! Both ends remember the last header of each of a few connections, in numbered slots. A segment that continues its
//! connection's last one is sent with only the changes of its header. Any other segment is sent whole and names its
//! slot. The receiver relies on having seen every segment. After a loss it restores wrong headers, whose TCP checksum
//! does not fit, until a whole header comes. A sender that repeats goes back, and a segment that goes back is never
//! compressed (RFC 1144 §4.1).
//!
//! | module | content |
//! |---|---|
//! | [`compress`] | the sending end |
//! | [`decompress`] | the receiving end |
//!
//! Headers are octets here, and data are not looked at: both ends take a packet's headers and its length. So a caller
//! that has no data compresses alike.
//!
//! Three rules are stricter than in RFC 1144, and every receiver understands the result. First, a header whose reserved
//! bits of TCP differ from the last is sent whole: RFC 3168 has given two of them a meaning since, and no compressed
//! header has them. Second, a header that could not be restored to the octet, because its lengths or its IP checksum
//! are wrong, is sent unchanged. Third, behind an urgent segment the masks that stand for a stream of data are not
//! used, because RFC 1144's receiver leaves the flag as it was. IPv6 and everything but TCP is sent unchanged.

pub mod compress;
pub mod decompress;
mod header;

pub use compress::{Compressed, Compressor};
pub use decompress::{Decompressor, DecompressorCounters, Fault};

use crate::framing::{PROTOCOL_IPV4, PROTOCOL_VJ_COMPRESSED, PROTOCOL_VJ_UNCOMPRESSED};

/// The longest headers: 60 octets of IP and 60 of TCP.
pub const MAX_HEADERS: usize = 120;

/// Settings that the ends have agreed on. By default those that Linux's pppd asks for and takes: 16 slots, compressed
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VjConfig {
    /// The highest slot number (RFC 1332's Max-Slot-Id): one less than the number of slots.
    pub max_slot_id: u8,
    /// Permission for a compressed header to leave out a slot that is the same as the last (Comp-Slot-Id). Only for a
    /// receiver that hears of damaged frames.
    pub comp_slot_id: bool,
}

impl Default for VjConfig {
    fn default() -> Self {
        Self { max_slot_id: 15, comp_slot_id: true }
    }
}

/// Form in which a packet is sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Unchanged (RFC 1144's `TYPE_IP`).
    Ip,
    /// Whole, with the slot in place of the IP header's protocol (`UNCOMPRESSED_TCP`).
    Uncompressed,
    /// Compressed (`COMPRESSED_TCP`).
    Compressed,
}

impl Kind {
    /// Returns the PPP protocol number.
    pub const fn protocol(self) -> u16 {
        match self {
            Self::Ip => PROTOCOL_IPV4,
            Self::Uncompressed => PROTOCOL_VJ_UNCOMPRESSED,
            Self::Compressed => PROTOCOL_VJ_COMPRESSED,
        }
    }
}

/// The bits of the change mask (RFC 1144 §3.2.2): the parts of a header that the octets behind it give.
mod mask {
    /// The urgent pointer.
    pub(super) const U: u8 = 0x01;
    /// The window.
    pub(super) const W: u8 = 0x02;
    /// The acknowledgment number.
    pub(super) const A: u8 = 0x04;
    /// The sequence number.
    pub(super) const S: u8 = 0x08;
    /// PSH is set.
    pub(super) const P: u8 = 0x10;
    /// The IP identification, if it changes by other than one.
    pub(super) const I: u8 = 0x20;
    /// The slot.
    pub(super) const C: u8 = 0x40;
    /// Sequence and acknowledgment numbers both advance by the last segment's data: an echoed terminal.
    pub(super) const ECHOED: u8 = S | W | U;
    /// The sequence number advances by the last segment's data: a stream of data.
    pub(super) const STREAM: u8 = S | A | W | U;
}
