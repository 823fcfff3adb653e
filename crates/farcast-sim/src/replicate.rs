//! Running replications, on as many cores as wished, with the same results for any number of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use farcast_stats::{Precision, StatsError, StoppingRule};

use crate::outcome::Replication;
use crate::scenario::Scenario;
use crate::star::{Star, StarError};

/// How many replications.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum HowMany {
    /// So many.
    Count(u64),
    /// Until the mean of [`Replication::aim`] is known this exactly, but at most so many.
    Until(Precision, u64),
}

/// How replications are run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// The seed of all random numbers.
    pub seed: u64,
    /// How many.
    pub how_many: HowMany,
    /// Threads, at least 1; the results do not depend on it.
    pub threads: usize,
    /// Whether each receiver's time is kept.
    pub per_receiver: bool,
}

/// Why replications could not be run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ReplicationError {
    /// The world cannot be made.
    #[error(transparent)]
    Star(#[from] StarError),
    /// The results cannot be summed up.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// One replication of `scenario`.
///
/// # Errors
/// A world that cannot be made.
pub fn replicate(
    scenario: &Scenario,
    seed: u64,
    index: u64,
    per_receiver: bool,
) -> Result<Replication, StarError> {
    let mut star = Star::new(scenario.star(seed, index), None)?;
    star.run();
    Ok(Replication::of(index, &star, per_receiver))
}

/// Runs replications of `scenario` as `plan` says, in the order of their index. `done` is told after each how many there
/// are; it returns whether to go on.
///
/// # Errors
/// A world that cannot be made.
pub fn run(
    scenario: &Scenario,
    plan: &Plan,
    done: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Vec<Replication>, ReplicationError> {
    let (most, mut rule) = match plan.how_many {
        HowMany::Count(n) => (n, None),
        HowMany::Until(precision, most) => (most, Some(StoppingRule::new(precision, most)?)),
    };
    let mut all: Vec<Replication> = Vec::new();
    let mut next = 0;
    while next < most {
        // With a rule, no more is run ahead than is looked at soon.
        let batch = if rule.is_some() { (most - next).min((next / 4).max(10)) } else { most - next };
        let some = batch_of(scenario, plan, next..next + batch, done)?;
        let stopped = (some.len() as u64) < batch;
        next += batch;
        for replication in some {
            if let Some(rule) = &mut rule {
                rule.push(replication.index, replication.aim())?;
            }
            all.push(replication);
        }
        if let Some(stop) = rule.as_ref().and_then(StoppingRule::stop) {
            all.truncate(usize::try_from(stop).unwrap_or(usize::MAX));
            break;
        }
        if stopped {
            break;
        }
    }
    Ok(all)
}

/// The replications of `range`, as far as `done` lets them.
fn batch_of(
    scenario: &Scenario,
    plan: &Plan,
    range: std::ops::Range<u64>,
    done: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Vec<Replication>, StarError> {
    let next = AtomicU64::new(range.start);
    let finished = AtomicU64::new(range.start);
    let go_on = AtomicBool::new(true);
    let results = Mutex::new(Vec::new());
    let work = || {
        while go_on.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= range.end {
                break;
            }
            let result = replicate(scenario, plan.seed, index, plan.per_receiver);
            let failed = result.is_err();
            // Nobody panics while holding it.
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
            if failed || !done(finished.fetch_add(1, Ordering::Relaxed) + 1) {
                go_on.store(false, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..plan.threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_unstable_by_key(|(index, _)| *index);
    // An interrupted batch is kept up to its first gap.
    let whole = results.iter().zip(range).take_while(|((index, _), expected)| index == expected).count();
    results.into_iter().take(whole).map(|(_, result)| result).collect()
}
