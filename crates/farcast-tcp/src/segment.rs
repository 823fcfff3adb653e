//! Segments that TCP endpoints exchange (RFC 9293 section 3.1), typed. [`wire`](crate::wire) encodes them.

use core::num::NonZeroU32;

use farcast_core::engine::Message;

use crate::SequenceNumber;

/// The control bits of a segment, as the header has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid. farcast takes urgent data as any other (RFC 6093).
    pub const URG: Self = Self(0x20);

    /// Returns `true` if every bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// RFC 7323's timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The peer's value that this one answers; valid with ACK only.
    pub echo: u32,
}

/// A block of octets that have arrived out of order: the first, and the one behind the last (RFC 2018 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlock {
    /// The first octet.
    pub left: SequenceNumber,
    /// The octet behind the last.
    pub right: SequenceNumber,
}

/// List of at most four SACK blocks; with timestamps three have room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// Most blocks that an option can hold.
    pub const MOST: usize = 4;

    /// Adds a block. Returns `true` if there was room.
    pub const fn push(&mut self, block: SackBlock) -> bool {
        if self.count as usize == Self::MOST {
            return false;
        }
        self.blocks[self.count as usize] = block;
        self.count += 1;
        true
    }

    /// Keeps the first `count` blocks.
    pub fn truncate(&mut self, count: usize) {
        while usize::from(self.count) > count {
            self.count -= 1;
            self.blocks[usize::from(self.count)] = SackBlock::default();
        }
    }

    /// Returns the blocks, the most recent first.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Returns `true` if there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Options that farcast supports; others are ignored (RFC 9293 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    /// The largest segment that the sender takes, without headers and options (kind 2; in a SYN).
    pub mss: Option<u16>,
    /// Number of bits by which the sender's windows are shifted, at most 14 (RFC 7323 section 2; in a SYN).
    pub window_scale: Option<u8>,
    /// The sender accepts SACK blocks (RFC 2018 section 2; in a SYN).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 section 3).
    pub timestamps: Option<Timestamps>,
    /// Ranges that the sender has received out of order (RFC 2018 section 3, RFC 2883).
    pub sack: SackBlocks,
}

impl Options {
    /// Returns the length of the options on the wire in octets, padded to a multiple of four.
    ///
    /// The timestamps option and the SACK option each take two octets of padding before them, so that their values are
    /// aligned (RFC 7323 appendix A). If a SYN has SACK permitted and timestamps, the two share four octets.
    pub fn wire_len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let permitted = if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.as_slice().len() };
        mss + scale + timestamps + permitted + sack
    }
}

/// Place of a segment's octets in the stream that its sender writes. The payload itself stays with the owner of the
/// stream's store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Payload {
    /// Offset of the first octet in the sender's stream, from 0. In a segment that came from the wire it is 0: the
    /// receiver knows the place from the sequence number.
    pub offset: u64,
    /// Number of octets.
    pub len: u16,
}

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Segment {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Sequence number of the first octet, or of the SYN.
    pub sequence: SequenceNumber,
    /// Sequence number that the sender expects next; valid with ACK.
    pub acknowledgment: SequenceNumber,
    /// The control bits.
    pub flags: Flags,
    /// Window as in the header: shifted, except in a SYN.
    pub window: u16,
    /// The urgent pointer; valid with URG.
    pub urgent: u16,
    /// The options.
    pub options: Options,
    /// The data.
    pub payload: Payload,
}

impl Segment {
    /// Returns the length of the header with options, in octets.
    pub fn header_len(&self) -> usize {
        20 + self.options.wire_len()
    }

    /// Returns the segment's length in the sequence space: its data, its SYN and its FIN.
    pub fn sequence_len(&self) -> u32 {
        u32::from(self.payload.len)
            + u32::from(self.flags.has(Flags::SYN))
            + u32::from(self.flags.has(Flags::FIN))
    }
}

impl Message for Segment {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    /// Returns the length of the TCP header and the data; an IPv4 header adds 20 octets.
    fn wire_len(&self, _segment: u32) -> usize {
        self.header_len() + usize::from(self.payload.len)
    }
}
