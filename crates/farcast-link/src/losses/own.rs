//! Losses on links that receivers have of their own.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Losses;

/// Losses in a direction in which every receiver has a link of its own, decided by processes `T`.
#[derive(Clone, Debug)]
pub enum BackLosses<T = Box<dyn Losses>> {
    /// A memoryless process over all receivers, which need no processes of their own.
    Shared(T),
    /// One process for each receiver, over that receiver alone.
    Each(Vec<T>),
}

impl<T> BackLosses<T> {
    /// Returns the process that decides about a receiver, and the receiver's number in it; `None` if there is none.
    pub fn of(&mut self, receiver: u32) -> Option<(&mut T, u32)> {
        match self {
            Self::Shared(process) => Some((process, receiver)),
            Self::Each(processes) => processes.get_mut(receiver as usize).map(|process| (process, 0)),
        }
    }

    /// Returns the same losses with each process changed by `change`.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> BackLosses<U> {
        match self {
            Self::Shared(process) => BackLosses::Shared(change(process)),
            Self::Each(processes) => BackLosses::Each(processes.into_iter().map(change).collect()),
        }
    }
}
