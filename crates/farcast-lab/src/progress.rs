//! Reports of progress.

use farcast_core::Span;

/// Progress of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Replications are simulated.
    Replications {
        /// Time since the work began, in real time.
        elapsed: Span,
        /// Number of replications that are done.
        done: u64,
        /// Greatest number of replications.
        total: u64,
    },
    /// Runs in real time.
    Runs {
        /// Time since the work began.
        elapsed: Span,
        /// Number of runs that are done.
        done: u64,
        /// Number of all runs.
        total: u64,
    },
    /// The work takes long; reported once at most.
    Long {
        /// Estimate of the remaining real time.
        left: Span,
        /// True if the estimate assumes that replications go on to their time limit, because none is done yet.
        at_worst: bool,
    },
}
