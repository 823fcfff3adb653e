//! Running replications, on as many cores as wished, with the same results for any number of them.

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
    /// The tree cannot be made.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The results cannot be summed up.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// How replications stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Those that are done.
    pub done: u64,
    /// The latest instant, in simulated time, that one of those that run has reached.
    pub furthest: Time,
}

/// What can be replicated: a scenario of a star, or of a tree.
pub trait Replicable: Clone + Send + Sync + 'static {
    /// What comes of a replication, with what stars and trees have alike.
    type Outcome: AsRef<Replication> + Send + 'static;

    /// Replication `index` of those that follow from `seed`, with the time of each receiver if that is wanted; `None` if
    /// `pulse` was stopped.
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

    /// Where a replication stops.
    fn time_limit(&self) -> Time;

    /// About how much memory a replication takes at its peak, in octets.
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
    let never = Pulse::default();
    let (_, replication) =
        scenario.visit(seed, index, Replicate { index, per_receiver, pulse: &never })??;
    Ok(replication)
}

/// Runs a world to its end, unless it is stopped before: whether it was not, and what came of it.
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
        let mut tree = Tree::new(world)?;
        let over = tree.run_while(self.pulse);
        Ok((over, TreeReplication::of(self.index, &tree, self.per_receiver)))
    }
}

/// Runs replications of `scenario` as `plan` says, in the order of their index. `watch` is told after each, and ten
/// times a second, how they stand; it returns whether to go on. If not, those that are done are returned: what is in
/// the middle of an event that takes longer than [`GRACE`] is left to itself, and ends with it or with the process.
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
        // With a rule, no more is run ahead than is looked at soon.
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

/// How long replications may go on after they were told to stop.
pub const GRACE: Duration = Duration::from_millis(500);
/// Between two looks at how they stand.
const LOOK: Duration = Duration::from_millis(100);

type Result_<S> = (u64, Result<<S as Replicable>::Outcome, ReplicationError>);

/// Replications that are run together. Threads own what they need, so that one that does not hear can be left behind.
struct Batch<S> {
    scenario: Arc<S>,
    seed: u64,
    per_receiver: bool,
    next: AtomicU64,
    end: u64,
    pulse: Pulse,
}

impl<S: Replicable> Batch<S> {
    /// The replications of `range`, as far as `watch` lets them.
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
        // An interrupted batch is kept up to its first gap.
        let whole = results.iter().zip(range).take_while(|((index, _), expected)| index == expected).count();
        results.into_iter().take(whole).map(|(_, result)| result).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "replications are spread over cores here")]
    fn spawn(self: &Arc<Self>, results: Sender<Result_<S>>) -> JoinHandle<()> {
        let batch = Arc::clone(self);
        std::thread::spawn(move || batch.work(&results))
    }

    /// Runs what nobody else has begun, until nothing is left or it is to stop.
    fn work(&self, results: &Sender<Result_<S>>) {
        while !self.pulse.is_stopped() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.end {
                break;
            }
            let Some(result) = self.one(index).transpose() else { break };
            // Nobody may be waiting for it any more.
            if results.send((index, result)).is_err() {
                break;
            }
        }
    }

    /// One replication; `None` if it was stopped.
    fn one(&self, index: u64) -> Result<Option<S::Outcome>, ReplicationError> {
        self.scenario.replicate(self.seed, index, self.per_receiver, &self.pulse)
    }

    /// Takes results until all threads have ended, or are not waited for.
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
