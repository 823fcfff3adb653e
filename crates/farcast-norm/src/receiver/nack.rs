//! Repair requests of a receiver (RFC 5740 §5.3).

use alloc::vec::Vec;
use core::ops::Range;

use farcast_core::{Run, Time};
use farcast_delivery::Geometry;

use super::needs::{self, Needs};
use super::object::Object;
use super::remote::{Position, Remote};
use crate::message::{Fec, Level, Point, Request};
use crate::requests::{BlockId, BlockSymbol, List, point};

/// Octets of room for requests where the segment size is not known.
pub(crate) const ROOM: usize = 512;

/// Maximum number of messages in which a receiver asks at once.
///
/// DEVIATION: RFC 5740 §5.3 has one message, and items that do not fit it wait for the next time. Without parity and
/// with a loss of one segment in five, a message holds the requests of some fifteen blocks. A fast sender sends more
/// blocks than that during back-off, aggregation and hold-off, so the room in messages would decide the duration of the
/// transfer. NRL's library asks for everything at once. Repeated requests do not lead to repeated repairs, and the
/// credit of a sender bounds the requests to it.
pub(crate) const MESSAGES: usize = 8;

/// Requests for one message.
#[derive(Debug)]
pub(super) struct Need {
    pub(super) requests: Vec<Request>,
    /// Numbers of segments and symbols that are asked for, by object.
    pub(super) asked: Vec<(u32, u64)>,
    /// Beginning of the items that did not fit.
    pub(super) rest: Option<Position>,
}

impl Remote {
    /// Returns `true` if anything is lacking that the sender has passed by `now`. `slots` is the number of further
    /// objects that may be begun.
    pub(super) fn has_need(&self, now: Time, slots: u32) -> bool {
        let unheard = slots > 0 && self.unheard().next().is_some();
        unheard || self.objects.iter().any(|(&number, object)| object.has_need(now, self.passed_of(number)))
    }

    /// Returns the position of the first item that is lacking at `now`. INFO of an object counts as part of its first
    /// block.
    pub(super) fn needs_from(&self, now: Time, slots: u32) -> Option<Position> {
        let unheard = self.unheard().next().filter(|_| slots > 0).map(|run| (run.first(), 0));
        let mut of_objects = self.objects.iter().filter(|(_, object)| !object.is_opening(now));
        let first = |(&number, object): (&u32, &Object)| {
            let block = object.need(0, self.passed_of(number));
            block.or(object.needs_name().then_some(0)).map(|block| (number, block))
        };
        unheard.into_iter().chain(of_objects.find_map(first)).min()
    }

    /// Returns `true` if others have asked for everything that this receiver would ask for.
    pub(super) fn is_covered(&self, now: Time, slots: u32) -> bool {
        let mut unheard = self.unheard().flat_map(Run::segments).take(slots as usize);
        unheard.all(|number| self.heard.covers_object(number))
            && self
                .objects
                .iter()
                .all(|(&number, object)| object.is_opening(now) || self.covers(number, object))
    }

    fn covers(&self, number: u32, object: &Object) -> bool {
        if object.needs_name() && !self.heard.covers_info(number) {
            return false;
        }
        let (mut from, end) = (0, self.passed_of(number));
        while let Some(block) = object.need(from, end) {
            if !self.heard.covers_block(BlockId { object: number, block }, object.content.lacks(block)) {
                return false;
            }
            from = block + 1;
        }
        true
    }

    /// Returns the requests for items that are lacking at `now`, from `from` on, in order, as far as they fit a segment
    /// and `room` octets.
    pub(super) fn need(&self, now: Time, slots: u32, from: Position, room: usize) -> Need {
        let segment = if self.segment_size == 0 { ROOM } else { self.segment_size.into() };
        let mut list = List::new(segment.min(room));
        let (mut asked, mut rest) = (Vec::new(), None);
        let before = |run: &Run| run.first() < from.0;
        let taken = self.unheard().take_while(before).map(Run::count).sum();
        let mut slots = slots.saturating_sub(taken);
        let mut unheard = self.unheard().skip_while(before).peekable();
        let objects = self.objects.range(from.0..).filter(|(_, object)| !object.is_opening(now));
        let mut objects = objects.peekable();
        while rest.is_none() {
            let next = objects.peek().map_or(u32::MAX, |(number, _)| **number);
            if let Some(run) = unheard.next_if(|run| run.first() < next) {
                // No more objects are requested than may be begun.
                let run = Run::new(run.first(), run.count().min(slots));
                slots -= run.map_or(0, Run::count);
                let fits = |run| list.add_run(Level::OBJECT, run, |number| self.start_of(number));
                let all = run.is_none_or(fits);
                rest = run.filter(|_| !all).map(|run| (run.first(), 0));
            } else if let Some((&number, object)) = objects.next() {
                let first = if number == from.0 { from.1 } else { 0 };
                let (count, block) = object.list(first..self.passed_of(number), &mut list);
                asked.push((number, count));
                rest = block.map(|block| (number, block));
            } else {
                break;
            }
        }
        Need { requests: list.requests, asked, rest }
    }

    /// Returns the beginning of an object of which nothing has come.
    fn start_of(&self, number: u32) -> Point {
        let id = self.numbers.as_ref().map_or(0, |numbers| numbers.id(number));
        point(self.fec, id, BlockSymbol::default())
    }
}

impl Object {
    /// Returns `true` if the object's INFO has yet to come.
    fn needs_name(&self) -> bool {
        !self.content.is_named
    }

    /// Returns the first block in `from .. end` that lacks symbols.
    fn need(&self, from: u32, end: u32) -> Option<u32> {
        if self.content.is_receiving() { self.content.next_need(from, end) } else { None }
    }

    /// Returns `true` if the sender, which has passed `end` blocks, has passed anything that is lacking. INFO comes
    /// before all blocks.
    fn has_need(&self, now: Time, end: u32) -> bool {
        !self.is_opening(now) && (self.needs_name() || self.need(0, end).is_some())
    }

    /// Lists the lacking symbols of `blocks`, and the INFO before the first block. Returns the number of
    /// symbols, and the first block that is not fully listed, if there is one.
    fn list(&self, blocks: Range<u32>, list: &mut List) -> (u64, Option<u32>) {
        let unnamed = blocks.start == 0 && self.needs_name();
        if unnamed && !list.add_run(Level::INFO, Run::one(0), |_| self.point(0, 0)) {
            return (0, Some(0));
        }
        needs::list(self, blocks, list)
    }
}

impl Needs for Object {
    fn number(&self) -> (u16, Fec) {
        (self.number, self.fec)
    }

    fn geometry(&self) -> &Geometry {
        &self.content.geometry
    }

    fn parity(&self) -> u32 {
        self.content.parity
    }

    fn lacks(&self, block: u32) -> u32 {
        self.content.lacks(block)
    }

    fn holds(&self, block: u32, symbol: u32) -> bool {
        self.content.holds(block, symbol)
    }

    fn next_need(&self, from: u32, end: u32) -> Option<u32> {
        self.need(from, end)
    }
}
