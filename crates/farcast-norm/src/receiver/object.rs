//! Object that is being received.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use core::net::IpAddr;
use core::num::NonZeroU32;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::{Geometry, ObjectId, Offer, Passage, Received};

use super::remote::Key;
use crate::config::ReceiverConfig;
use crate::event::ReceiverEvent;
use crate::message::{Data, Fec, Flags, Fti, Info, Point};
use crate::requests::point;

/// Progress of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Offered, and not answered yet. Content is stored after the owner's first steps. Nothing is requested, because
    /// the owner may have kept content from before a restart.
    Opening,
    /// Receiving.
    Receiving,
    /// Everything is there, and the owner verifies it.
    Verifying,
}

/// Object that is being received.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) id: ObjectId,
    /// Number on the wire.
    pub(super) number: u16,
    pub(super) state: State,
    /// `true` if the object has no INFO, or its INFO has come.
    pub(super) named: bool,
    pub(super) fec: Fec,
    pub(super) fti: Fti,
    pub(super) geometry: Geometry,
    /// Number of parity symbols of a block.
    pub(super) parity: u32,
    pub(super) have: Bitmap,
    /// Parity that is there, by block; octets of memory for it; and blocks that are being rebuilt.
    pub(super) held: BTreeMap<u32, Bitmap>,
    pub(super) memory: u64,
    pub(super) decoding: BTreeSet<u32>,
    /// Number of leading segments that are known to be there.
    pub(super) low: u32,
    pub(super) received: Received,
    /// State of the sender's losses when the object began.
    pub(super) passage: Passage,
    /// Time at which the object began, and time of its last new content.
    begun: Time,
    pub(super) since: Time,
    /// `true` if a request would have been due while the owner had not answered yet.
    pub(super) missed: bool,
}

/// Description of an object in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) number: u16,
    pub(super) flags: Flags,
    pub(super) fec: Fec,
    pub(super) fti: Option<Fti>,
    /// INFO, if the message is INFO.
    pub(super) info: Option<&'a Info>,
    /// `true` if the message carries content.
    pub(super) sends: bool,
}

/// Time to wait for an owner's answer. After it, requests begin anyway. A slow owner, which perhaps lacks room, must
/// not make the sender end; unneeded requests are better than none.
const PATIENCE: Span = Span::from_secs(1);

/// Approximate octets of memory for a block's parity besides its symbols.
const BOOKKEEPING: u64 = 128;

impl Object {
    /// Makes the object that `said` is about, if it can be received.
    pub(super) fn new(
        id: ObjectId,
        said: Said<'_>,
        config: &ReceiverConfig,
        now: Time,
    ) -> Result<Self, Reject> {
        let Said { number, flags, fec, fti, info, .. } = said;
        if flags.has(Flags::STREAM) {
            return Err(Reject::Unexpected);
        }
        let fti = fti.ok_or(Reject::Unexpected)?;
        let geometry = fti.geometry().ok_or(Reject::OutOfRange)?;
        let parity = fti.parity_symbols(fec, config.fti);
        let symbols = u32::from(fti.max_block_len) + u32::from(parity);
        // Only one symbol in a datagram is supported.
        if symbols > 1 << fec.symbol_bits() || fti.group > 1 {
            return Err(Reject::OutOfRange);
        }
        if fti.size > config.largest {
            return Err(Reject::Limit);
        }
        Ok(Self {
            id,
            number,
            state: State::Opening,
            named: info.is_some() || !flags.has(Flags::INFO),
            fec,
            fti,
            geometry,
            parity: parity.into(),
            have: Bitmap::new(geometry.segments()),
            held: BTreeMap::new(),
            memory: 0,
            decoding: BTreeSet::new(),
            low: 0,
            received: Received::default(),
            passage: Passage::default(),
            begun: now,
            since: now,
            missed: false,
        })
    }

    /// Returns `true` if arriving content of the object is stored.
    pub(super) fn is_receiving(&self) -> bool {
        self.state != State::Verifying
    }

    /// Returns `true` if the owner may still report more of the object than is known.
    pub(super) fn is_opening(&self, now: Time) -> bool {
        self.state == State::Opening && now.since(self.begun) < PATIENCE
    }

    /// Returns `true` if nothing of the object has come.
    pub(super) fn is_bare(&self) -> bool {
        self.have.is_empty() && self.held.is_empty() && self.decoding.is_empty()
    }

    /// Returns the offer for the owner. An object without INFO, or before its INFO, is named by its numbers.
    pub(super) fn offer(&self, key: &Key, group: IpAddr, info: Option<&Info>) -> Offer {
        let (Key { source, node, instance }, number) = (*key, self.number);
        let session = u32::from(instance) << 16 | u32::from(number);
        Offer {
            object: self.id,
            sender: source,
            session,
            group,
            name: info.map_or_else(
                || format!("norm-{node}-{instance}-{number}").into_bytes(),
                |info| info.content.clone(),
            ),
            provisional: !self.named,
            id: None,
            serial: Some(u64::from(node.0) << 32 | u64::from(session)),
            geometry: self.geometry,
            parity_symbols: self.parity,
            vouched: info.and_then(|info| info.vouched).map(Box::new),
            overwrite: true,
            rate_bps: u32::MAX,
        }
    }

    /// Checks that `data` agrees with the object's geometry.
    pub(super) fn check(&self, data: &Data) -> Result<(), Reject> {
        let len = self.geometry.block_len(data.block);
        if len == 0 || data.symbols.end() > len + self.parity {
            return Err(Reject::OutOfRange);
        }
        let full = self.geometry.segment_size();
        let last = match self.geometry.segments_of(data.block, data.symbols) {
            Some(segments) => self.geometry.payload_len(segments.last()),
            None if data.symbols.first() >= len => full,
            // The run has source symbols and parity.
            None => return Err(Reject::Inconsistent),
        };
        let cut = data.fec == self.fec && data.fti.is_none_or(|fti| fti == self.fti);
        let named = data.block_len.is_none_or(|named| u32::from(named) == len);
        let fits = data.last_len == last && (data.symbols.count() == 1 || data.len == full);
        if cut && named && fits { Ok(()) } else { Err(Reject::Inconsistent) }
    }

    /// Returns the parity symbols of a run, counted from 0; `None` for source symbols.
    pub(super) fn parity_of(&self, data: &Data) -> Option<Run> {
        let first = data.symbols.first().checked_sub(self.geometry.block_len(data.block))?;
        Run::new(first, data.symbols.count())
    }

    pub(super) fn missing_in(&self, block: u32) -> u32 {
        self.geometry.block_run(block).map_or(0, |run| run.count() - self.have.count_in(run))
    }

    /// Returns the number of symbols of `block` that have yet to come.
    pub(super) fn lacks(&self, block: u32) -> u32 {
        if self.decoding.contains(&block) {
            return 0;
        }
        self.missing_in(block).saturating_sub(self.held.get(&block).map_or(0, Bitmap::count))
    }

    /// Returns the first block in `from .. end` that lacks symbols.
    pub(super) fn next_need(&self, from: u32, end: u32) -> Option<u32> {
        let end = end.min(self.geometry.blocks());
        let mut block = from.max(self.geometry.block_of(self.low));
        while block < end {
            block = self.geometry.block_of(self.have.next_clear(self.geometry.first_of(block))?);
            if block < end && self.lacks(block) > 0 {
                return Some(block);
            }
            block += 1;
        }
        None
    }

    /// Stores the new segments of a run. Returns their number.
    pub(super) fn store_source(&mut self, data: &Data, events: &mut VecDeque<ReceiverEvent>) -> u32 {
        let Some(run) = self.geometry.segments_of(data.block, data.symbols) else { return 0 };
        let mut new = 0;
        while let Some(segments) = self.have.next_gap_in(run) {
            self.have.insert_run(segments);
            new += segments.count();
            let offset = segments.first() - run.first();
            events.push_back(ReceiverEvent::Store { object: self.id, segments, offset });
        }
        self.received.segments += u64::from(new);
        new
    }

    /// Keeps the new parity symbols of a run that help, within `room` octets. Returns their number.
    pub(super) fn store_parity(
        &mut self,
        block: u32,
        symbols: Run,
        room: u64,
        events: &mut VecDeque<ReceiverEvent>,
    ) -> Result<u32, Reject> {
        if self.lacks(block) == 0 {
            return Ok(0);
        }
        let count = self.held.get(&block).map(Bitmap::count);
        let before = count.map_or(0, |count| self.memory_of(block, count));
        // This bounds the memory that the run may take.
        if self.memory_of(block, count.unwrap_or(0) + symbols.count()) - before > room {
            return Err(Reject::Limit);
        }
        let held = self.held.entry(block).or_insert_with(|| Bitmap::new(self.parity));
        let mut new = 0;
        for symbol in symbols.segments().filter(|&symbol| held.insert(symbol)) {
            new += 1;
            let (symbols, offset) = (Run::one(symbol), symbol - symbols.first());
            events.push_back(ReceiverEvent::StoreParity { object: self.id, block, symbols, offset });
        }
        let after = held.count();
        self.memory += self.memory_of(block, after) - before;
        self.received.parity += u64::from(new);
        Ok(new)
    }

    /// Moves `low` to the first missing segment, so that later searches begin there.
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

    /// Returns the octets that a block with `symbols` parity symbols takes, at the owner, which gathers the block, and
    /// here.
    pub(super) fn memory_of(&self, block: u32, symbols: u32) -> u64 {
        let count = self.geometry.block_len(block) + symbols;
        let here = BOOKKEEPING + u64::from(self.parity.div_ceil(8));
        u64::from(count) * u64::from(self.geometry.segment_size()) + here
    }

    /// Returns the number of symbols of `data`, which is of the block at hand, that may be handled at once. The symbol
    /// that completes a block is handled apart, because it has consequences.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let count = data.symbols.count();
        let plain = self.is_receiving() && self.check(data).is_ok();
        let most = if plain { self.until_whole(data).unwrap_or(count) } else { 1 };
        NonZeroU32::new(most.min(count)).unwrap_or(NonZeroU32::MIN)
    }

    /// Returns the number of symbols of `data` up to the one that completes its block; `None` if none does.
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

    /// Returns a symbol of this object in the form of payload ids.
    pub(super) fn point(&self, block: u32, symbol: u32) -> Point {
        point(self.fec, self.number, (block, self.geometry.block_len(block)), symbol)
    }
}
