//! Running of replications on several cores. The results do not depend on the number of cores.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use farcast_core::Time;
use farcast_delivery::Protocol;
use farcast_stats::{Precision, StatsError, StoppingRule};

use crate::outcome::{Replication, TreeReplication};
use crate::scenario::{Scenario, Task, TreeScenario, TreeTask};
use crate::star::{Pulse, Star, StarConfig, StarError};
use crate::tree::{OnTree, Tree, TreeConfig, TreeError};

/// Number of replications to run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum HowMany {
    /// Exactly this number.
    Count(u64),
    /// Until the mean of [`Replication::aim`] is known with this precision, but at most this number.
    Until(Precision, u64),
}

/// Plan for running replications.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of replications.
    pub how_many: HowMany,
    /// Number of threads, at least 1; the results do not depend on it.
    pub threads: usize,
    /// `true` if each receiver's time is kept.
    pub per_receiver: bool,
}

/// Reason for which replications could not be run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ReplicationError {
    /// The star cannot be made.
    #[error(transparent)]
    Star(#[from] StarError),
    /// The tree cannot be made.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The results cannot be summed up.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Progress of running replications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Number of replications that are done.
    pub done: u64,
    /// Latest instant, in simulated time, that a running replication has reached.
    pub furthest: Time,
}

/// Scenario that can be replicated: of a star, or of a tree.
pub trait Replicable: Clone + Send + Sync + 'static {
    /// Outcome of a replication, which includes the outcome that stars and trees have in common.
    type Outcome: AsRef<Replication> + Send + 'static;

    /// Runs replication `index` of those that follow from `seed`, and keeps the time of each receiver if
    /// `per_receiver`. Returns `None` if `pulse` was stopped.
    ///
    /// # Errors
    /// A world that cannot be made.
    fn replicate(
        &self,
        seed: u64,
        index: u64,
        per_receiver: bool,
        pulse: &Pulse,
    ) -> Result<Option<Self::Outcome>, ReplicationError>;

    /// Returns the time at which a replication stops.
    fn time_limit(&self) -> Time;

    /// Estimates the peak memory of a replication in octets.
    fn memory(&self) -> u64;
}

impl Replicable for Scenario {
    type Outcome = Replication;

    fn replicate(
        &self,
        seed: u64,
        index: u64,
        per_receiver: bool,
        pulse: &Pulse,
    ) -> Result<Option<Replication>, ReplicationError> {
        let (over, replication) = self.visit(seed, index, Replicate { index, per_receiver, pulse })??;
        Ok(over.then_some(replication))
    }

    fn time_limit(&self) -> Time {
        Self::time_limit(self)
    }

    fn memory(&self) -> u64 {
        Self::memory(self)
    }
}

impl Replicable for TreeScenario {
    type Outcome = TreeReplication;

    fn replicate(
        &self,
        seed: u64,
        index: u64,
        per_receiver: bool,
        pulse: &Pulse,
    ) -> Result<Option<TreeReplication>, ReplicationError> {
        let (over, replication) = self.visit(seed, index, Replicate { index, per_receiver, pulse })??;
        Ok(over.then_some(replication))
    }

    fn time_limit(&self) -> Time {
        Self::time_limit(self)
    }

    fn memory(&self) -> u64 {
        Self::memory(self)
    }
}

/// Runs one replication of `scenario`.
///
/// # Errors
/// A world that cannot be made.
pub fn replicate(
    scenario: &Scenario,
    seed: u64,
    index: u64,
    per_receiver: bool,
) -> Result<Replication, StarError> {
    let never = Pulse::default();
    let (_, replication) =
        scenario.visit(seed, index, Replicate { index, per_receiver, pulse: &never })??;
    Ok(replication)
}

/// Task that runs a world to its end, or until it is stopped. The result is `true` if it was not stopped, with the
/// outcome.
struct Replicate<'a> {
    index: u64,
    per_receiver: bool,
    pulse: &'a Pulse,
}

impl Task for Replicate<'_> {
    type Output = Result<(bool, Replication), StarError>;

    fn on<P: Protocol>(self, world: StarConfig<P>, _codec: P::Codec) -> Self::Output {
        let mut star = Star::new(world, None)?;
        let over = star.run_while(self.pulse);
        Ok((over, Replication::of(self.index, &star, self.per_receiver)))
    }
}

impl TreeTask for Replicate<'_> {
    type Output = Result<(bool, TreeReplication), TreeError>;

    fn on<P: OnTree>(self, world: TreeConfig<P>, _codec: P::Codec) -> Self::Output {
        let mut tree = Tree::new(world, None)?;
        let over = tree.run_while(self.pulse);
        Ok((over, TreeReplication::of(self.index, &tree, self.per_receiver)))
    }
}

/// Runs replications of `scenario` by `plan`, in the order of their index. `watch` gets their progress after each, and
/// ten times a second; it returns `true` to go on. If it returns `false`, [`run`] returns the completed replications. A
/// thread whose current event takes longer than [`GRACE`] is not waited for, and ends after this event or with the
/// process.
///
/// # Errors
/// A world that cannot be made.
pub fn run<S: Replicable>(
    scenario: &S,
    plan: &Plan,
    watch: &mut dyn FnMut(Standing) -> bool,
) -> Result<Vec<S::Outcome>, ReplicationError> {
    let (most, mut rule) = match plan.how_many {
        HowMany::Count(n) => (n, None),
        HowMany::Until(precision, most) => (most, Some(StoppingRule::new(precision, most)?)),
    };
    let scenario = Arc::new(scenario.clone());
    let mut all: Vec<S::Outcome> = Vec::new();
    let mut next = 0;
    while next < most {
        // With a rule, only as many replications run ahead as the rule will soon need.
        let batch = if rule.is_some() { (most - next).min((next / 4).max(10)) } else { most - next };
        let some = Batch::run(&scenario, plan, next..next + batch, watch)?;
        let stopped = (some.len() as u64) < batch;
        next += batch;
        for replication in some {
            if let Some(rule) = &mut rule {
                let Replication { index, .. } = *replication.as_ref();
                rule.push(index, replication.as_ref().aim())?;
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

/// Time that replications may go on after they were told to stop.
pub const GRACE: Duration = Duration::from_millis(500);
/// Time between two reports of progress.
const LOOK: Duration = Duration::from_millis(100);

type Result_<S> = (u64, Result<<S as Replicable>::Outcome, ReplicationError>);

/// Replications that run together. Threads own their data, so a thread that does not stop can be left behind.
struct Batch<S> {
    scenario: Arc<S>,
    seed: u64,
    per_receiver: bool,
    next: AtomicU64,
    end: u64,
    pulse: Pulse,
}

impl<S: Replicable> Batch<S> {
    /// Runs the replications of `range`, until `watch` stops them.
    fn run(
        scenario: &Arc<S>,
        plan: &Plan,
        range: Range<u64>,
        watch: &mut dyn FnMut(Standing) -> bool,
    ) -> Result<Vec<S::Outcome>, ReplicationError> {
        let batch = Arc::new(Self {
            scenario: Arc::clone(scenario),
            seed: plan.seed,
            per_receiver: plan.per_receiver,
            next: AtomicU64::new(range.start),
            end: range.end,
            pulse: Pulse::default(),
        });
        let (results, finished) = mpsc::channel();
        let threads = (plan.threads.max(1) as u64).min(range.end - range.start);
        let threads: Vec<_> = (0..threads).map(|_| batch.spawn(results.clone())).collect();
        drop(results);
        let mut results = batch.gather(range.start, &finished, threads, watch);
        results.sort_unstable_by_key(|(index, _)| *index);
        // The results of an interrupted batch are kept up to the first missing index.
        let whole = results.iter().zip(range).take_while(|((index, _), expected)| index == expected).count();
        results.into_iter().take(whole).map(|(_, result)| result).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "replications are spread over cores here")]
    fn spawn(self: &Arc<Self>, results: Sender<Result_<S>>) -> JoinHandle<()> {
        let batch = Arc::clone(self);
        std::thread::spawn(move || batch.work(&results))
    }

    /// Runs replications that no other thread has begun, until none is left or the batch is to stop.
    fn work(&self, results: &Sender<Result_<S>>) {
        while !self.pulse.is_stopped() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.end {
                break;
            }
            let Some(result) = self.one(index).transpose() else { break };
            // The receiving side may no longer wait for results.
            if results.send((index, result)).is_err() {
                break;
            }
        }
    }

    /// Runs one replication; `None` if it was stopped.
    fn one(&self, index: u64) -> Result<Option<S::Outcome>, ReplicationError> {
        self.scenario.replicate(self.seed, index, self.per_receiver, &self.pulse)
    }

    /// Gathers results until all threads have ended, or until [`GRACE`] is over after a stop.
    fn gather(
        &self,
        begun: u64,
        finished: &Receiver<Result_<S>>,
        threads: Vec<JoinHandle<()>>,
        watch: &mut dyn FnMut(Standing) -> bool,
    ) -> Vec<Result_<S>> {
        let mut all: Vec<Result_<S>> = Vec::new();
        let mut patience = GRACE;
        loop {
            match finished.recv_timeout(LOOK) {
                Ok((index, result)) => {
                    if result.is_err() {
                        self.pulse.stop();
                    }
                    all.push((index, result));
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if self.pulse.is_stopped() => {
                    patience = patience.saturating_sub(LOOK);
                    if patience.is_zero() {
                        return all;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let standing = Standing { done: begun + all.len() as u64, furthest: self.pulse.furthest() };
            if !self.pulse.is_stopped() && !watch(standing) {
                self.pulse.stop();
            }
        }
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        all
    }
}
