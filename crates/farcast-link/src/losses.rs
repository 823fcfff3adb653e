//! Who loses what: loss processes over the receivers of one channel.

use alloc::vec::Vec;
use core::fmt::Debug;

use farcast_core::Time;

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
/// A link between two is a channel with one receiver. The frames of a channel are offered in the order of their times.
pub trait Losses: Debug + Send {
    /// Decides a frame of `octets` that is on the channel at `now`: the receivers `among` that lose it are appended to
    /// `lost`, ascending.
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>);

    /// Whether the fate of one frame at one receiver says nothing about any other.
    fn is_memoryless(&self) -> bool;
}
