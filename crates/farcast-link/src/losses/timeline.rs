//! Losses whose probability follows a timeline.

use alloc::sync::Arc;
use alloc::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::{Probability, Time};

use super::{Among, Hazard, Losses};
use crate::trace::{Timeline, TimelineCursor};

/// Loss of every frame at every receiver with the probability that a [`Timeline`] has for the frame's time,
/// independently of all else.
///
/// The time of a frame is the one that it is offered with. Time 0 of the timeline is time 0 of the channel. A timeline
/// without losses loses nothing. While the probability does not change, fates are those of a
/// [`Bernoulli`](super::Bernoulli) process with the same random stream.
#[derive(Clone, Debug)]
pub struct TimelineLoss {
    hazard: Hazard,
    watch: TimelineCursor,
    /// The last probability and its hazard.
    last: (Probability, f64),
    receivers: u32,
}

impl TimelineLoss {
    /// Creates a process in which each of `receivers` loses frames with the probability of `timeline`.
    pub fn new(timeline: Arc<Timeline>, receivers: u32, stream: RandomStream) -> Self {
        let (watch, last) = (TimelineCursor::new(timeline), (Probability::ZERO, 0.0));
        Self { hazard: Hazard::new(stream), watch, last, receivers }
    }
}

impl Losses for TimelineLoss {
    fn draw(&mut self, now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let (conditions, _) = self.watch.at(now);
        if self.last.0 != conditions.per {
            self.last = (conditions.per, Hazard::of(conditions.per));
        }
        self.hazard.lost(self.last.1, self.receivers, among, lost);
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
