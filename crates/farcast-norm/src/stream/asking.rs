//! What a receiver of a stream asks for (RFC 5740 §5.3), and what others have asked for.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use farcast_core::Run;

use super::block::{Block, Shape};
use crate::message::{Fec, Form, Level, Point, Request};
use crate::requests::{List, point};

/// Of how many blocks it is remembered what others have asked for.
const REMEMBERED: usize = 4096;

/// Where the sender has come to: all blocks before this one are passed, and of it so many symbols.
pub(super) type Place = (u32, u32);

/// What others have asked for: by block, how many symbols that we lack, at most in one message.
pub(super) type Heard = BTreeMap<u32, u32>;

/// The blocks of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs<'a> {
    pub(super) shape: Shape,
    pub(super) fec: Fec,
    pub(super) object: u16,
    /// The first block's number.
    pub(super) low: u32,
    /// `None`: nothing of it has come.
    pub(super) blocks: &'a VecDeque<Option<Block>>,
    pub(super) place: Place,
}

impl Needs<'_> {
    fn point(&self, block: u32, symbol: u32) -> Point {
        point(self.fec, self.object, (block, self.shape.len), symbol)
    }

    /// How many symbols of the block are to be asked for.
    pub(super) fn lacks(&self, block: u32) -> u32 {
        let shape = self.shape;
        let held = block.checked_sub(self.low).and_then(|at| self.blocks.get(at as usize)?.as_ref());
        match (held, block.cmp(&self.place.0)) {
            (Some(held), core::cmp::Ordering::Less) => held.lacks(shape),
            (None, core::cmp::Ordering::Less) if block >= self.low => shape.len,
            // Of a block that is not through, the symbols themselves: there is no parity yet (RFC 5740 §4.2.3.1).
            (Some(held), core::cmp::Ordering::Equal) if held.lacks(shape) > 0 => {
                held.gaps(0..self.place.1).map(Run::count).sum()
            }
            (None, core::cmp::Ordering::Equal) if block >= self.low => self.place.1,
            _ => 0,
        }
    }

    /// The blocks of which anything is to be asked for.
    pub(super) fn lacking(&self) -> impl Iterator<Item = u32> + '_ {
        let end = self.place.0.saturating_add(u32::from(self.place.1 > 0));
        (self.low..end).filter(|&block| self.lacks(block) > 0)
    }

    /// Whether others have asked for all of that.
    pub(super) fn are_covered(&self, heard: &Heard) -> bool {
        self.lacking().all(|block| heard.get(&block).is_some_and(|&count| count >= self.lacks(block)))
    }

    /// As much of it as fits `room` octets.
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

    /// What would make up for what `block` lacks: of a block that is through parity first, and if that is not enough,
    /// the last of the symbols that are missing.
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

    /// Notes what somebody else asks for in one message.
    pub(super) fn overhear(&self, requests: &[Request], heard: &mut Heard) {
        let mut asked = Heard::new();
        for request in requests {
            let step = if request.form == Form::Ranges { 2 } else { 1 };
            for pair in request.points.chunks_exact(step) {
                self.overhear_pair(request, (&pair[0], &pair[step - 1]), &mut asked);
            }
        }
        for (block, count) in asked {
            if heard.len() < REMEMBERED || heard.contains_key(&block) {
                let most = heard.entry(block).or_insert(0);
                *most = count.max(*most);
            }
        }
    }

    fn overhear_pair(&self, request: &Request, (first, last): (&Point, &Point), asked: &mut Heard) {
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
