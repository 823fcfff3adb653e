//! Parts of repair requests, checked.

use alloc::vec::Vec;

use farcast_core::Run;
use farcast_core::engine::Reject;

use super::objects::Objects;
use crate::message::{Fec, Form, Level, PointRange, Request};

/// Maximum number of unavailable objects to remember from a message.
const GONE: usize = 64;

/// Part of a request. Objects are given by their index in the sender's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// INFO of objects.
    Info(Run),
    /// Whole objects.
    Objects(Run),
    /// Whole blocks of an object.
    Blocks(u32, Run),
    /// Symbols of a block of an object.
    Symbols((u32, u32), Run),
    /// Number of symbols of a block, of any kind.
    Erasures((u32, u32), u32),
}

/// Parts of all requests of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Parts {
    pub(super) asked: Vec<Part>,
    /// Numbers of requested objects that the sender does not have, or no longer has.
    pub(super) gone: Vec<u16>,
    /// `true` if the message asks for an object that was withdrawn.
    pub(super) lacks_withdrawn: bool,
    /// `true` if the message also asks for objects whose requests are ignored.
    pub(super) is_cut: bool,
}

/// Data that requests are checked against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check<'a> {
    pub(super) objects: &'a Objects,
    pub(super) fec: Fec,
    /// Parity symbols of a block.
    pub(super) parity: u32,
}

impl Check<'_> {
    /// Returns the parts of `requests`.
    ///
    /// # Errors
    /// A request for blocks or symbols that an existing object does not have, or with a wrong code.
    pub(super) fn parts(self, requests: &[Request]) -> Result<Parts, Reject> {
        let mut parts = Parts::default();
        for request in requests {
            request.ranges().try_for_each(|range| self.range(request, range, &mut parts))?;
        }
        Ok(parts)
    }

    fn range(self, request: &Request, range: PointRange<'_>, to: &mut Parts) -> Result<(), Reject> {
        let PointRange { first, last } = range;
        if [first, last].iter().any(|point| point.fec != self.fec) {
            return Err(Reject::OutOfRange);
        }
        let level = request.level;
        let Some(objects) = self.objects_of(first.object, last.object, to)? else { return Ok(()) };
        self.withdrawn(objects, to);
        let spent = self.objects.spent();
        to.is_cut |= spent.count_in(objects) > self.objects.withdrawn().count_in(objects);
        if level.has(Level::INFO) {
            to.asked.extend(spent.gaps_in(objects).map(Part::Info));
        }
        if level.has(Level::OBJECT) {
            to.asked.extend(spent.gaps_in(objects).map(Part::Objects));
            return Ok(());
        }
        if !level.has(Level::BLOCK) && !level.has(Level::SEGMENT) {
            return Ok(());
        }
        if first.object != last.object {
            return Err(Reject::OutOfRange);
        }
        let part = self.within(request, objects.first(), range)?;
        if !spent.contains(objects.first()) {
            to.asked.push(part);
        }
        Ok(())
    }

    /// Notes those of `objects` that were withdrawn.
    fn withdrawn(self, objects: Run, to: &mut Parts) {
        let withdrawn = self.objects.withdrawn();
        if withdrawn.count_in(objects) == 0 {
            return;
        }
        to.lacks_withdrawn = true;
        let room = GONE - to.gone.len();
        let lacked = objects.segments().filter(|&object| withdrawn.contains(object));
        to.gone.extend(lacked.take(room).map(|object| object as u16));
    }

    /// Returns the objects from `first` to `last` that exist.
    fn objects_of(self, first: u16, last: u16, to: &mut Parts) -> Result<Option<Run>, Reject> {
        let (first, last, all) = (u32::from(first), u32::from(last), self.objects.count());
        if last < first {
            return Err(Reject::OutOfRange);
        }
        // All numbers behind the last object are missing ones.
        if last >= all {
            let missing = first.max(all)..=last;
            let room = GONE - to.gone.len();
            to.gone.extend(missing.take(room).map(|id| id as u16));
        }
        Ok(Run::new(first, (last + 1).min(all).saturating_sub(first)))
    }

    /// Returns the part of `object` that is requested.
    fn within(self, request: &Request, object: u32, range: PointRange<'_>) -> Result<Part, Reject> {
        let PointRange { first, last } = range;
        let geometry = self.objects.get(object).ok_or(Reject::OutOfRange)?.geometry;
        let (block, end) = (first.symbol.block, last.symbol.block);
        if request.level.has(Level::BLOCK) {
            let blocks = end.checked_sub(block).filter(|_| end < geometry.blocks());
            let blocks = blocks.and_then(|more| Run::new(block, more + 1)).ok_or(Reject::OutOfRange)?;
            return Ok(Part::Blocks(object, blocks));
        }
        let most = geometry.block_len(block) + self.parity;
        if block != end || block >= geometry.blocks() {
            return Err(Reject::OutOfRange);
        }
        let (low, high) = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
        if request.form == Form::Erasures {
            return if low <= most {
                Ok(Part::Erasures((object, block), low))
            } else {
                Err(Reject::OutOfRange)
            };
        }
        let symbols = high.checked_sub(low).and_then(|more| Run::new(low, more + 1));
        let symbols = symbols.filter(|symbols| symbols.end() <= most).ok_or(Reject::OutOfRange)?;
        Ok(Part::Symbols((object, block), symbols))
    }
}
