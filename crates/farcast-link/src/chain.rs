//! Stages in a row: which there are, and in which order each direction passes them.
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

pub use driver::{Driver, Entry, Owner, follow};

/// A stage of a chain.
pub type BoxedStage<M> = Box<dyn Stage<M> + Send>;

/// The stages between the hub and the terminals. What leaves the hub passes those of the forward chain, in order; what
/// terminals send passes those of the way back. A stage that carries both ways is in both.
pub struct Chains<M> {
    stages: Vec<Place<M>>,
    forward: Vec<u32>,
    back: Vec<u32>,
}

/// A stage, and where it stands.
struct Place<M> {
    name: String,
    stage: BoxedStage<M>,
    /// When it wants to be woken.
    wake: Time,
    /// Whether it is in both chains.
    both: bool,
    /// The stages behind it, to the terminals and to the hub.
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
    /// None: what enters leaves at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a stage that carries to the terminals behind those that do. Reports call it `name`, here and below.
    pub fn push_forward(&mut self, name: &str, stage: BoxedStage<M>) {
        let number = self.add(name, stage, false);
        self.append(End::Terminal, number);
    }

    /// Puts a stage that carries to the hub behind those that do.
    pub fn push_return(&mut self, name: &str, stage: BoxedStage<M>) {
        let number = self.add(name, stage, false);
        self.append(End::Hub, number);
    }

    /// Puts a stage that carries both ways behind the others of each.
    pub fn push_both(&mut self, name: &str, stage: BoxedStage<M>) {
        let number = self.add(name, stage, true);
        self.append(End::Terminal, number);
        self.append(End::Hub, number);
    }

    /// How many stages lead back to the hub.
    pub fn returning(&self) -> usize {
        self.back.len()
    }

    /// Calls `each` for every frame that is inside a stage and may still leave, with the end to which it is on its way.
    pub fn each_held(&self, mut each: impl FnMut(End, &M)) {
        for place in &self.stages {
            place.stage.each_held(&mut |port, frame| {
                each(End::of(port), &frame.message);
            });
        }
    }

    /// Whether a stage has timers that go on for ever.
    pub fn never_rest(&self) -> bool {
        self.stages.iter().any(|place| place.stage.never_rests())
    }

    /// Every stage once, with its name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &BoxedStage<M>)> {
        self.stages.iter().map(|place| (&*place.name, &place.stage))
    }

    fn add(&mut self, name: &str, stage: BoxedStage<M>, both: bool) -> u32 {
        self.stages.push(Place { name: name.into(), stage, wake: Time::NEVER, both, next: [None; 2] });
        self.stages.len() as u32 - 1
    }

    fn append(&mut self, to: End, number: u32) {
        let chain = if to == End::Terminal { &mut self.forward } else { &mut self.back };
        if let Some(&last) = chain.last() {
            self.stages[last as usize].next[to.way()] = Some(number);
        }
        chain.push(number);
    }

    /// The stage with this number, to look at.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, number: u32) -> &BoxedStage<M> {
        &self.stages[number as usize].stage
    }

    /// The numbers of the stages on the way to that end, in order.
    pub fn numbers(&self, to: End) -> impl Iterator<Item = u32> + '_ {
        if to == End::Terminal { &self.forward } else { &self.back }.iter().copied()
    }

    /// What the stage with this number is called.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn name(&self, number: u32) -> &str {
        &self.stages[number as usize].name
    }

    /// The stages on the way to that end, in order.
    pub fn on_the_way(&self, to: End) -> impl Iterator<Item = &BoxedStage<M>> {
        let chain = if to == End::Terminal { &self.forward } else { &self.back };
        chain.iter().map(|&number| &self.stages[number as usize].stage)
    }
}
