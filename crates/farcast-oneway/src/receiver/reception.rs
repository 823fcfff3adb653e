//! Reception of one object.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::net::SocketAddr;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::{Geometry, ObjectId, Passage, Received};

use super::ReceiverEvent;
use super::ring::{Order, Ring};
use super::withdrawal::Withdrawal;
use crate::message::{Description, Kind, Symbols};
use crate::timing;
use crate::wire::DESCRIPTION_LEN;

/// Returns the time at which the sender of `described`, heard at `now`, ends.
fn ends_at(now: Time, described: &Description) -> Time {
    match described.left_ms {
        u32::MAX => Time::NEVER,
        left => now + Span::from_millis(left.into()),
    }
}

/// State of a reception.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The owner looks for stored parts. Segments that come meanwhile are stored after that.
    Opening,
    Receiving,
    /// The owner verifies the object.
    Complete,
}

/// Reception of one object. Memory is a bit for each segment, and one for each parity symbol of the incomplete blocks
/// that have any.
#[derive(Clone, Debug)]
pub(super) struct Reception {
    pub(super) object: ObjectId,
    pub(super) source: SocketAddr,
    pub(super) session: u32,
    pub(super) id: [u8; 32],
    geometry: Geometry,
    parity_symbols: u32,
    state: State,
    pub(super) have: Bitmap,
    pub(super) withdrawal: Option<Box<Withdrawal>>,
    /// `true` if the owner lacks nothing but withdrawn segments.
    pub(super) is_bereft: bool,
    /// Parity symbols of incomplete blocks.
    parity: BTreeMap<u32, Bitmap>,
    /// Blocks that are being rebuilt.
    decoding: BTreeSet<u32>,
    received: Received,
    /// Symbols that came of the sender's ring, and the losses between them.
    ring: Ring,
    /// Symbols that came while any were needed.
    pub(super) heard: u64,
    pub(super) heard_at: Time,
    /// Last time at which new content came, or stored content was found; `None` if the object was only described.
    pub(super) fed: Option<Time>,
    /// Time at which the sender ends, as last announced; [`Time::NEVER`] if it cannot tell.
    pub(super) ends_at: Time,
    /// Silence after which the sender has ended, or nothing gets through.
    pub(super) silence: Span,
    /// `true` if the sender has said that nothing follows.
    pub(super) is_over: bool,
}

impl Reception {
    pub(super) fn new(
        object: ObjectId,
        described: &Description,
        source: SocketAddr,
        geometry: Geometry,
        now: Time,
    ) -> Self {
        Self {
            object,
            source,
            session: described.session,
            id: described.id,
            geometry,
            parity_symbols: described.parity.into(),
            state: State::Opening,
            // The bitmap takes no memory before any content comes.
            have: Bitmap::default(),
            withdrawal: None,
            is_bereft: false,
            parity: BTreeMap::new(),
            decoding: BTreeSet::new(),
            received: Received::default(),
            ring: Ring::default(),
            heard: 0,
            heard_at: now,
            fed: None,
            ends_at: ends_at(now, described),
            silence: timing::silence(described.rate_kbps, DESCRIPTION_LEN + described.name.len()),
            is_over: false,
        }
    }

    /// Handles another description of the object.
    pub(super) fn described(&mut self, now: Time, described: &Description) {
        (self.heard_at, self.ends_at) = (now, ends_at(now, described));
        self.is_over = described.over;
    }

    /// Returns `true` if `described` divides and codes the object in the same way.
    pub(super) fn agrees(&self, described: &Description) -> bool {
        let cut = (self.geometry.size(), self.geometry.segment_size(), self.geometry.block_size());
        cut == (described.size, described.segment, described.block.into())
            && self.parity_symbols == u32::from(described.parity)
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(super) fn have(&self) -> &Bitmap {
        &self.have
    }

    pub(super) fn is_receiving(&self) -> bool {
        self.state == State::Receiving
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Returns `true` if content is missing that only the sender can provide.
    pub(super) fn lacks(&self) -> bool {
        let coming = |block: &u32| self.geometry.block_run(*block).map_or(0, |run| self.missing_in(run));
        let coming: u32 = self.decoding.iter().map(coming).sum();
        self.state == State::Receiving && self.have.count() + coming < self.have.len()
    }

    /// Returns the number of usable symbols.
    pub(super) fn usable(&self) -> u32 {
        self.have.count() + self.parity.values().map(Bitmap::count).sum::<u32>()
    }

    /// Returns `true` if the last missing segment has just become available.
    pub(super) fn becomes_complete(&mut self) -> bool {
        let complete = self.state == State::Receiving && self.have.is_full();
        if complete {
            self.state = State::Complete;
        }
        complete
    }

    /// Returns the number of further symbols that `block` needs; 0 if none.
    pub(super) fn needed(&self, block: u32) -> u32 {
        let Some(run) = self.geometry.block_run(block) else { return 0 };
        if self.state == State::Complete || self.decoding.contains(&block) {
            return 0;
        }
        self.missing_in(run).saturating_sub(self.parity.get(&block).map_or(0, Bitmap::count))
    }

    fn missing_in(&self, run: Run) -> u32 {
        run.count() - self.have.count_in(run)
    }

    /// Allocates the memory for content.
    fn make_room(&mut self) {
        if self.have.len() < self.geometry.segments() {
            self.have = Bitmap::new(self.geometry.segments());
        }
    }

    /// Begins reception after the owner's answer, with these stored segments.
    pub(super) fn open(&mut self, held: &Bitmap) {
        if self.state == State::Opening {
            self.state = State::Receiving;
            self.make_room();
            if held.len() == self.have.len() {
                self.fed = self.fed.or((!held.is_empty()).then_some(self.heard_at));
                // Segments that came meanwhile may have been stored before.
                let before = u64::from(self.have.count());
                self.have.union(held);
                let new = u64::from(self.have.count() - held.count());
                self.received.segments -= before - new;
                self.received.duplicates += before - new;
            }
            self.pass_over_gone();
        }
    }

    /// Adds segments that the owner has in addition.
    pub(super) fn hold(&mut self, held: &Bitmap, events: &mut VecDeque<ReceiverEvent>) {
        if held.len() != self.have.len() {
            return;
        }
        self.have.union(held);
        let coded: alloc::vec::Vec<u32> = self.parity.keys().copied().collect();
        for block in coded {
            self.settle(block, events);
        }
    }

    /// Adds parity symbols of `block` that were kept from before.
    pub(super) fn keep(&mut self, block: u32, symbols: &Bitmap, events: &mut VecDeque<ReceiverEvent>) {
        let is_torn = self.geometry.block_run(block).is_some_and(|run| self.is_torn(run));
        let fits = symbols.len() == self.parity_symbols && block < self.geometry.blocks() && !is_torn;
        if self.state == State::Receiving && fits && !self.decoding.contains(&block) {
            self.fed = self.fed.or(Some(self.heard_at));
            self.parity.entry(block).or_insert_with(|| Bitmap::new(symbols.len())).union(symbols);
            self.settle(block, events);
        }
    }

    /// Removes segments that must come again, and the parity of their blocks, which may be wrong too.
    pub(super) fn lost(&mut self, segments: Run) {
        let Some(segments) = segments.clip(0, self.have.len()) else { return };
        if self.is_complete() && self.are_gone(segments) {
            // The owner has looked for everything, and misses these.
            self.is_bereft = true;
            return;
        }
        self.have.remove_run(segments);
        if self.forgive(segments) {
            return;
        }
        let blocks = self.geometry.block_of(segments.first())..=self.geometry.block_of(segments.last());
        self.parity.retain(|block, _| !blocks.contains(block));
        self.decoding.retain(|block| !blocks.contains(block));
        if self.state == State::Complete {
            self.state = State::Receiving;
        }
    }

    /// Records that a block was rebuilt, or could not be, in which case its parity is dropped.
    pub(super) fn decoded(&mut self, block: u32, rebuilt: bool, events: &mut VecDeque<ReceiverEvent>) {
        let Some(run) = self.geometry.block_run(block) else { return };
        let asked = self.decoding.remove(&block);
        if rebuilt && asked {
            self.have.insert_run(run);
        }
        if asked || !rebuilt {
            self.parity.remove(&block);
            self.settle(block, events);
        }
    }

    /// Drops the parity of blocks that have withdrawn segments.
    pub(super) fn drop_torn_parity(&mut self) {
        let mut parity = core::mem::take(&mut self.parity);
        parity.retain(|&block, _| !self.geometry.block_run(block).is_some_and(|run| self.is_torn(run)));
        self.parity = parity;
    }

    /// Returns the counts of the object.
    pub(super) fn received(&self) -> Received {
        self.received.passed(Passage::default(), self.ring.passage())
    }

    fn came(&mut self, symbols: &Symbols) {
        // A sender that has withdrawn segments leaves them out, and they are not lost on the way.
        if self.withdrawal.is_some() {
            return;
        }
        self.ring.came(&Order { geometry: &self.geometry, parity: self.parity_symbols }, symbols);
    }

    /// Records symbols that came and could not be stored, so that they do not count as lost on the way.
    pub(super) fn unstored(&mut self, symbols: &Symbols) {
        if self.check(symbols).is_ok() && self.lacks() {
            self.came(symbols);
        }
    }

    /// Takes the symbols of a message.
    pub(super) fn symbols(
        &mut self,
        symbols: &Symbols,
        events: &mut VecDeque<ReceiverEvent>,
    ) -> Result<(), Reject> {
        let (block, run) = (symbols.block, symbols.run);
        self.check(symbols)?;
        let is_torn = |run: Run| self.is_torn(run);
        if symbols.kind == Kind::Parity && self.geometry.block_run(block).is_some_and(is_torn) {
            return Err(Reject::Unexpected);
        }
        match self.state {
            State::Receiving => {}
            State::Opening if symbols.kind == Kind::Source => self.make_room(),
            // The parity kept from before is not known yet.
            _ => return Err(Reject::Unexpected),
        }
        if self.lacks() || self.state == State::Opening {
            self.came(symbols);
        }
        let first = self.geometry.first_of(block);
        let object = self.object;
        if self.needed(block) == 0 {
            self.received.duplicates += u64::from(run.count());
            self.heard += if self.lacks() { u64::from(run.count()) } else { 0 };
            return Err(Reject::Duplicate);
        }
        self.heard += u64::from(run.count());
        let new = match symbols.kind {
            Kind::Source => {
                let Some(all) = Run::new(first + run.first(), run.count()) else { return Ok(()) };
                let mut at = all.first();
                let mut new = 0;
                while let Some(gap) =
                    Run::new(at, all.end() - at).and_then(|rest| self.have.next_gap_in(rest))
                {
                    self.have.insert_run(gap);
                    let offset = gap.first() - all.first();
                    events.push_back(ReceiverEvent::Store { object, segments: gap, offset });
                    (at, new) = (gap.end(), new + gap.count());
                }
                self.received.segments += u64::from(new);
                new
            }
            Kind::Parity => {
                let kept = self.parity.entry(block).or_insert_with(|| Bitmap::new(self.parity_symbols));
                let mut at = run.first();
                let mut new = 0;
                while let Some(gap) = Run::new(at, run.end() - at).and_then(|rest| kept.next_gap_in(rest)) {
                    kept.insert_run(gap);
                    let offset = gap.first() - run.first();
                    events.push_back(ReceiverEvent::Parity { object, block, symbols: gap, offset });
                    (at, new) = (gap.end(), new + gap.count());
                }
                self.received.parity += u64::from(new);
                new
            }
        };
        self.received.duplicates += u64::from(run.count() - new);
        self.settle(block, events);
        if new == 0 { Err(Reject::Duplicate) } else { Ok(()) }
    }

    /// Checks that the object has these symbols, with these lengths.
    fn check(&self, symbols: &Symbols) -> Result<(), Reject> {
        let (block, run, segment) = (symbols.block, symbols.run, self.geometry.segment_size());
        let (most, last) = match symbols.kind {
            Kind::Source => {
                let last = self.geometry.first_of(block).checked_add(run.last());
                let last = last.filter(|&last| last < self.geometry.segments());
                (self.geometry.block_len(block), last.map_or(0, |last| self.geometry.payload_len(last)))
            }
            Kind::Parity => (self.parity_symbols, segment),
        };
        if block >= self.geometry.blocks() || run.end() > most {
            return Err(Reject::OutOfRange);
        }
        let whole = run.count() == 1 || symbols.len == segment;
        if symbols.last == last && whole { Ok(()) } else { Err(Reject::Inconsistent) }
    }

    /// Requests that `block` be rebuilt if it can be, and drops the parity of a complete one.
    fn settle(&mut self, block: u32, events: &mut VecDeque<ReceiverEvent>) {
        let Some(run) = self.geometry.block_run(block) else { return };
        if self.missing_in(run) == 0 {
            self.parity.remove(&block);
            self.decoding.remove(&block);
        } else if self.state == State::Receiving && self.needed(block) == 0 && self.decoding.insert(block) {
            events.push_back(ReceiverEvent::Decode { object: self.object, block });
        }
    }
}
