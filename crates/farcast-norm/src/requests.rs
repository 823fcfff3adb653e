//! Repair requests: lists that fit one message, and the number of symbols that they ask for.

use alloc::vec::Vec;

use farcast_core::Run;

use crate::message::{Fec, Form, Level, Point, Request, Symbol};

/// Requests of one message, in the order of what they ask for.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) requests: Vec<Request>,
    /// Octets of room that are left.
    room: usize,
}

impl List {
    pub(crate) const fn new(room: usize) -> Self {
        Self { requests: Vec::new(), room }
    }

    /// Adds points, to the last request if that is of the same kind. Returns `true` if there was room.
    pub(crate) fn add(&mut self, form: Form, level: Level, points: &[Point]) -> bool {
        let same = self.requests.last().is_some_and(|last| (last.form, last.level) == (form, level));
        let octets: usize = points.iter().map(|point| 4 + point.fec.payload_id_len()).sum();
        let len = if same { 0 } else { 4 } + octets;
        if len > self.room {
            return false;
        }
        self.room -= len;
        match self.requests.last_mut().filter(|_| same) {
            Some(last) => last.points.extend_from_slice(points),
            None => self.requests.push(Request { form, level, points: points.to_vec() }),
        }
        true
    }

    /// Adds a run of numbers, which `point` turns into points: as single items where these are not longer than a range.
    /// Returns `true` if there was room.
    pub(crate) fn add_run(&mut self, level: Level, run: Run, point: impl Fn(u32) -> Point) -> bool {
        if run.count() > 2 {
            self.add(Form::Ranges, level, &[point(run.first()), point(run.last())])
        } else {
            run.segments().all(|number| self.add(Form::Items, level, &[point(number)]))
        }
    }
}

/// Block of one of a sender's objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct BlockId {
    /// Index or number of the object.
    pub(crate) object: u32,
    pub(crate) block: u32,
}

/// Symbol of a block of `len` source symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BlockSymbol {
    pub(crate) block: u32,
    pub(crate) len: u32,
    pub(crate) symbol: u32,
}

/// Returns a symbol in the form of payload ids.
pub(crate) const fn point(fec: Fec, object: u16, of: BlockSymbol) -> Point {
    let BlockSymbol { block, len: block_len, symbol } = of;
    let block_len = if matches!(fec, Fec::SmallBlock) { Some(block_len as u16) } else { None };
    Point { fec, object, symbol: Symbol { block, block_len, symbol: symbol as u16 } }
}

/// Returns the number of symbols that requests ask for. A whole block, a whole object and an INFO count as one.
pub(crate) fn asked_for(requests: &[Request]) -> u32 {
    requests.iter().map(asked_for_by).fold(0, u32::saturating_add)
}

fn asked_for_by(Request { form, level, points }: &Request) -> u32 {
    let number = |point: &Point| match level {
        level if level.has(Level::OBJECT) => point.object.into(),
        level if level.has(Level::BLOCK) => point.symbol.block,
        level if level.has(Level::SEGMENT) => point.symbol.symbol.into(),
        _ => point.object.into(),
    };
    let span = |ends: &[Point]| number(&ends[1]).saturating_sub(number(&ends[0])).saturating_add(1);
    match form {
        Form::Items => points.len() as u32,
        Form::Ranges => points.chunks_exact(2).map(span).fold(0, u32::saturating_add),
        Form::Erasures => {
            points.iter().map(|point| u32::from(point.symbol.symbol)).fold(0, u32::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_counted_in_each_form() {
        let symbol = |block, symbol| point(Fec::ReedSolomon8, 0, BlockSymbol { block, len: 64, symbol });
        let request = |form, level, points: &[Point]| Request { form, level, points: points.to_vec() };
        let count = |one: Request| asked_for(&[one]);
        let (items, ranges) = (Form::Items, Form::Ranges);
        assert_eq!(count(request(items, Level::SEGMENT, &[symbol(1, 3), symbol(1, 9)])), 2);
        let two = [symbol(1, 3), symbol(1, 9), symbol(2, 0), symbol(2, 63)];
        assert_eq!(count(request(ranges, Level::SEGMENT, &two)), 7 + 64);
        assert_eq!(count(request(Form::Erasures, Level::SEGMENT, &[symbol(1, 5), symbol(2, 11)])), 16);
        assert_eq!(count(request(ranges, Level::BLOCK, &[symbol(4, 0), symbol(7, 0)])), 4);
        let objects = [0, 9].map(|object| {
            point(Fec::ReedSolomon8, object, BlockSymbol { len: 64, ..BlockSymbol::default() })
        });
        assert_eq!(count(request(ranges, Level::OBJECT, &objects)), 10);
        assert_eq!(count(request(ranges, Level::INFO, &objects)), 10);
        // A range that makes no sense counts as one, and nothing overflows.
        assert_eq!(count(request(ranges, Level::BLOCK, &[symbol(7, 0), symbol(4, 0)])), 1);
        let all = request(ranges, Level::BLOCK, &[symbol(0, 0), symbol(u32::MAX, 0)]);
        assert_eq!(asked_for(&[all.clone(), all]), u32::MAX);
    }
}
