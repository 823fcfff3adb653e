//! Rules by which our numbers judge a published one: pure functions of both.

use farcast_stats::{
    StatsError, Summary, binomial_interval, multinomial_p_value, prediction_half_width,
    predictive_binomial_range,
};

use super::row::{Judged, Rule, Verdict};

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// Returns a number of ours that the paper does not have.
pub fn unpublished(farcast: f64, ci95_half_width: Option<f64>, why: &'static str) -> Judged {
    let rule = Rule { sentence: why, agrees_within: None };
    Judged { published: None, farcast, ci95_half_width, verdict: Verdict::NotPublished, rule }
}

/// Judges a number that does not depend on chance: it must round to the printed one, with so many `decimals`.
pub fn printed(published: f64, farcast: f64, decimals: i32) -> Judged {
    const RULE: &str = "a number without chance agrees if it rounds to the printed one";
    let half = 0.5 * 10_f64.powi(-decimals);
    // The ends of the range are not exact doubles, so a margin is added, far below the half unit that rounding loses.
    let same = (farcast - published).abs() <= half * (1.0 + 1e-6);
    judged(published, farcast, None, same, RULE, None)
}

/// Judges the mean of `runs` published runs, 1 at least, by the summary of ours.
///
/// # Errors
/// There are fewer than two replications of ours, or no published run.
pub fn mean(published: f64, runs: u64, ours: &Summary) -> Result<Judged, StatsError> {
    const RULE: &str = "a mean agrees if it lies in the 95 % prediction interval for the mean of as many runs as the \
                        paper has, with the standard deviation of our replications";
    let sd = ours.sd.ok_or(StatsError::TooFew { given: ours.n, needed: 2 })?;
    let half = prediction_half_width(sd, runs, ours.n)?;
    let within = (ours.mean - half, ours.mean + half);
    Ok(judged(
        published,
        ours.mean,
        ours.ci95_half_width,
        contains(within.0, within.1, published),
        RULE,
        Some(within),
    ))
}

/// Judges a share in per cent of `runs` published runs, 1 at least, by `successes` in `trials` of ours.
///
/// # Errors
/// There are no trials, or more successes than trials.
pub fn share(published: f64, runs: u64, successes: u64, trials: u64) -> Result<Judged, StatsError> {
    const RULE: &str = "a share agrees if the count behind it (its nearest whole number of the paper's runs) lies in \
                        the 95 % predictive range that follows from our replications";
    let per_run = 100.0 / runs as f64;
    let count = (published / per_run).round();
    let counts = predictive_binomial_range(runs, successes, trials, LEVEL)?;
    let counts = (*counts.start() as f64, *counts.end() as f64);
    let (percent, half) = our_share(successes, trials)?;
    let within = (counts.0 * per_run, counts.1 * per_run);
    Ok(judged(published, percent, Some(half), contains(counts.0, counts.1, count), RULE, Some(within)))
}

/// Returns our share in per cent of at least one trial, and half the width of its interval (Clopper and Pearson).
///
/// # Errors
/// There are more successes than trials.
pub fn our_share(successes: u64, trials: u64) -> Result<(f64, f64), StatsError> {
    let interval = binomial_interval(successes, trials, LEVEL)?;
    Ok((100.0 * successes as f64 / trials as f64, 50.0 * (interval.high - interval.low)))
}

/// Returns the exact multinomial p-value of the `published` counts under our shares.
///
/// One half is added to each of our counts, so that an outcome we have not seen yet is improbable and not impossible.
/// Categories with no count on either side are left out.
///
/// # Errors
/// There is nothing to compare, or there are too many outcomes to enumerate.
pub fn distribution(published: &[u64], ours: &[u64]) -> Result<f64, StatsError> {
    let seen = |&(theirs, ours): &(u64, u64)| theirs + ours > 0;
    let both: Vec<_> = published.iter().copied().zip(ours.iter().copied()).filter(seen).collect();
    let total: f64 = both.iter().map(|&(_, ours)| ours as f64 + 0.5).sum();
    let counts: Vec<_> = both.iter().map(|&(theirs, _)| theirs).collect();
    let shares: Vec<_> = both.iter().map(|&(_, ours)| (ours as f64 + 0.5) / total).collect();
    multinomial_p_value(&counts, &shares)
}

/// A setting whose mean was compared with another setting's on common random numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compared {
    /// Value of the setting.
    pub setting: f64,
    /// Mean of the paired differences, and half the width of its 95 % confidence interval.
    pub difference: (f64, f64),
}

impl Compared {
    /// Compares `setting`, whose replications gave `ours`, with another setting, whose replications gave `other`, in
    /// the same order.
    ///
    /// # Errors
    /// There are fewer than two replications.
    pub fn of(setting: f64, ours: &[f64], other: &[f64]) -> Result<Self, StatsError> {
        let differences: Vec<f64> = ours.iter().zip(other).map(|(a, b)| a - b).collect();
        let summary = Summary::of(&differences)?;
        let half = summary.ci95_half_width.ok_or(StatsError::TooFew { given: summary.n, needed: 2 })?;
        Ok(Self { setting, difference: (summary.mean, half) })
    }

    fn is_less(&self) -> bool {
        self.difference.0 + self.difference.1 < 0.0
    }

    fn is_more(&self) -> bool {
        self.difference.0 - self.difference.1 > 0.0
    }
}

/// Judges the claim that the least mean is at the setting `published`, by the differences of all `others` from it.
pub fn least_at(published: f64, others: &[Compared]) -> Judged {
    const RULE: &str = "an optimum differs if another setting's mean is significantly less, agrees if all others' are \
                        significantly more, and is undetermined otherwise: 95 % intervals of paired differences on \
                        common random numbers";
    let lowest = others.iter().min_by(|a, b| a.difference.0.total_cmp(&b.difference.0));
    let best = lowest.filter(|lowest| lowest.difference.0 < 0.0).map_or(published, |lowest| lowest.setting);
    claim(published, best, others, RULE)
}

/// Judges the claim that the mean grows from the setting `published` on. `steps` are the differences from each
/// setting to the next, in order, including those before `published`.
pub fn grows_from(published: f64, steps: &[Compared]) -> Judged {
    const RULE: &str = "growth differs if a step from a setting to the next is significantly downward, agrees if all \
                        steps are significantly upward, and is undetermined otherwise: 95 % intervals of paired \
                        differences on common random numbers";
    let behind: Vec<_> = steps.iter().filter(|step| step.setting >= published).copied().collect();
    let rising = steps.iter().rev().take_while(|step| step.difference.0 > 0.0);
    // If not even the last step rises, our number is the start of the last step: growth begins nowhere.
    let from = rising.last().or(steps.last()).map_or(published, |step| step.setting);
    claim(published, from, &behind, RULE)
}

fn claim(published: f64, farcast: f64, compared: &[Compared], sentence: &'static str) -> Judged {
    let verdict = if compared.iter().any(Compared::is_less) {
        Verdict::Differs
    } else if compared.iter().all(Compared::is_more) {
        Verdict::Agrees
    } else {
        Verdict::Undetermined
    };
    let rule = Rule { sentence, agrees_within: None };
    Judged { published: Some(published), farcast, ci95_half_width: None, verdict, rule }
}

/// End of the range of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeEnd {
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

/// Judges the least or greatest value of `runs` published runs of each setting, by our replications of each.
///
/// All of `runs` further runs of a setting have at least a value with a certain probability, after k of our n had.
/// This probability is that of a beta-binomial with Jeffreys' prior, as in [`share`]; settings are independent.
/// Values must be small counts, because all of them up to our greatest are enumerated.
pub fn extreme(published: u64, runs: u64, settings: &[Vec<u64>], end: RangeEnd) -> Judged {
    const RULE: &str = "an extreme of all settings' runs agrees if it lies in the 95 % predictive range that follows \
                        from our replications, of which the most probable value is shown";
    let all_beyond =
        |value: u64| -> f64 { settings.iter().map(|ours| beyond(value, runs, ours, end)).product() };
    let top = settings.iter().flatten().copied().max().unwrap_or(0) + 1;
    // Probabilities that the extreme is the value or beyond it, from the extreme's side inward.
    let mut inward: Vec<u64> = (0..=top).collect();
    if end == RangeEnd::Greatest {
        inward.reverse();
    }
    let beyond: Vec<f64> = inward.iter().map(|&value| all_beyond(value)).collect();
    let next = |at: usize| beyond.get(at + 1).copied().unwrap_or(0.0);
    let mass = (1.0 - LEVEL) / 2.0;
    let inside: Vec<usize> =
        (0..inward.len()).filter(|&at| beyond[at] > mass && 1.0 - next(at) > mass).collect();
    let likely = (0..inward.len()).max_by(|&a, &b| (beyond[a] - next(a)).total_cmp(&(beyond[b] - next(b))));
    let values = || inside.iter().map(|&at| inward[at] as f64);
    let within = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let farcast = likely.map_or(0.0, |at| inward[at] as f64);
    let published = published as f64;
    judged(published, farcast, None, contains(within.0, within.1, published), RULE, Some(within))
}

/// Returns the probability that all of `runs` further runs come to `value` or beyond it, after ours.
fn beyond(value: u64, runs: u64, ours: &[u64], end: RangeEnd) -> f64 {
    let is_beyond = |&&one: &&u64| if end == RangeEnd::Least { one >= value } else { one <= value };
    let (k, n) = (ours.iter().filter(is_beyond).count() as f64, ours.len() as f64);
    (0..runs).map(|run| (k + 0.5 + run as f64) / (n + 1.0 + run as f64)).product()
}

fn contains(low: f64, high: f64, value: f64) -> bool {
    low <= value && value <= high
}

fn judged(
    published: f64,
    farcast: f64,
    ci95_half_width: Option<f64>,
    agrees: bool,
    sentence: &'static str,
    agrees_within: Option<(f64, f64)>,
) -> Judged {
    let verdict = if agrees { Verdict::Agrees } else { Verdict::Differs };
    Judged {
        published: Some(published),
        farcast,
        ci95_half_width,
        verdict,
        rule: Rule { sentence, agrees_within },
    }
}

#[cfg(test)]
mod tests;
