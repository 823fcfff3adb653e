//! Comparison of settings in a race: the best of several, by as few replications as possible.
//!
//! All settings have common random numbers, so that the difference of a statistic is taken on the same replications.
//! After each round, a setting is dropped if it is worse than the best of that moment with confidence. Its difference
//! must be above zero by a number of standard errors. This number follows from 1 - level, divided by the numbers of
//! settings and of rounds (Bonferroni). The best is therefore dropped by mistake with a probability of at most 1 -
//! level.
//!
//! Racing is Maron and Moore's (Artificial Intelligence Review 11, 1997), here with paired differences as in
//! Birattari et al. (GECCO 2002). The standard error of a mean's difference is that of the paired differences. For
//! another statistic it is that of the bootstrap with common resamples.

use farcast_core::random::RandomStream;

use super::objective::Statistic;

/// Number of resamples of a bootstrap.
const RESAMPLES: usize = 400;

/// Values of one setting, by condition and replication.
pub(super) type Values = Vec<Vec<f64>>;

/// A difference and its standard error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Difference {
    pub(super) value: f64,
    pub(super) standard_error: f64,
}

/// Values of settings on the same replications, and on resamples of these.
pub(super) struct Standings {
    /// Value of each setting.
    pub(super) values: Vec<f64>,
    /// Value of each setting, by resample.
    resampled: Vec<Vec<f64>>,
    /// Means over conditions, by setting and replication; empty unless the statistic is the mean.
    means: Vec<Vec<f64>>,
}

impl Standings {
    /// Computes the values of settings that have the same number of replications each.
    pub(super) fn of(settings: &[&Values], statistic: Statistic, seed: u64) -> Self {
        let values = settings.iter().map(|values| overall(values, statistic, None)).collect();
        let replications = settings.first().and_then(|values| values.first()).map_or(0, Vec::len);
        let mut stream = RandomStream::derive(seed, &[]);
        let mut places = vec![0; replications];
        let draws = if replications == 0 { 0 } else { RESAMPLES };
        let resampled = (0..draws)
            .map(|_| {
                for place in &mut places {
                    *place = stream.below(replications as u64) as usize;
                }
                settings.iter().map(|values| overall(values, statistic, Some(&places))).collect()
            })
            .collect();
        let mean = |values: &Values| -> Vec<f64> {
            let of = |index: usize| {
                values.iter().map(|condition| condition[index]).sum::<f64>() / values.len() as f64
            };
            (0..replications).map(of).collect()
        };
        let means = if statistic == Statistic::Mean {
            settings.iter().map(|values| mean(values)).collect()
        } else {
            Vec::new()
        };
        Self { values, resampled, means }
    }

    /// Returns the setting with the least value among these.
    pub(super) fn best(&self, among: impl Iterator<Item = usize>) -> Option<usize> {
        among.min_by(|&a, &b| self.values[a].total_cmp(&self.values[b]))
    }

    /// Returns the value of setting `a` less that of `b`.
    pub(super) fn difference(&self, a: usize, b: usize) -> Difference {
        let value = subtract(self.values[a], self.values[b]);
        let differences: Vec<f64> = match self.means.get(a).zip(self.means.get(b)) {
            Some((a, b)) => a.iter().zip(b).map(|(a, b)| subtract(*a, *b)).collect(),
            None => self.resampled.iter().map(|values| subtract(values[a], values[b])).collect(),
        };
        let spread = spread(&differences);
        let count = if self.means.is_empty() { 1.0 } else { differences.len() as f64 };
        Difference { value, standard_error: spread / count.sqrt() }
    }

    /// Returns the standard error of a setting's own value.
    pub(super) fn error(&self, setting: usize) -> f64 {
        match self.means.get(setting) {
            Some(means) => spread(means) / (means.len() as f64).sqrt(),
            None => spread(&self.resampled.iter().map(|values| values[setting]).collect::<Vec<_>>()),
        }
    }

    /// Returns the share of resamples in which each setting is the best; settings that are best together share a
    /// resample.
    pub(super) fn chances(&self) -> Vec<f64> {
        let mut chances = vec![0.0; self.values.len()];
        for values in &self.resampled {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let best: Vec<usize> = (0..values.len()).filter(|&one| values[one] <= least).collect();
            for &one in &best {
                chances[one] += 1.0 / (best.len() * self.resampled.len()) as f64;
            }
        }
        chances
    }
}

/// Returns the value of a setting: the mean over its conditions of the statistic of all replications, or of those at
/// `places`.
fn overall(values: &Values, statistic: Statistic, places: Option<&[usize]>) -> f64 {
    let of = |condition: &Vec<f64>| match places {
        None => statistic.of(condition),
        Some(places) => statistic.of(&places.iter().map(|&place| condition[place]).collect::<Vec<_>>()),
    };
    values.iter().map(of).sum::<f64>() / values.len() as f64
}

/// Returns the difference; it is 0 if both values are infinite.
fn subtract(a: f64, b: f64) -> f64 {
    if a.is_infinite() && b.is_infinite() { 0.0 } else { a - b }
}

/// Returns the standard deviation; infinite if a value is infinite.
fn spread(values: &[f64]) -> f64 {
    if values.iter().any(|value| !value.is_finite()) {
        return f64::INFINITY;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if values.len() < 2 { f64::INFINITY } else { (squares / (n - 1.0)).sqrt() }
}
