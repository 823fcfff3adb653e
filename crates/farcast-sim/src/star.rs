//! One sender, a channel to groups of receivers, and their way back: the simulated world of a multicast transfer.
//!
//! The sender and every single receiver are the engines that `farcast send` and `farcast receive` run; a group may be
//! a [`Population`](farcast_mftp::Population), which decides by the same rules. What lies between is a chain of
//! [stages](farcast_core::stage) that all share, a fan-out at which each receiver loses frames of its own, and a way
//! back: either the same for all, or a chain of stages.

mod back;
mod config;
mod group;
mod observe;
mod run;

use farcast_core::random::RandomStream;
use farcast_core::stage::Frame;
use farcast_core::{Span, Stage, Time};
use farcast_mftp::message::Naks;
use farcast_mftp::{Message, Sender};

use crate::queue::EventQueue;

pub use back::{Back, BackLosses};
pub use config::{Cut, GroupConfig, StarConfig, StarError, receiver_address, receiver_id};
pub use group::{Group, Kind};
pub use observe::{NakFate, Observer};

/// A stage of a chain.
pub type BoxedStage = Box<dyn Stage<Message> + Send>;

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    /// The sender wants to be woken.
    Wake,
    /// A receiver's message has passed the stages of the way back; it may be lost yet.
    Reach { receiver: u32, frame: Frame<Message> },
    /// A receiver's message arrives at the sender.
    Arrive { receiver: u32, message: Message },
    /// The NAKs of a population reach the sender.
    Merged(Naks),
    /// A frame enters a stage of the forward chain.
    Forward { stage: usize, frame: Frame<Message> },
    /// A stage of the forward chain wants to be woken.
    ForwardWake(usize),
    /// A frame's first datagram reaches the receivers of a group.
    FanOut { group: usize, frame: Frame<Message> },
    /// A receiver of a group wants to be woken; of a population, the only one.
    GroupWake { group: usize, station: usize },
    /// A receiver's message enters a stage of the way back.
    Return { stage: usize, receiver: u32, frame: Frame<Message> },
    /// A stage of the way back wants to be woken.
    ReturnWake(usize),
}

/// A chain of stages, and when each wants to be woken.
struct Chain {
    stages: Vec<BoxedStage>,
    wakes: Vec<Time>,
}

impl Chain {
    fn new(stages: Vec<BoxedStage>) -> Self {
        Self { wakes: vec![Time::NEVER; stages.len()], stages }
    }
}

/// What has passed and what became of it, in one replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Octets that entered the forward chain, with the overhead of a datagram.
    pub forward_octets: u64,
    /// Datagrams that entered it.
    pub forward_datagrams: u64,
    /// Octets that receivers sent, with overhead.
    pub return_octets: u64,
    /// Datagrams that receivers sent.
    pub return_datagrams: u64,
    /// NAKs that receivers sent.
    pub naks_sent: u64,
    /// NAKs that reached the sender after the pass that follows the one they answer had begun.
    pub naks_late: u64,
    /// NAKs that the sender took in time for the pass behind the one they answer.
    pub naks_used: u64,
    /// Events of the simulation.
    pub events: u64,
}

/// A simulated world. Make it from a [`StarConfig`], and [`run`](Self::run) it.
pub struct Star<'o> {
    now: Time,
    queue: EventQueue<Event>,
    sender: Sender,
    wake: Time,
    overhead: u16,
    /// When the sender opens, receivers are told of it at once and without loss; it is not simulated.
    given: bool,
    forward: Chain,
    groups: Vec<Group>,
    back: Back,
    back_wakes: Vec<Time>,
    /// No message that the sender has not sent yet can be an answer to what it sends now before this has passed.
    lookahead: Span,
    limit: Time,
    cut: Cut,
    cuts: RandomStream,
    began: Option<Time>,
    tally: Tally,
    observer: Option<&'o mut dyn Observer>,
}
