//! Loss processes over the receivers of one channel.
//!
//! | process | a frame is lost |
//! |---|---|
//! | [`NoLoss`] | never |
//! | [`Bernoulli`] | with one probability, independently |
//! | [`BitErrors`] | if any of its bits is in error, independently |
//! | [`PerFrame`] | with a probability that depends on its length, independently |
//! | [`TimelineLoss`] | with a probability that depends on the time, independently |
//! | [`GilbertElliott`] | in bursts, by a chain of two states at each receiver |
//! | [`ErrorVectors`] | where a given bit string says so |
//! | [`Outages`] | while its receiver, or the channel, is cut off |
//! | [`Several`] | if any of several processes loses it |
//!
//! The memoryless ones share one mechanism, [`Hazard`], which costs a step for each loss and none for a receiver.

use alloc::vec::Vec;

use farcast_core::Time;
pub use farcast_core::losses::{Among, Losses};

mod gilbert_elliott;
mod hazard;
mod memoryless;
mod outages;
mod own;
mod several;
mod sorted;
#[cfg(test)]
mod tests;
mod timeline;
mod vectors;

pub use gilbert_elliott::{GilbertElliott, GilbertElliottConfig, Transitions};
pub use hazard::Hazard;
pub use memoryless::{Bernoulli, BitErrors, PerFrame};
pub use outages::{OutageLength, Outages, RandomOutages};
pub use own::BackLosses;
pub use several::Several;
pub use timeline::TimelineLoss;
pub use vectors::{AtEnd, ErrorVectors, parse_error_vector};

/// A channel that loses nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoLoss;

impl Losses for NoLoss {
    fn draw(&mut self, _now: Time, _octets: u64, _among: Among<'_>, _lost: &mut Vec<u32>) {}

    fn spared(&mut self, _octets: u64, frames: u32) -> u32 {
        frames
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}
