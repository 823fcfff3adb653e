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
mod config;
mod event;
mod flights;
mod flows;
mod layout;
mod links;
mod packet;
mod transfer;

use farcast_core::EventQueue;
use farcast_delivery::Protocol;
use farcast_link::chain::Driver;

use crate::traffic::End;
use crate::world::World;

use event::{Event, FlowEvent};
use flights::{Flight, Flights};

pub use crate::world::{
    Addresses, Cut, FlowConfig, FlowPacket, FlowState, Group, GroupConfig, Kind, Maker, Observer, Party,
    Passage, Pulse, Receivers, SealConfig, SealCounts, SealMessage, SenderEvent, StarError, Station,
    hub_address, receiver_address,
};
pub use back::{Back, BackLosses};
pub use config::StarConfig;
pub use farcast_link::{BoxedStage, Chains};
pub use packet::{Addressed, Packet};

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
    /// NAKs that reached the sender after the pass that follows the one they answer had begun.
    pub naks_late: u64,
    /// NAKs that the sender took in time for the pass behind the one they answer.
    pub naks_used: u64,
    /// Events of the simulation.
    pub events: u64,
}

/// Layout of a star: the links between its hub and its terminals.
pub struct Hub<P: Protocol> {
    flow_queue: EventQueue<FlowEvent>,
    /// Packets of flows that have passed the links and wait for their time.
    flights: Flights,
    /// `true` if receivers answer to a group, so that they hear each other.
    relays: bool,
    links: Driver<Packet<P::Message>>,
    back: Back,
    traffic: Traffic,
}

/// Counters of the datagrams that entered each direction.
#[derive(Default)]
struct Traffic {
    forward_octets: u64,
    forward_datagrams: u64,
    return_octets: u64,
    return_datagrams: u64,
}

impl Traffic {
    /// Counts datagrams that enter the direction to `to`.
    fn count(&mut self, to: End, datagrams: u64, octets: u64) {
        let (all_datagrams, all_octets) = match to {
            End::Terminal => (&mut self.forward_datagrams, &mut self.forward_octets),
            End::Hub => (&mut self.return_datagrams, &mut self.return_octets),
        };
        *all_datagrams += datagrams;
        *all_octets += octets;
    }
}

/// Simulated world with one hub. Make it from a [`StarConfig`], and run it.
pub type Star<'o, P> = World<'o, P, Hub<P>>;
