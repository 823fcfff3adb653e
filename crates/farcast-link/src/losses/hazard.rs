//! Independent losses by one carried residual.

use alloc::vec::Vec;

use farcast_core::Probability;
use farcast_core::random::RandomStream;

use super::Among;

/// Source of independent losses with one carried residual, at a cost of one step for each loss.
///
/// A loss of probability p is the first event of a Poisson process in an interval of length λ = -ln(1 - p), its
/// *hazard*. The candidates of all frames laid end to end are one axis of hazard, and the distance to the next event on
/// it is exponential with mean 1. That residual is carried from candidate to candidate and from frame to frame: a frame
/// that nobody loses costs one comparison and one subtraction, and ⌊residual / λ⌋ candidates are passed at once. It
/// stays exact where λ differs from frame to frame, because the exponential distribution has no memory.
///
/// The residual is a 64-bit float near 1: hazards below about 10^-14 a frame lose digits in the subtraction.
#[derive(Clone, Debug)]
pub struct Hazard {
    stream: RandomStream,
    residual: f64,
}

impl Hazard {
    /// Creates a source of losses that draws from `stream`.
    pub fn new(mut stream: RandomStream) -> Self {
        let residual = exponential(&mut stream);
        Self { stream, residual }
    }

    /// Returns the hazard of an event of probability `p`: -ln(1 - p), from 0 to infinity.
    pub fn of(p: Probability) -> f64 {
        -libm::log1p(-p.get())
    }

    /// Decides one frame: each of `among` out of `0..receivers` loses it with hazard `lambda`. The receivers that lose
    /// it are appended to `lost`, ascending.
    ///
    /// All lose it at infinity. None loses it at zero, nor at a `lambda` that is no hazard (negative, not a number).
    pub fn lost(&mut self, lambda: f64, receivers: u32, among: Among<'_>, lost: &mut Vec<u32>) {
        match among {
            Among::All => self.each(lambda, receivers as usize, |position, _| lost.push(position as u32)),
            Among::These(asked) => {
                self.each(lambda, asked.len(), |position, _| lost.push(asked[position]));
            }
        }
    }

    /// Passes over frames, at most `frames`, that none of `receivers` loses, and returns their number. The residual is
    /// the same, to the last digit, as after [`lost`](Self::lost) for each of them.
    pub fn spared(&mut self, lambda: f64, receivers: u32, frames: u32) -> u32 {
        if lambda.is_nan() || lambda <= 0.0 {
            return frames;
        }
        let ahead = f64::from(receivers) * lambda;
        let mut passed = 0;
        while passed < frames && self.residual >= ahead {
            self.residual -= ahead;
            passed += 1;
        }
        passed
    }

    /// Reports the events among `count` candidates of hazard `lambda` each, ascending: the candidate's position, and
    /// the part of its hazard that had passed when the event came.
    pub(super) fn each(&mut self, lambda: f64, count: usize, mut event: impl FnMut(usize, f64)) {
        if lambda.is_nan() || lambda <= 0.0 {
            return;
        }
        if lambda.is_infinite() {
            // A certain event tells nothing about the residual, which is kept.
            (0..count).for_each(|position| event(position, 0.0));
            return;
        }
        let mut from = 0;
        loop {
            let ahead = (count - from) as f64 * lambda;
            if self.residual >= ahead {
                self.residual -= ahead;
                return;
            }
            // The product above is rounded, so the quotient may name the candidate behind the last.
            let passed = ((self.residual / lambda) as usize).min(count - from - 1);
            event(from + passed, (self.residual - passed as f64 * lambda).max(0.0));
            self.residual = exponential(&mut self.stream);
            from += passed + 1;
        }
    }
}

/// Draws an exponential number with mean 1, at most 53 ln 2 = 36.7. The logarithm is libm's: the same digits on every
/// platform.
pub(super) fn exponential(stream: &mut RandomStream) -> f64 {
    // 1 - unit() lies in (0, 1], so its logarithm is finite.
    -libm::log(1.0 - stream.unit())
}

#[cfg(test)]
mod tests;
