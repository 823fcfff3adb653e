//! Bootstrap confidence intervals: resampling from the values themselves.

use farcast_core::random::RandomStream;
use statrs::distribution::{ContinuousCDF as _, Normal};

use crate::difference::check_pairs;
use crate::quantile::interpolate;
use crate::special::normal_above;
use crate::student::check_confidence;
use crate::{Interval, StatsError};

mod statistic;

use statistic::Sample;
pub use statistic::Statistic;

/// The most resamples that are drawn.
pub const RESAMPLE_LIMIT: u64 = 1_000_000;
/// The fewest resamples at any level.
const LEAST_RESAMPLES: u64 = 100;

/// A statistic and its interval from resamples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BootstrapInterval {
    /// The statistic of the values themselves.
    pub estimate: f64,
    /// Confidence interval of the statistic.
    pub interval: Interval,
    /// Correction of the interval against plain percentiles; `None` if the correction is not defined and the interval
    /// is that of plain percentiles.
    pub correction: Option<Correction>,
}

/// Properties of the statistic for which `BCa` corrects the percentiles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correction {
    /// The bias z0: the normal quantile of the share of resamples whose statistic is less than that of the values;
    /// equal ones count half.
    pub bias: f64,
    /// The acceleration a, by leaving out each value in turn: the rate at which the standard error grows with the
    /// statistic.
    pub acceleration: f64,
}

/// Returns the `statistic` of `values`, at least two, and its bias-corrected and accelerated interval (`BCa`; Efron,
/// Journal of the American Statistical Association 82, 1987) at `level`, 0.5 to 0.9999, from `resamples` resamples.
///
/// Every draw follows from `seed`: equal arguments give equal bits. The interval is that of plain percentiles if
/// `BCa` is not defined: all resamples lie on one side of the estimate, leaving out a value changes nothing, or the
/// correction is so great that its formula turns over. Quantiles of resamples are of type 7, as in
/// [`quantile`](crate::quantile()). 2,000 resamples of 1,000 values take a few milliseconds.
///
/// # Errors
/// Fewer than two values; too few resamples to tell the ends of the interval, that is below `2 / (1 - level)` or 100;
/// more than [`RESAMPLE_LIMIT`] resamples or 2^32 values; values that [`Accumulator::push`](crate::Accumulator::push)
/// refuses; another level; a quantile whose share is not a probability.
pub fn bootstrap_interval(
    values: &[f64],
    statistic: Statistic,
    level: f64,
    resamples: u64,
    seed: u64,
) -> Result<BootstrapInterval, StatsError> {
    let plan = Plan::new(values.len(), level, resamples)?;
    let sample = Sample::new(values, statistic)?;
    let drawn = plan.draw(seed, |counts| sample.resampled(counts));
    Ok(plan.interval(sample.estimate(), &drawn, |index| sample.without(index)))
}

/// Returns the `statistic` of `a` less that of `b`, whose values form pairs, and its interval as
/// [`bootstrap_interval`] computes it.
///
/// Whole pairs are drawn. Whatever the two values of a pair have in common, as in replications with common random
/// numbers, makes the interval narrower.
///
/// # Errors
/// The errors of [`bootstrap_interval`], and samples of different sizes.
pub fn paired_bootstrap(
    a: &[f64],
    b: &[f64],
    statistic: Statistic,
    level: f64,
    resamples: u64,
    seed: u64,
) -> Result<BootstrapInterval, StatsError> {
    check_pairs(a, b)?;
    let plan = Plan::new(a.len(), level, resamples)?;
    let (a, b) = (Sample::new(a, statistic)?, Sample::new(b, statistic)?);
    let drawn = plan.draw(seed, |counts| a.resampled(counts) - b.resampled(counts));
    Ok(plan.interval(a.estimate() - b.estimate(), &drawn, |index| a.without(index) - b.without(index)))
}

/// Checked size and number of the resamples to draw.
struct Plan {
    values: u32,
    level: f64,
    resamples: u64,
}

impl Plan {
    fn new(values: usize, level: f64, resamples: u64) -> Result<Self, StatsError> {
        check_confidence(level)?;
        let needed = LEAST_RESAMPLES.max((2.0 / (1.0 - level)).ceil() as u64);
        for (given, needed) in [(values as u64, 2), (resamples, needed)] {
            if given < needed {
                return Err(StatsError::TooFew { given, needed });
            }
        }
        for (given, limit) in [(values as u64, u64::from(u32::MAX)), (resamples, RESAMPLE_LIMIT)] {
            if given > limit {
                return Err(StatsError::TooMany { given, limit });
            }
        }
        Ok(Self { values: values as u32, level, resamples })
    }

    /// Returns the statistic of each resample, ascending. A resample is given as the number of times each value is
    /// drawn.
    fn draw(&self, seed: u64, statistic: impl Fn(&[u32]) -> f64) -> Vec<f64> {
        let mut stream = RandomStream::derive(seed, &[]);
        let mut counts = vec![0_u32; self.values as usize];
        let resample = |_| {
            counts.fill(0);
            for _ in 0..self.values {
                counts[stream.below(u64::from(self.values)) as usize] += 1;
            }
            statistic(&counts)
        };
        let mut resampled: Vec<f64> = (0..self.resamples).map(resample).collect();
        resampled.sort_unstable_by(f64::total_cmp);
        resampled
    }

    /// Returns the interval from the statistics of resamples and from the statistics with one value left out.
    fn interval(
        &self,
        estimate: f64,
        resampled: &[f64],
        without: impl Fn(usize) -> f64,
    ) -> BootstrapInterval {
        let tail = (1.0 - self.level) / 2.0;
        let correction = self.correction(estimate, resampled, without);
        let corrected =
            correction.and_then(|correction| correction.shares(tail).map(|shares| (correction, shares)));
        let (low, high) = corrected.map_or((tail, 1.0 - tail), |(_, shares)| shares);
        BootstrapInterval {
            estimate,
            interval: Interval { low: interpolate(resampled, low), high: interpolate(resampled, high) },
            correction: corrected.map(|(correction, _)| correction),
        }
    }

    fn correction(
        &self,
        estimate: f64,
        resampled: &[f64],
        without: impl Fn(usize) -> f64,
    ) -> Option<Correction> {
        let left_out: Vec<f64> = (0..self.values as usize).map(without).collect();
        Some(Correction { bias: bias(estimate, resampled)?, acceleration: acceleration(&left_out)? })
    }
}

impl Correction {
    /// Returns the shares of resamples below either end, if plain percentiles leave out `tail` on either side.
    fn shares(self, tail: f64) -> Option<(f64, f64)> {
        let z = normal_quantile(tail)?;
        let share = |z: f64| {
            let shifted = self.bias + z;
            let slowed = 1.0 - self.acceleration * shifted;
            (slowed > 0.0).then(|| normal_above(-self.bias - shifted / slowed))
        };
        Some((share(z)?, share(-z)?))
    }
}

/// Returns the normal quantile of the share of resamples below the estimate; `None` if all are on one side.
fn bias(estimate: f64, resampled: &[f64]) -> Option<f64> {
    /// Share of the greatest distance from the estimate; a nearer value equals the estimate but for rounding.
    const TIE: f64 = 1e-12;
    let farthest = resampled.iter().map(|value| (value - estimate).abs()).fold(0.0, f64::max);
    let below = resampled.partition_point(|value| value - estimate < -TIE * farthest);
    let up_to = resampled.partition_point(|value| value - estimate <= TIE * farthest);
    let share = (below + up_to) as f64 / (2 * resampled.len()) as f64;
    (share > 0.0 && share < 1.0).then(|| normal_quantile(share)).flatten()
}

/// Returns the acceleration from the statistics with one value left out each; `None` if all of them are equal.
fn acceleration(left_out: &[f64]) -> Option<f64> {
    let first = left_out.first()?;
    // Differences from the first value, so that equal values differ by 0; in units of the greatest, so that no cube
    // overflows.
    let mean = left_out.iter().map(|value| value - first).sum::<f64>() / left_out.len() as f64;
    let influences: Vec<f64> = left_out.iter().map(|value| mean - (value - first)).collect();
    let greatest = influences.iter().map(|value| value.abs()).fold(0.0, f64::max);
    let sum_of = |power: i32| influences.iter().map(|value| (value / greatest).powi(power)).sum::<f64>();
    (greatest > 0.0).then(|| sum_of(3) / (6.0 * sum_of(2).powf(1.5)))
}

fn normal_quantile(p: f64) -> Option<f64> {
    Normal::new(0.0, 1.0).ok().map(|normal| normal.inverse_cdf(p))
}

#[cfg(test)]
mod tests;
