//! Configuration of a tree.

use std::net::{IpAddr, Ipv4Addr};

use farcast_core::{Losses, Span, Time};
use farcast_link::Chains;
use farcast_link::losses::BackLosses;

use super::edges::Edge;
use super::nodes::Node;
use super::shape::NEAR;
use super::{Branches, EdgeShape, OnTree, Packet, Seat, Shape, Tree, TreeTally};
use crate::world::{
    Cut, FlowConfig, Group, GroupConfig, Kind, MOST_TERMINALS, Observer, SealConfig, Settings, StarError,
    check_parts, hub_address, receivers_of,
};

/// Use of a node.
pub enum Role<P: OnTree> {
    /// Router that forwards packets. It may have ends of flows and the sender.
    Plain,
    /// Receivers: one, or several like ones.
    Receivers(GroupConfig<P>),
    /// Network element or repairer.
    Element(Box<P::Element>),
}

/// Configuration of a node.
pub struct NodeConfig<P: OnTree> {
    /// Name of the node.
    pub name: String,
    /// Use of the node.
    pub role: Role<P>,
}

/// Configuration of a far end of an edge.
pub struct FarEnd {
    /// Node at the far end.
    pub node: u32,
    /// Loss process, for one receiver, of packets to this end; without one, the end loses nothing. Receivers have loss
    /// processes of their own.
    pub losses: Option<Box<dyn Losses>>,
    /// Loss process, for one receiver, of packets from this end; without one, the edge's own `return_losses` decide.
    pub return_losses: Option<Box<dyn Losses>>,
}

/// Configuration of an edge.
pub struct EdgeConfig<M> {
    /// Name of the edge.
    pub name: String,
    /// Node at the near end.
    pub near: u32,
    /// Far ends, with their nodes.
    pub far: Vec<FarEnd>,
    /// Stages of the edge. The forward direction leads from the near end to the far ends. Terminals are numbered in the
    /// order of the far ends: one for each receiver of a group, and one for every other far end.
    pub chains: Chains<Packet<M>>,
    /// Delays of the forward and the return direction, for directions without stages: every packet takes exactly this
    /// long.
    pub delays: [Option<Span>; 2],
    /// Loss process behind the return chain, by terminal.
    pub return_losses: BackLosses,
    /// `true` if far ends hear each other only when the near end forwards what it has heard.
    pub relayed: bool,
}

/// Configuration of a flow between two nodes.
pub struct TreeFlow {
    /// Nodes of the flow's ends: of its hub, and of its terminal.
    pub ends: [u32; 2],
    /// Flow. Its loss processes are not used, because the edges have losses.
    pub flow: FlowConfig,
}

/// Configuration of a [`Tree`].
pub struct TreeConfig<P: OnTree> {
    /// Sender of the multicast transfer, if there is one, with its node.
    pub sender: Option<(u32, P::Sender)>,
    /// Nodes.
    pub nodes: Vec<NodeConfig<P>>,
    /// Edges.
    pub edges: Vec<EdgeConfig<P::Message>>,
    /// Flows beside the transfer, or alone.
    pub flows: Vec<TreeFlow>,
    /// Octets that the links add to the `wire_len` of each datagram of the transfer.
    pub overhead: u16,
    /// Seal of the transfer, if it is sealed. No elements are on the way then: they could not read anything.
    pub seal: Option<SealConfig>,
    /// `true` if receivers know of the transmission when it opens. Receivers of a sealed transfer then have all keys.
    pub given: bool,
    /// Span within which no answer to a message that is sent now can reach its sender. A span that is too short only
    /// costs time.
    pub lookahead: Span,
    /// Time at which the replication stops.
    pub limit: Time,
    /// Rule by which runs are cut.
    pub cut: Cut,
}

/// Reason for which a tree cannot be made. Nodes and edges are given by their numbers, from 0.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// An error that a star can have as well.
    #[error(transparent)]
    Star(#[from] StarError),
    /// Two paths lead to a node, or an edge meets a node twice.
    #[error("edge {edge} is a second way to node {node}")]
    Cycle {
        /// Edge.
        edge: u32,
        /// Node.
        node: u32,
    },
    /// No path leads to a node.
    #[error("no way leads to node {node}")]
    Alone {
        /// Node.
        node: u32,
    },
    /// An edge has no far end.
    #[error("edge {edge} has no far end")]
    NoFarEnd {
        /// Edge.
        edge: u32,
    },
    /// An edge names a node that does not exist.
    #[error("edge {edge} names a node that there is not")]
    NoSuchNode {
        /// Edge.
        edge: u32,
    },
    /// Receivers are at the near end of an edge, at several edges, or at none.
    #[error("receivers stand at the far end of one edge, and node {node} does not")]
    NoLeaf {
        /// Node.
        node: u32,
    },
    /// A flow or the sender is at a node that does not exist.
    #[error("a flow or the sender is at a node that there is not")]
    Nowhere,
    /// Both ends of a flow are at one node.
    #[error("both ends of a flow are at node {node}")]
    NoWay {
        /// Node.
        node: u32,
    },
    /// A direction of an edge has both stages and a delay that stands for them.
    #[error("a way of edge {edge} has stages and a delay without stages")]
    TwoWays {
        /// Edge.
        edge: u32,
    },
    /// There are not enough addresses for the ports.
    #[error("at most 2,097,152 ports can be simulated")]
    TooManyPorts,
}

impl<'o, P: OnTree> Tree<'o, P> {
    /// Makes a tree at time zero, in which the sender is about to open and the first flows are about to start.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: TreeConfig<P>, observer: Option<&'o mut dyn Observer<P>>) -> Result<Self, TreeError> {
        let root = config.sender.as_ref().map_or(0, |(node, _)| *node);
        check_flows(&config, root)?;
        let shape = shape_of(config.nodes.len() as u32, &config.edges, root)?;
        let has_sender = config.sender.is_some();
        let mut placed = Placed::new(config.nodes, &shape, Some(root).filter(|_| has_sender))?;
        let groups = std::mem::take(&mut placed.groups);
        let receivers = receivers_of(&groups);
        if config.seal.is_some() && placed.has_elements {
            return Err(StarError::SealedElements.into());
        }
        check_parts(has_sender, receivers, config.flows.len())?;
        let receivers =
            u32::try_from(receivers).ok().filter(|&n| n < MOST_TERMINALS).ok_or(StarError::TooMany)?;
        let flow_ends: Vec<[u32; 2]> = config.flows.iter().map(|flow| flow.ends).collect();
        let settings = Settings {
            sender: config.sender.map(|(_, sender)| sender),
            groups,
            receivers,
            flows: config.flows.into_iter().map(|flow| flow.flow).collect(),
            overhead: config.overhead,
            seal: config.seal,
            given: config.given,
            lookahead: config.lookahead,
            limit: config.limit,
            cut: config.cut,
            never_rests: config.edges.iter().any(|edge| edge.chains.never_rest()),
        };
        Self::make(settings, observer, |groups, routes| {
            let sole = flow_ends.is_empty() && !placed.has_elements && !routes.answers.ip().is_multicast();
            if routes.source.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
                routes.source.set_ip(hub_address());
            }
            count_content(groups);
            let edges = edges_of(config.edges, groups, &placed)?;
            let Placed { nodes, seats, .. } = placed;
            let tally = TreeTally::default();
            Ok(Branches { seat: root, sole, shape, nodes, edges, seats, flow_ends, tally })
        })
    }
}

/// Checks that the sender and the flows are at nodes, and no flow at one alone.
fn check_flows<P: OnTree>(config: &TreeConfig<P>, root: u32) -> Result<(), TreeError> {
    let count = config.nodes.len() as u32;
    let flows_at = config.flows.iter().flat_map(|flow| flow.ends);
    if count == 0 || flows_at.chain([root]).any(|node| node >= count) {
        return Err(TreeError::Nowhere);
    }
    match config.flows.iter().find(|flow| flow.ends[0] == flow.ends[1]) {
        Some(flow) => Err(TreeError::NoWay { node: flow.ends[0] }),
        None => Ok(()),
    }
}

/// Nodes of a tree with the groups of receivers at them.
struct Placed<P: OnTree> {
    nodes: Vec<Node<P>>,
    groups: Vec<GroupConfig<P>>,
    /// Position of each group.
    seats: Vec<Seat>,
    has_elements: bool,
}

impl<P: OnTree> Placed<P> {
    /// Places what is at each node. The `sender` is at a node without receivers.
    fn new(configs: Vec<NodeConfig<P>>, shape: &Shape, sender: Option<u32>) -> Result<Self, TreeError> {
        let nodes = Vec::with_capacity(configs.len());
        let mut placed = Self { nodes, groups: Vec::new(), seats: Vec::new(), has_elements: false };
        for (number, config) in (0..).zip(configs) {
            let mut node = Node::new(config.name);
            match config.role {
                Role::Plain => {}
                Role::Receivers(group) => {
                    let port = match shape.ports_of(number) {
                        [port] if port.place != NEAR && sender != Some(number) => port,
                        _ => return Err(TreeError::NoLeaf { node: number }),
                    };
                    node.group = Some(placed.groups.len() as u32);
                    placed.groups.push(group);
                    placed.seats.push(Seat { edge: port.edge, place: port.place });
                }
                Role::Element(element) => {
                    placed.has_elements = true;
                    node.set_element(*element);
                }
            }
            placed.nodes.push(node);
        }
        Ok(placed)
    }
}

/// Makes every receiver with an engine of its own count the content that it hears.
fn count_content<P: OnTree>(groups: &mut [Group<P>]) {
    for group in groups {
        if let Kind::Engines(stations) = &mut group.kind {
            for station in stations {
                station.content = Some(Box::default());
            }
        }
    }
}

/// Makes the edges, with a terminal for each receiver.
fn edges_of<P: OnTree>(
    configs: Vec<EdgeConfig<P::Message>>,
    groups: &[Group<P>],
    placed: &Placed<P>,
) -> Result<Vec<Edge<P::Message>>, TreeError> {
    let terminals = |node: u32| {
        let group = placed.nodes[node as usize].group;
        group.map_or(1, |group| groups[group as usize].receivers())
    };
    let made = (0..).zip(configs).map(|(number, edge)| Edge::new(number, edge, terminals, P::KINDS.len()));
    let mut edges = made.collect::<Result<Vec<_>, _>>()?;
    for (group, seat) in groups.iter().zip(&placed.seats) {
        edges[seat.edge as usize].delays_differ(seat.place, group.delay);
    }
    Ok(edges)
}

/// Returns the shape of a tree with these edges.
fn shape_of<M>(nodes: u32, edges: &[EdgeConfig<M>], root: u32) -> Result<Shape, TreeError> {
    let far: Vec<Vec<u32>> = edges.iter().map(|edge| edge.far.iter().map(|end| end.node).collect()).collect();
    let shapes = edges.iter().zip(&far);
    let shapes: Vec<_> =
        shapes.map(|(edge, far)| EdgeShape { near: edge.near, far, relayed: edge.relayed }).collect();
    Shape::new(nodes, &shapes, root)
}
