//! Nodes and edges: hosts, routers, network elements and repairers, and links between them that form a tree.
//!
//! The sender of the multicast transfer, its receivers and the flows' ends may be at any node; each edge has a chain of
//! [stages](farcast_core::stage) each way, and losses at its ends. What stands at the nodes is what stands in a
//! [star](crate::star), and a star is a tree of depth one: a scenario can be read as either, and what
//! happens in both is the same. A tree can in addition have *elements*: engines that stand on the way
//! ([`ElementEngine`](farcast_delivery::ElementEngine)), as PGM's network elements and repairers do.
//!
//! # Edges
//!
//! An edge has one near end and one or several far ones. What enters at the near end passes the forward chain, and each
//! far end may lose it, by losses of its own; what enters at a far end passes the chain of the return way, and may be
//! lost there, by that end's losses. So an edge with one far end is a link between two, and one with several is a
//! shared medium. On a LAN all far ends hear, in addition, what one of them sends to a group or to another of them,
//! when it has passed the return chain; on an edge that is *relayed*, as a satellite's, only the near end hears it,
//! and sends it on.
//!
//! # Nodes
//!
//! Every node sends on what is not for it: to a group by all its edges but the one that it came by, to one node by the
//! way that the tree leaves. There are no routes to be found, and no time passes in a node. Receivers stand at far ends
//! of edges, and nothing stands behind them. An element is given, and the node does not send on, whatever bears the
//! router alert and whatever goes to one of the node's own addresses, of which there is one for each interface; some
//! hear what only passes as well.
//!
//! # What happens at one instant
//!
//! As in a star: what the transfer does and what stages do goes before what flows do.

mod config;
mod edges;
pub(crate) mod element;
mod figures;
mod flows;
mod nodes;
mod packet;
mod run;
mod session;
mod shape;

use std::net::SocketAddrV4;

use farcast_core::random::RandomStream;
use farcast_core::stage::Frame;
use farcast_core::{EventQueue, Span, Time};
use farcast_delivery::{Ending, Merged, Routes};
use farcast_link::chain::Entry;

use crate::star::{FlowState, Group};
use crate::traffic::End;

pub use config::{EdgeConfig, FarEnd, NodeConfig, Role, TreeConfig, TreeError, TreeFlow};
pub use edges::Edge;
pub use element::{COMMON_KINDS, NoElement, OnTree, kind_of};
pub use figures::{Heard, KindCount, TreeTally};
pub use packet::{Body, Carried, Packet};
pub use shape::{Between, Shape};

use nodes::Node;

/// What may happen. `M` is what the transfer's engines speak, `G` what many receivers say as one.
enum Event<M, G> {
    /// The sender wants to be woken.
    Wake,
    /// A receiver says something.
    Answer(Said<M>),
    /// The NAKs of a population reach the sender.
    Merged(G),
    /// A frame enters a stage of an edge, or the rest of a run its chain.
    Enter { edge: u32, entry: Entry<Packet<M>> },
    /// A stage of an edge wants to be woken.
    StageWake { edge: u32, stage: u32 },
    /// A frame has passed the return way of an edge; the losses there are yet to be drawn.
    Leave { edge: u32, frame: Frame<Packet<M>> },
    /// A frame reaches ends of an edge, or one; those at far ends may lose it.
    Reach { edge: u32, to: End, place: u32, frame: Frame<Packet<M>> },
    /// A frame has reached the node at an end of an edge, and nobody can lose it any more.
    Pass { edge: u32, place: u32, frame: Frame<Packet<M>> },
    /// A receiver of a group wants to be woken; of a population, the only one.
    GroupWake { group: u32, station: u32 },
    /// An element wants to be woken.
    ElementWake { node: u32 },
    /// A flow begins.
    FlowStart(u32),
    /// A flow's time is over.
    FlowStop(u32),
    /// A flow may want to be woken.
    FlowWake(u32),
}

/// What a receiver says.
struct Said<M> {
    group: u32,
    receiver: u32,
    to: u32,
    carried: Carried<M>,
}

/// Where a group of receivers is.
#[derive(Clone, Copy, Debug)]
struct Seat {
    edge: u32,
    place: u32,
}

/// A simulated tree. Make it from a [`TreeConfig`], and [`run`](Self::run) it.
pub struct Tree<P: OnTree> {
    now: Time,
    queue: EventQueue<Event<P::Message, Merged<P>>>,
    sender: Option<P::Sender>,
    /// The node of the sender.
    seat: u32,
    /// Between whom the transfer goes.
    routes: Routes,
    /// Whether nobody but the sender sends anything outwards.
    sole: bool,
    wake: Time,
    overhead: u16,
    /// When the sender opens, receivers are told of it at once and without loss; it is not simulated.
    given: bool,
    shape: Shape,
    nodes: Vec<Node<P>>,
    edges: Vec<Edge<P::Message>>,
    groups: Vec<Group<P>>,
    /// Where each group is.
    seats: Vec<Seat>,
    receivers: u32,
    flows: Vec<FlowState>,
    /// The nodes of each flow's ends: the near one, where its hub is, and the far one.
    flow_ends: Vec<[u32; 2]>,
    /// Flows with an end that have not reached it.
    unended: u32,
    /// Whether something goes on for ever, and something else has an end.
    stops_early: bool,
    /// Frames that the end of the transfer waits for, which wait for their event.
    under_way: u32,
    /// Nothing that has not been said yet can be an answer to what is said now before this has passed.
    lookahead: Span,
    limit: Time,
    end: Time,
    cut: crate::star::Cut,
    cuts: RandomStream,
    began: Option<Time>,
    /// Why and when the sender ended, if it has.
    ending: Option<(Time, Ending)>,
    /// Receivers that it gave up.
    left: u64,
    tally: TreeTally,
    /// Reused.
    lost: Vec<u32>,
}

/// How many nodes may send a packet on where nobody says otherwise, as Linux has it.
const TTL: u8 = 64;

/// An address as packets here carry it; `None` of one that IPv4 does not have.
fn v4(address: std::net::SocketAddr) -> Option<SocketAddrV4> {
    if let std::net::SocketAddr::V4(address) = address { Some(address) } else { None }
}
