//! Requests of receivers, gathered while the sender waits for more (RFC 5740 §5.4.1).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};
use farcast_delivery::Geometry;

use super::departures::{OfBlock, Unheard};
use super::objects::Objects;
use super::parts::{Part, Parts};
use super::schedule::runs_in;
use crate::message::{Level, Request};
use crate::requests::{BlockId, List};

/// Requests of all receivers, merged.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    parity: u32,
    /// Objects that are requested whole.
    whole: Bitmap,
    /// Objects whose INFO is requested.
    info: Bitmap,
    /// Requests within objects, by object.
    within: BTreeMap<u32, Within>,
}

/// Requests within an object.
#[derive(Clone, Debug)]
struct Within {
    geometry: Geometry,
    parity: u32,
    /// Requested segments.
    source: Bitmap,
    /// Requested parity symbols, counted through the object.
    symbols: Bitmap,
    /// Blocks that are requested whole.
    whole: Bitmap,
    /// Worst single request for each block.
    needs: BTreeMap<u32, Need>,
}

/// Need of the receiver that lacks most of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    /// Number of parity symbols of the block that must have been sent before this receiver has enough.
    enough: u32,
    /// Number of symbols that it has asked for.
    count: u32,
}

/// Request of one receiver for a block.
#[derive(Clone, Debug, Default)]
struct OneNeeds {
    symbols: Vec<Run>,
    /// Number of further symbols, of any kind.
    any: u32,
}

impl Asked {
    pub(super) fn new(objects: u32, parity: u16) -> Self {
        let (whole, info) = (Bitmap::new(objects), Bitmap::new(objects));
        Self { parity: parity.into(), whole, info, within: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        // If all items of a request have been sent meanwhile, its object remains here without requests.
        let none_within =
            self.within.values().all(|within| within.whole.is_empty() && within.needs.is_empty());
        self.whole.is_empty() && self.info.is_empty() && none_within
    }

    /// Notes a request of one receiver, as far as the requested items have been sent before. Items that are scheduled
    /// anyway, or that were sent after the receiver asked (`unheard`), are left out. Returns the number of symbols,
    /// blocks and objects that remain.
    pub(super) fn note(&mut self, parts: &Parts, objects: &Objects, unheard: &Unheard) -> u32 {
        let begun = objects.begun();
        // Sum of one receiver's requests for a block: that many symbols of any kind will do.
        let (mut of_block, mut sum) = (BTreeMap::new(), 0u32);
        for part in &parts.asked {
            let count = match *part {
                Part::Info(run) => {
                    let said = objects.clip(run).into_iter().flat_map(Run::segments);
                    let said = said.filter(|object| !unheard.infos.contains(object));
                    said.map(|object| u32::from(self.info.insert(object))).sum()
                }
                Part::Objects(run) => {
                    let asked = objects.clip(run).into_iter().flat_map(Run::segments);
                    asked.map(|object| self.note_object(object, objects, unheard, &mut of_block)).sum()
                }
                Part::Blocks(object, blocks) if object < begun => {
                    self.note_blocks(object, blocks, objects, unheard, &mut of_block)
                }
                Part::Symbols((object, block), symbols) if object < begun => {
                    of_block.entry((object, block)).or_insert_with(OneNeeds::default).symbols.push(symbols);
                    0
                }
                Part::Erasures((object, block), count) if object < begun => {
                    of_block.entry((object, block)).or_insert_with(OneNeeds::default).any += count;
                    0
                }
                Part::Blocks(..) | Part::Symbols(..) | Part::Erasures(..) => 0,
            };
            sum = sum.saturating_add(count);
        }
        for ((object, block), needs) in of_block {
            let nothing = OfBlock::default();
            let unheard = unheard.blocks.get(&(object, block)).unwrap_or(&nothing);
            sum = sum.saturating_add(self.note_block(BlockId { object, block }, &needs, objects, unheard));
        }
        sum
    }

    /// Notes that `object` is requested whole. If it is being repeated, only parts that were not repeated since are
    /// noted.
    fn note_object(
        &mut self,
        object: u32,
        objects: &Objects,
        unheard: &Unheard,
        of_block: &mut BTreeMap<(u32, u32), OneNeeds>,
    ) -> u32 {
        let mut again = unheard.blocks.range((object, 0)..=(object, u32::MAX));
        let Some(all) = again.next().and_then(|_| Run::new(0, objects.get(object)?.geometry.blocks())) else {
            self.whole.insert(object);
            return 1;
        };
        let said = !unheard.infos.contains(&object) && self.info.insert(object);
        u32::from(said) + self.note_blocks(object, all, objects, unheard, of_block)
    }

    /// Notes that `blocks` are requested whole. Of blocks that are being repeated, only parts that were not repeated
    /// since are noted.
    fn note_blocks(
        &mut self,
        object: u32,
        blocks: Run,
        objects: &Objects,
        unheard: &Unheard,
        of_block: &mut BTreeMap<(u32, u32), OneNeeds>,
    ) -> u32 {
        let Some(within) = self.within(objects, object) else { return 0 };
        let (mut sum, mut from) = (0u32, blocks.first());
        let again = unheard.blocks.range((object, blocks.first())..(object, blocks.end()));
        for block in again.map(|(&(_, block), _)| block).chain([blocks.end()]) {
            let whole = Run::new(from, block - from);
            sum = sum.saturating_add(whole.map_or(0, |whole| within.note_blocks(whole)));
            if block < blocks.end()
                && let Some(all) = Run::new(0, within.geometry.block_len(block))
            {
                of_block.entry((object, block)).or_default().symbols.push(all);
            }
            from = block + 1;
        }
        sum
    }

    /// Notes the need of one receiver, which has not heard `unheard`, for a block. Returns the number of symbols.
    fn note_block(
        &mut self,
        BlockId { object, block }: BlockId,
        needs: &OneNeeds,
        objects: &Objects,
        unheard: &OfBlock,
    ) -> u32 {
        let Some(schedule) = objects.get(object).map(|outgoing| &outgoing.schedule) else { return 0 };
        let asked: Vec<Run> = needs.symbols.iter().flat_map(|&symbols| unheard.rest(symbols)).collect();
        let count = asked.iter().fold(needs.any, |sum, run| sum.saturating_add(run.count()));
        // Number of sent parity symbols with which the receiver has enough, counted from those that it had heard.
        let enough = (schedule.left(block) - unheard.fresh).saturating_add(count);
        if count == 0 || enough <= schedule.used(block) {
            return 0;
        }
        let Some(within) = self.within(objects, object) else { return 0 };
        for symbols in asked {
            within.note_symbols(block, symbols);
        }
        if needs.any > 0 {
            // The request names no segments. If parity is used up, the whole block is sent again.
            within.note_segments(Run::one(block));
        }
        let worst = within.needs.entry(block).or_default();
        (worst.enough, worst.count) = (worst.enough.max(enough), worst.count.max(count));
        count
    }

    fn within(&mut self, objects: &Objects, object: u32) -> Option<&mut Within> {
        let geometry = objects.get(object)?.geometry;
        Some(self.within.entry(object).or_insert_with(|| Within::new(geometry, self.parity)))
    }

    /// Puts all requests on the schedules of `objects`, and clears them. Returns `true` if any item was not scheduled
    /// before.
    pub(super) fn commit(&mut self, objects: &mut Objects) -> bool {
        let mut new = false;
        for object in self.info.iter() {
            new |= objects.say_again(object);
        }
        for object in self.whole.iter() {
            new |= objects.send_again(object);
        }
        for (object, within) in core::mem::take(&mut self.within) {
            let mut block = 0;
            while let Some(next) = within.next_block(block) {
                let need = within.needs.get(&next).filter(|_| !within.whole.contains(next));
                let enough = need.map(|need| need.enough);
                new |=
                    objects.repair(BlockId { object, block: next }, enough, &within.source, &within.symbols);
                block = next + 1;
            }
        }
        self.whole.clear();
        self.info.clear();
        new
    }

    /// Returns the gathered requests in the form of a request by the worst receiver, as far as there is `room`, and
    /// `true` if they did not fit. Other receivers need not repeat them (RFC 5740 §4.2.3.5).
    pub(super) fn advertise(&self, objects: &Objects, room: usize) -> (Vec<Request>, bool) {
        let mut list = List::new(room);
        let start = |object| objects.point(object, 0, 0);
        let mut fits = self.info.iter_runs().all(|run| list.add_run(Level::INFO, run, start));
        fits = fits && self.whole.iter_runs().all(|run| list.add_run(Level::OBJECT, run, start));
        for (&object, within) in &self.within {
            fits = fits && !self.whole.contains(object) && within.advertise(object, objects, &mut list);
        }
        (list.requests, !fits)
    }
}

impl Within {
    fn new(geometry: Geometry, parity: u32) -> Self {
        let symbols = Bitmap::new(geometry.blocks() * parity);
        let (source, whole) = (Bitmap::new(geometry.segments()), Bitmap::new(geometry.blocks()));
        Self { geometry, parity, source, symbols, whole, needs: BTreeMap::new() }
    }

    /// Notes that `blocks` are requested whole. Returns the number of their segments.
    fn note_blocks(&mut self, blocks: Run) -> u32 {
        self.whole.insert_run(blocks);
        self.note_segments(blocks)
    }

    fn note_segments(&mut self, blocks: Run) -> u32 {
        let (first, end) = (self.geometry.first_of(blocks.first()), self.geometry.first_of(blocks.end()));
        let run = Run::new(first, end - first);
        run.map_or(0, |run| {
            self.source.insert_run(run);
            run.count()
        })
    }

    fn note_symbols(&mut self, block: u32, symbols: Run) {
        let len = self.geometry.block_len(block);
        if let Some(dtus) = symbols.clip(0, len)
            && let Some(run) = self.geometry.segments_of(block, dtus)
        {
            self.source.insert_run(run);
        }
        if let Some(parity) = symbols.clip(len, u32::MAX)
            && let Some(run) = Run::new(block * self.parity + parity.first() - len, parity.count())
        {
            self.symbols.insert_run(run);
        }
    }

    /// Returns the first block from `block` on of which anything is requested.
    fn next_block(&self, block: u32) -> Option<u32> {
        let needs = self.needs.range(block..).next().map(|(&block, _)| block);
        needs.into_iter().chain(self.whole.next_set(block)).min()
    }

    /// Lists the requests. Returns `true` if there was room.
    fn advertise(&self, object: u32, objects: &Objects, list: &mut List) -> bool {
        let mut block = 0;
        while let Some(next) = self.next_block(block) {
            block = next + 1;
            let fits = if self.whole.contains(next) {
                list.add_run(Level::BLOCK, Run::one(next), |block| objects.point(object, block, 0))
            } else {
                self.advertise_symbols(BlockId { object, block: next }, objects, list)
            };
            if !fits {
                return false;
            }
        }
        true
    }

    /// Lists as many symbols of a block as the worst request had: requested parity, then segments, the highest first,
    /// as receivers choose them.
    fn advertise_symbols(
        &self,
        BlockId { object, block }: BlockId,
        objects: &Objects,
        list: &mut List,
    ) -> bool {
        let mut left = self.needs.get(&block).map_or(0, |need| need.count);
        let (len, first) = (self.geometry.block_len(block), block * self.parity);
        let parity = Run::new(first, self.parity)
            .into_iter()
            .flat_map(|run| runs_in(&self.symbols, run.first(), run.end()));
        let parity = parity.filter_map(|run| Run::new(len + run.first() - first, run.count()));
        let of_block = self.geometry.block_run(block);
        let mut source: Vec<Run> =
            of_block.into_iter().flat_map(|run| runs_in(&self.source, run.first(), run.end())).collect();
        source.reverse();
        let start = self.geometry.first_of(block);
        let source = source.into_iter().filter_map(|run| Run::new(run.first() - start, run.count()));
        parity.chain(source).all(|run| {
            let count = run.count().min(left);
            left -= count;
            // The last segments of a run are chosen.
            let first = if run.first() < len { run.end() - count } else { run.first() };
            let run = Run::new(first, count);
            run.is_none_or(|run| {
                list.add_run(Level::SEGMENT, run, |symbol| objects.point(object, block, symbol))
            })
        })
    }
}

#[cfg(test)]
mod tests;
