//! Means with their intervals.

use crate::StatsError;
use crate::quantile::Quantiles;
use crate::special::t_quantile;

/// Largest magnitude of a value: the sum of the squares of any number of such values does not overflow.
pub const VALUE_LIMIT: f64 = 1e140;

/// Mean, spread and extremes of values that are fed one by one and not kept.
///
/// It uses Welford's recurrence (Technometrics 4, 1962), so values that share many leading digits keep the others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Accumulator {
    n: u64,
    mean: f64,
    /// The sum of the squared deviations from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Accumulator {
    /// Creates an accumulator without values.
    pub const fn new() -> Self {
        Self { n: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    /// Accumulates `values`, in any order; refuses values that [`push`](Self::push) refuses.
    pub(crate) fn of(values: &[f64]) -> Result<Self, StatsError> {
        let mut all = Self::new();
        for &value in values {
            all.push(value)?;
        }
        Ok(all)
    }

    /// Takes one value; refuses a value that is not finite or beyond [`VALUE_LIMIT`], which then changes nothing.
    pub fn push(&mut self, value: f64) -> Result<(), StatsError> {
        check_values(&[value])?;
        self.n = self.n.saturating_add(1);
        let deviation = value - self.mean;
        self.mean += deviation / self.n as f64;
        self.squares += deviation * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        Ok(())
    }

    /// Takes the values that `other` took, as if they had come after these (Chan, Golub and `LeVeque`, 1979).
    ///
    /// The same accumulators merged in the same order give the same bits; another order may differ in the last
    /// digits. A caller with several threads therefore merges their work in the order of the replications.
    pub fn merge(&mut self, other: &Self) {
        if self.n == 0 || other.n == 0 {
            if self.n == 0 {
                *self = *other;
            }
            return;
        }
        let (ours, theirs) = (self.n as f64, other.n as f64);
        let deviation = other.mean - self.mean;
        let share = theirs / (ours + theirs);
        self.mean += deviation * share;
        self.squares += other.squares + deviation * deviation * ours * share;
        self.n = self.n.saturating_add(other.n);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of values.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Returns the mean, 0 before the first value.
    pub(crate) const fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the sum of the squared deviations from the mean.
    pub(crate) const fn squares(&self) -> f64 {
        self.squares
    }

    /// Returns the variance with divisor n - 1; there must be two values at least.
    pub(crate) fn variance(&self) -> f64 {
        self.squares / (self.n - 1) as f64
    }

    /// Returns the summary so far, without quantiles; `None` before the first value.
    pub fn summary(&self) -> Option<Summary> {
        let sd = (self.n >= 2).then(|| self.variance().sqrt());
        (self.n > 0).then(|| Summary {
            n: self.n,
            mean: self.mean,
            sd,
            ci95_half_width: sd.map(|sd| t_quantile(self.n - 1) * sd / (self.n as f64).sqrt()),
            min: self.min,
            max: self.max,
            quantiles: None,
        })
    }
}

impl Default for Accumulator {
    fn default() -> Self {
        Self::new()
    }
}

/// Summary of a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Number of values, at least one.
    pub n: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Standard deviation of the values with divisor n - 1; `None` for one value.
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t with n - 1 degrees of freedom;
    /// `None` for one value.
    pub ci95_half_width: Option<f64>,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// Quantiles, if the values were at hand: an [`Accumulator`] does not keep them.
    pub quantiles: Option<Quantiles>,
}

impl Summary {
    /// Returns the summary of `values`, in any order. Refuses an empty slice and values that [`Accumulator::push`]
    /// refuses.
    pub fn of(values: &[f64]) -> Result<Self, StatsError> {
        let all = Accumulator::of(values)?;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let summary = all.summary().ok_or(StatsError::Empty)?;
        Ok(Self { quantiles: Some(Quantiles::of_sorted(&sorted)), ..summary })
    }
}

/// Refuses values that are not finite or beyond [`VALUE_LIMIT`].
pub(crate) fn check_values(values: &[f64]) -> Result<(), StatsError> {
    match values.iter().find(|value| value.is_nan() || value.abs() > VALUE_LIMIT) {
        Some(&value) => Err(StatsError::Value { value }),
        None => Ok(()),
    }
}

/// Returns half the width of the range in which, with 95 %, a published mean should lie if its runs and ours are
/// alike.
///
/// `sd` is the standard deviation of our `n_ours` runs (at least 2). `n_theirs` is the number of runs behind the
/// published mean (at least 1). The difference of the two means has the standard deviation
/// `sd sqrt(1 / n_theirs + 1 / n_ours)` when both come from one normal distribution. Because `sd` is estimated from
/// our runs alone, Student's t with `n_ours - 1` degrees of freedom applies. For `n_theirs` = 1 this is the usual
/// prediction interval for one more run.
pub fn prediction_half_width(sd: f64, n_theirs: u64, n_ours: u64) -> Result<f64, StatsError> {
    if !(0.0..=VALUE_LIMIT).contains(&sd) {
        return Err(StatsError::Deviation { value: sd });
    }
    for (given, needed) in [(n_theirs, 1), (n_ours, 2)] {
        if given < needed {
            return Err(StatsError::TooFew { given, needed });
        }
    }
    Ok(sd * (1.0 / n_theirs as f64 + 1.0 / n_ours as f64).sqrt() * t_quantile(n_ours - 1))
}

#[cfg(test)]
mod tests;
