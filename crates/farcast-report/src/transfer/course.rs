//! Values over time, in bins of one width.

/// Most bins.
pub(super) const MOST_BINS: usize = 1000;
/// Initial width of a bin, in s: about the interval at which observers record.
const FIRST_WIDTH: f64 = 0.1;

/// Rule for merging two bins into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Merge {
    /// Counts are added.
    Sum,
    /// The last value that was seen stays.
    Last,
}

/// Values over time, in columns. Bins double in width when there would be too many.
#[derive(Clone, Debug)]
pub(super) struct Course {
    merge: Merge,
    width: f64,
    columns: usize,
    bins: Vec<f64>,
}

impl Course {
    /// Creates a course of counts: a bin holds the number of events in it.
    pub(super) fn of_counts(columns: usize) -> Self {
        Self { merge: Merge::Sum, width: FIRST_WIDTH, columns, bins: Vec::new() }
    }

    /// Creates a course of levels: a bin holds the last level seen in it, or not-a-number if none was seen.
    pub(super) fn of_levels(columns: usize) -> Self {
        Self { merge: Merge::Last, width: FIRST_WIDTH, columns, bins: Vec::new() }
    }

    /// Returns the width of a bin, in s.
    pub(super) fn width(&self) -> f64 {
        self.width
    }

    /// Returns the beginning of each bin, in s, and its values.
    pub(super) fn bins(&self) -> impl Iterator<Item = (f64, &[f64])> {
        let width = self.width;
        self.bins.chunks(self.columns).enumerate().map(move |(place, bin)| (place as f64 * width, bin))
    }

    /// Counts events from `from` to `to`, spread evenly.
    pub(super) fn count(&mut self, from: f64, to: f64, counts: &[f64]) {
        if counts.iter().all(|&count| count == 0.0) {
            // Nothing is counted, so no bins have to be added.
            return;
        }
        let last = self.reach(to);
        let first = self.place(from.min(to)).min(last);
        let span = to - from;
        for place in first..=last {
            let (begin, end) = (place as f64 * self.width, (place + 1) as f64 * self.width);
            let share = if span > 0.0 { ((end.min(to) - begin.max(from)) / span).max(0.0) } else { 1.0 };
            let bin = self.bins[place * self.columns..].iter_mut();
            for (value, count) in bin.zip(counts) {
                *value += count * share;
            }
            if span <= 0.0 {
                break;
            }
        }
    }

    /// Counts indivisible events that happened between `from` and `to`, at the middle of that time.
    pub(super) fn tally(&mut self, from: f64, to: f64, column: usize, count: u64) {
        if count > 0 {
            let place = self.reach(f64::midpoint(from, to));
            self.bins[place * self.columns + column] += count as f64;
        }
    }

    /// Records the levels at `at`.
    pub(super) fn note(&mut self, at: f64, levels: &[f64]) {
        let place = self.reach(at);
        for (value, level) in self.bins[place * self.columns..].iter_mut().zip(levels) {
            *value = *level;
        }
    }

    /// Returns the bin of `at`, after adding it and all bins before it.
    fn reach(&mut self, at: f64) -> usize {
        while self.place(at) >= MOST_BINS {
            self.widen();
        }
        let place = self.place(at);
        let none = if self.merge == Merge::Sum { 0.0 } else { f64::NAN };
        let length = ((place + 1) * self.columns).max(self.bins.len());
        self.bins.resize(length, none);
        place
    }

    fn place(&self, at: f64) -> usize {
        // A time that is not a number, or negative, belongs to the first bin.
        (at / self.width).max(0.0) as usize
    }

    fn widen(&mut self) {
        self.width *= 2.0;
        let columns = self.columns;
        let pairs = self.bins.chunks(2 * columns).flat_map(|pair| {
            let (early, late) = pair.split_at(columns);
            early.iter().enumerate().map(|(column, &early)| match (self.merge, late.get(column)) {
                (_, None) => early,
                (Merge::Sum, Some(late)) => early + late,
                (Merge::Last, Some(late)) if late.is_nan() => early,
                (Merge::Last, Some(late)) => *late,
            })
        });
        self.bins = pairs.collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_happens_between_two_looks_is_spread() {
        let mut course = Course::of_counts(1);
        course.count(0.05, 0.25, &[20.0]);
        let counts: Vec<f64> = course.bins().map(|(_, bin)| bin[0].round()).collect();
        assert_eq!(counts, [5.0, 10.0, 5.0]);
    }

    #[test]
    fn levels_are_those_last_seen() {
        let mut course = Course::of_levels(2);
        course.note(0.0, &[1.0, f64::NAN]);
        course.note(0.05, &[2.0, 7.0]);
        course.note(0.35, &[3.0, 8.0]);
        let bins: Vec<&[f64]> = course.bins().map(|(_, bin)| bin).collect();
        assert_eq!((bins[0], bins[3]), (&[2.0, 7.0][..], &[3.0, 8.0][..]));
        assert!(bins[1][0].is_nan() && bins.len() == 4);
        // A day later, the earlier levels are still there, in wider bins.
        course.note(86_400.0, &[4.0, 9.0]);
        let bins: Vec<&[f64]> = course.bins().map(|(_, bin)| bin).collect();
        assert!(bins.len() <= MOST_BINS, "{}", bins.len());
        assert_eq!((bins[0], bins[bins.len() - 1]), (&[3.0, 8.0][..], &[4.0, 9.0][..]));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_long_it_takes(steps in proptest::collection::vec((0.0..5000.0f64, 0u32..1000), 1..200)) {
            let (mut course, mut at, mut all) = (Course::of_counts(1), 0.0, 0.0);
            for (step, count) in steps {
                course.count(at, at + step, &[f64::from(count)]);
                at += step;
                all += f64::from(count);
            }
            let bins: Vec<(f64, f64)> = course.bins().map(|(begin, bin)| (begin, bin[0])).collect();
            let sum: f64 = bins.iter().map(|(_, count)| count).sum();
            prop_assert!((sum - all).abs() < 1e-6 * (1.0 + all), "{sum} of {all}");
            prop_assert!(bins.len() <= MOST_BINS);
        }
    }
}
