//! Van Jacobson's header compression on one direction of a link.

use alloc::vec::Vec;

use farcast_ppp::VjConfig;
use farcast_ppp::vj::{Compressor, Decompressor, Fault, Kind};

use super::line::Information;

/// What compression has made of the packets of one direction. Those that are neither went as they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VjCounters {
    /// TCP packets that were sent whole, with their slot.
    pub uncompressed: u64,
    /// TCP packets that were sent compressed.
    pub compressed: u64,
    /// Packets that arrived undamaged and were tossed, because something before them had not and they told no slot.
    pub tossed: u64,
    /// Packets that arrived undamaged and were restored to something else, from the header of a packet before that
    /// which was lost, or could not be restored. TCP's checksum finds that; they do not leave the link.
    pub out_of_step: u64,
}

/// Both ends of the compression of one direction.
///
/// Where packets have octets, those pass both ends and what the far one restores leaves. Where they have only lengths,
/// their [headers](farcast_core::engine::Message::headers) do the same, so that lengths and fates are those of octets.
#[derive(Clone, Debug)]
pub(super) struct Vj {
    compressor: Compressor,
    decompressor: Decompressor,
    kind: Kind,
    /// The header that was compressed last, where its packet has no octets.
    headers: Vec<u8>,
    /// What was sent: a packet, or the headers of one.
    sent: Vec<u8>,
    /// What has arrived, likewise.
    arrived: Vec<u8>,
    /// A header, until it is put in its place.
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

    /// Room for the headers of the next packet, where it has no octets.
    pub(super) fn headers(&mut self) -> &mut Vec<u8> {
        self.headers.clear();
        &mut self.headers
    }

    /// What is sent of a packet, and under which protocol number.
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

    /// A frame was damaged, and the receiver knows.
    pub(super) const fn hear_of_damage(&mut self) {
        self.decompressor.hear_of_damage();
    }

    /// Takes the packet that was compressed last at the far end, where it has arrived as `octets` if it has any;
    /// whether it is restored to what it was.
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

    /// The octets of the packet that was restored last.
    pub(super) fn packet(&self) -> &[u8] {
        &self.arrived
    }
}
