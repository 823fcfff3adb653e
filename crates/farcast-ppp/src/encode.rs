//! Encoding: the octets on the line from a packet (RFC 1662 §4).

use alloc::vec::Vec;

use crate::framing::{ESCAPE, FLAG, FrameLength, Framing, PROTOCOL_LCP, TRANSPARENCY};
use crate::lcp;

impl Framing {
    /// Appends the frame of a packet to `out`: a flag if `leading_flag`, header, information, check sequence, all
    /// escaped, and the closing flag, which the next frame may share.
    ///
    /// LCP's packets of codes 1 to 7 go out as if nothing had been negotiated (RFC 1661 §5), but with the check
    /// sequence of this framing.
    pub fn encode(&self, protocol: u16, information: &[u8], leading_flag: bool, out: &mut Vec<u8>) {
        let framing = self.for_packet(protocol, information);
        let header = framing.header(protocol);
        let fcs = framing.fcs.of(&header, information);
        let octets = header.len() + information.len() + fcs.len() + 2;
        out.reserve(octets + octets / 8);
        if leading_flag {
            out.push(FLAG);
        }
        for part in [&header[..], information, &fcs[..framing.fcs.octets() as usize]] {
            framing.stuff(part, out);
        }
        out.push(FLAG);
    }

    /// Returns the framing that holds for one packet.
    fn for_packet(self, protocol: u16, information: &[u8]) -> Self {
        let configures = protocol == PROTOCOL_LCP
            && information.first().is_some_and(|code| lcp::CONFIGURATION_CODES.contains(code));
        if configures { Self { fcs: self.fcs, ..Self::UNCONFIGURED } } else { self }
    }

    /// Returns the length of the frame that [`encode`](Self::encode) would make, without encoding.
    pub fn measure(self, protocol: u16, information: &[u8]) -> FrameLength {
        let framing = self.for_packet(protocol, information);
        let header = framing.header(protocol);
        let fcs = framing.fcs.of(&header, information);
        let fcs = &fcs[..framing.fcs.octets() as usize];
        let escapes = [&header[..], information, fcs].iter().map(|part| framing.count_escapes(part)).sum();
        FrameLength { octets: (header.len() + information.len() + fcs.len()) as u64, escapes }
    }

    /// Appends `octets`, each escaped if it must be.
    pub(crate) fn stuff(self, octets: &[u8], out: &mut Vec<u8>) {
        let mut rest = octets;
        while let Some(plain) = rest.iter().position(|&octet| self.is_escaped(octet)) {
            out.extend_from_slice(&rest[..plain]);
            out.extend([ESCAPE, rest[plain] ^ TRANSPARENCY]);
            rest = &rest[plain + 1..];
        }
        out.extend_from_slice(rest);
    }
}
