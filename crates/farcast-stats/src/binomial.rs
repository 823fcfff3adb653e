//! Counts of successes: intervals of a probability from a count, and ranges of counts from a probability.

use core::ops::RangeInclusive;

use crate::StatsError;
use crate::special::{Tail, beta_quantile};

/// The most trials that the functions here take; their work grows with the trials.
pub const COUNT_LIMIT: u64 = 10_000_000;

/// An interval of numbers, both ends included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Returns the confidence interval of a probability after `successes` in `n` trials (Clopper and Pearson, Biometrika
/// 26, 1934).
///
/// The interval covers the true probability in at least the share `level` of all experiments, whatever that
/// probability is. Without a trial it is 0 to 1. The relative error of each end is below 1e-9. Refuses more successes
/// than trials, `n` above [`COUNT_LIMIT`] and a `level` outside 0 to 1, exclusive.
pub fn binomial_interval(successes: u64, n: u64, level: f64) -> Result<Interval, StatsError> {
    let mass = tail_mass(level)?;
    check_trials(n)?;
    check_successes(successes, n)?;
    let (k, failures) = (successes as f64, (n - successes) as f64);
    let low = if successes == 0 { 0.0 } else { beta_quantile(k, failures + 1.0, mass, Tail::Lower) };
    let high = if successes == n { 1.0 } else { beta_quantile(k + 1.0, failures, mass, Tail::Upper) };
    Ok(Interval { low, high })
}

/// Returns the central range of counts in which the successes of `n` trials lie with probability at least `level`.
///
/// The tails are equal: the range begins at the least k with P(X <= k) > (1 - level) / 2 and ends at the greatest k
/// with P(X >= k) > (1 - level) / 2. Either tail outside therefore has at most (1 - level) / 2. Refuses `n` above
/// [`COUNT_LIMIT`], a `p` outside 0 to 1, and a `level` outside 0 to 1, exclusive.
pub fn binomial_range(n: u64, p: f64, level: f64) -> Result<RangeInclusive<u64>, StatsError> {
    let mass = tail_mass(level)?;
    check_trials(n)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(StatsError::Probability { value: p });
    }
    if p >= 1.0 {
        return Ok(n..=n);
    }
    let odds = p / (1.0 - p);
    let mode = (((n + 1) as f64 * p) as u64).min(n);
    Ok(central_range(n, mode, mass, |k| (n - k) as f64 / (k + 1) as f64 * odds))
}

/// Returns the central range in which the successes of `n` future trials lie with probability at least `level`, given
/// `successes` in `trials` of our own.
///
/// This compares a published count with ours: a paper saw k of its `n` runs end in some way, and we have `trials`
/// replications of the same scenario. If k is outside the range, the two do not agree. The unknown probability has
/// Jeffreys' prior, so after our trials it is Beta(successes + 1/2, trials - successes + 1/2) and the count is
/// beta-binomial. The range therefore allows for the noise of both sides. The tails are those of [`binomial_range`].
/// Refuses 0 trials, more successes than trials, `n` above [`COUNT_LIMIT`], and a `level` outside 0 to 1, exclusive.
pub fn predictive_binomial_range(
    n: u64,
    successes: u64,
    trials: u64,
    level: f64,
) -> Result<RangeInclusive<u64>, StatsError> {
    let mass = tail_mass(level)?;
    check_trials(n)?;
    check_successes(successes, trials)?;
    if trials == 0 {
        return Err(StatsError::TooFew { given: trials, needed: 1 });
    }
    let (a, b) = (successes as f64 + 0.5, (trials - successes) as f64 + 0.5);
    let ratio = |k: u64| {
        let (k, left) = (k as f64, (n - k) as f64);
        left * (k + a) / ((k + 1.0) * (left - 1.0 + b))
    };
    Ok(central_range(n, beta_binomial_mode(n, a, b), mass, ratio))
}

/// Returns the most probable count: P(k + 1) >= P(k) holds up to `k (a + b - 2) = n (a - 1) - b + 1`.
fn beta_binomial_mode(n: u64, a: f64, b: f64) -> u64 {
    let rise = n as f64 * (a - 1.0) - b + 1.0;
    if rise < 0.0 {
        return 0;
    }
    // One trial makes a + b = 2 and the probabilities monotone; the cast saturates from infinity.
    ((rise / (a + b - 2.0)) as u64).saturating_add(1).min(n)
}

/// Returns the range that leaves at most `mass` on either side, for a distribution over `0..=n` that falls away from
/// `mode`.
///
/// `ratio(k)` is P(k + 1) / P(k). Weights are relative to the weight of the mode, so none overflows. Weights of 1e-40
/// or less are left out.
fn central_range(n: u64, mode: u64, mass: f64, ratio: impl Fn(u64) -> f64) -> RangeInclusive<u64> {
    const NEGLIGIBLE: f64 = 1e-40;
    let below = falling((0..mode).rev(), NEGLIGIBLE, |k| 1.0 / ratio(k));
    let above = falling(mode..n, NEGLIGIBLE, &ratio);
    let first = mode - below.len() as u64;
    let weights = || below.iter().rev().chain([&1.0]).chain(&above);
    // Small terms first on either side of the mode.
    let total = below.iter().rev().sum::<f64>() + above.iter().rev().sum::<f64>() + 1.0;
    let low = first + passing(weights(), mass * total);
    let last = mode + above.len() as u64;
    let high = last - passing(weights().rev(), mass * total);
    low..=high
}

/// Returns the weights along `counts`: each is the one before, at first 1, times its `factor`. Stops at `least`.
fn falling(counts: impl Iterator<Item = u64>, least: f64, factor: impl Fn(u64) -> f64) -> Vec<f64> {
    let weights = counts.scan(1.0, |weight, k| {
        *weight *= factor(k);
        Some(*weight)
    });
    weights.take_while(|weight| *weight > least).collect()
}

/// Returns the number of weights before the one at which their sum passes `mass`.
fn passing<'a>(weights: impl Iterator<Item = &'a f64>, mass: f64) -> u64 {
    let sums = weights.scan(0.0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= mass).count() as u64
}

/// Returns the probability outside a central range at `level`, on either side.
fn tail_mass(level: f64) -> Result<f64, StatsError> {
    if level > 0.0 && level < 1.0 { Ok((1.0 - level) / 2.0) } else { Err(StatsError::Level { value: level }) }
}

fn check_trials(count: u64) -> Result<(), StatsError> {
    if count > COUNT_LIMIT {
        return Err(StatsError::TooManyTrials { count, limit: COUNT_LIMIT });
    }
    Ok(())
}

fn check_successes(successes: u64, trials: u64) -> Result<(), StatsError> {
    if successes > trials { Err(StatsError::Successes { successes, trials }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
