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
mod event;
mod figures;
mod flows;
mod layout;
mod nodes;
mod packet;
mod shape;
mod transfer;

use std::net::SocketAddrV4;

use crate::world::World;

pub use crate::world::ReceivedContent;
pub use config::{EdgeConfig, FarEnd, NodeConfig, Role, TreeConfig, TreeError, TreeFlow};
pub use edges::Edge;
pub use element::{COMMON_KINDS, NoElement, OnTree, kind_of};
pub use figures::{KindCount, TreeTally};
pub use packet::{Body, Carried, Packet};
pub use shape::{EdgeShape, Shape};

use event::{Answer, Event};
use nodes::Node;

/// Position of a group of receivers in the tree.
#[derive(Clone, Copy, Debug)]
struct Seat {
    edge: u32,
    place: u32,
}

/// Layout of a tree: its nodes, and the edges between them.
pub struct Branches<P: OnTree> {
    /// Node of the sender.
    seat: u32,
    /// `true` if only the sender sends anything outwards: no flows, no elements, no answers to a group.
    sole: bool,
    shape: Shape,
    nodes: Vec<Node<P>>,
    edges: Vec<Edge<P::Message>>,
    /// Position of each group.
    seats: Vec<Seat>,
    /// Nodes of each flow's ends: the near one, with the flow's hub, and the far one.
    flow_ends: Vec<[u32; 2]>,
    tally: TreeTally,
}

/// Simulated world whose nodes form a tree. Make it from a [`TreeConfig`], and run it.
pub type Tree<'o, P> = World<'o, P, Branches<P>>;

/// Default time to live: the number of nodes that may forward a packet, as in Linux.
const TTL: u8 = 64;

/// Returns an address as packets of a tree carry it; `None` for an address that is not IPv4.
fn v4(address: std::net::SocketAddr) -> Option<SocketAddrV4> {
    if let std::net::SocketAddr::V4(address) = address { Some(address) } else { None }
}
