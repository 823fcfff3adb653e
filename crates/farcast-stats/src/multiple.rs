//! Adjusted p-values of several comparisons at once.

use crate::StatsError;

/// Returns `p_values` adjusted after Holm (Scandinavian Journal of Statistics 6, 1979), in their order.
///
/// Reject every comparison whose adjusted value is at most alpha. The probability of any wrong rejection is then at
/// most alpha, however the comparisons depend on each other. An empty slice gives an empty list. Refuses values that
/// are not probabilities.
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let order = ascending(p_values)?;
    let n = p_values.len();
    let mut adjusted = vec![0.0; n];
    let mut greatest = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        greatest = f64::max(greatest, p_values[index] * (n - rank) as f64).min(1.0);
        adjusted[index] = greatest;
    }
    Ok(adjusted)
}

/// Returns `p_values` adjusted after Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995), in
/// their order.
///
/// Reject every comparison whose adjusted value is at most alpha. A share of at most alpha of these is then expected
/// to be wrong, if the comparisons are independent or depend on each other positively. Each value is at most that of
/// [`holm`]. An empty slice gives an empty list. Refuses values that are not probabilities.
pub fn benjamini_hochberg(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let order = ascending(p_values)?;
    let n = p_values.len() as f64;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least = 1.0;
    for (rank, &index) in order.iter().enumerate().rev() {
        least = f64::min(least, p_values[index] * (n / (rank + 1) as f64));
        adjusted[index] = least;
    }
    Ok(adjusted)
}

/// Returns the indices of the values, that of the least value first.
fn ascending(p_values: &[f64]) -> Result<Vec<usize>, StatsError> {
    if let Some(&value) = p_values.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(StatsError::Probability { value });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    Ok(order)
}

#[cfg(test)]
mod tests;
