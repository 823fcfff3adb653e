//! What receivers have asked for, while the sender waits for more of it (RFC 5740 §5.4.1).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};
use farcast_delivery::Geometry;

use super::objects::Objects;
use super::parts::{Part, Parts};
use super::schedule::runs_in;
use crate::message::{Level, Request};
use crate::requests::List;

/// The needs of receivers, as one.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    parity: u32,
    /// Objects that somebody asks for as they stand.
    whole: Bitmap,
    /// Objects of which somebody asks what is said of them.
    info: Bitmap,
    /// Within objects.
    within: BTreeMap<u32, Within>,
}

/// The needs of receivers within an object.
#[derive(Clone, Debug)]
struct Within {
    geometry: Geometry,
    parity: u32,
    /// Segments.
    source: Bitmap,
    /// Parity symbols, counted through the object.
    symbols: Bitmap,
    /// Blocks that somebody asks for as they stand.
    whole: Bitmap,
    /// By block, how many symbols the worst single request has asked for.
    erasures: BTreeMap<u32, u32>,
}

impl Asked {
    pub(super) fn new(objects: u32, parity: u16) -> Self {
        let (whole, info) = (Bitmap::new(objects), Bitmap::new(objects));
        Self { parity: parity.into(), whole, info, within: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.info.is_empty() && self.within.is_empty()
    }

    /// Notes what one receiver asks for, as far as it lies behind `from`, an object and one of its blocks, and has been
    /// sent. How many symbols, blocks and objects that is.
    pub(super) fn note(&mut self, parts: &Parts, objects: &Objects, from: (u32, u32)) -> u32 {
        let begun = objects.begun();
        let behind = |object, block| object < begun && (object, block) >= from;
        // An object whose beginning lies before is not asked for as a whole.
        let first = from.0 + u32::from(from.1 > 0);
        // What one receiver asks for of a block, in all: any so many symbols will do.
        let (mut of_block, mut sum) = (BTreeMap::new(), 0u32);
        for part in &parts.asked {
            let count = match *part {
                Part::Info(run) => objects.clip(run, first).map_or(0, |run| {
                    self.info.insert_run(run);
                    run.count()
                }),
                Part::Objects(run) => objects.clip(run, first).map_or(0, |run| {
                    self.whole.insert_run(run);
                    run.count()
                }),
                Part::Blocks(object, blocks) => {
                    let low = if object == from.0 { from.1 } else { 0 };
                    let blocks = blocks.clip(low, u32::MAX).filter(|blocks| behind(object, blocks.first()));
                    let within = blocks.and_then(|blocks| Some((self.within(objects, object)?, blocks)));
                    within.map_or(0, |(within, blocks)| within.note_blocks(blocks))
                }
                Part::Symbols((object, block), symbols) if behind(object, block) => {
                    *of_block.entry((object, block)).or_insert(0u32) += symbols.count();
                    self.within(objects, object).map_or(0, |within| within.note_symbols(block, symbols))
                }
                Part::Erasures((object, block), count) if behind(object, block) => {
                    *of_block.entry((object, block)).or_insert(0) += count;
                    self.within(objects, object).map_or(0, |within| within.note_any(block, count))
                }
                Part::Symbols(..) | Part::Erasures(..) => 0,
            };
            sum = sum.saturating_add(count);
        }
        for ((object, block), count) in of_block {
            if let Some(within) = self.within.get_mut(&object) {
                let worst = within.erasures.entry(block).or_insert(0);
                *worst = (*worst).max(count);
            }
        }
        sum
    }

    fn within(&mut self, objects: &Objects, object: u32) -> Option<&mut Within> {
        let geometry = objects.get(object)?.geometry;
        Some(self.within.entry(object).or_insert_with(|| Within::new(geometry, self.parity)))
    }

    /// Puts all that was asked for on the schedules of `objects`, and forgets it. Whether any of it is new there.
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
                let erasures = within.erasures.get(&next).copied().filter(|_| !within.whole.contains(next));
                new |= objects.repair((object, next), erasures, &within.source, &within.symbols);
                block = next + 1;
            }
        }
        self.whole.clear();
        self.info.clear();
        new
    }

    /// What was asked for, in the words of a receiver that lacks as much as any, as far as there is `room`; and
    /// whether that was not far enough. For others who need not ask for it (RFC 5740 §4.2.3.5).
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
        Self { geometry, parity, source, symbols, whole, erasures: BTreeMap::new() }
    }

    /// Notes that `blocks` are asked for; how many segments they have.
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

    /// Notes that any `count` of `block` are asked for. Where parity does not do, any so many will not either: nobody
    /// said which.
    fn note_any(&mut self, block: u32, count: u32) -> u32 {
        self.note_segments(Run::one(block));
        count
    }

    fn note_symbols(&mut self, block: u32, symbols: Run) -> u32 {
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
        symbols.count()
    }

    /// The first block from `block` on of which anything was asked for.
    fn next_block(&self, block: u32) -> Option<u32> {
        let erasures = self.erasures.range(block..).next().map(|(&block, _)| block);
        erasures.into_iter().chain(self.whole.next_set(block)).min()
    }

    /// Lists what was asked for; whether there was room.
    fn advertise(&self, object: u32, objects: &Objects, list: &mut List) -> bool {
        let mut block = 0;
        while let Some(next) = self.next_block(block) {
            block = next + 1;
            let fits = if self.whole.contains(next) {
                list.add_run(Level::BLOCK, Run::one(next), |block| objects.point(object, block, 0))
            } else {
                self.advertise_symbols((object, next), objects, list)
            };
            if !fits {
                return false;
            }
        }
        true
    }

    /// Lists as many symbols of a block as the worst request had: parity that was asked for, and then segments, the
    /// highest first, as receivers choose them.
    fn advertise_symbols(&self, (object, block): (u32, u32), objects: &Objects, list: &mut List) -> bool {
        let mut left = self.erasures.get(&block).copied().unwrap_or(0);
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
            // Of a run of segments the last ones.
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
