//! How late a real-time run was: a histogram of the time from when something was due to when it happened.
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

/// Digits to which quantiles are right.
const DIGITS: u8 = 3;
/// The longest lateness that quantiles tell apart.
const LONGEST: Span = Span::from_secs(100);

/// Where the rows of [`Lateness::rows`] begin, in nanoseconds, but for the first, which begins at 0: about half a
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

/// A histogram of lateness of fixed size (about 240 KB), log-linear after Gil Tene's `HdrHistogram`: recording costs a
/// few instructions and allocates nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
    rows: [u64; ROWS.len() + 1],
    /// In nanoseconds.
    sum: u128,
    max: Span,
}

/// How many were late by at least `from` and less than `below`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The shortest lateness of this row.
    pub from: Span,
    /// The shortest lateness of the next row; the last row has no end.
    pub below: Option<Span>,
    /// How many.
    pub count: u64,
}

impl Lateness {
    /// Nothing was late yet.
    ///
    /// # Panics
    /// Never: the bounds are such as the histogram takes.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST.as_nanos(), DIGITS)
            .expect("1 ns to 100 s with three digits are bounds that it takes");
        Self { histogram, rows: [0; ROWS.len() + 1], sum: 0, max: Span::ZERO }
    }

    /// Counts something that was late by `lateness`; what was in time counts with zero.
    pub fn record(&mut self, lateness: Span) {
        let nanoseconds = lateness.as_nanos();
        self.histogram.saturating_record(nanoseconds.min(LONGEST.as_nanos()));
        let row = &mut self.rows[ROWS.partition_point(|&from| from <= nanoseconds)];
        *row = row.saturating_add(1);
        self.sum = self.sum.saturating_add(u128::from(nanoseconds));
        self.max = self.max.max(lateness);
    }

    /// Adds what `other` counted.
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

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The lateness that a share `q` of what was counted did not exceed: with n counted, that of rank ⌈qn⌉, and of rank
    /// 1 for 0. `q` is taken from 0 to 1, beyond which the nearer end holds (not-a-number is 0).
    ///
    /// Never less than the exact one, and more by less than a thousandth; exact up to 2 us and where it is the maximum.
    /// From 99.9 s on it is given as the maximum. Zero if nothing was counted.
    pub fn quantile(&self, q: f64) -> Span {
        // Of a share of zero the histogram would give the lower end of the first cell.
        let share = q.clamp(f64::MIN_POSITIVE, 1.0);
        match Span::from_nanos(self.histogram.value_at_quantile(share)) {
            cell_end if cell_end < LONGEST => cell_end.min(self.max),
            _ => self.max,
        }
    }

    /// The longest lateness, exact; zero if nothing was counted.
    pub fn max(&self) -> Span {
        self.max
    }

    /// The mean, rounded down to the nanosecond, exact; zero if nothing was counted.
    pub fn mean(&self) -> Span {
        let mean = self.sum.checked_div(u128::from(self.count())).unwrap_or_default();
        Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The counts by half-decades (bounds at 1 and 3 times powers of ten, from 1 us to 100 s), exact; without the empty
    /// rows before the first and after the last that counted something.
    pub fn rows(&self) -> Vec<Row> {
        let (Some(first), Some(last)) =
            (self.rows.iter().position(|&count| count > 0), self.rows.iter().rposition(|&count| count > 0))
        else {
            return Vec::new();
        };
        let bound = |index: usize| ROWS.get(index).map(|&nanoseconds| Span::from_nanos(nanoseconds));
        let row = |index: usize| Row {
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
