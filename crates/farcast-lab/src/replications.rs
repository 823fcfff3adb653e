//! Replications of a scenario, within a limit of memory and with reports of progress.

mod length_notice;
mod memory;

use std::sync::atomic::{AtomicBool, Ordering};

use farcast_sim::replicate::{HowMany, Plan, Replicable, ReplicationError, Standing, run as replicate};

use crate::Progress;
use length_notice::LengthNotice;
pub use memory::{Limit, Memory, MemoryError, MemoryNeed};

/// Reason for which there are no replications.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The replications take more memory than they may.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The caller's flag was set too soon.
    #[error("interrupted before the first replication was done")]
    Interrupted,
    /// The scenario cannot be run, or a requested statistic of its results cannot be computed.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
}

/// Runs the replications of `plan`, in the order of their index, until all are done, `stop` is set, or `memory` is
/// exceeded.
///
/// After `stop` the replications that are done by then are returned. `progress` is called ten times a second
/// ([`Progress::Replications`]), and once if they take longer than ten minutes ([`Progress::Long`]).
///
/// # Errors
/// The scenario cannot be run, it takes too much memory, or `stop` was set before the first replication was done.
pub fn run<S: Replicable>(
    scenario: &S,
    plan: &Plan,
    memory: &Memory,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<S::Outcome>, RunError> {
    memory.check(scenario, plan)?;
    let mut patience = LengthNotice::new(scenario, plan);
    let (HowMany::Count(total) | HowMany::Until(_, total)) = plan.how_many;
    let mut full = None;
    let mut watch = |standing: Standing| {
        progress(Progress::Replications { elapsed: patience.elapsed(), done: standing.done, total });
        if let Some(long) = patience.look(standing) {
            progress(long);
        }
        full = memory.look().err();
        full.is_none() && !stop.load(Ordering::Relaxed)
    };
    let replications = replicate(scenario, plan, &mut watch)?;
    match full {
        Some(full) => Err(full.into()),
        None if replications.is_empty() && stop.load(Ordering::Relaxed) => Err(RunError::Interrupted),
        None => Ok(replications),
    }
}
