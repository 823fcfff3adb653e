//! An object that is being sent: the symbols that wait to be sent, the lowest first, and the requests of receivers.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Geometry;
use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::RepairLimit;

use super::recent::Recent;
use crate::message::Request;

/// Run that leaves next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) block: u32,
    /// Symbols of the block, either all segments or all parity.
    pub(super) symbols: Run,
    pub(super) parity: bool,
    /// The symbols are sent because a receiver requested them.
    pub(super) repair: bool,
}

/// Needs of receivers for a block.
#[derive(Clone, Debug, Default)]
struct Need {
    /// The largest number of symbols that one receiver lacks.
    erasures: u32,
    /// Symbols that would serve any of the requesting receivers: one bit for each of the 255 that a block may have.
    symbols: [u64; 4],
    /// A receiver lacks the whole block.
    whole: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    geometry: Geometry,
    /// Parity symbols of a block, and the number of them that follow it unasked.
    parity: (u32, u32),
    /// Segments that wait to be sent.
    source: Bitmap,
    /// Parity symbols that wait to be sent, counted through the object.
    symbols: Bitmap,
    /// First segment and first parity symbol that may wait to be sent; nothing before them does.
    low: (u32, u32),
    /// The first segment that has never been sent.
    frontier: u32,
    /// Number of parity symbols of each block that were sent or wait to be.
    used: Vec<u8>,
    /// Parity symbols that follow their block unasked and have yet to leave.
    unasked: Bitmap,
    asked: BTreeMap<u32, Need>,
    info_asked: bool,
    /// Count of the symbols that were sent again.
    pub(super) repairs: RepairLimit,
    /// Runs that have left recently.
    pub(super) recent: Recent,
    /// Receivers that have not acknowledged the object, and the number of questions to them.
    pub(super) waiting: Vec<NodeId>,
    pub(super) asks: u32,
}

impl Outgoing {
    pub(super) fn new(geometry: Geometry, parity: u8, auto: u8, waiting: Vec<NodeId>) -> Self {
        let blocks = geometry.blocks();
        let symbols = blocks * u32::from(parity);
        Self {
            geometry,
            parity: (parity.into(), auto.into()),
            source: Bitmap::full(geometry.segments()),
            symbols: Bitmap::new(symbols),
            low: (0, 0),
            frontier: 0,
            used: vec![0; blocks as usize],
            unasked: Bitmap::new(if auto > 0 { symbols } else { 0 }),
            asked: BTreeMap::new(),
            info_asked: false,
            repairs: RepairLimit::of(geometry.segments()),
            recent: Recent::default(),
            waiting,
            asks: 0,
        }
    }

    /// Discards everything that waits to be sent.
    pub(super) fn clear(&mut self) {
        self.source = Bitmap::new(self.source.len());
        self.symbols = Bitmap::new(self.symbols.len());
        self.unasked = Bitmap::new(self.unasked.len());
        self.asked.clear();
        self.info_asked = false;
        self.frontier = self.geometry.segments();
    }

    /// Returns the number of segments and symbols that wait to be sent.
    pub(super) fn len(&self) -> u32 {
        self.source.count() + self.symbols.count()
    }

    /// Returns the next run.
    pub(super) fn next(&mut self) -> Option<Next> {
        let (source, symbol) = (self.source.next_set(self.low.0), self.symbols.next_set(self.low.1));
        self.low = (source.unwrap_or(u32::MAX), symbol.unwrap_or(u32::MAX));
        let of_source = source.map(|segment| self.geometry.block_of(segment));
        let of_parity = symbol.map(|symbol| symbol / self.parity.0);
        match (of_source, of_parity) {
            (Some(block), other) if other.is_none_or(|other| block <= other) => self.source_run(block),
            (_, Some(block)) => self.parity_run(block),
            _ => None,
        }
    }

    fn source_run(&self, block: u32) -> Option<Next> {
        let (first, run) = (self.geometry.first_of(block), self.source.next_run(self.low.0)?);
        // New segments and repeated ones are separate runs.
        let repair = run.first() < self.frontier;
        let end = first + self.geometry.block_len(block);
        let mut end = if repair { end.min(self.frontier) } else { end };
        // A short segment is a run by itself.
        let last = self.geometry.segments() - 1;
        if run.first() < last && self.geometry.payload_len(last) < self.geometry.segment_size() {
            end = end.min(last);
        }
        let run = run.clip(run.first(), end)?;
        let symbols = Run::new(run.first() - first, run.count())?;
        Some(Next { block, symbols, parity: false, repair })
    }

    fn parity_run(&self, block: u32) -> Option<Next> {
        let (first, run) = (block * self.parity.0, self.symbols.next_run(self.low.1)?);
        let run = run.clip(run.first(), first + self.parity.0)?;
        let repair = !self.unasked.contains(run.first());
        // Unasked parity and requested parity are separate runs.
        let end =
            if repair { self.unasked.next_set(run.first()) } else { self.unasked.next_clear(run.first()) };
        let run = run.clip(run.first(), end.unwrap_or(u32::MAX))?;
        let symbols = Run::new(self.geometry.block_len(block) + run.first() - first, run.count())?;
        Some(Next { block, symbols, parity: true, repair })
    }

    /// Notes that the first `count` symbols of `next` have left. Returns `true` if they end their block, sent for the
    /// first time.
    pub(super) fn sent(&mut self, next: &Next, count: u32) -> bool {
        if next.repair {
            self.repairs.note(count);
        }
        let (block, len) = (next.block, self.geometry.block_len(next.block));
        let first = next.symbols.first();
        if next.parity {
            let Some(run) = Run::new(block * self.parity.0 + first - len, count) else { return false };
            self.symbols.remove_run(run);
            self.unasked.remove_run(run);
            return !next.repair && first + count == len + self.parity.1;
        }
        let Some(run) = Run::new(self.geometry.first_of(block) + first, count) else { return false };
        self.source.remove_run(run);
        if next.repair {
            return false;
        }
        self.frontier = run.end();
        let ends = first + count == len;
        if ends && let Some(auto) = self.use_parity(block, self.parity.1) {
            self.unasked.insert_run(auto);
            return false;
        }
        ends
    }

    /// Adds `count` fresh parity symbols of `block`, which has that many, to those that wait. Returns these.
    fn use_parity(&mut self, block: u32, count: u32) -> Option<Run> {
        let used = &mut self.used[block as usize];
        let first = block * self.parity.0 + u32::from(*used);
        let run = Run::new(first, count)?;
        *used += count as u8;
        self.symbols.insert_run(run);
        self.low.1 = self.low.1.min(first);
        Some(run)
    }

    /// Returns `true` if every segment has left once.
    pub(super) fn is_through(&self) -> bool {
        self.frontier == self.geometry.segments()
    }

    /// Returns `true` if segments of `block` have left.
    fn has_begun(&self, block: u32) -> bool {
        self.geometry.first_of(block) < self.frontier
    }
}

/// Requests of receivers.
impl Outgoing {
    pub(super) fn is_asked(&self) -> bool {
        !self.asked.is_empty() || self.info_asked
    }

    /// Clears the request for INFO. Returns `true` if there was one.
    pub(super) fn take_info(&mut self) -> bool {
        core::mem::take(&mut self.info_asked)
    }

    /// Returns the block that begins at `offset`.
    fn block_at(&self, offset: u32) -> Result<u32, Reject> {
        let len = self.geometry.block_size() * u32::from(self.geometry.segment_size());
        let block = offset / len;
        if offset.is_multiple_of(len) && block < self.geometry.blocks() {
            Ok(block)
        } else {
            Err(Reject::OutOfRange)
        }
    }

    /// Checks that everything in `request` exists.
    pub(super) fn check(&self, request: &Request) -> Result<(), Reject> {
        match request {
            Request::Segments { erasures, offset, mask } => {
                let most = self.geometry.block_len(self.block_at(*offset)?) + self.parity.0;
                let fits = u32::from(*erasures) <= most && mask.iter().all(|symbol| symbol < most);
                if fits { Ok(()) } else { Err(Reject::OutOfRange) }
            }
            Request::Blocks { offset, mask } => {
                let first = self.block_at(*offset)?;
                let fits = mask.iter().all(|n| first + n < self.geometry.blocks());
                if fits { Ok(()) } else { Err(Reject::OutOfRange) }
            }
            Request::Info | Request::Object => Ok(()),
        }
    }

    /// Notes a checked request of one receiver for blocks from `from` on. Returns the number of segments and symbols
    /// requested. Symbols that left after `known` may still reach the receiver and are subtracted; it asks again if
    /// they did not suffice.
    pub(super) fn note(&mut self, request: &Request, from: u32, known: Time) -> u32 {
        match request {
            Request::Segments { erasures, offset, mask } => match self.block_at(*offset) {
                Ok(block) if block >= from && self.has_begun(block) => {
                    let erasures = u32::from(*erasures).saturating_sub(self.recent.since(block, known));
                    if erasures == 0 {
                        return 0;
                    }
                    let need = self.asked.entry(block).or_default();
                    need.erasures = need.erasures.max(erasures);
                    for symbol in mask.iter() {
                        need.symbols[symbol as usize / 64] |= 1 << (symbol % 64);
                    }
                    erasures
                }
                _ => 0,
            },
            Request::Blocks { offset, mask } => match self.block_at(*offset) {
                Ok(first) => mask.iter().map(|n| self.note_whole(first + n, from, known)).sum(),
                Err(_) => 0,
            },
            Request::Info => {
                self.info_asked = true;
                1
            }
            Request::Object => {
                self.info_asked = true;
                let blocks = 0..self.geometry.blocks();
                blocks.map(|block| self.note_whole(block, from, known)).sum::<u32>() + 1
            }
        }
    }

    fn note_whole(&mut self, block: u32, from: u32, known: Time) -> u32 {
        if block < from || !self.has_begun(block) {
            return 0;
        }
        if self.recent.since(block, known) >= self.geometry.block_len(block) {
            return 0;
        }
        self.asked.entry(block).or_default().whole = true;
        self.geometry.block_len(block)
    }

    /// Adds everything requested to what waits to be sent, and forgets the requests. Returns `true` if any of it is
    /// new.
    pub(super) fn commit(&mut self) -> bool {
        let before = self.len();
        for (block, need) in core::mem::take(&mut self.asked) {
            self.repair(block, &need);
        }
        self.len() > before
    }

    /// Repairs a block: with as many fresh parity symbols as the worst receiver lacks, if there are enough; otherwise
    /// with the requested symbols (draft §4.4).
    fn repair(&mut self, block: u32, need: &Need) {
        let fresh = self.parity.0 - u32::from(self.used[block as usize]);
        if !need.whole && need.erasures <= fresh {
            // Symbols that still wait count too: another receiver requested them, or they go unasked.
            let due =
                Run::new(block * self.parity.0, self.parity.0).map_or(0, |run| self.symbols.count_in(run));
            self.use_parity(block, need.erasures.saturating_sub(due));
            return;
        }
        let (first, len) = (self.geometry.first_of(block), self.geometry.block_len(block));
        if need.whole
            && let Some(run) = Run::new(first, len).and_then(|run| run.clip(first, self.frontier))
        {
            self.source.insert_run(run);
            self.low.0 = self.low.0.min(first);
        }
        let symbols =
            (0..u8::MAX.into()).filter(|&n: &u32| need.symbols[n as usize / 64] & (1 << (n % 64)) != 0);
        for symbol in symbols {
            if let Some(parity) = symbol.checked_sub(len) {
                let at = block * self.parity.0 + parity;
                self.symbols.insert(at);
                self.low.1 = self.low.1.min(at);
                let used = &mut self.used[block as usize];
                *used = (*used).max(parity as u8 + 1);
            } else if first + symbol < self.frontier {
                // Segments that were never sent will be sent anyway.
                self.source.insert(first + symbol);
                self.low.0 = self.low.0.min(first + symbol);
            }
        }
    }
}

#[cfg(test)]
mod tests;
