//! Stages in a row, and the order in which each direction passes them.
//!
//! A [`Driver`] lets frames pass them.

mod driver;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use farcast_core::engine::Message;
use farcast_core::stage::End;
use farcast_core::{Stage, Time};

pub use driver::{ChainOwner, Driver, Entry, follow};

/// A stage of a chain.
pub type BoxedStage<M> = Box<dyn Stage<M> + Send>;

/// The stages between the hub and the terminals. Frames from the hub pass the stages of the forward chain in order;
/// frames from terminals pass the stages of the return chain. A stage that carries both ways is in both.
pub struct Chains<M> {
    stages: Vec<ChainedStage<M>>,
    forward: Vec<u32>,
    back: Vec<u32>,
}

/// A stage and its place in the chains.
struct ChainedStage<M> {
    name: String,
    stage: BoxedStage<M>,
    /// Time at which the stage wants to be woken.
    wake: Time,
    /// `true` if the stage is in both chains.
    both: bool,
    /// The next stages, to the terminals and to the hub.
    next: [Option<u32>; 2],
}

impl<M> fmt::Debug for Chains<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stages.iter().map(|place| &place.name)).finish()
    }
}

impl<M> Default for Chains<M> {
    fn default() -> Self {
        Self { stages: Vec::new(), forward: Vec::new(), back: Vec::new() }
    }
}

impl<M: Message> Chains<M> {
    /// Creates chains without stages: a frame that enters leaves at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a stage to the forward chain, which leads to the terminals. Reports call it `name`, here and below.
    pub fn push_forward(&mut self, name: &str, stage: BoxedStage<M>) {
        let number = self.add(name, stage, false);
        self.append(End::Terminal, number);
    }

    /// Appends a stage to the return chain, which leads to the hub.
    pub fn push_return(&mut self, name: &str, stage: BoxedStage<M>) {
        let number = self.add(name, stage, false);
        self.append(End::Hub, number);
    }

    /// Appends a stage that carries both ways to both chains.
    pub fn push_both(&mut self, name: &str, stage: BoxedStage<M>) {
        let number = self.add(name, stage, true);
        self.append(End::Terminal, number);
        self.append(End::Hub, number);
    }

    /// Returns the number of stages of the return chain, which leads to the hub.
    pub fn returning(&self) -> usize {
        self.back.len()
    }

    /// Calls `each` for every frame that is inside a stage and may still leave, with the end that the frame travels to.
    pub fn each_held(&self, mut each: impl FnMut(End, &M)) {
        for place in &self.stages {
            place.stage.each_held(&mut |port, frame| {
                each(End::of(port), &frame.message);
            });
        }
    }

    /// Returns `true` if a stage has timers that run for ever.
    pub fn never_rest(&self) -> bool {
        self.stages.iter().any(|place| place.stage.never_rests())
    }

    /// Returns every stage once, with its name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &BoxedStage<M>)> {
        self.stages.iter().map(|place| (&*place.name, &place.stage))
    }

    fn add(&mut self, name: &str, stage: BoxedStage<M>, both: bool) -> u32 {
        self.stages.push(ChainedStage { name: name.into(), stage, wake: Time::NEVER, both, next: [None; 2] });
        self.stages.len() as u32 - 1
    }

    fn append(&mut self, to: End, number: u32) {
        let chain = if to == End::Terminal { &mut self.forward } else { &mut self.back };
        if let Some(&last) = chain.last() {
            self.stages[last as usize].next[to.way()] = Some(number);
        }
        chain.push(number);
    }

    /// Returns the stage with this number, to look at.
    ///
    /// # Panics
    /// If there is no stage with this number.
    pub fn get(&self, number: u32) -> &BoxedStage<M> {
        &self.stages[number as usize].stage
    }

    /// Returns the numbers of the stages that lead to `to`, in order.
    pub fn numbers(&self, to: End) -> impl Iterator<Item = u32> + '_ {
        if to == End::Terminal { &self.forward } else { &self.back }.iter().copied()
    }

    /// Returns the name of the stage with this number.
    ///
    /// # Panics
    /// If there is no stage with this number.
    pub fn name(&self, number: u32) -> &str {
        &self.stages[number as usize].name
    }

    /// Returns the stages that lead to `to`, in order.
    pub fn on_the_way(&self, to: End) -> impl Iterator<Item = &BoxedStage<M>> {
        let chain = if to == End::Terminal { &self.forward } else { &self.back };
        chain.iter().map(|&number| &self.stages[number as usize].stage)
    }
}
