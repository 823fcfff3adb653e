//! Real octets over the links of a bundle: fragments with their headers, in frames with their check sequences.

use alloc::vec::Vec;
use core::ops::Range;

use farcast_core::random::RandomStream;
use farcast_core::{Payload, Piece};
use farcast_ppp::framing::{FLAG, PROTOCOL_MP};
use farcast_ppp::multilink::{Format, Header};
use farcast_ppp::{Deframer, Framing};

/// A part of a packet, with its octets if those of the packet are at hand.
#[derive(Clone, Debug)]
pub(super) struct FragmentOctets {
    pub(super) piece: Piece,
    /// Octets on a link: its frame up to the closing flag. Octets behind the link: the part itself. Empty if they are
    /// not at hand.
    pub(super) octets: Vec<u8>,
}

impl FragmentOctets {
    /// Returns `true` if octets are carried; no part is empty.
    pub(super) const fn has_octets(&self) -> bool {
        !self.octets.is_empty()
    }
}

impl Payload for FragmentOctets {
    fn len(&self) -> usize {
        self.piece.len()
    }

    fn split_to(&mut self, count: usize) -> Self {
        let octets = self.octets.split_to(count);
        Self { piece: self.piece.split_to(count), octets }
    }

    fn join(&mut self, mut tail: Self) {
        self.piece.join(tail.piece);
        self.octets.append(&mut tail.octets);
    }

    fn is_whole(&self) -> bool {
        self.piece.is_whole()
    }
}

/// Framing and deframing for the links of one direction.
///
/// Errors hit frames, and spare the flags between them. So each frame stands between two flags, and one deframer serves
/// all links.
#[derive(Clone, Debug)]
pub(super) struct Codec {
    framing: Framing,
    format: Format,
    deframer: Deframer,
    /// Draws the positions of errors.
    errors: RandomStream,
    /// The header and the fragment at hand.
    information: Vec<u8>,
}

impl Codec {
    /// Creates a codec for packets of up to `octets`, their protocol field included.
    pub(super) fn new(framing: Framing, format: Format, octets: usize, errors: RandomStream) -> Self {
        let mut deframer = Deframer::bounded(framing, format.octets() + octets);
        let nothing = deframer.next(&mut &[FLAG][..]);
        debug_assert_eq!(nothing, None);
        Self { framing, format, deframer, errors, information: Vec::new() }
    }

    /// Returns the frame, from its first octet to its closing flag, of the part `range` of a packet. The packet
    /// consists of its protocol `field` and `octets`.
    pub(super) fn encode(
        &mut self,
        header: Header,
        range: Range<usize>,
        field: &[u8],
        octets: &[u8],
    ) -> Vec<u8> {
        self.information.clear();
        self.information.extend_from_slice(&header.encode(self.format));
        let packet = field.iter().chain(octets);
        self.information.extend(packet.skip(range.start).take(range.len()));
        let mut frame = Vec::new();
        self.framing.encode(PROTOCOL_MP, &self.information, false, &mut frame);
        frame
    }

    /// Decodes a frame that has arrived. Returns its header, and replaces the frame by the fragment that it carries.
    /// Returns `None` if the frame has no fragment of the right length.
    pub(super) fn decode(&mut self, carried: &mut FragmentOctets) -> Option<Header> {
        let packet = self.deframer.next(&mut &carried.octets[..])?;
        if packet.protocol != PROTOCOL_MP {
            return None;
        }
        let (header, fragment) = Header::decode(self.format, packet.information).ok()?;
        carried.octets.clear();
        carried.octets.extend_from_slice(fragment);
        (fragment.len() == carried.piece.len()).then_some(header)
    }

    /// Takes a frame that is lost to errors: one bit of it, anywhere but in the closing flag, is wrong. Returns `true`
    /// if the check sequence lets it through.
    pub(super) fn misses(&mut self, mut frame: Vec<u8>) -> bool {
        let bits = 8 * frame.len().saturating_sub(1) as u64;
        let bit = self.errors.below(bits);
        if let Some(octet) = frame.get_mut((bit / 8) as usize) {
            *octet ^= 1 << (bit % 8);
        }
        let mut input = &frame[..];
        let mut missed = false;
        while self.deframer.next(&mut input).is_some() {
            missed = true;
        }
        missed
    }
}
