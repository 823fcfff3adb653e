//! One-way analysis of variance: a test of whether several samples have one mean.

use crate::special::f_survival;
use crate::{Accumulator, StatsError};

/// The outcome of a one-way analysis of variance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Anova {
    /// The mean square between the samples over that within them.
    pub f: f64,
    /// The degrees of freedom between the samples: their number less one.
    pub freedom_between: u64,
    /// The degrees of freedom within the samples: the number of values less the number of samples.
    pub freedom_within: u64,
    /// The probability of an `f` at least this great if all means are equal.
    pub p: f64,
    /// The share of the whole sum of squares that lies between the samples, 0 to 1.
    pub eta_squared: f64,
}

/// Returns the one-way analysis of variance of `samples`, which are assumed to have one variance.
///
/// There must be at least two samples, none of them empty, and more values than samples. If the values within each
/// sample are all equal, `f` is infinite and p = 0 where the means differ; where the means are equal, `f` is 0, p = 1
/// and `eta_squared` 0. Refuses fewer samples or values, and values that [`Accumulator::push`] refuses.
pub fn one_way_anova(samples: &[&[f64]]) -> Result<Anova, StatsError> {
    let samples = samples.iter().map(|sample| Accumulator::of(sample)).collect::<Result<Vec<_>, _>>()?;
    let groups = samples.len() as u64;
    if groups < 2 {
        return Err(StatsError::TooFew { given: groups, needed: 2 });
    }
    if samples.iter().any(|sample| sample.n() == 0) {
        return Err(StatsError::Empty);
    }
    let mut all = Accumulator::new();
    for sample in &samples {
        all.merge(sample);
    }
    if all.n() <= groups {
        return Err(StatsError::TooFew { given: all.n(), needed: groups + 1 });
    }
    let apart = |sample: &Accumulator| sample.n() as f64 * (sample.mean() - all.mean()).powi(2);
    let between: f64 = samples.iter().map(apart).sum();
    let within: f64 = samples.iter().map(Accumulator::squares).sum();
    let (freedom_between, freedom_within) = (groups - 1, all.n() - groups);
    if between <= 0.0 {
        return Ok(Anova { f: 0.0, freedom_between, freedom_within, p: 1.0, eta_squared: 0.0 });
    }
    let f = between / freedom_between as f64 / (within / freedom_within as f64);
    Ok(Anova {
        f,
        freedom_between,
        freedom_within,
        p: f_survival(f, freedom_between as f64, freedom_within as f64),
        eta_squared: between / (between + within),
    })
}

#[cfg(test)]
mod tests;
