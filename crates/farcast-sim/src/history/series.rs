//! Points and intervals in time, in bounded numbers.

use farcast_core::Time;

/// Occurrences from `from` to `to`: `count` of them, at least one.
///
/// A point is a single instant where there were few occurrences, and a short time that stands for all of them where
/// there were many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Time of the first occurrence.
    pub from: Time,
    /// Time of the last occurrence, at or after `from`.
    pub to: Time,
    /// Number of occurrences.
    pub count: u64,
}

/// Returns the number of occurrences in `points`.
pub fn total(points: &[Point]) -> u64 {
    points.iter().map(|point| point.count).sum()
}

/// Points in the order of time. When there are too many, points that lie in one bucket of 2^n ns become one.
#[derive(Clone, Debug)]
pub(super) struct Series {
    points: Vec<Point>,
    most: usize,
    shift: u32,
}

impl Series {
    /// Makes a series of at most `most` points, but at least two.
    pub(super) fn new(most: usize) -> Self {
        Self { points: Vec::new(), most: most.max(2), shift: 0 }
    }

    /// Adds `count` occurrences at `at`.
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

/// Interval in which things followed one another without a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Beginning of the interval.
    pub begin: Time,
    /// End of the interval.
    pub end: Time,
    /// Number of things.
    pub count: u64,
}

/// Intervals that are added in the order of their beginnings. When there are too many, intervals with a short pause
/// between them are joined.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    list: Vec<Interval>,
    most: usize,
    /// Exponent n: a pause of less than 2^n ns does not part two intervals. With 0 only intervals without any pause are
    /// joined.
    pause: u32,
}

impl Intervals {
    /// Makes a list of at most `most` intervals, but at least two.
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

    /// Joins intervals over longer and longer pauses until half of the room is free.
    fn coarsen(&mut self) {
        // Joining over pauses of less than 2^63 ns leaves at most two intervals.
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
