//! The path between two connections.

use farcast_core::engine::Message as _;
use farcast_core::{BitRate, Span, Time};
use farcast_tcp::Segment;

use super::IP_HEADER;

/// Effect of a path on a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Pass,
    Drop,
    /// The segment arrives later by this span.
    Late(Span),
    /// A second copy arrives later by this span.
    Twice(Span),
}

/// A segment on its way, as a script sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing<'a> {
    pub(crate) now: Time,
    pub(crate) segment: &'a Segment,
    /// Number of segments with data that went in this direction before.
    pub(crate) nth_data: usize,
    /// Number of all segments that went in this direction before.
    pub(crate) nth: usize,
}

type Script = Box<dyn FnMut(&Passing<'_>) -> Fate>;

/// One direction.
pub(crate) struct Path {
    pub(crate) delay: Span,
    pub(crate) rate: Option<BitRate>,
    /// Number of segments that may wait for the rate.
    pub(crate) queue: usize,
    pub(crate) script: Script,
    /// Times at which the waiting segments will have left.
    leaving: Vec<Time>,
    data: usize,
    all: usize,
    pub(crate) overflows: usize,
}

impl Path {
    pub(crate) fn new(delay: Span) -> Self {
        Self {
            delay,
            rate: None,
            queue: usize::MAX,
            script: Box::new(|_| Fate::Pass),
            leaving: Vec::new(),
            data: 0,
            all: 0,
            overflows: 0,
        }
    }

    /// Returns the arrival times of the segment: one, two copies, or none.
    pub(super) fn carry(&mut self, now: Time, segment: &Segment) -> [Option<Time>; 2] {
        let passing = Passing { now, segment, nth_data: self.data, nth: self.all };
        let fate = (self.script)(&passing);
        self.all += 1;
        self.data += usize::from(segment.payload.len > 0);
        if fate == Fate::Drop {
            return [None; 2];
        }
        let Some(left) = self.leave(now, segment) else { return [None; 2] };
        let arrival = left + self.delay;
        match fate {
            Fate::Late(late) => [Some(arrival + late), None],
            Fate::Twice(later) => [Some(arrival), Some(arrival + later)],
            _ => [Some(arrival), None],
        }
    }

    fn leave(&mut self, now: Time, segment: &Segment) -> Option<Time> {
        let Some(rate) = self.rate else { return Some(now) };
        self.leaving.retain(|&left| left > now);
        if self.leaving.len() > self.queue {
            self.overflows += 1;
            return None;
        }
        let begin = self.leaving.last().copied().unwrap_or(now);
        let left = begin + rate.time_of_bytes((segment.wire_len(0) + IP_HEADER) as u64);
        self.leaving.push(left);
        Some(left)
    }
}

/// Drops the data segments with these numbers, counted from 0 in the order in which they leave, repetitions too.
pub(crate) fn drop_data(numbers: &[usize]) -> Script {
    let numbers = numbers.to_vec();
    Box::new(move |passing| {
        let hit = passing.segment.payload.len > 0 && numbers.contains(&passing.nth_data);
        if hit { Fate::Drop } else { Fate::Pass }
    })
}
