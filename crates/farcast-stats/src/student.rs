//! Intervals of a mean at any level.

use crate::special::t_two_sided_quantile;
use crate::{Accumulator, Interval, StatsError};

/// A mean with its confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the confidence interval.
    pub half_width: f64,
    /// The degrees of freedom of Student's t on which the half width rests.
    pub freedom: u64,
}

impl MeanInterval {
    /// Returns the ends of the interval.
    pub const fn interval(&self) -> Interval {
        Interval { low: self.mean - self.half_width, high: self.mean + self.half_width }
    }
}

/// Returns the mean of independent `values`, at least two, and its confidence interval at `level`, 0.5 to 0.9999, by
/// Student's t with n - 1 degrees of freedom.
///
/// At 0.95 this is the interval of [`Summary`](crate::Summary) to ten digits. Values that are all equal have an
/// interval of width 0. Refuses fewer than two values, values that [`Accumulator::push`] refuses, and other levels.
pub fn t_interval(values: &[f64], level: f64) -> Result<MeanInterval, StatsError> {
    check_confidence(level)?;
    let all = at_least_two(values)?;
    let freedom = all.n() - 1;
    let standard_error = (all.variance() / all.n() as f64).sqrt();
    let half_width = t_two_sided_quantile(level, freedom as f64) * standard_error;
    Ok(MeanInterval { mean: all.mean(), half_width, freedom })
}

/// Refuses a level of an interval outside 0.5 to 0.9999.
pub(crate) fn check_confidence(level: f64) -> Result<(), StatsError> {
    if (0.5..=0.9999).contains(&level) { Ok(()) } else { Err(StatsError::Confidence { value: level }) }
}

/// Returns the mean and spread of `values`; refuses fewer than two.
pub(crate) fn at_least_two(values: &[f64]) -> Result<Accumulator, StatsError> {
    let all = Accumulator::of(values)?;
    if all.n() < 2 { Err(StatsError::TooFew { given: all.n(), needed: 2 }) } else { Ok(all) }
}

#[cfg(test)]
mod tests;
