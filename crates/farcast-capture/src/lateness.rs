//! Lateness of a real-time run: a histogram of the time from the due instant of an event to its occurrence.
//!
//! ```
//! use farcast_capture::lateness::Lateness;
//! use farcast_core::Span;
//!
//! let mut lateness = Lateness::new();
//! for microseconds in [28, 31, 35, 40, 2_592] {
//!     lateness.record(Span::from_micros(microseconds));
//! }
//! assert_eq!(lateness.max(), Span::from_micros(2_592));
//! let median = lateness.quantile(0.5).as_secs_f64();
//! assert!((35e-6..=35.035e-6).contains(&median));
//! ```

use farcast_core::Span;
use hdrhistogram::Histogram;

/// Significant digits of quantiles.
const DIGITS: u8 = 3;
/// Longest lateness that quantiles resolve.
const LONGEST: Span = Span::from_secs(100);

/// Beginnings of the rows of [`Lateness::rows`] in nanoseconds, except the first, which begins at 0: about half a
/// decade each.
const ROWS: [u64; 17] = [
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
];

/// A histogram of lateness of fixed size (about 240 KB), log-linear after Gil Tene's `HdrHistogram`. Recording costs a
/// few instructions and allocates nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
    rows: [u64; ROWS.len() + 1],
    /// Sum of all lateness, in nanoseconds.
    sum: u128,
    max: Span,
}

/// Number of events that were late by at least `from` and less than `below`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatenessRow {
    /// The shortest lateness of this row.
    pub from: Span,
    /// The shortest lateness of the next row; the last row has no end.
    pub below: Option<Span>,
    /// Number of events.
    pub count: u64,
}

impl Lateness {
    /// Creates an empty histogram.
    ///
    /// # Panics
    /// Never: the histogram accepts the bounds.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST.as_nanos(), DIGITS)
            .expect("1 ns to 100 s with three digits are bounds that it takes");
        Self { histogram, rows: [0; ROWS.len() + 1], sum: 0, max: Span::ZERO }
    }

    /// Counts an event that was late by `lateness`; an event in time counts with zero.
    pub fn record(&mut self, lateness: Span) {
        let nanoseconds = lateness.as_nanos();
        self.histogram.saturating_record(nanoseconds.min(LONGEST.as_nanos()));
        let row = &mut self.rows[ROWS.partition_point(|&from| from <= nanoseconds)];
        *row = row.saturating_add(1);
        self.sum = self.sum.saturating_add(u128::from(nanoseconds));
        self.max = self.max.max(lateness);
    }

    /// Adds the counts of `other`.
    ///
    /// # Panics
    /// Never: both have the same bounds.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("histograms with the same bounds add");
        for (count, more) in self.rows.iter_mut().zip(&other.rows) {
            *count = count.saturating_add(*more);
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of events counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the lateness that a share `q` of all events did not exceed: with n counted, that of rank ⌈qn⌉, and of
    /// rank 1 for 0. `q` is clamped to 0 to 1 (not-a-number is 0).
    ///
    /// The result is never less than the exact one, and more by less than a thousandth. It is exact up to 2 us, and if
    /// it is the maximum. From 99.9 s on the maximum is returned. Zero if nothing was counted.
    pub fn quantile(&self, q: f64) -> Span {
        // For a share of zero the histogram would return the lower end of the first cell.
        let share = q.clamp(f64::MIN_POSITIVE, 1.0);
        match Span::from_nanos(self.histogram.value_at_quantile(share)) {
            cell_end if cell_end < LONGEST => cell_end.min(self.max),
            _ => self.max,
        }
    }

    /// Returns the longest lateness, exact; zero if nothing was counted.
    pub fn max(&self) -> Span {
        self.max
    }

    /// Returns the mean, rounded down to the nanosecond, exact; zero if nothing was counted.
    pub fn mean(&self) -> Span {
        let mean = self.sum.checked_div(u128::from(self.count())).unwrap_or_default();
        Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the counts by half-decades (bounds at 1 and 3 times powers of ten, from 1 us to 100 s), exact. Empty
    /// rows before the first and after the last count are left out.
    pub fn rows(&self) -> Vec<LatenessRow> {
        let (Some(first), Some(last)) =
            (self.rows.iter().position(|&count| count > 0), self.rows.iter().rposition(|&count| count > 0))
        else {
            return Vec::new();
        };
        let bound = |index: usize| ROWS.get(index).map(|&nanoseconds| Span::from_nanos(nanoseconds));
        let row = |index: usize| LatenessRow {
            from: index.checked_sub(1).and_then(bound).unwrap_or(Span::ZERO),
            below: bound(index),
            count: self.rows[index],
        };
        (first..=last).map(row).collect()
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
