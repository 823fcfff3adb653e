//! Statistics of resamples, computed from the number of times that each value was drawn.

use crate::quantile::{between, interpolate, position};
use crate::{Accumulator, StatsError};

/// A number that describes a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The standard deviation with divisor n - 1.
    Deviation,
    /// The quantile of this share, 0 to 1, of type 7 as in [`quantile`](crate::quantile()); 0.5 is the median.
    Quantile(f64),
}

/// Values prepared for one statistic of many resamples.
pub(super) enum Sample {
    Mean(Centred),
    Deviation(Centred),
    Quantile(Ranked),
}

impl Sample {
    /// Prepares two values or more, at most 2^32.
    pub(super) fn new(values: &[f64], statistic: Statistic) -> Result<Self, StatsError> {
        let all = Accumulator::of(values)?;
        match statistic {
            Statistic::Mean => Ok(Self::Mean(Centred::new(values, all))),
            Statistic::Deviation => Ok(Self::Deviation(Centred::new(values, all))),
            Statistic::Quantile(p) if (0.0..=1.0).contains(&p) => Ok(Self::Quantile(Ranked::new(values, p))),
            Statistic::Quantile(p) => Err(StatsError::Probability { value: p }),
        }
    }

    /// Returns the statistic of the values themselves.
    pub(super) fn estimate(&self) -> f64 {
        match self {
            Self::Mean(sample) => sample.all.mean(),
            Self::Deviation(sample) => sample.all.variance().sqrt(),
            Self::Quantile(sample) => interpolate(&sample.sorted, sample.p),
        }
    }

    /// Returns the statistic of a resample that has each value `counts` times, as many in all as there are values.
    pub(super) fn resampled(&self, counts: &[u32]) -> f64 {
        match self {
            Self::Mean(sample) => sample.mean(counts),
            Self::Deviation(sample) => sample.deviation(counts),
            Self::Quantile(sample) => sample.quantile(counts),
        }
    }

    /// Returns the statistic of all values but one.
    pub(super) fn without(&self, index: usize) -> f64 {
        match self {
            Self::Mean(sample) => sample.mean_without(index),
            Self::Deviation(sample) => sample.deviation_without(index),
            Self::Quantile(sample) => sample.quantile_without(index),
        }
    }
}

/// Values less their mean: sums of these differences keep the digits in which the values differ.
pub(super) struct Centred {
    all: Accumulator,
    deviations: Vec<f64>,
}

impl Centred {
    fn new(values: &[f64], all: Accumulator) -> Self {
        Self { all, deviations: values.iter().map(|value| value - all.mean()).collect() }
    }

    fn sum(&self, counts: &[u32], of: impl Fn(f64) -> f64) -> f64 {
        counts.iter().zip(&self.deviations).map(|(&count, &deviation)| f64::from(count) * of(deviation)).sum()
    }

    fn mean(&self, counts: &[u32]) -> f64 {
        self.all.mean() + self.sum(counts, |deviation| deviation) / self.all.n() as f64
    }

    fn mean_without(&self, index: usize) -> f64 {
        self.all.mean() - self.deviations[index] / (self.all.n() - 1) as f64
    }

    fn deviation(&self, counts: &[u32]) -> f64 {
        let n = self.all.n() as f64;
        let shift = self.sum(counts, |deviation| deviation);
        let squares = self.sum(counts, |deviation| deviation * deviation) - shift * shift / n;
        (squares.max(0.0) / (n - 1.0)).sqrt()
    }

    /// Returns the deviation of all values but one; not a number if only one is left.
    fn deviation_without(&self, index: usize) -> f64 {
        let n = self.all.n() as f64;
        let squares = self.all.squares() - self.deviations[index].powi(2) * n / (n - 1.0);
        (squares.max(0.0) / (n - 2.0)).sqrt()
    }
}

/// Values and their order.
pub(super) struct Ranked {
    p: f64,
    sorted: Vec<f64>,
    /// Index of the value at each rank.
    order: Vec<u32>,
    /// Rank of the value at each index.
    ranks: Vec<u32>,
}

impl Ranked {
    fn new(values: &[f64], p: f64) -> Self {
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        order.sort_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
        let mut ranks = vec![0; values.len()];
        for (rank, &index) in order.iter().enumerate() {
            ranks[index as usize] = rank as u32;
        }
        let sorted = order.iter().map(|&index| values[index as usize]).collect();
        Self { p, sorted, order, ranks }
    }

    fn quantile(&self, counts: &[u32]) -> f64 {
        let (behind, part) = position(counts.len(), self.p);
        let mut drawn = 0;
        let passing = self.order.iter().position(|&index| {
            drawn += counts[index as usize] as usize;
            drawn > behind
        });
        let rank = passing.unwrap_or(self.order.len() - 1);
        // Drawn more than once, a value is its own neighbour.
        let next = if drawn > behind + 1 { None } else { self.next_drawn(rank, counts) };
        between(self.sorted[rank], self.sorted[next.unwrap_or(rank)], part)
    }

    fn next_drawn(&self, rank: usize, counts: &[u32]) -> Option<usize> {
        let above = self.order[rank + 1..].iter().position(|&index| counts[index as usize] > 0);
        above.map(|steps| rank + 1 + steps)
    }

    fn quantile_without(&self, index: usize) -> f64 {
        let left = self.sorted.len() - 1;
        let (behind, part) = position(left, self.p);
        let missing = self.ranks[index] as usize;
        let at = |place: usize| self.sorted[if place < missing { place } else { place + 1 }];
        between(at(behind), at((behind + 1).min(left - 1)), part)
    }
}
