//! A hub and its terminals: a multicast sender, a channel to groups of receivers and their way back, and beside them
//! flows of other protocols, each to a terminal of its own.
//!
//! The sender and every single receiver are the engines that `farcast send` and `farcast receive` run; a group may be
//! a [`Population`](farcast_delivery::Population), which decides by the same rules. What lies between is a chain of
//! [stages](farcast_core::stage) that all share, a fan-out at which each receiver loses frames of its own, and a way
//! back: either the same for all, or a chain of stages, some of which may be in both chains. [Flows](crate::traffic)
//! share both chains; each loses packets of its own behind them. There may be no sender, or no flows. The protocol of
//! the transfer is whatever stands behind [`Protocol`], and the world is made for one protocol at a time, so that
//! nothing is dispatched while it runs.
//!
//! # Who hears what
//!
//! What the sender says to a group reaches everyone who does not lose it; what it says to one receiver passes the same
//! stages and reaches, and can be lost by, that one alone. What a receiver says reaches the sender; what it says to the
//! group that answers go to goes from the hub on to the other receivers as well, as far as it has reached the hub. On
//! other groups no receiver listens for another.
//!
//! # What happens at one instant
//!
//! What the transfer does and what stages do goes before what flows do. So it makes no difference in how many pieces a
//! run of the transfer enters a stage that it shares with a flow.

mod back;
pub(crate) mod config;
pub(crate) mod ears;
mod flights;
pub(crate) mod flows;
pub(crate) mod group;
mod links;
mod observe;
mod packet;
pub(crate) mod pulse;
mod run;
pub mod seal;
mod sealed;
mod session;

use farcast_core::random::RandomStream;
use farcast_core::stage::Frame;
use farcast_core::{EventQueue, Span, Time};
use farcast_delivery::{Ending, Merged, Protocol, Routes};
use farcast_link::chain::{Driver, Entry};

use crate::traffic::End;

use flights::{Flights, Flying};
use seal::Seal;

pub use back::{Back, BackLosses};
pub use config::{Cut, GroupConfig, Maker, Receivers, StarConfig, StarError, hub_address, receiver_address};
pub use farcast_link::{BoxedStage, Chains};
pub use flows::{FlowConfig, FlowState, Passage};
pub use group::{Group, Kind, Station};
pub use observe::{FlowPacket, Observer, SenderEvent};
pub use packet::{Addressed, Packet, Party};
pub use pulse::Pulse;
pub use seal::{SealConfig, SealCounts, SealMessage};

/// What may happen. `M` is what the transfer's engines speak, `G` what many receivers say as one.
enum Event<M, G> {
    /// The sender wants to be woken.
    Wake,
    /// A receiver's message has passed the stages of the way back; it may be lost yet.
    Reach(Frame<Addressed<M>>),
    /// A receiver's message arrives at the sender.
    Arrive(Frame<Addressed<M>>),
    /// The NAKs of a population reach the sender.
    Merged(G),
    /// A stage wants to be woken.
    StageWake(u32),
    /// A frame's first datagram reaches the receivers of a group.
    FanOut { group: u32, frame: Frame<Addressed<M>> },
    /// A receiver of a group wants to be woken; of a population, the only one.
    GroupWake { group: u32, station: u32 },
    /// A receiver says something.
    Answer(Addressed<M>),
    /// KEYS may be due.
    Keys,
    /// The turn of somebody may have come who is owed the key of content.
    Owed,
    /// What only the seal sends reaches the receivers of a group.
    Unseal { group: u32, message: SealMessage },
    /// A receiver asks for the key of content.
    Ask(u32),
    /// That has passed the stages of the way back; it may be lost yet.
    ReachAsk(u32),
    /// It arrives at the sender.
    ArriveAsk(u32),
    /// A frame enters a stage, or the rest of a run the chain. The only variant of this size: so the tag of an event
    /// has room in it, and events move by aligned words.
    Enter(Entry<Packet<M>>),
}

/// What may happen to flows. It comes behind all else of its instant, so it has a queue of its own, of small events.
#[derive(Clone, Copy)]
enum FlowEvent {
    /// A flow begins.
    Start(u32),
    /// A flow's time is over.
    Stop(u32),
    /// A flow may want to be woken.
    Wake(u32),
    /// A flow's packet has passed the links; it may be lost yet.
    Reach { flow: u32, end: End, packet: Flying },
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
pub struct Star<'o, P: Protocol> {
    now: Time,
    queue: EventQueue<Event<P::Message, Merged<P>>>,
    flow_queue: EventQueue<FlowEvent>,
    /// Packets of flows that have passed the links and wait for their time.
    flights: Flights,
    sender: Option<P::Sender>,
    /// Between whom the transfer goes.
    routes: Routes,
    /// Whether receivers answer to a group, so that they hear each other.
    relays: bool,
    wake: Time,
    overhead: u16,
    /// The sender's side of the seal, if there is one.
    seal: Option<Box<Seal>>,
    /// When the sender opens, receivers are told of it at once and without loss; it is not simulated.
    given: bool,
    links: Driver<Packet<P::Message>>,
    groups: Vec<Group<P>>,
    /// Receivers in all: the first flow's terminal has this number.
    receivers: u32,
    back: Back,
    flows: Vec<FlowState>,
    /// Flows with an end that have not reached it.
    unended: u32,
    /// Whether something goes on for ever, a flow or a stage's timers, and something else has an end.
    stops_early: bool,
    /// What the hub has sent of the transfer that has not reached the receivers: frames that wait for their event.
    under_way: u32,
    /// No message that has not left the hub yet can be an answer to what leaves it now before this has passed.
    lookahead: Span,
    limit: Time,
    /// When the replication was over.
    end: Time,
    cut: Cut,
    cuts: RandomStream,
    began: Option<Time>,
    /// Why and when the sender ended, if it has.
    ending: Option<(Time, Ending)>,
    /// Receivers that it gave up.
    left: u64,
    tally: Tally,
    /// Reused.
    lost: Vec<u32>,
    observer: Option<&'o mut dyn Observer<P>>,
}
