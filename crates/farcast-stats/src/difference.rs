//! Differences of two means, with intervals and tests.

use crate::special::{t_two_sided, t_two_sided_quantile};
use crate::student::{at_least_two, check_confidence};
use crate::summary::check_values;
use crate::{Accumulator, StatsError};

/// Difference of two means, with its interval and its test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanDifference {
    /// The first mean less the second.
    pub difference: f64,
    /// Half the width of the confidence interval of the difference.
    pub half_width: f64,
    /// The difference in units of its standard error. For samples without any spread it is 0 if the means are equal,
    /// and otherwise infinite with the sign of the difference.
    pub t: f64,
    /// The degrees of freedom of Student's t; not necessarily whole.
    pub freedom: f64,
    /// The probability of a `t` at least as far from 0 if the means do not differ (two-sided).
    pub p: f64,
}

/// Returns the difference of the means of two independent samples with its interval at `level`, 0.5 to 0.9999 (Welch,
/// Biometrika 34, 1947). Each sample has at least two values; their variances may differ.
///
/// The degrees of freedom are those of Welch and Satterthwaite. These are not defined for two samples without any
/// spread, which get n + m - 2. Such samples give a half width of 0, and p = 0 if their means differ at all: right
/// for deterministic results, and for nothing else. Refuses fewer than two values, values that [`Accumulator::push`]
/// refuses, and other levels.
pub fn welch(a: &[f64], b: &[f64], level: f64) -> Result<MeanDifference, StatsError> {
    check_confidence(level)?;
    let (a, b) = (at_least_two(a)?, at_least_two(b)?);
    let of_mean = |sample: &Accumulator| sample.variance() / sample.n() as f64;
    let (ours, theirs) = (of_mean(&a), of_mean(&b));
    let variance = ours + theirs;
    let (free, freer) = ((a.n() - 1) as f64, (b.n() - 1) as f64);
    let freedom = if variance > 0.0 {
        // In shares of the whole, because squares of variances may overflow.
        let (share, rest) = (ours / variance, theirs / variance);
        1.0 / (share * share / free + rest * rest / freer)
    } else {
        free + freer
    };
    Ok(compare(a.mean() - b.mean(), variance.sqrt(), freedom, level))
}

/// Returns the mean difference of values in pairs, at least two, with its interval at `level`, 0.5 to 0.9999, by
/// Student's t with n - 1 degrees of freedom.
///
/// The two values of a pair were measured under the same conditions, as replications of two variants with common
/// random numbers are: whatever both have in common cancels. Differences that are all equal give a half width of 0,
/// and p = 0 unless they are 0. Refuses samples of different sizes, fewer than two pairs, values or differences that
/// [`Accumulator::push`] refuses, and other levels.
pub fn paired(a: &[f64], b: &[f64], level: f64) -> Result<MeanDifference, StatsError> {
    check_confidence(level)?;
    check_pairs(a, b)?;
    check_values(a)?;
    check_values(b)?;
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let all = at_least_two(&differences)?;
    let standard_error = (all.variance() / all.n() as f64).sqrt();
    Ok(compare(all.mean(), standard_error, (all.n() - 1) as f64, level))
}

/// Refuses samples of different sizes.
pub(crate) fn check_pairs(a: &[f64], b: &[f64]) -> Result<(), StatsError> {
    if a.len() == b.len() { Ok(()) } else { Err(StatsError::Pairs { first: a.len(), second: b.len() }) }
}

fn compare(difference: f64, standard_error: f64, freedom: f64, level: f64) -> MeanDifference {
    let t = in_units_of(difference, standard_error);
    MeanDifference {
        difference,
        half_width: t_two_sided_quantile(level, freedom) * standard_error,
        t,
        freedom,
        p: t_two_sided(t, freedom),
    }
}

/// Returns a difference in units of its standard error; a difference of 0 is 0 even if the error is 0.
pub(crate) fn in_units_of(difference: f64, standard_error: f64) -> f64 {
    if difference.abs() > 0.0 { difference / standard_error } else { 0.0 }
}

#[cfg(test)]
mod tests;
