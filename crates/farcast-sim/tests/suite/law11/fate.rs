//! Losses that are the same for a population and for single engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farcast_core::random::RandomStream;
use farcast_core::{Among, Losses, Time};

/// Losses that depend only on the receiver and the number of the frame, so that they are the same for each caller.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    seed: u64,
    probability: f64,
    receivers: u32,
    /// Frames so far: of the channel, or of each receiver on its own return path.
    frames: Vec<u64>,
    own: bool,
    /// Number of consecutive frames with the same fate, and number of receivers with the same fate.
    pub(super) burst: u64,
    pub(super) cluster: u32,
    /// Number of lost status requests, counted for each receiver.
    pub(super) requests_lost: Arc<AtomicU64>,
}

/// Octets of a status request on the link; no other message here has this length.
const REQUEST_OCTETS: u64 = 80;

impl Fate {
    pub(super) fn channel(seed: u64, probability: f64, receivers: u32) -> Self {
        Self {
            seed,
            probability,
            receivers,
            frames: vec![0],
            own: false,
            burst: 1,
            cluster: 1,
            requests_lost: Arc::default(),
        }
    }

    pub(super) fn own(seed: u64, probability: f64, receivers: u32) -> Self {
        Self {
            seed,
            probability,
            receivers,
            frames: vec![0; receivers as usize],
            own: true,
            burst: 1,
            cluster: 1,
            requests_lost: Arc::default(),
        }
    }

    fn loses(&self, receiver: u32, frame: u64) -> bool {
        RandomStream::derive(self.seed, &[u64::from(receiver / self.cluster), frame / self.burst]).unit()
            < self.probability
    }
}

impl Losses for Fate {
    fn draw(&mut self, _now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let all: Vec<u32> = (0..self.receivers).collect();
        let receivers = if let Among::These(list) = among { list } else { &all };
        for &receiver in receivers {
            let frame = self.frames[if self.own { receiver as usize } else { 0 }];
            if self.loses(receiver, frame) {
                lost.push(receiver);
                self.requests_lost.fetch_add(u64::from(octets == REQUEST_OCTETS), Ordering::Relaxed);
            }
            if self.own {
                self.frames[receiver as usize] += 1;
            }
        }
        if !self.own {
            self.frames[0] += 1;
        }
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}
