//! A hub and its terminals: a multicast sender, a channel to groups of receivers and their way back, and beside them
//! flows of other protocols, each to a terminal of its own.
//!
//! The sender and every single receiver are the engines that `farcast send` and `farcast receive` run; a group may be
//! a [`Population`](farcast_mftp::Population), which decides by the same rules. What lies between is a chain of
//! [stages](farcast_core::stage) that all share, a fan-out at which each receiver loses frames of its own, and a way
//! back: either the same for all, or a chain of stages, some of which may be in both chains. [Flows](crate::traffic) share both chains; each loses packets
//! of its own behind them. There may be no sender, or no flows.
//!
//! # What happens at one instant
//!
//! What the transfer does and what stages do goes before what flows do. So it makes no difference in how many pieces a
//! run of the transfer enters a stage that it shares with a flow.

mod back;
mod config;
mod flows;
mod group;
mod links;
mod observe;
mod packet;
mod pulse;
mod run;
mod session;

use farcast_core::random::RandomStream;
use farcast_core::stage::Frame;
use farcast_core::{EventQueue, Span, Time};
use farcast_mftp::message::Naks;
use farcast_mftp::{Message, Sender};

use crate::traffic::{End, FlowMessage};

pub use back::{Back, BackLosses};
pub use config::{Cut, GroupConfig, StarConfig, StarError, hub_address, receiver_address, receiver_id};
pub use farcast_link::{BoxedStage, Chains};
pub use flows::{FlowConfig, FlowState, Passage};
pub use group::{Group, Kind};
pub use observe::{FlowPacket, NakFate, Observer};
pub use packet::Packet;
pub use pulse::Pulse;

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
    /// The rest of what the sender sends enters the forward chain.
    Send(Frame<Message>),
    /// A stage wants to be woken.
    StageWake(u32),
    /// A frame's first datagram reaches the receivers of a group.
    FanOut { group: u32, frame: Frame<Message> },
    /// A receiver of a group wants to be woken; of a population, the only one.
    GroupWake { group: u32, station: u32 },
    /// A receiver says something.
    Answer { receiver: u32, frame: Frame<Message> },
    /// A frame enters a stage behind the first, on its way to that end. The only variant of this size: so the tag of an
    /// event has room in it, and events move by aligned words.
    Pass { to: End, stage: u32, frame: Frame<Packet> },
    /// A flow begins.
    FlowStart(u32),
    /// A flow's time is over.
    FlowStop(u32),
    /// A flow may want to be woken.
    FlowWake(u32),
    /// A flow's packet has passed the links; it may be lost yet.
    FlowReach { flow: u32, end: End, message: FlowMessage },
}

/// What has passed and what became of it, in one replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Octets that entered the forward chain, with the overhead of a datagram.
    pub forward_octets: u64,
    /// Datagrams that entered it.
    pub forward_datagrams: u64,
    /// Octets that receivers and the terminals of flows sent, with overhead.
    pub return_octets: u64,
    /// Datagrams that they sent.
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
    sender: Option<Sender>,
    wake: Time,
    overhead: u16,
    /// When the sender opens, receivers are told of it at once and without loss; it is not simulated.
    given: bool,
    chains: Chains<Packet>,
    groups: Vec<Group>,
    /// Receivers in all: the first flow's terminal has this number.
    receivers: u32,
    back: Back,
    flows: Vec<FlowState>,
    /// Flows with an end that have not reached it.
    unended: u32,
    /// Whether something goes on for ever, a flow or a stage's timers, and something else has an end.
    stops_early: bool,
    /// What the sender has sent that has not reached the receivers: frames that wait for their event.
    under_way: u32,
    /// No message that has not left the hub yet can be an answer to what leaves it now before this has passed.
    lookahead: Span,
    limit: Time,
    /// When the replication was over.
    end: Time,
    cut: Cut,
    cuts: RandomStream,
    began: Option<Time>,
    tally: Tally,
    /// Reused.
    lost: Vec<u32>,
    observer: Option<&'o mut dyn Observer>,
}
