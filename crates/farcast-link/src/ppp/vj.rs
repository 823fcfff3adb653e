//! Van Jacobson's header compression on one direction of a link.

use alloc::vec::Vec;

use farcast_ppp::VjConfig;
use farcast_ppp::vj::{Compressor, Decompressor, Fault, Kind};

use super::line::Information;

/// Counters of the compression of one direction. Packets counted in neither of the first two were sent unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VjCounters {
    /// TCP packets that were sent whole, with their slot.
    pub uncompressed: u64,
    /// TCP packets that were sent compressed.
    pub compressed: u64,
    /// Packets that arrived undamaged and were tossed: an earlier one was damaged, and these named no slot.
    pub tossed: u64,
    /// Packets that arrived undamaged and were restored wrongly, from an outdated header because a packet before was
    /// lost, or could not be restored. TCP's checksum finds this; they do not leave the link.
    pub out_of_step: u64,
}

/// Both ends of the compression of one direction.
///
/// Packets with octets: the octets pass both ends, and the octets that the far end restores leave. Packets with lengths
/// only: their [headers](farcast_core::engine::Message::headers) do the same, so that lengths and fates are those of
/// octets.
#[derive(Clone, Debug)]
pub(super) struct Vj {
    compressor: Compressor,
    decompressor: Decompressor,
    kind: Kind,
    /// The header that was compressed last, if its packet has no octets.
    headers: Vec<u8>,
    /// The content that was sent: a packet, or the headers of one.
    sent: Vec<u8>,
    /// The content that has arrived, likewise.
    arrived: Vec<u8>,
    /// A header, before it is joined to its packet.
    header: Vec<u8>,
    counters: VjCounters,
}

impl Vj {
    pub(super) fn new(config: VjConfig) -> Self {
        Self {
            compressor: Compressor::new(config),
            decompressor: Decompressor::new(config),
            kind: Kind::Ip,
            headers: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            header: Vec::new(),
            counters: VjCounters::default(),
        }
    }

    pub(super) const fn counters(&self) -> &VjCounters {
        &self.counters
    }

    /// Returns the cleared buffer for the headers of the next packet, which has no octets.
    pub(super) fn headers(&mut self) -> &mut Vec<u8> {
        self.headers.clear();
        &mut self.headers
    }

    /// Compresses a packet. Returns the protocol number and the information to send.
    pub(super) fn compress<'a>(&'a mut self, packet: Information<'a>) -> (u16, Information<'a>) {
        let len = usize::try_from(packet.len()).unwrap_or(usize::MAX);
        let octets = match packet {
            Information::Octets(octets) => octets,
            Information::Length(_) => &self.headers,
        };
        let compressed = self.compressor.compress(octets, len, &mut self.sent);
        self.kind = compressed.kind;
        match self.kind {
            Kind::Ip => return (self.kind.protocol(), packet),
            Kind::Uncompressed => self.counters.uncompressed += 1,
            Kind::Compressed => self.counters.compressed += 1,
        }
        let information = match packet {
            Information::Octets(octets) => {
                self.sent.extend_from_slice(&octets[compressed.replaces..]);
                Information::Octets(&self.sent)
            }
            Information::Length(len) => {
                Information::Length(len - compressed.replaces as u64 + self.sent.len() as u64)
            }
        };
        (self.kind.protocol(), information)
    }

    /// Tells the decompressor that a frame was damaged and the receiver knows it.
    pub(super) const fn hear_of_damage(&mut self) {
        self.decompressor.hear_of_damage();
    }

    /// Takes the packet that was compressed last at the far end, where it has arrived as `octets` if it has any.
    /// Returns `true` if it is restored exactly.
    pub(super) fn restore(&mut self, packet: Information<'_>, octets: Option<&[u8]>) -> bool {
        if self.kind == Kind::Ip {
            self.arrived.clear();
            self.arrived.extend_from_slice(octets.unwrap_or_default());
            return true;
        }
        let data = match packet {
            Information::Octets(_) => 0,
            Information::Length(len) => usize::try_from(len).unwrap_or(usize::MAX) - self.headers.len(),
        };
        let information = octets.unwrap_or(&self.sent);
        let result = if self.kind == Kind::Compressed {
            self.decompressor.take_compressed(information, information.len() + data, &mut self.header)
        } else {
            let result = self.decompressor.take_uncompressed(information, &mut self.header);
            result.map(|()| self.header.len())
        };
        self.arrived.clear();
        match result {
            Ok(taken) => {
                self.arrived.extend_from_slice(&self.header);
                self.arrived.extend_from_slice(&information[taken..]);
            }
            Err(Fault::Tossed) => {
                self.counters.tossed += 1;
                return false;
            }
            Err(_) => {}
        }
        let whole = match packet {
            Information::Octets(octets) => octets,
            Information::Length(_) => &self.headers,
        };
        let restored = self.arrived == whole;
        self.counters.out_of_step += u64::from(!restored);
        restored
    }

    /// Returns the octets of the packet that was restored last.
    pub(super) fn packet(&self) -> &[u8] {
        &self.arrived
    }
}
