//! What a receiver asks for (RFC 5740 §5.3).

use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};

use super::object::Object;
use super::remote::Remote;
use crate::message::{Level, Point, Request};
use crate::requests::{List, point};

/// Room for requests where it is not known how long a segment is, octets.
const ROOM: usize = 512;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Need {
    pub(super) requests: Vec<Request>,
    /// By object, how many segments and symbols that is.
    pub(super) asked: Vec<(u32, u64)>,
}

impl Remote {
    /// Whether it has passed anything that has not come; `slots` more objects could be begun.
    pub(super) fn has_need(&self, slots: u32) -> bool {
        let unheard = slots > 0 && self.unheard().next().is_some();
        unheard || self.objects.iter().any(|(&number, object)| object.has_need(self.passed_of(number)))
    }

    /// Whether others have asked for all that we would.
    pub(super) fn is_covered(&self, slots: u32) -> bool {
        let mut unheard = self.unheard().flat_map(Run::segments).take(slots as usize);
        unheard.all(|number| self.heard.covers_object(number))
            && self.objects.iter().all(|(&number, object)| self.covers(number, object))
    }

    fn covers(&self, number: u32, object: &Object) -> bool {
        if object.needs_name() && !self.heard.covers_info(number) {
            return false;
        }
        let (mut from, end) = (0, self.passed_of(number));
        while let Some(block) = object.need(from, end) {
            if !self.heard.covers_block((number, block), object.lacks(block)) {
                return false;
            }
            from = block + 1;
        }
        true
    }

    /// What lacks, in order, as far as it fits a segment and `room` octets.
    pub(super) fn need(&self, slots: u32, room: usize) -> Need {
        let segment = if self.segment_size == 0 { ROOM } else { self.segment_size.into() };
        let mut list = List::new(segment.min(room));
        let (mut slots, mut asked) = (slots, Vec::new());
        let mut unheard = self.unheard().peekable();
        let mut objects = self.objects.iter().peekable();
        loop {
            let next = objects.peek().map_or(u32::MAX, |(number, _)| **number);
            let fits = if let Some(run) = unheard.next_if(|run| run.first() < next) {
                // No more than can be begun.
                let run = Run::new(run.first(), run.count().min(slots));
                slots -= run.map_or(0, Run::count);
                run.is_none_or(|run| list.add_run(Level::OBJECT, run, |number| self.start_of(number)))
            } else if let Some((&number, object)) = objects.next() {
                let (count, fits) = object.list(self.passed_of(number), &mut list);
                asked.push((number, count));
                fits
            } else {
                break;
            };
            if !fits {
                break;
            }
        }
        Need { requests: list.requests, asked }
    }

    /// The beginning of an object of which nothing has come.
    fn start_of(&self, number: u32) -> Point {
        let id = self.numbers.as_ref().map_or(0, |numbers| numbers.id(number));
        point(self.fec, id, (0, 0), 0)
    }
}

impl Object {
    /// Whether what is said of it has yet to come.
    fn needs_name(&self) -> bool {
        !self.named
    }

    /// The first block in `from .. end` that lacks symbols.
    fn need(&self, from: u32, end: u32) -> Option<u32> {
        if self.is_receiving() { self.next_need(from, end) } else { None }
    }

    /// Whether its sender has passed anything that has not come; it has passed `end` blocks. What is said of it stands
    /// before all else.
    fn has_need(&self, end: u32) -> bool {
        self.needs_name() || self.need(0, end).is_some()
    }

    /// Lists what lacks of its first `end` blocks: how many symbols that is, and whether there was room.
    fn list(&self, end: u32, list: &mut List) -> (u64, bool) {
        if self.needs_name() && !list.add_run(Level::INFO, Run::one(0), |_| self.point(0, 0)) {
            return (0, false);
        }
        let (mut asked, mut from) = (0, 0);
        while let Some(block) = self.need(from, end) {
            from = block + 1;
            let all = self.geometry.block_len(block);
            if self.missing_in(block) == all && !self.held.contains_key(&block) {
                // Blocks of which nothing has come follow one another after an outage.
                let end = end.min(self.geometry.blocks());
                while from < end && self.lacks(from) == self.geometry.block_len(from) {
                    from += 1;
                }
                let blocks = Run::new(block, from - block);
                if !blocks.is_none_or(|run| list.add_run(Level::BLOCK, run, |block| self.point(block, 0))) {
                    return (asked, false);
                }
                asked += u64::from(self.geometry.first_of(from) - self.geometry.first_of(block));
                continue;
            }
            for run in self.wanted(block) {
                if !list.add_run(Level::SEGMENT, run, |symbol| self.point(block, symbol)) {
                    return (asked, false);
                }
                asked += u64::from(run.count());
            }
        }
        (asked, true)
    }

    /// What would make up for what `block` lacks: parity first, that which has not come, in order; and if that is not
    /// enough, the last of the segments that are missing.
    fn wanted(&self, block: u32) -> Vec<Run> {
        let (len, mut lacks) = (self.geometry.block_len(block), self.lacks(block));
        let mut parity = Vec::new();
        let none = Bitmap::new(self.parity);
        let held = self.held.get(&block).unwrap_or(&none);
        for gap in held.iter_gaps() {
            let Some(run) = Run::new(len + gap.first(), gap.count().min(lacks)) else { break };
            lacks -= run.count();
            parity.push(run);
        }
        let Some(segments) = self.geometry.block_run(block) else { return parity };
        // As many are passed over as parity makes up for.
        let mut spared = self.missing_in(block) - lacks;
        let mut wanted = Vec::new();
        for gap in self.have.gaps_in(segments) {
            let skip = spared.min(gap.count());
            spared -= skip;
            wanted.extend(Run::new(gap.first() + skip - segments.first(), gap.count() - skip));
        }
        wanted.extend(parity);
        wanted
    }
}
