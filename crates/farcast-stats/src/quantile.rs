//! Sample quantiles.

use crate::StatsError;

/// The quantiles that a [`Summary`](crate::Summary) carries, of Hyndman and Fan's type 7.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quantiles {
    /// The 5 % quantile.
    pub p05: f64,
    /// The lower quartile.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// The upper quartile.
    pub p75: f64,
    /// The 95 % quantile.
    pub p95: f64,
}

impl Quantiles {
    /// Returns the quantiles of ascending values; there must be at least one.
    pub(crate) fn of_sorted(sorted: &[f64]) -> Self {
        let at = |p| interpolate(sorted, p);
        Self { p05: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95) }
    }
}

/// Returns the quantile `p` of ascending values, of type 7 of Hyndman and Fan (The American Statistician 50, 1996).
///
/// Type 7 is the linear interpolation at position `(n - 1) p`, the default of R and `NumPy`. Positive infinity may
/// stand for a replication that did not finish: quantiles below it stay finite. Refuses an empty slice, a `p` outside
/// 0 to 1, not-a-number, minus infinity, and values out of order.
pub fn quantile(sorted: &[f64], p: f64) -> Result<f64, StatsError> {
    if !(0.0..=1.0).contains(&p) {
        return Err(StatsError::Probability { value: p });
    }
    if sorted.is_empty() {
        return Err(StatsError::Empty);
    }
    check_order(sorted)?;
    if !sorted.is_sorted() {
        return Err(StatsError::Unsorted);
    }
    Ok(interpolate(sorted, p))
}

/// Refuses values that have no rank: not-a-number and minus infinity.
pub(crate) fn check_order(values: &[f64]) -> Result<(), StatsError> {
    match values.iter().find(|value| value.is_nan() || **value == f64::NEG_INFINITY) {
        Some(&value) => Err(StatsError::Unordered { value }),
        None => Ok(()),
    }
}

/// Returns the quantile `p` of ascending values; there must be at least one.
pub(crate) fn interpolate(sorted: &[f64], p: f64) -> f64 {
    let (index, part) = position(sorted.len(), p);
    between(sorted[index], sorted[(index + 1).min(sorted.len() - 1)], part)
}

/// Returns the index, from 0, of the value below a quantile of `n` ascending values, and the part, 0 to 1, of the way
/// from there to the next value.
pub(crate) fn position(n: usize, p: f64) -> (usize, f64) {
    let position = (n - 1) as f64 * p;
    let index = (position as usize).min(n - 1);
    (index, position - index as f64)
}

/// Returns the point that lies `part` of the way between two neighbours.
pub(crate) fn between(low: f64, high: f64, part: f64) -> f64 {
    // Infinity times zero is not a number, so the ends of the interval are taken as they are.
    if part <= 0.0 || low >= high {
        return low;
    }
    (low * (1.0 - part) + high * part).clamp(low, high)
}

#[cfg(test)]
mod tests;
