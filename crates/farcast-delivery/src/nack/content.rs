//! Content of an object that is being received: segments, parity, and blocks that are being rebuilt.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};

use super::ReceiverEvent;
use crate::geometry::Geometry;
use crate::object::ObjectId;
use crate::passage::Passage;
use crate::receiver::Received;

/// Approximate octets of memory for a block's parity, besides its symbols.
const BOOKKEEPING: u64 = 128;

/// Progress of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentState {
    /// The object is offered, and the owner has not answered. Content that comes is stored after the owner's first
    /// steps.
    Opening,
    /// Content is being received.
    Receiving,
    /// All segments are stored; the owner verifies them.
    Verifying,
    /// The object is complete and verified since this instant.
    Complete(Time),
}

/// Content of an object that is being received.
#[derive(Clone, Debug)]
pub struct ObjectContent {
    /// Id by which the owner knows the object.
    pub id: ObjectId,
    /// Progress of the object.
    pub state: ContentState,
    /// `true` if the object's name has come, or there is none.
    pub is_named: bool,
    /// Division of the object into blocks and segments.
    pub geometry: Geometry,
    /// Number of parity symbols of a block.
    pub parity: u32,
    /// Stored segments.
    pub have: Bitmap,
    /// Counts for the object's report.
    pub received: Received,
    /// Losses on the path at the time the object began.
    pub passage: Passage,
    /// Stored parity, by block, and the octets that it takes.
    held: BTreeMap<u32, Bitmap>,
    memory: u64,
    /// Blocks that are being rebuilt.
    decoding: BTreeSet<u32>,
    /// Segment before which all segments are stored.
    low: u32,
}

impl ObjectContent {
    /// Makes the content of an object that is offered now.
    pub fn new(id: ObjectId, geometry: Geometry, parity: u32, is_named: bool) -> Self {
        Self {
            id,
            state: ContentState::Opening,
            is_named,
            geometry,
            parity,
            have: Bitmap::new(geometry.segments()),
            received: Received::default(),
            passage: Passage::default(),
            held: BTreeMap::new(),
            memory: 0,
            decoding: BTreeSet::new(),
            low: 0,
        }
    }

    /// Returns `true` if arriving content is stored.
    #[inline]
    pub fn is_receiving(&self) -> bool {
        matches!(self.state, ContentState::Opening | ContentState::Receiving)
    }

    /// Returns `true` if nothing of the object has come.
    pub fn is_bare(&self) -> bool {
        self.have.is_empty() && self.held.is_empty() && self.decoding.is_empty()
    }

    /// Returns the octets that all blocks with parity take, here and at the owner.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the number of missing segments of `block`.
    #[inline]
    pub fn missing_in(&self, block: u32) -> u32 {
        self.geometry.block_run(block).map_or(0, |run| run.count() - self.have.count_in(run))
    }

    /// Returns the number of symbols of `block` that have yet to come.
    #[inline]
    pub fn lacks(&self, block: u32) -> u32 {
        if self.decoding.contains(&block) {
            return 0;
        }
        self.missing_in(block).saturating_sub(self.held.get(&block).map_or(0, Bitmap::count))
    }

    /// Returns `true` if encoding symbol `symbol` of `block` has come.
    #[inline]
    pub fn holds(&self, block: u32, symbol: u32) -> bool {
        match symbol.checked_sub(self.geometry.block_len(block)) {
            None => self.have.contains(self.geometry.first_of(block) + symbol),
            Some(parity) => self.held.get(&block).is_some_and(|held| held.contains(parity)),
        }
    }

    /// Returns the stored parity of `block`.
    pub fn held(&self, block: u32) -> Option<&Bitmap> {
        self.held.get(&block)
    }

    /// Returns the first block in `from .. end` that lacks symbols.
    pub fn next_need(&self, from: u32, end: u32) -> Option<u32> {
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

    /// Moves the beginning of later searches to the first missing segment.
    #[inline]
    pub fn advance(&mut self) {
        if self.is_receiving() {
            self.low = self.have.next_clear(self.low).unwrap_or(self.low);
        }
    }

    /// Returns the number of `symbols` of `block` up to the one that completes it; `None` if none does. `parity` are
    /// the same symbols counted from the first parity symbol, if they are parity.
    pub fn until_whole(&self, block: u32, symbols: Run, parity: Option<Run>) -> Option<u32> {
        let mut left = self.lacks(block);
        if left == 0 {
            return None;
        }
        let (map, run) = match parity {
            Some(run) => (self.held.get(&block), run),
            None => (Some(&self.have), self.geometry.segments_of(block, symbols)?),
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

    /// Returns the octets that a block with `symbols` parity symbols takes, at the owner, which gathers the block, and
    /// here.
    fn memory_of(&self, block: u32, symbols: u32) -> u64 {
        let count = self.geometry.block_len(block) + symbols;
        let here = BOOKKEEPING + u64::from(self.parity.div_ceil(8));
        u64::from(count) * u64::from(self.geometry.segment_size()) + here
    }

    fn forget_parity(&mut self, block: u32) {
        if let Some(held) = self.held.remove(&block) {
            self.memory -= self.memory_of(block, held.count());
        }
    }
}

/// Changes, which make events for the owner.
impl ObjectContent {
    /// Stores what is new of a run of `block`: segments, or `parity` counted from 0, within `room` octets. Asks the
    /// owner to rebuild the block, or to verify the object, once enough has come. Returns the number of new symbols.
    ///
    /// # Errors
    /// [`Reject::Limit`] if parity exceeds `room`; [`Reject::Duplicate`] if nothing is new.
    pub fn store<X>(
        &mut self,
        block: u32,
        symbols: Run,
        parity: Option<Run>,
        room: u64,
        events: &mut VecDeque<ReceiverEvent<X>>,
    ) -> Result<(), Reject> {
        let new = match parity {
            Some(parity) => self.store_parity(block, parity, room, events)?,
            None => self.store_source(block, symbols, events),
        };
        self.received.duplicates += u64::from(symbols.count() - new);
        if new == 0 {
            return Err(Reject::Duplicate);
        }
        self.check_decodable(block, events);
        self.check_complete(events);
        Ok(())
    }

    fn store_source<X>(&mut self, block: u32, symbols: Run, events: &mut VecDeque<ReceiverEvent<X>>) -> u32 {
        let Some(run) = self.geometry.segments_of(block, symbols) else { return 0 };
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

    fn store_parity<X>(
        &mut self,
        block: u32,
        symbols: Run,
        room: u64,
        events: &mut VecDeque<ReceiverEvent<X>>,
    ) -> Result<u32, Reject> {
        if self.lacks(block) == 0 {
            return Ok(0);
        }
        let count = self.held.get(&block).map(Bitmap::count);
        let before = count.map_or(0, |count| self.memory_of(block, count));
        // The whole run is counted, although parts of it may be known.
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

    /// Adds the segments `have` that the owner has.
    pub fn hold<X>(&mut self, have: &Bitmap, events: &mut VecDeque<ReceiverEvent<X>>) {
        if !self.is_receiving() {
            return;
        }
        self.have.union(have);
        let begun: alloc::vec::Vec<u32> = self.held.keys().copied().collect();
        for block in begun {
            self.check_decodable(block, events);
        }
        self.check_complete(events);
    }

    /// Marks segments as missing again.
    pub fn lose(&mut self, segments: Run) {
        self.have.remove_run(segments);
        self.low = self.low.min(segments.first());
        if self.state == ContentState::Verifying && !self.have.is_full() {
            self.state = ContentState::Receiving;
        }
    }

    /// Notes that `block` was rebuilt, or could not be. Either way its parity is used up.
    pub fn decoded<X>(&mut self, block: u32, rebuilt: bool, events: &mut VecDeque<ReceiverEvent<X>>) {
        if !self.decoding.remove(&block) {
            return;
        }
        self.forget_parity(block);
        if let (true, Some(run)) = (rebuilt, self.geometry.block_run(block)) {
            self.have.insert_run(run);
        }
        self.check_complete(events);
    }

    /// Notes that the name has come, or that it will not come.
    pub fn name<X>(&mut self, events: &mut VecDeque<ReceiverEvent<X>>) {
        if !self.is_named {
            self.is_named = true;
            self.check_complete(events);
        }
    }

    /// Asks the owner to rebuild `block` once enough of it has come.
    fn check_decodable<X>(&mut self, block: u32, events: &mut VecDeque<ReceiverEvent<X>>) {
        if self.missing_in(block) == 0 {
            self.forget_parity(block);
        } else if self.lacks(block) == 0 && self.decoding.insert(block) {
            events.push_back(ReceiverEvent::Decode { object: self.id, block });
        }
    }

    /// Asks the owner to verify the object once all of it has come.
    fn check_complete<X>(&mut self, events: &mut VecDeque<ReceiverEvent<X>>) {
        if self.state == ContentState::Receiving && self.is_named && self.have.is_full() {
            self.state = ContentState::Verifying;
            events.push_back(ReceiverEvent::Complete(self.id));
        }
    }
}
