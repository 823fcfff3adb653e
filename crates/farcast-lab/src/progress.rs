//! What is told to whoever waits.

use farcast_core::Span;

/// How work stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Replications are simulated.
    Replications {
        /// Since the work began, in real time.
        elapsed: Span,
        /// So many are done.
        done: u64,
        /// Of so many at most.
        total: u64,
    },
    /// Something runs in real time.
    Runs {
        /// Since the work began.
        elapsed: Span,
        /// So many runs are done.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// It takes long; told once at most.
    Long {
        /// About so much longer, in real time.
        left: Span,
        /// That is if replications go on to their time limit: none is done yet.
        at_worst: bool,
    },
}
