//! Scenarios whose nodes and edges form a tree.
//!
//! | table | subject |
//! |---|---|
//! | top | `name`, `engines`, `time_limit` |
//! | `node` | the nodes, by `name`, each with its `kind` |
//! | `edge` | the edges, by `name`: `from`, `to`, and the `link` between, as a star's |
//! | `flow` | flows of other protocols between two nodes, `from` and `to` |
//! | `protocol` | the multicast transfer, as in a star |

mod read;

use farcast_core::engine::Message;
use farcast_core::{Span, Time};
use farcast_delivery::Protocol;
use farcast_scenario::Links;
use farcast_scenario::links::{ChannelLosses, DefaultQueue};
use farcast_scenario::receivers::Group;
use farcast_scenario::streams::{Purpose, Streams};

use super::traffic::TrafficSpec;
use super::transfer::{Transfer, TransferSpec, TreeTask, Visit};
use crate::outcome::Remedies;
use crate::star::{Cut, GroupConfig, StarError};
use crate::traffic::End;
use crate::tree::{EdgeConfig, EdgeShape, FarEnd, NodeConfig, Role, Shape, TreeConfig, TreeError, TreeFlow};

/// Kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Source,
    Receivers(u32),
    Host,
    Router,
    Element,
    Repairer,
}

/// Settings of a node.
#[derive(Clone, Debug)]
struct NodeSpec {
    name: String,
    kind: Kind,
}

/// Settings of an edge.
#[derive(Clone, Debug)]
struct EdgeSpec {
    name: String,
    near: u32,
    far: Vec<u32>,
    relayed: bool,
    /// Link of the edge. Where the forward delay is constant, the link is without its forward direction.
    links: Links,
    /// Delay of the forward direction, where it is constant.
    delay: Option<Span>,
}

/// Scenario whose nodes and edges form a tree.
#[derive(Clone, Debug)]
pub struct TreeScenario {
    name: String,
    engines: bool,
    time_limit: Span,
    nodes: Vec<NodeSpec>,
    edges: Vec<EdgeSpec>,
    flows: Vec<([u32; 2], TrafficSpec)>,
    transfer: Option<TransferSpec>,
    /// Slowest link, which default rates follow from.
    slowest: Links,
    default_queues: Vec<DefaultQueue>,
}

impl TreeScenario {
    /// Returns the scenario's name; empty if the file has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the queues that got a default limit because the scenario has none.
    pub fn default_queues(&self) -> &[DefaultQueue] {
        &self.default_queues
    }

    /// Returns the number of receivers.
    pub fn receivers(&self) -> u32 {
        self.nodes.iter().map(NodeSpec::receivers).sum()
    }

    /// Returns the number of flows.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Estimates the peak memory of a replication in octets.
    pub fn memory(&self) -> u64 {
        let (transfer, groups) = (self.transfer.as_ref(), groups(&self.nodes));
        super::memory::of(self.flows.len(), transfer, &groups, &self.slowest, self.engines)
    }

    /// Returns the keys that help against an incomplete transfer; `None` if there is no transfer.
    pub fn remedies(&self) -> Option<&'static Remedies> {
        self.transfer.as_ref().map(TransferSpec::remedies)
    }

    /// Returns the time at which a replication stops.
    pub fn time_limit(&self) -> Time {
        Time::ZERO + self.time_limit
    }

    /// Returns the scenario with an engine for each receiver, packet by packet. It is slower, nothing is merged, and
    /// each receiver counts the content that it hears.
    #[must_use]
    pub fn with_engines(self) -> Self {
        Self { engines: true, ..self }
    }

    /// Runs `task` on the configuration of replication number `replication`, whose random numbers follow from `seed`.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn visit<T: TreeTask>(&self, seed: u64, replication: u64, task: T) -> Result<T::Output, TreeError> {
        let visitor = World { scenario: self, seed, replication, task };
        TransferSpec::visit(self.transfer.as_ref(), visitor)
    }

    fn world<T: Transfer>(
        &self,
        transfer: Option<&T>,
        seed: u64,
        replication: u64,
    ) -> Result<TreeConfig<T::Protocol>, TreeError> {
        let streams = Streams::new(seed, replication);
        let source = self.nodes.iter().position(|node| node.kind == Kind::Source).map(|at| at as u32);
        let receivers = self.nodes.iter().map(NodeSpec::receivers).sum();
        let between: Vec<_> = self.edges.iter().map(EdgeSpec::between).collect();
        let shape = Shape::new(self.nodes.len() as u32, &between, source.unwrap_or(0))?;
        let nodes = (0..).zip(&self.nodes).map(|(number, node)| {
            let role = self.role(number, node, transfer, &shape, streams)?;
            Ok(NodeConfig { name: node.name.clone(), role })
        });
        let least = |edge: &EdgeSpec| {
            edge.delay.unwrap_or_else(|| edge.links.forward.least_delay()) + edge.links.back.least_delay()
        };
        Ok(TreeConfig {
            sender: transfer.map(Transfer::sender).transpose()?.map(|sender| (source.unwrap_or(0), sender)),
            nodes: nodes.collect::<Result<_, StarError>>()?,
            edges: self.edges.iter().map(|edge| self.edge(edge, streams, replication)).collect(),
            flows: self.flows(receivers, streams),
            overhead: transfer.map_or(0, Transfer::overhead),
            seal: transfer.and_then(Transfer::seal),
            given: transfer.is_some_and(Transfer::given),
            lookahead: self.edges.iter().map(least).min().unwrap_or_default(),
            limit: self.time_limit(),
            cut: Cut::Whole,
        })
    }

    /// Returns the flows. Their losses are those of the edges.
    fn flows(&self, receivers: u32, streams: Streams) -> Vec<TreeFlow> {
        let flow = |(number, (ends, spec)): (u32, &([u32; 2], TrafficSpec))| TreeFlow {
            ends: *ends,
            flow: spec.make(number, receivers, &self.slowest, streams),
        };
        (0..).zip(&self.flows).map(flow).collect()
    }

    fn role<T: Transfer>(
        &self,
        number: u32,
        node: &NodeSpec,
        transfer: Option<&T>,
        shape: &Shape,
        streams: Streams,
    ) -> Result<Role<T::Protocol>, StarError> {
        let seed = streams.seed(named(&[&node.name]), Purpose::Waits);
        match (node.kind, transfer) {
            (Kind::Receivers(receivers), Some(transfer)) => {
                let edge = self.edges.iter().find(|edge| edge.far.contains(&number));
                let Some(edge) = edge else { return Err(StarError::NoReceivers) };
                Ok(Role::Receivers(GroupConfig {
                    receivers,
                    kind: transfer.receivers(receivers, seed, self.engines || receivers == 1),
                    losses: self.losses(edge, number, receivers, streams),
                    delay: Span::ZERO,
                    data_only: edge.links.data_only,
                }))
            }
            (Kind::Element | Kind::Repairer, Some(transfer)) => {
                let addresses: Vec<_> = shape.addresses(number).collect();
                let element = transfer.element(&addresses, node.kind == Kind::Repairer, seed)?;
                Ok(Role::Element(Box::new(element)))
            }
            _ => Ok(Role::Plain),
        }
    }

    /// Returns the loss process of packets to the receivers, or to the one node, at a far end of an edge.
    fn losses(
        &self,
        edge: &EdgeSpec,
        node: u32,
        receivers: u32,
        streams: Streams,
    ) -> Box<dyn farcast_core::Losses> {
        let name = &self.nodes[node as usize].name;
        let stream = streams.of(named(&[&edge.name, name]), Purpose::Losses);
        ChannelLosses { losses: &edge.links.losses, first: 0, receivers, stream }.make()
    }

    fn edge<M: Message + Send + Sync + 'static>(
        &self,
        edge: &EdgeSpec,
        streams: Streams,
        replication: u64,
    ) -> EdgeConfig<M> {
        let receivers = |node: &u32| self.nodes[*node as usize].receivers();
        let terminals = edge.far.iter().map(|node| receivers(node).max(1)).sum();
        // Every edge has streams of its own, which do not depend on other edges.
        let own = Streams::new(streams.seed(named(&[&edge.name]), Purpose::Stage), replication);
        let chains = edge.links.chains(terminals, false, own);
        let far = edge.far.iter().map(|node| {
            let lossless = edge.links.losses.per().is_some_and(|per| per.get() == 0.0);
            let alone = receivers(node) <= 1;
            let back = || {
                let name = &self.nodes[*node as usize].name;
                let stream = streams.of(named(&[&edge.name, name]), Purpose::ReturnLosses);
                ChannelLosses { losses: &edge.links.back_losses, first: 0, receivers: 1, stream }.make()
            };
            FarEnd {
                node: *node,
                losses: (receivers(node) == 0 && !lossless).then(|| self.losses(edge, *node, 1, streams)),
                return_losses: alone.then(back),
            }
        });
        let constant = edge.links.back.constant_delay().filter(|_| chains.returning() == 0);
        EdgeConfig {
            name: edge.name.clone(),
            near: edge.near,
            far: far.collect(),
            chains,
            delays: [edge.delay, constant],
            return_losses: edge.links.return_losses(terminals, own).map(ChannelLosses::make),
            relayed: edge.relayed,
        }
    }
}

impl NodeSpec {
    fn receivers(&self) -> u32 {
        if let Kind::Receivers(receivers) = self.kind { receivers } else { 0 }
    }
}

impl EdgeSpec {
    fn between(&self) -> EdgeShape<'_> {
        EdgeShape { near: self.near, far: &self.far, relayed: self.relayed }
    }
}

/// Visitor that runs a task on a tree.
struct World<'a, T> {
    scenario: &'a TreeScenario,
    seed: u64,
    replication: u64,
    task: T,
}

impl<K: TreeTask> Visit for World<'_, K> {
    type Output = Result<K::Output, TreeError>;

    fn visit<T: Transfer>(
        self,
        transfer: Option<&T>,
        codec: <T::Protocol as Protocol>::Codec,
    ) -> Self::Output {
        Ok(self.task.on(self.scenario.world(transfer, self.seed, self.replication)?, codec))
    }
}

/// Returns the number of an entity, for the names of random streams. It is a 64-bit FNV-1a hash of the entity's names,
/// so that an additional entity changes no other's number.
fn named(names: &[&str]) -> u64 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let octets = names.iter().flat_map(|name| name.bytes().chain([0]));
    octets.fold(OFFSET, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(PRIME))
}

/// End that a flow's data comes from. Data goes from the flow's first node to its second.
const SOURCE: End = End::Hub;

/// Returns the groups of receivers at `nodes`.
fn groups(nodes: &[NodeSpec]) -> Vec<Group> {
    let counts = nodes.iter().map(NodeSpec::receivers).filter(|&receivers| receivers > 0);
    counts.map(|receivers| Group { receivers, delay: Span::ZERO, losses: None }).collect()
}
