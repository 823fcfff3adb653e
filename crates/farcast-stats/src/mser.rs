//! MSER: the point at which a series has settled.

use crate::summary::check_values;
use crate::{Accumulator, StatsError};

/// Fewest batches to keep. With fewer left, means that happen to be near each other would look like the settled state
/// (Hoad, Robinson and Davies, Journal of the Operational Research Society 61, 2010).
const LEAST_LEFT: u64 = 5;
const LEAST_BATCHES: u64 = 2 * LEAST_LEFT;

/// Returns the number of first `values` of a series to leave out, because the series begins away from its settled
/// state.
///
/// The method is MSER (White, Simulation 69, 1997); with `batch` = 5 it is the MSER-5 of White, Cobb and Spratt
/// (Winter Simulation Conference 2000). The series is cut into batches of `batch` values; the rest at its end is
/// ignored. Of the k means of batches the first d are left out. The statistic of d is the sum of the squared
/// deviations of the other means from their mean, over `(k - d)^2`; d is the least number at which this statistic is
/// least. At least 5 batches are kept. The result is `d batch`.
///
/// # Errors
/// [`StatsError::Unsettled`] if more than half would be left out: the series is too short to tell.
/// [`StatsError::TooFew`] for an empty batch and fewer than 10 batches; [`StatsError::Value`] for values that
/// [`Accumulator::push`] refuses.
pub fn mser(values: &[f64], batch: usize) -> Result<usize, StatsError> {
    if batch == 0 {
        return Err(StatsError::TooFew { given: 0, needed: 1 });
    }
    check_values(values)?;
    let means = means_of(values.chunks_exact(batch))?;
    let needed = LEAST_BATCHES.saturating_mul(batch as u64);
    if (means.len() as u64) < LEAST_BATCHES {
        return Err(StatsError::TooFew { given: values.len() as u64, needed });
    }
    let (mut least, mut left_out) = (f64::INFINITY, 0);
    let mut kept = Accumulator::new();
    for (before, &mean) in means.iter().enumerate().rev() {
        kept.push(mean)?;
        let statistic = kept.squares() / (kept.n() as f64).powi(2);
        if kept.n() >= LEAST_LEFT && statistic <= least {
            (least, left_out) = (statistic, before);
        }
    }
    let truncation = left_out * batch;
    if 2 * left_out > means.len() {
        return Err(StatsError::Unsettled { truncation: truncation as u64, values: values.len() as u64 });
    }
    Ok(truncation)
}

/// Returns the mean of each batch; refuses values that [`Accumulator::push`] refuses.
pub(crate) fn means_of<'a>(batches: impl Iterator<Item = &'a [f64]>) -> Result<Vec<f64>, StatsError> {
    batches.map(|batch| Accumulator::of(batch).map(|batch| batch.mean())).collect()
}

#[cfg(test)]
mod tests;
