//! Segments: what TCP endpoints send each other (RFC 9293 section 3.1), typed. [`wire`](crate::wire) encodes them.

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

    /// Whether every bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
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
    /// The value that it answers; valid with ACK only.
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

/// At most four blocks; with timestamps three have room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// The most that an option can hold.
    pub const MOST: usize = 4;

    /// Adds a block; whether there was room.
    pub const fn push(&mut self, block: SackBlock) -> bool {
        if self.count as usize == Self::MOST {
            return false;
        }
        self.blocks[self.count as usize] = block;
        self.count += 1;
        true
    }

    /// Keeps the first `count`.
    pub fn truncate(&mut self, count: usize) {
        while usize::from(self.count) > count {
            self.count -= 1;
            self.blocks[usize::from(self.count)] = SackBlock::default();
        }
    }

    /// The blocks, the most recent first.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The options that farcast knows; others are passed over (RFC 9293 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    /// The largest segment that the sender takes, without headers and options (kind 2; in a SYN).
    pub mss: Option<u16>,
    /// By how many bits its windows are shifted, at most 14 (RFC 7323 section 2; in a SYN).
    pub window_scale: Option<u8>,
    /// It takes SACK blocks (RFC 2018 section 2; in a SYN).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 section 3).
    pub timestamps: Option<Timestamps>,
    /// What it has received out of order (RFC 2018 section 3, RFC 2883).
    pub sack: SackBlocks,
}

impl Options {
    /// Their length on the wire, padded to four octets.
    ///
    /// The timestamps option and the SACK option each take two octets of padding before them, so that what they hold is
    /// aligned (RFC 7323 appendix A); where SACK is permitted with timestamps in a SYN, the two share four octets.
    pub fn wire_len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let permitted = if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.as_slice().len() };
        mss + scale + timestamps + permitted + sack
    }
}

/// Where a segment's octets lie in the stream that its sender writes: the payload itself stays with the owner of the
/// stream's store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Payload {
    /// The first octet's offset in the sender's stream, from 0. In a segment that came from the wire it is 0: the
    /// receiver knows the place from the sequence number.
    pub offset: u64,
    /// How many octets.
    pub len: u16,
}

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Segment {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of its first octet, or of its SYN.
    pub sequence: SequenceNumber,
    /// The number that its sender expects next; valid with ACK.
    pub acknowledgment: SequenceNumber,
    /// The control bits.
    pub flags: Flags,
    /// The window as the header has it, shifted but in a SYN.
    pub window: u16,
    /// The urgent pointer; valid with URG.
    pub urgent: u16,
    /// The options.
    pub options: Options,
    /// The data.
    pub payload: Payload,
}

impl Segment {
    /// The header's length in octets, with options.
    pub fn header_len(&self) -> usize {
        20 + self.options.wire_len()
    }

    /// How much of the sequence space it takes: its data, its SYN and its FIN.
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

    /// The TCP header and the data; an IPv4 header adds 20 octets.
    fn wire_len(&self, _segment: u32) -> usize {
        self.header_len() + usize::from(self.payload.len)
    }
}
