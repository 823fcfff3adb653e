//! Multinomial likelihood and exact test: tables of counts against probabilities.

use statrs::function::factorial::ln_factorial;

use crate::StatsError;

/// The most categories that the exact test takes.
pub const CATEGORY_LIMIT: usize = 5;

/// The most outcomes that the exact test enumerates.
pub const OUTCOME_LIMIT: u64 = 10_000_000;

/// Returns the natural logarithm of the multinomial probability of `counts`, coefficient included.
///
/// It is minus infinity if a category of probability 0 was seen. Refuses slices of different lengths, empty ones,
/// probabilities outside 0 to 1, and a sum of probabilities farther than 1e-9 from 1.
pub fn multinomial_log_likelihood(counts: &[u64], probabilities: &[f64]) -> Result<f64, StatsError> {
    check(counts, probabilities)?;
    let n = counts.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
    let terms = counts.iter().zip(probabilities).map(|(&count, &p)| term(count, p.ln(), ln_factorial(count)));
    Ok(ln_factorial(n) + terms.sum::<f64>())
}

/// Returns the probability of an outcome that is no more probable than `counts`: the exact multinomial test.
///
/// Every outcome of as many trials is enumerated, and the probabilities of those that are no more probable than the
/// observed one are added. Small values say that `probabilities` do not explain `counts`. Probabilities within 1e-7
/// of each other, relatively, count as equal, so that rounding does not split ties. Refuses everything that
/// [`multinomial_log_likelihood`] refuses, more than [`CATEGORY_LIMIT`] categories, and more than [`OUTCOME_LIMIT`]
/// outcomes.
pub fn multinomial_p_value(counts: &[u64], probabilities: &[f64]) -> Result<f64, StatsError> {
    const TIE: f64 = 1e-7;
    let observed = multinomial_log_likelihood(counts, probabilities)?;
    if counts.len() > CATEGORY_LIMIT {
        return Err(StatsError::TooManyCategories { categories: counts.len(), limit: CATEGORY_LIMIT });
    }
    let n = trials_within_limit(counts).ok_or(StatsError::TooManyOutcomes { limit: OUTCOME_LIMIT })?;
    let mut outcomes = Outcomes {
        ln_probabilities: probabilities.iter().map(|p| p.ln()).collect(),
        ln_factorials: (0..=n).map(ln_factorial).collect(),
        bound: observed + TIE,
        sum: 0.0,
    };
    outcomes.add(0, n, ln_factorial(n));
    Ok(outcomes.sum.min(1.0))
}

/// Returns the number of trials, or `None` if their C(trials + categories - 1, categories - 1) outcomes are too many.
fn trials_within_limit(counts: &[u64]) -> Option<u64> {
    let limit = u128::from(OUTCOME_LIMIT);
    let n: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    // Bounded also where one category leaves a single outcome: the table of factorials has n + 1 entries.
    let mut outcomes = 1;
    for i in 1..counts.len() as u128 {
        outcomes = outcomes * (n + i) / i;
        if outcomes > limit {
            return None;
        }
    }
    if n > limit { None } else { u64::try_from(n).ok() }
}

fn check(counts: &[u64], probabilities: &[f64]) -> Result<(), StatsError> {
    if counts.len() != probabilities.len() {
        return Err(StatsError::Categories { counts: counts.len(), probabilities: probabilities.len() });
    }
    if counts.is_empty() {
        return Err(StatsError::Empty);
    }
    if let Some(&value) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(StatsError::Probability { value });
    }
    let sum: f64 = probabilities.iter().sum();
    if (sum - 1.0).abs() > 1e-9 { Err(StatsError::ProbabilitySum { sum }) } else { Ok(()) }
}

/// Returns the term that a category adds to the logarithm; a count of 0 adds 0, even at probability 0.
fn term(count: u64, ln_probability: f64, ln_factorial: f64) -> f64 {
    if count == 0 { 0.0 } else { count as f64 * ln_probability - ln_factorial }
}

/// The enumeration of all outcomes, one category after the other.
struct Outcomes {
    ln_probabilities: Vec<f64>,
    ln_factorials: Vec<f64>,
    /// Greatest logarithm of the probability of an outcome that is added to the sum.
    bound: f64,
    sum: f64,
}

impl Outcomes {
    /// Distributes `left` trials over the categories from `category` on; `ln_likelihood` belongs to the categories
    /// before.
    fn add(&mut self, category: usize, left: u64, ln_likelihood: f64) {
        let ln_probability = self.ln_probabilities[category];
        let with = |count: u64, ln_factorial: f64| ln_likelihood + term(count, ln_probability, ln_factorial);
        if category + 1 == self.ln_probabilities.len() {
            let ln_likelihood = with(left, self.ln_factorials[left as usize]);
            if ln_likelihood <= self.bound {
                self.sum += ln_likelihood.exp();
            }
            return;
        }
        for count in 0..=left {
            self.add(category + 1, left - count, with(count, self.ln_factorials[count as usize]));
        }
    }
}

#[cfg(test)]
mod tests;
