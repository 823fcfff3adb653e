//! Configuration of a tree.

use std::net::IpAddr;

use farcast_core::random::RandomStream;
use farcast_core::{EventQueue, Losses, Span, Time};
use farcast_delivery::SenderEngine as _;
use farcast_link::losses::NoLoss;

use super::edges::Edge;
use super::nodes::Node;
use super::shape::NEAR;
use super::{Between, OnTree, Packet, Seat, Shape, Tree, TreeTally};
use crate::star::Group;
use crate::star::config::{NOWHERE, make_groups};
use crate::star::{BackLosses, Chains, Cut, FlowConfig, FlowState, GroupConfig, Kind, StarError};
use crate::traffic::{End, Flow};

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
    /// Name of the flow.
    pub name: String,
    /// Nodes of the flow's ends: of its hub, and of its terminal.
    pub ends: [u32; 2],
    /// End that the flow's data comes from.
    pub source: End,
    /// Protocol at both ends.
    pub flow: Box<dyn Flow>,
    /// Time at which the flow starts.
    pub start: Time,
    /// Time at which the flow stops, if it does.
    pub stop: Option<Time>,
    /// Octets that the links add to the `wire_len` of each packet.
    pub overhead: u16,
    /// `true` if each host learns of packets that its own queue, the first stage's, has no room for.
    pub local_congestion: bool,
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
    /// `true` if receivers know of the transmission when it opens.
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

impl<P: OnTree> Tree<P> {
    /// Makes a tree at time zero, in which the sender is about to open and the first flows are about to start.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: TreeConfig<P>) -> Result<Self, TreeError> {
        let root = config.sender.as_ref().map_or(0, |(node, _)| *node);
        let count = config.nodes.len() as u32;
        let flows_at = config.flows.iter().flat_map(|flow| flow.ends);
        if count == 0 || flows_at.chain([root]).any(|node| node >= count) {
            return Err(TreeError::Nowhere);
        }
        if let Some(flow) = config.flows.iter().find(|flow| flow.ends[0] == flow.ends[1]) {
            return Err(TreeError::NoWay { node: flow.ends[0] });
        }
        let shape = shape_of(count, &config.edges, root)?;
        let mut sole = config.flows.is_empty();
        let mut nodes: Vec<Node<P>> = Vec::with_capacity(config.nodes.len());
        let mut groups = Vec::new();
        let mut seats = Vec::new();
        for (number, node) in (0..).zip(config.nodes) {
            let mut made = Node::new(node.name);
            match node.role {
                Role::Plain => {}
                Role::Receivers(group) => {
                    let [port] = shape.ports_of(number) else {
                        return Err(TreeError::NoLeaf { node: number });
                    };
                    if port.place == NEAR || number == root && config.sender.is_some() {
                        return Err(TreeError::NoLeaf { node: number });
                    }
                    made.group = Some(groups.len() as u32);
                    groups.push(group);
                    seats.push(Seat { edge: port.edge, place: port.place });
                }
                Role::Element(element) => {
                    sole = false;
                    made.set_element(*element);
                }
            }
            nodes.push(made);
        }
        let receivers = receivers_of(&groups)?;
        match (&config.sender, receivers) {
            (Some(_), 0) => return Err(StarError::NoReceivers.into()),
            (None, 1..) => return Err(StarError::NoSender.into()),
            (None, 0) if config.flows.is_empty() => return Err(StarError::Nothing.into()),
            _ => {}
        }
        let mut groups = make_groups(groups)?;
        count_heard(&mut groups);
        let terminals =
            |node: u32| nodes[node as usize].group.map_or(1, |group| groups[group as usize].receivers());
        let edges =
            (0..).zip(config.edges).map(|(number, edge)| Edge::new(number, edge, terminals, P::KINDS.len()));
        let mut edges = edges.collect::<Result<Vec<_>, _>>()?;
        for (group, seat) in groups.iter().zip(&seats) {
            edges[seat.edge as usize].delays_differ(seat.place, group.delay);
        }
        let routes = config.sender.as_ref().map(|(_, sender)| sender.routes());
        let relays = routes.is_some_and(|routes| routes.answers.ip().is_multicast());
        let flow_ends = config.flows.iter().map(|flow| flow.ends).collect();
        let flows: Vec<FlowState> = config.flows.into_iter().map(state).collect();
        let unended = flows.iter().filter(|flow| flow.flow().has_end()).count() as u32;
        let something_ends = config.sender.is_some() || unended > 0;
        let endless = edges.iter().any(Edge::never_rests) || flows.iter().any(FlowState::is_endless);
        let cuts = RandomStream::derive(if let Cut::Random(seed) = config.cut { seed } else { 0 }, &[]);
        let mut routes = routes.unwrap_or(NOWHERE);
        if routes.source.ip() == IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED) {
            routes.source.set_ip(crate::star::hub_address());
        }
        Ok(Self {
            now: Time::ZERO,
            queue: EventQueue::default(),
            sender: config.sender.map(|(_, sender)| sender),
            seat: root,
            routes,
            sole: sole && !relays,
            wake: Time::NEVER,
            overhead: config.overhead,
            given: config.given,
            shape,
            nodes,
            edges,
            groups,
            seats,
            receivers,
            unended,
            stops_early: something_ends && endless,
            flows,
            flow_ends,
            under_way: 0,
            lookahead: config.lookahead,
            limit: config.limit,
            end: config.limit,
            cut: config.cut,
            cuts,
            began: None,
            ending: None,
            left: 0,
            tally: TreeTally::default(),
            lost: Vec::new(),
        })
    }
}

/// Makes every receiver with an engine of its own count the content that it hears.
fn count_heard<P: OnTree>(groups: &mut [Group<P>]) {
    for group in groups {
        if let Kind::Engines(stations) = &mut group.kind {
            for station in stations {
                station.heard = Some(Box::default());
            }
        }
    }
}

/// Returns the shape of a tree with these edges.
fn shape_of<M>(nodes: u32, edges: &[EdgeConfig<M>], root: u32) -> Result<Shape, TreeError> {
    let far: Vec<Vec<u32>> = edges.iter().map(|edge| edge.far.iter().map(|end| end.node).collect()).collect();
    let between = edges.iter().zip(&far);
    let between: Vec<_> =
        between.map(|(edge, far)| Between { near: edge.near, far, relayed: edge.relayed }).collect();
    Shape::new(nodes, &between, root)
}

fn receivers_of<P: OnTree>(groups: &[GroupConfig<P>]) -> Result<u32, StarError> {
    let receivers: u64 = groups.iter().map(|group| u64::from(group.receivers)).sum();
    u32::try_from(receivers).ok().filter(|&n| n < MOST_RECEIVERS).ok_or(StarError::TooMany)
}

/// Limit of receivers: the addresses behind those of receivers are multicast addresses.
const MOST_RECEIVERS: u32 = 0xE000_0000 - crate::star::config::FIRST_RECEIVER;

/// Returns the state of a flow without losses of its own; the edges have the losses.
fn state(flow: TreeFlow) -> FlowState {
    let TreeFlow { name, ends: _, source, flow, start, stop, overhead, local_congestion } = flow;
    FlowState::new(FlowConfig {
        name,
        source,
        flow,
        start,
        stop,
        overhead,
        local_congestion,
        forward_losses: Box::new(NoLoss),
        return_losses: Box::new(NoLoss),
    })
}
