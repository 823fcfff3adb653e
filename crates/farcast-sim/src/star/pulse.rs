//! What a replication and whoever waits for it tell each other meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use farcast_core::{Span, Time};

/// Between two beats, events of the simulation: about a tenth of a millisecond where an event is cheap.
pub(crate) const EVERY: u64 = 1024;

/// The pulse of replications that run: how far they are, and whether they are to stop. Clones are the same pulse.
#[derive(Clone, Debug, Default)]
pub struct Pulse {
    stop: Arc<AtomicBool>,
    /// The latest instant that a replication has reached, in nanoseconds.
    at: Arc<AtomicU64>,
}

impl Pulse {
    /// One that stops when `stop` is set.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, at: Arc::default() }
    }

    /// Has them stop, as soon as the event at hand is over.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether they are to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The latest instant, in simulated time, that a replication has reached.
    pub fn furthest(&self) -> Time {
        Time::ZERO + Span::from_nanos(self.at.load(Ordering::Relaxed))
    }

    /// A replication has come to `now`; whether it is to go on.
    pub(crate) fn beat(&self, now: Time) -> bool {
        self.at.fetch_max(now.since(Time::ZERO).as_nanos(), Ordering::Relaxed);
        !self.is_stopped()
    }
}
