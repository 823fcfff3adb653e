//! Tree: hosts, routers, network elements and repairers at nodes, and links between them as edges that form a tree.
//!
//! The sender of the multicast transfer, its receivers and the flows' ends may be at any node. Each edge has a chain of
//! [stages](farcast_core::stage) each way, and losses at its ends. Engines and flows at the nodes are those of a
//! [star](crate::star), and a star is a tree of depth one: a scenario can be read as either, with the same outcome. A
//! tree can in addition have *elements*: engines between the sender and the receivers
//! ([`ElementEngine`](farcast_delivery::ElementEngine)), such as PGM's network elements and repairers.
//!
//! # Edges
//!
//! An edge has one near end and one or several far ends. A packet that enters at the near end passes the forward chain,
//! and each far end may lose it, by losses of its own. A packet that enters at a far end passes the return chain, and
//! may be lost behind it, by that far end's losses. An edge with one far end is a point-to-point link; an edge with
//! several is a shared medium. On a LAN, all far ends also hear a packet that one of them sends to a group or to
//! another far end, after the packet has passed the return chain. On a *relayed* edge, such as a satellite's, only the
//! near end hears it, and forwards it.
//!
//! # Nodes
//!
//! Every node forwards packets that are not addressed to it: a packet to a group over all its edges but the one that
//! the packet came by, a packet to one node along the only path of the tree. No routes have to be found, and forwarding
//! takes no time. Receivers are at far ends of edges, with no node behind them. A node with an element gives it packets
//! with the router alert and packets to one of the node's own addresses (one for each interface), and does not forward
//! them. Some elements also hear packets that only pass.
//!
//! # Order within one instant
//!
//! As in a star, events of the transfer and of stages come before events of flows.

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

/// Event of a tree. `M` is the message type of the transfer's engines, `G` the merged feedback of many receivers.
enum Event<M, G> {
    /// Timer of the sender.
    Wake,
    /// A receiver sends a message.
    Answer(Said<M>),
    /// The NAKs of a population reach the sender.
    Merged(G),
    /// A frame enters a stage of an edge, or the rest of a run enters the edge's chain.
    Enter { edge: u32, entry: Entry<Packet<M>> },
    /// Timer of a stage of an edge.
    StageWake { edge: u32, stage: u32 },
    /// A frame has passed the return chain of an edge; the losses behind it are not drawn yet.
    Leave { edge: u32, frame: Frame<Packet<M>> },
    /// A frame reaches one end of an edge, or several; far ends may lose it.
    Reach { edge: u32, to: End, place: u32, frame: Frame<Packet<M>> },
    /// A frame has reached the node at an end of an edge and can no longer be lost there.
    Pass { edge: u32, place: u32, frame: Frame<Packet<M>> },
    /// Timer of a receiver of a group. A population has one timer, with station 0.
    GroupWake { group: u32, station: u32 },
    /// Timer of an element.
    ElementWake { node: u32 },
    /// Start of a flow.
    FlowStart(u32),
    /// Stop of a flow.
    FlowStop(u32),
    /// Timer of a flow, which may have moved since.
    FlowWake(u32),
}

/// Message of a receiver.
struct Said<M> {
    group: u32,
    receiver: u32,
    to: u32,
    carried: Carried<M>,
}

/// Position of a group of receivers in the tree.
#[derive(Clone, Copy, Debug)]
struct Seat {
    edge: u32,
    place: u32,
}

/// Simulated world whose nodes form a tree. Make it from a [`TreeConfig`], and [`run`](Self::run) it.
pub struct Tree<P: OnTree> {
    now: Time,
    queue: EventQueue<Event<P::Message, Merged<P>>>,
    sender: Option<P::Sender>,
    /// Node of the sender.
    seat: u32,
    /// Addresses of the transfer.
    routes: Routes,
    /// `true` if only the sender sends anything outwards: no flows, no elements, no answers to a group.
    sole: bool,
    wake: Time,
    overhead: u16,
    /// `true` if receivers learn of the transmission at once and without loss when the sender opens; no link carries
    /// this.
    given: bool,
    shape: Shape,
    nodes: Vec<Node<P>>,
    edges: Vec<Edge<P::Message>>,
    groups: Vec<Group<P>>,
    /// Position of each group.
    seats: Vec<Seat>,
    receivers: u32,
    flows: Vec<FlowState>,
    /// Nodes of each flow's ends: the near one, with the flow's hub, and the far one.
    flow_ends: Vec<[u32; 2]>,
    /// Flows with an end that have not reached it.
    unended: u32,
    /// `true` if something never ends, while something else has an end.
    stops_early: bool,
    /// Frames that wait for an event and that have to arrive before the transfer is over.
    under_way: u32,
    /// Span within which no answer to a message that is sent now can reach its sender.
    lookahead: Span,
    limit: Time,
    end: Time,
    cut: crate::star::Cut,
    cuts: RandomStream,
    began: Option<Time>,
    /// Time and kind of the sender's end, if it has ended.
    ending: Option<(Time, Ending)>,
    /// Receivers that the sender gave up.
    left: u64,
    tally: TreeTally,
    /// Receivers that lose a frame (a buffer that is reused).
    lost: Vec<u32>,
}

/// Default time to live: the number of nodes that may forward a packet, as in Linux.
const TTL: u8 = 64;

/// Returns an address as packets of a tree carry it; `None` for an address that is not IPv4.
fn v4(address: std::net::SocketAddr) -> Option<SocketAddrV4> {
    if let std::net::SocketAddr::V4(address) = address { Some(address) } else { None }
}
