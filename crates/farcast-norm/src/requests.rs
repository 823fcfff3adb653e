//! Repair requests as they are made: as many as fit a message.

use alloc::vec::Vec;

use farcast_core::Run;

use crate::message::{Fec, Form, Level, Point, Request, Symbol};

/// The requests of one message, in the order of what they ask for.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) requests: Vec<Request>,
    /// Octets that are left.
    room: usize,
}

impl List {
    pub(crate) const fn new(room: usize) -> Self {
        Self { requests: Vec::new(), room }
    }

    /// Adds points, to the last request if that is of the same kind; whether there was room.
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

    /// Adds a run, whose numbers `point` makes points of: one by one where that is not longer.
    pub(crate) fn add_run(&mut self, level: Level, run: Run, point: impl Fn(u32) -> Point) -> bool {
        if run.count() > 2 {
            self.add(Form::Ranges, level, &[point(run.first()), point(run.last())])
        } else {
            run.segments().all(|number| self.add(Form::Items, level, &[point(number)]))
        }
    }
}

/// A symbol as payload ids say it; `block_len` of its block.
pub(crate) const fn point(fec: Fec, object: u16, (block, block_len): (u32, u32), symbol: u32) -> Point {
    let block_len = if matches!(fec, Fec::SmallBlock) { Some(block_len as u16) } else { None };
    Point { fec, object, symbol: Symbol { block, block_len, symbol: symbol as u16 } }
}
