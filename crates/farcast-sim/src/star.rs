//! Star: one hub and its terminals. A multicast sender at the hub serves groups of receivers, beside flows of other
//! protocols.
//!
//! The sender and every single receiver are the engines that `farcast send` and `farcast receive` run; a group may be a
//! [`Population`](farcast_delivery::Population), which decides by the same rules. Between them lie a chain of
//! [stages](farcast_core::stage) that all packets share, a fan-out at which each receiver loses frames of its own, and
//! a return path. The return path is either one delay for all receivers, or a chain of stages, some of which may be in
//! both chains. [Flows](crate::traffic) share both chains; each flow has a terminal of its own and loses packets of its
//! own behind the chains. A star may have no sender, or no flows. The transfer's protocol implements [`Protocol`]. A
//! star is generic over that one protocol, so nothing is dispatched dynamically while it runs.
//!
//! # Delivery of messages
//!
//! A message from the sender to a group reaches every receiver that does not lose it. A message from the sender to one
//! receiver passes the same stages; only that receiver gets it or loses it. A receiver's message reaches the sender. If
//! it is addressed to the group that answers go to, the hub forwards it to the other receivers as well, provided that
//! it has reached the hub. Receivers do not listen for each other on other groups.
//!
//! # Order within one instant
//!
//! Events of the transfer and of stages come before events of flows. Therefore the pieces in which a run of the
//! transfer enters a stage that it shares with a flow make no difference.

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

/// Event of a star. `M` is the message type of the transfer's engines, `G` the merged feedback of many receivers.
enum Event<M, G> {
    /// Timer of the sender.
    Wake,
    /// A receiver's message has passed the stages of the return path; it can still be lost.
    Reach(Frame<Addressed<M>>),
    /// A receiver's message arrives at the sender.
    Arrive(Frame<Addressed<M>>),
    /// The NAKs of a population reach the sender.
    Merged(G),
    /// Timer of a stage.
    StageWake(u32),
    /// The first datagram of a frame reaches the receivers of a group.
    FanOut { group: u32, frame: Frame<Addressed<M>> },
    /// Timer of a receiver of a group. A population has one timer, with station 0.
    GroupWake { group: u32, station: u32 },
    /// A receiver sends a message.
    Answer(Addressed<M>),
    /// KEYS may be due.
    Keys,
    /// The turn of a receiver that is owed the content key may have come.
    Owed,
    /// A datagram that only the seal sends reaches the receivers of a group.
    Unseal { group: u32, message: SealMessage },
    /// A receiver asks for the content key.
    Ask(u32),
    /// A receiver's request for the content key has passed the stages of the return path; it can still be lost.
    ReachAsk(u32),
    /// A receiver's request for the content key arrives at the sender.
    ArriveAsk(u32),
    /// A frame enters a stage, or the rest of a run enters the chain. No other variant is as large, so the tag of an
    /// event has room in this one, and events move by aligned words.
    Enter(Entry<Packet<M>>),
}

/// Event of a flow. Flow events come last in their instant, so they have a queue of their own, of small events.
#[derive(Clone, Copy)]
enum FlowEvent {
    /// Start of a flow.
    Start(u32),
    /// Stop of a flow.
    Stop(u32),
    /// Timer of a flow, which may have moved since.
    Wake(u32),
    /// A packet of a flow has passed the links; it can still be lost.
    Reach { flow: u32, end: End, packet: Flying },
}

/// Counters of packets and their fates in one replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Octets that entered the forward chain, with the overhead of a datagram.
    pub forward_octets: u64,
    /// Datagrams that entered the forward chain.
    pub forward_datagrams: u64,
    /// Octets that receivers and the terminals of flows sent, with the overhead of a datagram.
    pub return_octets: u64,
    /// Datagrams that receivers and the terminals of flows sent.
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

/// Simulated world with one hub. Make it from a [`StarConfig`], and [`run`](Self::run) it.
pub struct Star<'o, P: Protocol> {
    now: Time,
    queue: EventQueue<Event<P::Message, Merged<P>>>,
    flow_queue: EventQueue<FlowEvent>,
    /// Packets of flows that have passed the links and wait for their time.
    flights: Flights,
    sender: Option<P::Sender>,
    /// Addresses of the transfer.
    routes: Routes,
    /// `true` if receivers answer to a group, so that they hear each other.
    relays: bool,
    wake: Time,
    overhead: u16,
    /// Sender's side of the seal, if the transfer is sealed.
    seal: Option<Box<Seal>>,
    /// `true` if receivers learn of the transmission at once and without loss when the sender opens; no link carries
    /// this.
    given: bool,
    links: Driver<Packet<P::Message>>,
    groups: Vec<Group<P>>,
    /// Number of receivers in all groups, which is also the number of the first flow's terminal.
    receivers: u32,
    back: Back,
    flows: Vec<FlowState>,
    /// Flows with an end that have not reached it.
    unended: u32,
    /// `true` if something never ends, a flow or a stage's timers, while something else has an end.
    stops_early: bool,
    /// Frames of the transfer that the hub has sent and that wait for an event before they reach receivers.
    under_way: u32,
    /// Span within which no answer to a message that leaves the hub now can reach the hub.
    lookahead: Span,
    limit: Time,
    /// End of the replication.
    end: Time,
    cut: Cut,
    cuts: RandomStream,
    began: Option<Time>,
    /// Time and kind of the sender's end, if it has ended.
    ending: Option<(Time, Ending)>,
    /// Receivers that the sender gave up.
    left: u64,
    tally: Tally,
    /// Receivers that lose a frame (a buffer that is reused).
    lost: Vec<u32>,
    observer: Option<&'o mut dyn Observer<P>>,
}
