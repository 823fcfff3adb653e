//! Points and intervals in time, of which only so many are kept.

use farcast_core::Time;

/// What happened from `from` to `to`: `count` times, at least once.
///
/// Where few things happened it is one instant; where many did, a short time that stands for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The first time.
    pub from: Time,
    /// The last time, at or after `from`.
    pub to: Time,
    /// How often.
    pub count: u64,
}

/// How often something happened in `points`.
pub fn total(points: &[Point]) -> u64 {
    points.iter().map(|point| point.count).sum()
}

/// Points in the order of time. When they grow too many, those that lie in one bucket of 2^n ns become one.
#[derive(Clone, Debug)]
pub(super) struct Series {
    points: Vec<Point>,
    most: usize,
    shift: u32,
}

impl Series {
    /// At most `most` points, or two if that is more.
    pub(super) fn new(most: usize) -> Self {
        Self { points: Vec::new(), most: most.max(2), shift: 0 }
    }

    /// Something happened `count` times at `at`.
    pub(super) fn add(&mut self, at: Time, count: u64) {
        let bucket = at.as_nanos() >> self.shift;
        let index = self.points.partition_point(|point| point.from.as_nanos() >> self.shift < bucket);
        match self.points.get_mut(index) {
            Some(point) if point.from.as_nanos() >> self.shift == bucket => {
                (point.from, point.to) = (point.from.min(at), point.to.max(at));
                point.count = point.count.saturating_add(count);
            }
            _ => self.points.insert(index, Point { from: at, to: at, count }),
        }
        if self.points.len() > self.most {
            self.coarsen();
        }
    }

    /// Makes buckets wider until half of the room is free.
    fn coarsen(&mut self) {
        // Buckets of 2^63 ns leave at most two points.
        while self.points.len() > self.most / 2 && self.shift < 63 {
            self.shift += 1;
            let shift = self.shift;
            self.points.dedup_by(|next, kept| {
                let same = next.from.as_nanos() >> shift == kept.from.as_nanos() >> shift;
                if same {
                    (kept.to, kept.count) = (kept.to.max(next.to), kept.count.saturating_add(next.count));
                }
                same
            });
        }
    }

    pub(super) fn into_points(self) -> Vec<Point> {
        self.points
    }
}

/// A time in which things followed one another without a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// When it began.
    pub begin: Time,
    /// When it ended.
    pub end: Time,
    /// How many things.
    pub count: u64,
}

/// Intervals that are added in the order of their beginnings. When they grow too many, short pauses are passed over.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    list: Vec<Interval>,
    most: usize,
    /// A pause of less than 2^n ns is none; with 0 only what touches is one.
    pause: u32,
}

impl Intervals {
    /// At most `most` intervals, or two if that is more.
    pub(super) fn new(most: usize) -> Self {
        Self { list: Vec::new(), most: most.max(2), pause: 0 }
    }

    pub(super) fn add(&mut self, interval: Interval) {
        match self.list.last_mut() {
            Some(last) if joins(last, &interval, self.pause) => extend(last, &interval),
            _ => self.list.push(interval),
        }
        if self.list.len() > self.most {
            self.coarsen();
        }
    }

    /// Passes over longer pauses until half of the room is free.
    fn coarsen(&mut self) {
        // Passing over pauses of less than 2^63 ns leaves at most two intervals.
        while self.list.len() > self.most / 2 && self.pause < 63 {
            self.pause += 1;
            let pause = self.pause;
            self.list.dedup_by(|next, kept| {
                let joined = joins(kept, next, pause);
                if joined {
                    extend(kept, next);
                }
                joined
            });
        }
    }

    pub(super) fn into_list(self) -> Vec<Interval> {
        self.list
    }
}

fn joins(earlier: &Interval, later: &Interval, pause: u32) -> bool {
    later.begin.since(earlier.end).as_nanos() >> pause == 0
}

fn extend(earlier: &mut Interval, later: &Interval) {
    (earlier.end, earlier.count) = (earlier.end.max(later.end), earlier.count.saturating_add(later.count));
}

#[cfg(test)]
mod tests;
