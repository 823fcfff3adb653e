//! Tukey's honestly significant difference, and pairwise differences of several means.

use crate::difference::in_units_of;
use crate::student::{at_least_two, check_confidence};
use crate::studentized_range::{StudentizedRange, studentized_range_quantile};
use crate::summary::check_values;
use crate::{Accumulator, StatsError};

/// Least significant difference between means of samples of one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TukeyHsd {
    /// The mean square within the samples, which all have one variance by assumption.
    pub mean_square: f64,
    /// The quantile of the studentised range.
    pub q: f64,
    /// Means that differ by more are significantly different.
    pub difference: f64,
}

/// Returns the honestly significant difference of `samples` at `level`, such as 0.95: `q sqrt(MSe / n)`.
///
/// There are 2 or more samples, all of one size, which is 2 or more.
///
/// # Errors
/// Too few samples or values; samples of different sizes; a level outside 0 to 1, exclusive.
pub fn tukey_hsd(samples: &[&[f64]], level: f64) -> Result<TukeyHsd, StatsError> {
    let n = samples.first().map_or(0, |sample| sample.len());
    for (given, needed) in [(samples.len(), 2), (n, 2)] {
        if given < needed {
            return Err(StatsError::TooFew { given: given as u64, needed: needed as u64 });
        }
    }
    if let Some(other) = samples.iter().find(|sample| sample.len() != n) {
        return Err(StatsError::Categories { counts: other.len(), probabilities: n });
    }
    for sample in samples {
        check_values(sample)?;
    }
    let freedom = (samples.len() * (n - 1)) as u64;
    let squares = |sample: &&[f64]| {
        let mean = sample.iter().sum::<f64>() / n as f64;
        sample.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
    };
    let mean_square = samples.iter().map(squares).sum::<f64>() / freedom as f64;
    let q = studentized_range_quantile(level, samples.len() as u64, freedom)?;
    Ok(TukeyHsd { mean_square, q, difference: q * (mean_square / n as f64).sqrt() })
}

/// Difference of the means of two of several samples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TukeyPair {
    /// Index of the first sample, from 0.
    pub first: usize,
    /// Index of the second sample, greater than the first.
    pub second: usize,
    /// The first mean less the second.
    pub difference: f64,
    /// Half the width of the confidence interval of the difference; all intervals together hold at their level.
    pub half_width: f64,
    /// The difference, without its sign, in units of the standard error of a mean.
    pub q: f64,
    /// The probability that the greatest `q` of all pairs is at least this great if all means are equal.
    pub p: f64,
}

/// Compares every pair of `samples`, with intervals that hold together at `level`, 0.5 to 0.9999.
///
/// There are 2 or more samples of 2 values or more each. The comparison uses Tukey's studentised range with the
/// standard error `sqrt(MSe / 2 (1 / n + 1 / m))` of Kramer (Biometrics 12, 1956). It is exact for equal sizes and
/// conservative for others (Hayter, Annals of Statistics 12, 1984). The pairs come in the order 0 and 1, 0 and 2,
/// ..., 1 and 2, .... If the values within each sample are all equal, the half widths are 0, and for means that
/// differ `q` is infinite and p = 0.
///
/// # Errors
/// Too few samples or values; values that [`Accumulator::push`] refuses; another level.
pub fn tukey_pairs(samples: &[&[f64]], level: f64) -> Result<Vec<TukeyPair>, StatsError> {
    check_confidence(level)?;
    let samples = samples.iter().map(|sample| at_least_two(sample)).collect::<Result<Vec<_>, _>>()?;
    let groups = samples.len() as u64;
    if groups < 2 {
        return Err(StatsError::TooFew { given: groups, needed: 2 });
    }
    let freedom = samples.iter().map(Accumulator::n).sum::<u64>() - groups;
    let mean_square = samples.iter().map(Accumulator::squares).sum::<f64>() / freedom as f64;
    let range = StudentizedRange::new(groups, freedom)?;
    let most = range.quantile(level);
    let compare = |first: usize, second: usize| {
        let (a, b) = (&samples[first], &samples[second]);
        let standard_error = (mean_square / 2.0 * (1.0 / a.n() as f64 + 1.0 / b.n() as f64)).sqrt();
        let difference = a.mean() - b.mean();
        let q = in_units_of(difference.abs(), standard_error);
        TukeyPair { first, second, difference, half_width: most * standard_error, q, p: range.survival(q) }
    };
    let seconds = |first: usize| (first + 1..samples.len()).map(move |second| (first, second));
    Ok((0..samples.len()).flat_map(seconds).map(|(first, second)| compare(first, second)).collect())
}

#[cfg(test)]
mod tests;
