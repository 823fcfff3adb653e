//! Means of series whose values depend on earlier values.

use crate::mser::means_of;
use crate::summary::check_values;
use crate::{MeanInterval, StatsError, t_interval};

/// Mean of a correlated series, from the means of its batches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BatchMeans {
    /// The mean of the series and its interval, by Student's t with as many degrees of freedom as batches less one.
    pub mean: MeanInterval,
    /// Number of values in a batch.
    pub size: u64,
    /// Correlation of the mean of a batch with the mean of the next, -1 to 1; `None` if the means do not vary.
    ///
    /// For independent batches it lies within about 2 / sqrt(batches) of 0. If it is greater, the batches are too
    /// short for the interval to hold at its level.
    pub lag_one: Option<f64>,
}

/// Returns the mean of a steady series of correlated `values` and its interval at `level`, 0.5 to 0.9999.
///
/// The interval rests on the means of `batches` batches, 2 or more, of one size (Law and Carson, Operations Research
/// 27, 1979). A batch should be long against the time over which values are correlated. More than 30 batches gain
/// little (Schmeiser, Operations Research 30, 1982). Values that do not fill the batches are left out at the
/// beginning, where a series is least settled. Refuses fewer batches, fewer values than batches, values that
/// [`Accumulator::push`](crate::Accumulator::push) refuses, and other levels.
pub fn batch_means(values: &[f64], batches: usize, level: f64) -> Result<BatchMeans, StatsError> {
    let n = values.len();
    for (given, needed) in [(batches, 2), (n, batches)] {
        if given < needed {
            return Err(StatsError::TooFew { given: given as u64, needed: needed as u64 });
        }
    }
    check_values(values)?;
    let size = n / batches;
    let means = means_of(values[n % batches..].chunks_exact(size))?;
    let mean = t_interval(&means, level)?;
    Ok(BatchMeans { mean, size: size as u64, lag_one: lag_one(&means, mean.mean) })
}

fn lag_one(means: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = means.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = means.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (squares > 0.0).then(|| products / squares)
}

#[cfg(test)]
mod tests;
