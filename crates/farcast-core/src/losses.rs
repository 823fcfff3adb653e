//! Loss processes: the contract of processes that decide which receivers of a channel lose a frame.

use alloc::vec::Vec;
use core::fmt::Debug;

use crate::Time;

/// The receivers that a loss process decides about, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among<'a> {
    /// Every receiver of the channel.
    All,
    /// These receivers, ascending. A [memoryless](Losses::is_memoryless) process may leave the other receivers out of
    /// the draw. Every other process draws for all and answers for these.
    These(&'a [u32]),
}

/// A loss process over the receivers of one channel.
///
/// A link between two is a channel with one receiver. Every frame of a channel is offered, in the order of time, even
/// if no receiver is asked about: a process may count frames.
pub trait Losses: Debug + Send {
    /// Decides the fate of a frame of `octets` octets that is on the channel at `now`. Appends to `lost` the receivers
    /// `among` that lose it, ascending.
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>);

    /// Lets frames of `octets` octets each pass, at most `frames`, as long as all receivers get them. Returns the
    /// number that passed. The outcome is that of a [`draw`](Self::draw) for each. A process whose fates depend on the
    /// time, or that cannot look ahead, lets none pass.
    fn spared(&mut self, _octets: u64, _frames: u32) -> u32 {
        0
    }

    /// Returns `true` if the process may be asked about a subset: leaving receivers out of one draw changes no other
    /// fate.
    ///
    /// This holds if the fate of one frame at one receiver is independent of all others. It also holds if fates depend
    /// on nothing but the time or the number of the frame.
    fn is_memoryless(&self) -> bool;
}
