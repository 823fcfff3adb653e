//! Length of a frame on the line: header, check sequence and escapes (RFC 1662 §3 and §4.2).

use farcast_core::random::RandomStream;
use smallvec::SmallVec;

pub use crate::fcs::Fcs;

/// The Flag Sequence that begins and ends a frame (RFC 1662 §3.1).
pub const FLAG: u8 = 0x7E;
/// The Control Escape octet (RFC 1662 §4.2).
pub const ESCAPE: u8 = 0x7D;
/// Value with which an escaped octet is xored.
pub const TRANSPARENCY: u8 = 0x20;
/// The All-Stations address, the only one that PPP knows (RFC 1662 §3.1).
pub const ADDRESS: u8 = 0xFF;
/// The Control field of Unnumbered Information.
pub const CONTROL: u8 = 0x03;

/// Protocol number of IPv4.
pub const PROTOCOL_IPV4: u16 = 0x0021;
/// Protocol number of a TCP packet with a compressed header (RFC 1332 §4).
pub const PROTOCOL_VJ_COMPRESSED: u16 = 0x002D;
/// Protocol number of a TCP packet that names its slot and is whole otherwise (RFC 1332 §4).
pub const PROTOCOL_VJ_UNCOMPRESSED: u16 = 0x002F;
/// Protocol number of a Multilink fragment (RFC 1990 §3).
pub const PROTOCOL_MP: u16 = 0x003D;
/// Protocol number of IPv6.
pub const PROTOCOL_IPV6: u16 = 0x0057;
/// Protocol number of IPCP, which configures IPv4.
pub const PROTOCOL_IPCP: u16 = 0x8021;
/// Protocol number of the Link Control Protocol.
pub const PROTOCOL_LCP: u16 = 0xC021;

/// The ACCM before any is negotiated: all 32 control octets are escaped (RFC 1662 §7.1).
pub const DEFAULT_ACCM: u32 = 0xFFFF_FFFF;

/// Octets beyond which [`Framing::escapes`] takes the mean; no PPP packet is longer than 65,535.
const LONGEST_DRAW: u64 = 1 << 20;

/// Framing of the packets that one end of a link sends.
///
/// The default is the framing that Linux's pppd negotiates with another pppd: FCS-16, no control octet escaped, short
/// headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Framing {
    /// The check sequence.
    pub fcs: Fcs,
    /// The Async-Control-Character-Map: bit n is set if octet n, below 32, is escaped (RFC 1662 §7.1).
    pub accm: u32,
    /// Address-and-Control-Field-Compression: `FF 03` is left out, but not of LCP's frames (RFC 1661 §6.6).
    pub acfc: bool,
    /// Protocol-Field-Compression: protocol numbers below 256 take one octet (RFC 1661 §6.5).
    pub pfc: bool,
}

impl Default for Framing {
    fn default() -> Self {
        Self { fcs: Fcs::Fcs16, accm: 0, acfc: true, pfc: true }
    }
}

/// The length of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameLength {
    /// Octets of the frame without flags, before any is escaped.
    pub octets: u64,
    /// Number of these octets that are escaped, each with one octet more.
    pub escapes: u64,
}

impl Framing {
    /// Framing before anything is negotiated: full headers, and every control octet is escaped.
    pub const UNCONFIGURED: Self = Self { fcs: Fcs::Fcs16, accm: DEFAULT_ACCM, acfc: false, pfc: false };

    /// Returns the address, control and protocol fields before the information.
    pub fn header(&self, protocol: u16) -> SmallVec<[u8; 4]> {
        let mut header = SmallVec::new();
        if !self.acfc || protocol == PROTOCOL_LCP {
            header.extend([ADDRESS, CONTROL]);
        }
        let [high, low] = protocol.to_be_bytes();
        // A single octet is read as a whole number only if it is odd; 0xFF would be taken for an address.
        if !self.pfc || high != 0 || low & 1 == 0 || low == ADDRESS {
            header.push(high);
        }
        header.push(low);
        header
    }

    /// Returns the octets of the address, control and protocol fields, 1 to 4.
    pub fn header_octets(&self, protocol: u16) -> u64 {
        self.header(protocol).len() as u64
    }

    /// Returns the octets of a frame with `information` octets of information. Header and check sequence count, escapes
    /// and flags do not. Saturates.
    pub fn frame_octets(&self, protocol: u16, information: u64) -> u64 {
        information.saturating_add(self.header_octets(protocol) + self.fcs.octets())
    }

    /// Returns `true` if `octet` is sent as two octets.
    pub const fn is_escaped(&self, octet: u8) -> bool {
        matches!(octet, FLAG | ESCAPE) || (octet < 32 && self.accm >> octet & 1 == 1)
    }

    /// Returns the number of `octets` that are escaped.
    pub fn count_escapes(&self, octets: &[u8]) -> u64 {
        octets.iter().filter(|&&octet| self.is_escaped(octet)).count() as u64
    }

    /// Returns the number of the 256 octet values that are escaped, 2 to 34.
    const fn escaped_values(self) -> u32 {
        2 + self.accm.count_ones()
    }

    /// Draws the number of escapes in `octets` random octets: an exact binomial draw with probability (2 + octets in
    /// the ACCM) / 256. Beyond 2^20 octets it is the mean.
    ///
    /// 64 octets are drawn at a time, from the lowest binary digit of the probability up. A word of random bits is
    /// or-ed in where the digit is 1, and and-ed where it is 0. Each bit of the result is then 1 with exactly that
    /// probability.
    pub fn escapes(&self, octets: u64, stream: &mut RandomStream) -> u64 {
        let values = self.escaped_values();
        if octets > LONGEST_DRAW {
            return (u128::from(octets) * u128::from(values) / 256) as u64;
        }
        let digits = values.trailing_zeros()..8;
        let mut batch = |places: u64| {
            let hits = digits.clone().fold(0, |hits, digit| {
                let bits = stream.bits();
                if values >> digit & 1 == 1 { hits | bits } else { hits & bits }
            });
            u64::from((hits & (u64::MAX >> (64 - places))).count_ones())
        };
        let full: u64 = (0..octets / 64).map(|_| batch(64)).sum();
        full + match octets % 64 {
            0 => 0,
            rest => batch(rest),
        }
    }
}
