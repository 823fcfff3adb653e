//! Losses that are independent from frame to frame and from receiver to receiver.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use farcast_core::random::RandomStream;
use farcast_core::{Probability, Time};

use super::{Among, Hazard, Losses};

/// Loss of every frame at every receiver with one probability, independently of all else.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    hazard: Hazard,
    lambda: f64,
    receivers: u32,
}

impl Bernoulli {
    /// Creates a process in which each of `receivers` loses a frame with probability `p`.
    pub fn new(p: Probability, receivers: u32, stream: RandomStream) -> Self {
        Self { hazard: Hazard::new(stream), lambda: Hazard::of(p), receivers }
    }
}

impl Losses for Bernoulli {
    fn draw(&mut self, _now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        self.hazard.lost(self.lambda, self.receivers, among, lost);
    }

    fn spared(&mut self, _octets: u64, frames: u32) -> u32 {
        self.hazard.spared(self.lambda, self.receivers, frames)
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

/// Independent bit errors; a frame is lost if one of its bits is in error.
///
/// At a bit error ratio b a frame of n octets is lost with probability 1 - (1 - b)^(8n).
#[derive(Clone, Debug)]
pub struct BitErrors {
    hazard: Hazard,
    octet: f64,
    frame_octets: Option<NonZeroU32>,
    receivers: u32,
}

impl BitErrors {
    /// Creates a process in which each of `receivers` sees bit errors at the ratio `ber`, independently.
    ///
    /// With `frame_octets` the link carries a datagram of n octets in ⌈n / `frame_octets`⌉ frames of that size, the
    /// last of them filled up, and a datagram is lost if one of its frames is.
    pub fn new(
        ber: Probability,
        frame_octets: Option<NonZeroU32>,
        receivers: u32,
        stream: RandomStream,
    ) -> Self {
        Self { hazard: Hazard::new(stream), octet: 8.0 * Hazard::of(ber), frame_octets, receivers }
    }

    /// Returns the octets that errors can hit when a datagram of `octets` passes.
    fn exposed(&self, octets: u64) -> u64 {
        self.frame_octets.map_or(octets, |frame| {
            let frame = u64::from(frame.get());
            octets.div_ceil(frame).saturating_mul(frame)
        })
    }
}

impl Losses for BitErrors {
    fn draw(&mut self, _now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let lambda = self.octet * self.exposed(octets) as f64;
        self.hazard.lost(lambda, self.receivers, among, lost);
    }

    fn spared(&mut self, octets: u64, frames: u32) -> u32 {
        let lambda = self.octet * self.exposed(octets) as f64;
        self.hazard.spared(lambda, self.receivers, frames)
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

/// Loss of a frame with a probability that depends on its length, independently of all else.
#[derive(Clone)]
pub struct PerFrame<F> {
    hazard: Hazard,
    probability: F,
    receivers: u32,
    /// The length of the last frame and its hazard: most frames of a transfer are alike.
    last: Option<(u64, f64)>,
}

impl<F: Fn(u64) -> Probability> PerFrame<F> {
    /// Creates a process in which each of `receivers` loses a frame of n octets with `probability(n)`, which must
    /// depend on n alone.
    pub fn new(probability: F, receivers: u32, stream: RandomStream) -> Self {
        Self { hazard: Hazard::new(stream), probability, receivers, last: None }
    }

    fn lambda(&mut self, octets: u64) -> f64 {
        match self.last {
            Some((last, lambda)) if last == octets => lambda,
            _ => {
                let lambda = Hazard::of((self.probability)(octets));
                self.last = Some((octets, lambda));
                lambda
            }
        }
    }
}

impl<F: Fn(u64) -> Probability + Send> Losses for PerFrame<F> {
    fn draw(&mut self, _now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let lambda = self.lambda(octets);
        self.hazard.lost(lambda, self.receivers, among, lost);
    }

    fn spared(&mut self, octets: u64, frames: u32) -> u32 {
        let lambda = self.lambda(octets);
        self.hazard.spared(lambda, self.receivers, frames)
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

impl<F> fmt::Debug for PerFrame<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerFrame").field("receivers", &self.receivers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
