//! An object that is being received.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{Geometry, ObjectId, Offer};

use crate::message::{Data, Fec, Fti, NodeId, Terms};

/// How far a session has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not offered: what is said of the object has not come.
    Unnamed,
    /// Offered, not answered.
    Opening,
    /// Receiving.
    Receiving,
    /// Everything is there; the owner verifies it.
    Verifying,
    /// Everything is there since.
    Complete(Time),
}

/// Which object of whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) source: SocketAddr,
    pub(super) sender: NodeId,
    pub(super) instance: u16,
    pub(super) object: u16,
}

/// A place in what a sender sends: a block, and a symbol of it.
pub(super) type Position = (u32, u32);

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) key: Key,
    pub(super) group: SocketAddr,
    pub(super) terms: Terms,
    pub(super) state: State,
    pub(super) fec: Fec,
    pub(super) fti: Fti,
    pub(super) geometry: Geometry,
    /// Parity symbols of a block.
    pub(super) parity: u32,
    pub(super) have: Bitmap,
    /// Parity that is there, by block; the memory that it takes; and blocks that are being rebuilt.
    pub(super) held: BTreeMap<u32, Bitmap>,
    pub(super) memory: u64,
    pub(super) decoding: BTreeSet<u32>,
    /// Where the sender is.
    pub(super) position: Position,
    /// The sender has been behind all blocks before this one: what lacks of them is to be asked for.
    pub(super) reached: u32,
    /// How often nothing was heard for long.
    pub(super) silences: u32,
    /// All segments before this one are there.
    pub(super) low: u32,
}

/// Octets that a block's parity takes besides its symbols, about.
const BOOKKEEPING: u64 = 128;

impl Session {
    pub(super) fn is_receiving(&self) -> bool {
        self.state == State::Receiving
    }

    pub(super) fn offer(&self, info: Option<&[u8]>) -> Offer {
        let Key { source, instance, object, .. } = self.key;
        Offer {
            object: ObjectId::FIRST,
            sender: source,
            session: u32::from(instance) << 16 | u32::from(object),
            group: self.group.ip(),
            name: info.unwrap_or_default().into(),
            id: None,
            serial: None,
            geometry: self.geometry,
            parity_symbols: self.parity,
            overwrite: true,
            rate_bps: u32::MAX,
        }
    }

    /// Whether `data` is of this object as it is cut.
    pub(super) fn check(&self, data: &Data) -> Result<(), Reject> {
        let len = self.geometry.block_len(data.block);
        if len == 0 || data.symbols.end() > len + self.parity {
            return Err(Reject::OutOfRange);
        }
        let full = self.geometry.segment_size();
        let last = match self.geometry.segments_of(data.block, data.symbols) {
            Some(segments) => self.geometry.payload_len(segments.last()),
            None if data.symbols.first() >= len => full,
            // Source and parity in one run.
            None => return Err(Reject::Inconsistent),
        };
        let cut = data.fec == self.fec && data.fti.is_none_or(|fti| fti == self.fti);
        let named = data.block_len.is_none_or(|named| u32::from(named) == len);
        let fits = data.last_len == last && (data.symbols.count() == 1 || data.len == full);
        if cut && named && fits { Ok(()) } else { Err(Reject::Inconsistent) }
    }

    /// The parity of a run that is no source symbols, counted from 0.
    pub(super) fn parity_of(&self, data: &Data) -> Option<Run> {
        let first = data.symbols.first().checked_sub(self.geometry.block_len(data.block))?;
        Run::new(first, data.symbols.count())
    }

    pub(super) fn missing_in(&self, block: u32) -> u32 {
        self.geometry.block_run(block).map_or(0, |run| run.count() - self.have.count_in(run))
    }

    /// How many symbols of `block` have yet to come.
    pub(super) fn lacks(&self, block: u32) -> u32 {
        if self.decoding.contains(&block) {
            return 0;
        }
        self.missing_in(block).saturating_sub(self.held.get(&block).map_or(0, Bitmap::count))
    }

    /// Looks how far everything is there, so that nobody looks there again.
    pub(super) fn advance(&mut self) {
        if self.is_receiving() {
            self.low = self.have.next_clear(self.low).unwrap_or(self.low);
        }
    }

    /// Forgets the parity of `block`.
    pub(super) fn forget_parity(&mut self, block: u32) {
        if let Some(held) = self.held.remove(&block) {
            self.memory -= self.memory_of(block, held.count());
        }
    }

    /// Octets that are kept for a block with `symbols` parity symbols, by the owner, who gathers it, and here.
    pub(super) fn memory_of(&self, block: u32, symbols: u32) -> u64 {
        let count = self.geometry.block_len(block) + symbols;
        let here = BOOKKEEPING + u64::from(self.parity.div_ceil(8));
        u64::from(count) * u64::from(self.geometry.segment_size()) + here
    }

    /// How many symbols of `data` may come at once: what comes of a new block, or completes one, has consequences.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let count = data.symbols.count();
        let plain = self.is_receiving() && data.block == self.position.0 && self.check(data).is_ok();
        let most = if plain { self.until_whole(data).unwrap_or(count) } else { 1 };
        NonZeroU32::new(most.min(count)).unwrap_or(NonZeroU32::MIN)
    }

    /// How many symbols of `data` there are up to that which completes its block; `None` if none of them does.
    fn until_whole(&self, data: &Data) -> Option<u32> {
        let mut left = self.lacks(data.block);
        if left == 0 {
            return None;
        }
        let parity = self.parity_of(data);
        let (map, run) = match parity {
            Some(run) => (self.held.get(&data.block), run),
            None => (Some(&self.have), self.geometry.segments_of(data.block, data.symbols)?),
        };
        let Some(map) = map else { return Some(left) };
        for gap in map.gaps_in(run) {
            if gap.count() >= left {
                return Some(gap.first() + left - run.first());
            }
            left -= gap.count();
        }
        None
    }
}
