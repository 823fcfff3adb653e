//! Requests of a stream's receiver (RFC 5740 §5.3), and requests of others.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use farcast_core::Run;

use super::block::{Block, Shape};
use crate::message::{Fec, Form, Level, Point, PointRange, Request};
use crate::requests::{BlockSymbol, List, point};

/// Maximum number of blocks for which requests of others are remembered.
const REMEMBERED: usize = 4096;

/// Progress of the sender: all blocks before this one are passed, and this number of symbols of it.
pub(super) type Place = (u32, u32);

/// Requests of others by block: the number of symbols that this receiver lacks, at most in one message.
pub(super) type Heard = BTreeMap<u32, u32>;

/// Needs of a receiver: the blocks of its window, and the sender's progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs<'a> {
    pub(super) shape: Shape,
    pub(super) fec: Fec,
    pub(super) object: u16,
    /// Number of the first block.
    pub(super) low: u32,
    /// Blocks; `None` if nothing of a block has come.
    pub(super) blocks: &'a VecDeque<Option<Block>>,
    pub(super) place: Place,
}

impl Needs<'_> {
    fn point(&self, block: u32, symbol: u32) -> Point {
        point(self.fec, self.object, BlockSymbol { block, len: self.shape.len, symbol })
    }

    /// Returns the number of symbols of the block to ask for.
    pub(super) fn lacks(&self, block: u32) -> u32 {
        let shape = self.shape;
        let held = block.checked_sub(self.low).and_then(|at| self.blocks.get(at as usize)?.as_ref());
        match (held, block.cmp(&self.place.0)) {
            (Some(held), core::cmp::Ordering::Less) => held.lacks(shape),
            (None, core::cmp::Ordering::Less) if block >= self.low => shape.len,
            // The block is not complete yet, so it has no parity, and its symbols themselves are requested (RFC 5740
            // §4.2.3.1).
            (Some(held), core::cmp::Ordering::Equal) if held.lacks(shape) > 0 => {
                held.gaps(0..self.place.1).map(Run::count).sum()
            }
            (None, core::cmp::Ordering::Equal) if block >= self.low => self.place.1,
            _ => 0,
        }
    }

    /// Returns the blocks to ask for.
    pub(super) fn lacking(&self) -> impl Iterator<Item = u32> + '_ {
        let end = self.place.0.saturating_add(u32::from(self.place.1 > 0));
        (self.low..end).filter(|&block| self.lacks(block) > 0)
    }

    /// Returns `true` if others have asked for everything that is lacking.
    pub(super) fn are_covered(&self, heard: &Heard) -> bool {
        self.lacking().all(|block| heard.get(&block).is_some_and(|&count| count >= self.lacks(block)))
    }

    /// Returns as many requests as fit `room` octets.
    pub(super) fn list(&self, room: usize) -> Vec<Request> {
        let mut list = List::new(room);
        let mut lacking = self.lacking().peekable();
        while let Some(block) = lacking.next() {
            let whole = |block| block < self.place.0 && self.lacks(block) == self.shape.len;
            let fits = if whole(block) {
                // Blocks of which nothing has come follow one another after an outage.
                let mut end = block + 1;
                while lacking.next_if(|&next| next == end && whole(next)).is_some() {
                    end += 1;
                }
                let run = Run::new(block, end - block);
                run.is_none_or(|run| list.add_run(Level::BLOCK, run, |block| self.point(block, 0)))
            } else {
                self.wanted(block)
                    .into_iter()
                    .all(|run| list.add_run(Level::SEGMENT, run, |symbol| self.point(block, symbol)))
            };
            if !fits {
                break;
            }
        }
        list.requests
    }

    /// Returns symbols that make up for what `block` lacks. Of a complete block, parity comes first, and if that is not
    /// enough, the last of the missing symbols follow.
    fn wanted(&self, block: u32) -> Vec<Run> {
        let held = self.blocks.get((block - self.low) as usize).and_then(Option::as_ref);
        let Some(held) = held else { return Run::new(0, self.place.1).into_iter().collect() };
        if block == self.place.0 {
            return held.gaps(0..self.place.1).collect();
        }
        let lacks = held.lacks(self.shape);
        let parity = held.parity_gaps(self.shape, lacks);
        let mut left = lacks - parity.iter().map(|run| run.count()).sum::<u32>();
        let source: Vec<Run> = held.gaps(0..self.shape.len).collect();
        let mut wanted = Vec::new();
        for gap in source.into_iter().rev() {
            let count = gap.count().min(left);
            left -= count;
            wanted.extend(Run::new(gap.end() - count, count));
        }
        wanted.reverse();
        wanted.extend(parity);
        wanted
    }

    /// Notes the requests of another receiver in one message.
    pub(super) fn overhear(&self, requests: &[Request], heard: &mut Heard) {
        let mut asked = Heard::new();
        for request in requests {
            request.ranges().for_each(|range| self.overhear_range(request, range, &mut asked));
        }
        for (block, count) in asked {
            if heard.len() < REMEMBERED || heard.contains_key(&block) {
                let most = heard.entry(block).or_insert(0);
                *most = count.max(*most);
            }
        }
    }

    fn overhear_range(&self, request: &Request, range: PointRange<'_>, asked: &mut Heard) {
        let PointRange { first, last } = range;
        if (first.object, last.object) != (self.object, self.object) || first.fec != self.fec {
            return;
        }
        let (block, end, level) = (first.symbol.block, last.symbol.block, request.level);
        if level.has(Level::OBJECT) || level.has(Level::BLOCK) {
            let all = level.has(Level::OBJECT);
            let run = if all { self.low..u32::MAX } else { block..end.saturating_add(1) };
            asked.extend(
                self.lacking().filter(|block| run.contains(block)).map(|block| (block, self.shape.len)),
            );
            return;
        }
        if !level.has(Level::SEGMENT) || block != end || self.lacks(block) == 0 {
            return;
        }
        let (low, high) = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
        let held = self.blocks.get((block - self.low) as usize).and_then(Option::as_ref);
        let useful = if request.form == Form::Erasures {
            low
        } else {
            let end = (self.shape.len + self.shape.parity).min(high + 1);
            (low..end).filter(|&symbol| held.is_none_or(|held| !held.holds(self.shape, symbol))).count()
                as u32
        };
        let count = asked.entry(block).or_insert(0);
        *count = count.saturating_add(useful);
    }
}
