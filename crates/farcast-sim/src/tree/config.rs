//! What a tree is made of.

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

/// Who is at a node.
pub enum Role<P: OnTree> {
    /// Nobody but ends of flows and the sender: it sends on what passes.
    Plain,
    /// Receivers: one, or several that are alike.
    Receivers(GroupConfig<P>),
    /// An element.
    Element(Box<P::Element>),
}

/// A node.
pub struct NodeConfig<P: OnTree> {
    /// What it is called.
    pub name: String,
    /// Who is there.
    pub role: Role<P>,
}

/// A far end of an edge.
pub struct FarEnd {
    /// The node there.
    pub node: u32,
    /// What it loses of what comes to it, a process for one receiver; receivers have processes of their own. Without,
    /// it loses nothing.
    pub losses: Option<Box<dyn Losses>>,
    /// What is lost of what it sends, a process for one receiver; without, the edge's own losses decide.
    pub return_losses: Option<Box<dyn Losses>>,
}

/// An edge.
pub struct EdgeConfig<M> {
    /// What it is called.
    pub name: String,
    /// The node at the near end.
    pub near: u32,
    /// Those at the far ends.
    pub far: Vec<FarEnd>,
    /// The stages: forward leads from the near end to the far ones. Each receiver of a far end is a terminal, every
    /// other far end is one, in their order.
    pub chains: Chains<Packet<M>>,
    /// What the ways forward and back take, where they are no stages: then every packet takes just that.
    pub delays: [Option<Span>; 2],
    /// What is lost behind the way back, by terminal.
    pub return_losses: BackLosses,
    /// Whether far ends hear each other only when the near one sends on what it has heard.
    pub relayed: bool,
}

/// A flow between two nodes.
pub struct TreeFlow {
    /// What it is called.
    pub name: String,
    /// The nodes at which its ends are: that which is its hub, and that which is its terminal.
    pub ends: [u32; 2],
    /// The end that its data comes from.
    pub source: End,
    /// Both ends.
    pub flow: Box<dyn Flow>,
    /// When it starts.
    pub start: Time,
    /// When it stops, if it does not go on.
    pub stop: Option<Time>,
    /// Octets of a packet on the links besides its `wire_len`.
    pub overhead: u16,
    /// Whether each of its hosts is told what its own queue, the first stage's, has no room for.
    pub local_congestion: bool,
}

/// Everything that a [`Tree`] is made of.
pub struct TreeConfig<P: OnTree> {
    /// The sender of the multicast transfer, if there is one, and its node.
    pub sender: Option<(u32, P::Sender)>,
    /// The nodes.
    pub nodes: Vec<NodeConfig<P>>,
    /// The edges.
    pub edges: Vec<EdgeConfig<P::Message>>,
    /// Traffic beside the transfer, or alone.
    pub flows: Vec<TreeFlow>,
    /// Octets of a datagram of the transfer on the links besides its `wire_len`.
    pub overhead: u16,
    /// Whether receivers know of the transmission when it opens.
    pub given: bool,
    /// No answer to what is said now can come to who said it before this has passed. Too short only costs time.
    pub lookahead: Span,
    /// Where the replication stops.
    pub limit: Time,
    /// How runs are cut.
    pub cut: Cut,
}

/// Why a tree cannot be made. Nodes and edges are named by their numbers, from 0.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// What would be wrong with a star as well.
    #[error(transparent)]
    Star(#[from] StarError),
    /// There are two ways to a node, or an edge meets one twice.
    #[error("edge {edge} is a second way to node {node}")]
    Cycle {
        /// The edge.
        edge: u32,
        /// The node.
        node: u32,
    },
    /// No way leads to a node.
    #[error("no way leads to node {node}")]
    Alone {
        /// The node.
        node: u32,
    },
    /// An edge leads nowhere.
    #[error("edge {edge} has no far end")]
    NoFarEnd {
        /// The edge.
        edge: u32,
    },
    /// An edge names a node that is not there.
    #[error("edge {edge} names a node that there is not")]
    NoSuchNode {
        /// The edge.
        edge: u32,
    },
    /// Receivers are at the near end of an edge, at several edges, or at none.
    #[error("receivers stand at the far end of one edge, and node {node} does not")]
    NoLeaf {
        /// The node.
        node: u32,
    },
    /// A flow or the sender is at a node that is not there.
    #[error("a flow or the sender is at a node that there is not")]
    Nowhere,
    /// Both ends of a flow are at one node.
    #[error("both ends of a flow are at node {node}")]
    NoWay {
        /// The node.
        node: u32,
    },
    /// The way back of an edge has stages and a delay without, or the way forward has.
    #[error("a way of edge {edge} has stages and a delay without stages")]
    TwoWays {
        /// The edge.
        edge: u32,
    },
    /// The addresses of ports end.
    #[error("at most 2,097,152 ports can be simulated")]
    TooManyPorts,
}

impl<P: OnTree> Tree<P> {
    /// A tree at time zero, in which the sender is about to open and the first flows to start.
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

/// Every receiver with an engine of its own counts what it hears of content.
fn count_heard<P: OnTree>(groups: &mut [Group<P>]) {
    for group in groups {
        if let Kind::Engines(stations) = &mut group.kind {
            for station in stations {
                station.heard = Some(Box::default());
            }
        }
    }
}

/// The shape of a tree with these edges.
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

/// The addresses behind those of receivers are those of groups.
const MOST_RECEIVERS: u32 = 0xE000_0000 - crate::star::config::FIRST_RECEIVER;

/// A flow as it stands; what it loses is the edges' business.
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
