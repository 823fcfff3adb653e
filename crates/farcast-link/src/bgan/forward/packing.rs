//! Positions of packets in the stream of FEC blocks.

use farcast_core::{Span, Time};

use super::ForwardConfig;

/// Packing of packets into FEC blocks, first come first served.
///
/// The last block stays open while its time lasts; packets that enter before its end share its room. Coding and flight
/// begin at a block's end, and are part of the propagation. A packet that enters later starts a block of its own. So
/// the ends of two packets tell whether they share a block; [`OpenBlock`] sees nothing else.
#[derive(Clone, Debug)]
pub(super) struct Packer {
    block_octets: u64,
    block_time: Span,
    align: bool,
    /// The end of the last block.
    free_at: Time,
    /// Octets left in it.
    room: u64,
}

/// Position of a packet in the stream of FEC blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Placement {
    /// The start of its first block.
    pub(super) begin: Time,
    /// The end of its last block.
    pub(super) end: Time,
    /// Blocks that it starts.
    pub(super) blocks: u64,
    /// Octets that it leaves free in its last block.
    room: u64,
}

impl Packer {
    pub(super) fn new(config: &ForwardConfig) -> Self {
        Self {
            block_octets: config.block_octets(),
            block_time: config.block_time(),
            align: config.align_to_blocks,
            free_at: Time::ZERO,
            room: 0,
        }
    }

    /// Returns the end of the last block.
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns the position of a packet of `length` octets on the air that enters at `entry`.
    pub(super) fn place(&self, entry: Time, length: u64) -> Placement {
        let room = if entry <= self.free_at { self.room } else { 0 };
        let blocks = length.saturating_sub(room).div_ceil(self.block_octets);
        let start = self.aligned(entry.max(self.free_at));
        Placement {
            begin: if room > 0 { self.free_at - self.block_time } else { start },
            end: if blocks > 0 { start + self.block_time * blocks } else { self.free_at },
            blocks,
            room: room + blocks * self.block_octets - length,
        }
    }

    /// Puts a packet at `placement`.
    pub(super) fn take(&mut self, placement: &Placement) {
        self.free_at = placement.end;
        self.room = placement.room;
    }

    fn aligned(&self, at: Time) -> Time {
        if !self.align {
            return at;
        }
        let block = self.block_time.as_nanos();
        Time::from_nanos(at.as_nanos().div_ceil(block).saturating_mul(block))
    }
}

/// Blocks that a packet lies in, as the far end knows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Share {
    /// Octets of the packet, at most, that lie in the last block of the packet before.
    pub(super) before: u64,
    /// Blocks that the packet starts.
    pub(super) blocks: u64,
}

/// State of the last FEC block at the far end, which knows only the ends of packets.
#[derive(Clone, Debug)]
pub(super) struct OpenBlock {
    block_octets: u64,
    block_time: Span,
    /// Arrival of the last packet: a fixed time after the end of its last block.
    arrived: Time,
    /// Octets left in that block.
    room: u64,
}

impl OpenBlock {
    pub(super) fn new(config: &ForwardConfig) -> Self {
        let (block_octets, block_time) = (config.block_octets(), config.block_time());
        Self { block_octets, block_time, arrived: Time::ZERO, room: 0 }
    }

    /// Takes the packet of `length` octets on the air that arrives at `now`. Returns the blocks that it lies in.
    pub(super) fn take(&mut self, now: Time, length: u64) -> Share {
        let more = length.saturating_sub(self.room).div_ceil(self.block_octets);
        // A packet that entered too late to join ends later than this, since it needs as many blocks or more.
        let joins = now <= self.arrived + self.block_time * more;
        let room = if joins { self.room } else { 0 };
        let blocks = length.saturating_sub(room).div_ceil(self.block_octets);
        self.arrived = now;
        self.room = room + blocks * self.block_octets - length;
        Share { before: room, blocks }
    }
}

/// The last answer of a function of a packet's length: nearly all packets of a file have one length.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memo(Option<(u64, u64)>);

impl Memo {
    pub(super) fn get(&mut self, octets: u64, answer: impl FnOnce(u64) -> u64) -> u64 {
        match self.0 {
            Some((asked, known)) if asked == octets => known,
            _ => self.0.insert((octets, answer(octets))).1,
        }
    }
}
