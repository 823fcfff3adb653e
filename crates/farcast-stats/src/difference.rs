//! Differences of two means.

use crate::special::{t_two_sided, t_two_sided_quantile};
use crate::student::{at_least_two, check_confidence};
use crate::summary::check_values;
use crate::{Accumulator, StatsError};

/// By how much two means differ, how well that is known, and whether it may be chance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanDifference {
    /// The first mean less the second.
    pub difference: f64,
    /// Half the width of the confidence interval of the difference.
    pub half_width: f64,
    /// The difference in units of its standard error; of samples without any spread 0 where the means are equal, and
    /// infinite with the sign of the difference where they are not.
    pub t: f64,
    /// The degrees of freedom of Student's t; not necessarily whole.
    pub freedom: f64,
    /// How probable a `t` at least as far from 0 is if the means do not differ (two-sided).
    pub p: f64,
}

/// The difference of the means of two independent samples, at least two values each, whose variances may differ, with
/// its interval at `level`, 0.5 to 0.9999 (Welch, Biometrika 34, 1947).
///
/// The degrees of freedom are those of Welch and Satterthwaite; of two samples without any spread, for which they are not
/// defined, n + m - 2. Such samples give a half width of 0, and p = 0 where their means differ at all: right for what is
/// deterministic, and for nothing else. Refused are fewer than two values, values that [`Accumulator::push`] refuses, and
/// other levels.
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

/// The mean difference of values in pairs, at least two, with its interval at `level`, 0.5 to 0.9999, by Student's t with
/// n - 1 degrees of freedom.
///
/// Pairs are what was measured under the same conditions, as replications of two variants with common random numbers:
/// what both have in common falls out. Differences that are all equal give a half width of 0, and p = 0 unless they
/// are 0. Refused are samples of different sizes, fewer than two pairs, values or differences that
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

/// Refuses samples that do not stand in pairs.
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

/// A difference in units of its standard error: none at all is 0 also where there is no error.
pub(crate) fn in_units_of(difference: f64, standard_error: f64) -> f64 {
    if difference.abs() > 0.0 { difference / standard_error } else { 0.0 }
}

#[cfg(test)]
mod tests;
