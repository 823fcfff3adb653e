//! Several loss processes on one channel.

use alloc::boxed::Box;
use alloc::vec::Vec;

use farcast_core::Time;

use super::{Among, Losses, sorted};

/// Union of several loss processes: a frame is lost if any of them loses it.
///
/// Every process draws for every frame, so that its draws do not depend on the others.
#[derive(Debug, Default)]
pub struct Several {
    processes: Vec<Box<dyn Losses>>,
    drawn: Vec<u32>,
    union: Vec<u32>,
    scratch: Vec<u32>,
}

impl Several {
    /// Creates the union of `processes`, which must all be about the same receivers. No processes lose nothing.
    pub fn new(processes: Vec<Box<dyn Losses>>) -> Self {
        Self { processes, ..Self::default() }
    }
}

impl Losses for Several {
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        self.union.clear();
        for process in &mut self.processes {
            self.drawn.clear();
            process.draw(now, octets, among, &mut self.drawn);
            sorted::add(&mut self.union, &self.drawn, &mut self.scratch);
        }
        lost.extend_from_slice(&self.union);
    }

    fn is_memoryless(&self) -> bool {
        self.processes.iter().all(|process| process.is_memoryless())
    }
}

#[cfg(test)]
mod tests;
