//! p-values of several comparisons at once.

use crate::StatsError;

/// `p_values` adjusted after Holm (Scandinavian Journal of Statistics 6, 1979), in their order.
///
/// Whoever rejects what has an adjusted value of at most alpha rejects anything wrongly with a probability of at most
/// alpha, however the comparisons depend on each other. None give none. Refused is what is no probability.
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

/// `p_values` adjusted after Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995), in their order.
///
/// Of what has an adjusted value of at most alpha, a share of at most alpha is expected to be rejected wrongly, if the
/// comparisons are independent or depend on each other positively. Each value is at most that of [`holm`]. None give none.
/// Refused is what is no probability.
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

/// Where the values stand, the least first.
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
