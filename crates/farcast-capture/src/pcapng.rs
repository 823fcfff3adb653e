//! Capture files in the pcapng format (draft-ietf-opsawg-pcapng), which protocol analysers open.
//!
//! A file is one section with interfaces, each of link type IPV4: all packets are IPv4 and begin with their header.
//! Timestamps count nanoseconds. All integers are little-endian, on every machine.
//!
//! ```
//! use farcast_capture::pcapng::{Direction, Packet, Writer};
//! use farcast_core::{Span, Time};
//!
//! let mut file = Writer::new(Vec::new());
//! file.section("farcast", "an example");
//! file.interface("near", "the terminal's end of the link");
//! let captured = &[0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0x66, 0xD6, 10, 0, 0, 1, 10, 64, 0, 1];
//! file.packet(&Packet {
//!     interface: 0,
//!     at: Time::ZERO + Span::from_millis(260),
//!     octets: 20,
//!     direction: Direction::Inbound,
//!     captured,
//!     comment: "",
//! });
//! let octets = file.finish()?;
//! # assert!(octets.len() > 20);
//! # Ok::<(), std::io::Error>(())
//! ```

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

/// Link type of packets that begin with their IPv4 header (the registry of link types at tcpdump.org). RAW, which
/// covers IPv4 and IPv6, is not usable: libpcap 1.10 compares its number, 101, with one of its own, 12, and refuses the
/// second such interface.
const LINKTYPE_IPV4: u16 = 228;
/// Magic number by which a reader detects the byte order.
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// Resolution of timestamps: units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Most octets of a packet that are written. IPv4 packets have at most 65,535 (RFC 791 §3.1); readers refuse blocks of
/// many megabytes.
const MOST_OCTETS: usize = 1 << 20;

/// Direction in which a packet passes an interface, as the lowest bits of `epb_flags` (§4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The host receives the packet.
    Inbound = 1,
    /// The host sends the packet.
    Outbound = 2,
}

/// A packet to write.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Interface that the packet passed, from 0 in the order of description.
    pub interface: u32,
    /// Time at which it passed, from the file's epoch.
    pub at: Time,
    /// Length on the wire in octets.
    pub octets: u32,
    /// Direction in which it passed.
    pub direction: Direction,
    /// Octets from the IPv4 header on; fewer than `octets` if the packet was cut.
    pub captured: &'a [u8],
    /// Comment for readers of the file, empty for none. A longer comment is cut to its first 65,535 octets.
    pub comment: &'a str,
}

/// Writer of a capture file. Call [`section`](Self::section), then [`interface`](Self::interface) for each interface,
/// then [`packet`](Self::packet) for each packet.
///
/// `W` is written in small pieces: wrap a file in a [`BufWriter`](io::BufWriter). After the first error the writer
/// writes nothing more, and keeps the error until [`finish`](Self::finish).
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Epoch of the file, in nanoseconds since 1970.
    epoch: u64,
    interfaces: u32,
    /// The current block.
    block: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Creates a file with the times of a simulation: [`Time::ZERO`] is 1970-01-01T00:00:00Z.
    pub const fn new(out: W) -> Self {
        Self::starting_at(out, 0)
    }

    /// Creates a file with real times: [`Time::ZERO`] is `unix_nanos` nanoseconds after 1970-01-01T00:00:00Z. Sums
    /// beyond the format's range (the year 2554) saturate.
    pub const fn starting_at(out: W, unix_nanos: u64) -> Self {
        Self { out, epoch: unix_nanos, interfaces: 0, block: Vec::new(), error: None }
    }

    /// Begins the file's only section, with the name of the program that writes it and a comment. Each of the two may
    /// be empty, and is cut after 65,535 octets.
    pub fn section(&mut self, application: &str, comment: &str) {
        self.begin(block::SECTION_HEADER);
        self.u32(BYTE_ORDER_MAGIC);
        // Version 1.0, and a section of unknown length.
        self.u16(1);
        self.u16(0);
        self.block.extend_from_slice(&u64::MAX.to_le_bytes());
        self.text(option::COMMENT, comment);
        self.text(option::SHB_USERAPPL, application);
        self.end();
    }

    /// Describes the next interface, by texts like those of [`section`](Self::section). Returns its number, from 0.
    pub fn interface(&mut self, name: &str, description: &str) -> u32 {
        self.begin(block::INTERFACE_DESCRIPTION);
        self.u16(LINKTYPE_IPV4);
        self.u16(0);
        // No limit to the length of captured packets.
        self.u32(0);
        self.text(option::IF_NAME, name);
        self.text(option::IF_DESCRIPTION, description);
        self.option(option::IF_TSRESOL, &[NANOSECONDS]);
        self.end();
        let number = self.interfaces;
        self.interfaces = number.saturating_add(1);
        number
    }

    /// Writes a packet. If its interface is not described, or more than a mebibyte was captured,
    /// [`finish`](Self::finish) returns an error.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        if let Some(error) = self.refused(packet) {
            self.fail(io::Error::new(io::ErrorKind::InvalidInput, error));
            return;
        }
        self.begin(block::ENHANCED_PACKET);
        self.u32(packet.interface);
        let at = self.epoch.saturating_add(packet.at.as_nanos());
        self.u32((at >> 32) as u32);
        self.u32(at as u32);
        self.u32(packet.captured.len() as u32);
        self.u32(packet.octets);
        self.padded(packet.captured);
        self.option(option::EPB_FLAGS, &(packet.direction as u32).to_le_bytes());
        self.text(option::COMMENT, packet.comment);
        self.end();
    }

    /// Keeps `error`, unless there was one before. The writer then writes nothing more.
    pub fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    /// Returns `W`, flushed.
    ///
    /// # Errors
    /// The first error of `W` or of [`fail`](Self::fail), or the first packet that was refused.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Returns the reason for which a reader would refuse `packet`, if any.
    fn refused(&self, packet: &Packet<'_>) -> Option<String> {
        let Packet { interface, captured, .. } = packet;
        if *interface >= self.interfaces {
            let described = self.interfaces;
            return Some(format!(
                "a packet of interface {interface}, of {described} that are described: describe it first"
            ));
        }
        let octets = captured.len();
        (octets > MOST_OCTETS)
            .then(|| format!("a packet of {octets} octets: a capture holds at most {MOST_OCTETS} of each"))
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        // The length, which is filled in at the end of the block.
        self.u32(0);
    }

    /// Ends the options and the block, and writes the block.
    fn end(&mut self) {
        self.option(option::END, &[]);
        let octets = self.block.len() as u32 + 4;
        self.u32(octets);
        self.block[4..8].copy_from_slice(&octets.to_le_bytes());
        if self.error.is_none() {
            self.error = self.out.write_all(&self.block).err();
        }
    }

    /// Adds a text option, unless the text is empty. A longer text is cut to the part that fits.
    fn text(&mut self, code: u16, text: &str) {
        let text = &text[..text.floor_char_boundary(usize::from(u16::MAX))];
        if !text.is_empty() {
            self.option(code, text.as_bytes());
        }
    }

    /// Adds an option of at most 65,535 octets.
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

#[cfg(test)]
mod tests;
