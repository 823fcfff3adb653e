//! Histogram of packet delays.

use std::collections::BTreeMap;

use farcast_core::Span;

/// Base-2 logarithm of the number of cells in an octave.
const CELLS_LOG: u32 = 5;

/// A histogram of delays, log-linear after Gil Tene's `HdrHistogram`: each octave has 32 cells, and delays below 64 ns
/// have one each. Only cells with a count are kept, 1920 at most.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    cells: BTreeMap<u16, u64>,
    count: u64,
    min: Span,
    max: Span,
}

impl Delays {
    /// Counts a delay.
    pub fn record(&mut self, delay: Span) {
        let cell = self.cells.entry(cell_of(delay.as_nanos())).or_default();
        *cell = cell.saturating_add(1);
        self.min = if self.count == 0 { delay } else { self.min.min(delay) };
        self.max = self.max.max(delay);
        self.count = self.count.saturating_add(1);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (&number, &more) in &other.cells {
            let cell = self.cells.entry(number).or_default();
            *cell = cell.saturating_add(more);
        }
        self.min = match (self.count, other.count) {
            (_, 0) => self.min,
            (0, _) => other.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
    }

    /// Returns the number of delays counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the shortest delay, exact; zero if nothing was counted.
    pub fn min(&self) -> Span {
        self.min
    }

    /// Returns the longest delay, exact; zero if nothing was counted.
    pub fn max(&self) -> Span {
        self.max
    }

    /// Returns the delay that a share `q` of all delays did not exceed: with n counted, that of rank ⌈qn⌉, and of rank
    /// 1 for 0. `q` is clamped to 0 to 1 (not-a-number is 0).
    ///
    /// The result is never less than the exact one, and more by at most 1/32 of it. Zero if nothing was counted.
    pub fn quantile(&self, q: f64) -> Span {
        // A float-to-integer cast saturates and maps NaN to zero.
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0_u64;
        let found = self.cells.iter().find(|(_, count)| {
            below = below.saturating_add(**count);
            below >= rank
        });
        found.map_or(Span::ZERO, |(&cell, _)| Span::from_nanos(end_of(cell)).min(self.max))
    }
}

/// Returns the cell of a delay in nanoseconds.
fn cell_of(nanoseconds: u64) -> u16 {
    let shift = (u64::BITS - nanoseconds.leading_zeros()).saturating_sub(CELLS_LOG + 1);
    // The highest of 64 bits gives 58 * 32 + 63.
    ((shift << CELLS_LOG) + (nanoseconds >> shift) as u32) as u16
}

/// Returns the longest delay of a cell, in nanoseconds.
fn end_of(cell: u16) -> u64 {
    let shift = (u32::from(cell) >> CELLS_LOG).saturating_sub(1);
    let leading = u64::from(u32::from(cell) - (shift << CELLS_LOG));
    (leading << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use farcast_core::random::RandomStream;

    use super::*;

    /// Delays of every magnitude.
    fn draw(stream: &mut RandomStream) -> u64 {
        let bits = 1 + stream.below(63);
        stream.below(1 << bits)
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_list_within_a_thirty_second() {
        let mut stream = RandomStream::derive(3, &[1]);
        for n in [1, 2, 7, 400] {
            let mut sorted: Vec<u64> = (0..n).map(|_| draw(&mut stream)).collect();
            let mut delays = [Delays::default(), Delays::default()];
            for (index, &delay) in sorted.iter().enumerate() {
                delays[index % 2].record(Span::from_nanos(delay));
            }
            sorted.sort_unstable();
            let [mut all, odd] = delays;
            all.merge(&odd);
            assert_eq!(
                (all.count(), all.min(), all.max()),
                (n, Span::from_nanos(sorted[0]), Span::from_nanos(sorted[sorted.len() - 1]))
            );
            for (numerator, q) in [(0, 0.0), (1, 0.05), (10, 0.5), (19, 0.95), (20, 1.0)] {
                let rank = (numerator * n).div_ceil(20).max(1);
                let exact = sorted[rank as usize - 1];
                let told = all.quantile(q).as_nanos();
                assert!(told >= exact && told - exact <= exact / 32, "{told} for {exact}, {q} of {n}");
            }
        }
    }

    #[test]
    fn every_delay_is_in_its_cell() {
        let mut stream = RandomStream::derive(4, &[1]);
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        for delay in edges.chain((0..1000).map(|_| draw(&mut stream))) {
            let cell = cell_of(delay);
            assert!(delay <= end_of(cell), "{delay}");
            assert!(cell == 0 || delay > end_of(cell - 1), "{delay}");
        }
        assert_eq!((cell_of(0), cell_of(63), cell_of(u64::MAX)), (0, 63, 1919));
    }

    #[test]
    fn nothing_has_no_quantile() {
        let mut delays = Delays::default();
        assert_eq!([delays.quantile(0.5), delays.min(), delays.max()], [Span::ZERO; 3]);
        delays.merge(&Delays::default());
        assert_eq!(delays, Delays::default());
    }
}
