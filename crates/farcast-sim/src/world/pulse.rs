//! Progress of replications, and the request to stop them, shared with the thread that waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use farcast_core::{Span, Time};

/// Events between two beats: about a tenth of a millisecond where an event is cheap.
pub(crate) const EVERY: u64 = 1024;

/// Progress of running replications, and the request to stop them. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Pulse {
    stop: Arc<AtomicBool>,
    /// The latest instant that a replication has reached, in nanoseconds.
    at: Arc<AtomicU64>,
}

impl Pulse {
    /// Makes a pulse that stops its replications when `stop` is set.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, at: Arc::default() }
    }

    /// Stops the replications, as soon as the event at hand is over.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the replications are to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the latest instant, in simulated time, that a replication has reached.
    pub fn furthest(&self) -> Time {
        Time::ZERO + Span::from_nanos(self.at.load(Ordering::Relaxed))
    }

    /// Notes that a replication has come to `now`. Returns `true` if the replication is to go on.
    pub(crate) fn beat(&self, now: Time) -> bool {
        self.at.fetch_max(now.since(Time::ZERO).as_nanos(), Ordering::Relaxed);
        !self.is_stopped()
    }
}
