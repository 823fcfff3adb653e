//! Blocks of the pcapng format (draft-ietf-opsawg-pcapng), as far as a trace needs them.
//!
//! All integers are little-endian, on every machine.

use std::io::{self, Write};

use farcast_core::Time;

/// Block types (§4).
mod block {
    pub(super) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
    pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
    pub(super) const ENHANCED_PACKET: u32 = 6;
}

/// Option codes (§3.5, §4.1 to §4.3).
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const SHB_USERAPPL: u16 = 4;
    pub(super) const IF_NAME: u16 = 2;
    pub(super) const IF_DESCRIPTION: u16 = 3;
    pub(super) const IF_TSRESOL: u16 = 9;
    pub(super) const EPB_FLAGS: u16 = 2;
}

/// Packets begin with their IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
/// By it a reader knows the order of octets.
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// Timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Which way a packet passes an interface, as the lowest bits of `epb_flags` have it (§4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Inbound = 1,
    Outbound = 2,
}

/// A packet as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) interface: u32,
    pub(super) at: Time,
    /// Its length on the wire.
    pub(super) octets: u32,
    pub(super) direction: Direction,
    pub(super) captured: &'a [u8],
    /// Empty for none.
    pub(super) comment: &'a str,
}

/// Writes blocks. After the first error it writes nothing more, and keeps the error until [`finish`](Self::finish).
#[derive(Debug)]
pub(super) struct Writer<W> {
    out: W,
    /// The block at hand.
    block: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, block: Vec::new(), error: None }
    }

    /// Begins the section that the file is.
    pub(super) fn section(&mut self, application: &str, comment: &str) {
        self.begin(block::SECTION_HEADER);
        self.u32(BYTE_ORDER_MAGIC);
        // Version 1.0, and a length that is not told.
        self.u16(1);
        self.u16(0);
        self.block.extend_from_slice(&u64::MAX.to_le_bytes());
        self.text(option::COMMENT, comment);
        self.text(option::SHB_USERAPPL, application);
        self.end();
    }

    /// Describes the next interface; they count from 0.
    pub(super) fn interface(&mut self, name: &str, description: &str) {
        self.begin(block::INTERFACE_DESCRIPTION);
        self.u16(LINKTYPE_RAW);
        self.u16(0);
        // No limit to the length of what is captured: only payload is cut.
        self.u32(0);
        self.text(option::IF_NAME, name);
        self.text(option::IF_DESCRIPTION, description);
        self.option(option::IF_TSRESOL, &[NANOSECONDS]);
        self.end();
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        self.begin(block::ENHANCED_PACKET);
        self.u32(packet.interface);
        let at = packet.at.as_nanos();
        self.u32((at >> 32) as u32);
        self.u32(at as u32);
        self.u32(packet.captured.len() as u32);
        self.u32(packet.octets);
        self.padded(packet.captured);
        self.option(option::EPB_FLAGS, &(packet.direction as u32).to_le_bytes());
        self.text(option::COMMENT, packet.comment);
        self.end();
    }

    /// Keeps `error`, unless there was one before; nothing more is written.
    pub(super) fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        // The length, which the end of the block tells.
        self.u32(0);
    }

    /// Ends the options and the block, and writes it.
    fn end(&mut self) {
        self.option(option::END, &[]);
        let octets = self.block.len() as u32 + 4;
        self.u32(octets);
        self.block[4..8].copy_from_slice(&octets.to_le_bytes());
        if self.error.is_none() {
            self.error = self.out.write_all(&self.block).err();
        }
    }

    /// A text, unless it is empty; of one that is too long, as much as fits.
    fn text(&mut self, code: u16, text: &str) {
        let text = &text[..text.floor_char_boundary(usize::from(u16::MAX))];
        if !text.is_empty() {
            self.option(code, text.as_bytes());
        }
    }

    /// An option of at most 65,535 octets.
    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    fn padded(&mut self, octets: &[u8]) {
        self.block.extend_from_slice(octets);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }
}
