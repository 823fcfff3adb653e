//! Who loses what: the contract of loss processes over the receivers of one channel.

use alloc::vec::Vec;
use core::fmt::Debug;

use crate::Time;

/// The receivers that a loss process decides about, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among<'a> {
    /// Every receiver of the channel.
    All,
    /// These, ascending. Only of a [memoryless](Losses::is_memoryless) process may the rest be left out of the draw;
    /// every other process draws for all and answers for these.
    These(&'a [u32]),
}

/// A loss process over the receivers of one channel.
///
/// A link between two is a channel with one receiver. Every frame of a channel is offered, in the order of their times,
/// even where it is asked about nobody: a process may count frames.
pub trait Losses: Debug + Send {
    /// Decides a frame of `octets` that is on the channel at `now`: the receivers `among` that lose it are appended to
    /// `lost`, ascending.
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>);

    /// Lets frames of `octets` each pass, at most `frames`, as long as everyone gets them; how many passed. What comes
    /// out is the same as of a [`draw`](Self::draw) for each. A process whose fates depend on the time, or that cannot
    /// tell ahead, lets none pass.
    fn spared(&mut self, _octets: u64, _frames: u32) -> u32 {
        0
    }

    /// Whether it may be asked about a subset: leaving receivers out of one draw changes nothing about any other fate.
    ///
    /// So it is where the fate of one frame at one receiver says nothing about any other, and where fates depend on
    /// nothing but the time or the number of the frame.
    fn is_memoryless(&self) -> bool;
}
