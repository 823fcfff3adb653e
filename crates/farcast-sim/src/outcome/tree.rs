//! Outcomes of replications in a tree.

use farcast_delivery::{ElementEngine as _, Figure};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::transfer::by_name;
use super::{Carried, Replication};
use crate::traffic::End;
use crate::tree::{Edge, KindCount, OnTree, Tree};
use crate::world::{Group, Kind, ReceivedContent};

/// Outcome of one replication in a tree.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TreeReplication {
    /// Outcome that a star has as well. Forward counts packets from the near ends of edges, return those from the far
    /// ends.
    #[serde(flatten)]
    pub common: Replication,
    /// Outcomes of the edges, in the order of the scenario.
    pub edges: Vec<EdgeOutcome>,
    /// Outcomes of the nodes with receivers, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeOutcome>,
    /// Outcomes of the elements, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<ElementOutcome>,
    /// Packets that reached a node with their address where nothing takes them, or whose address no node has.
    pub unheard: u64,
    /// Packets whose time to live ended before they reached their address.
    pub expired: u64,
}

/// Traffic of an edge.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EdgeOutcome {
    /// Name of the edge.
    pub name: String,
    /// Traffic from the near end.
    pub forward: EdgeDirection,
    /// Traffic from the far ends.
    #[serde(rename = "return")]
    pub back: EdgeDirection,
}

/// Traffic of one direction of an edge.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EdgeDirection {
    /// Packets that entered, by kind, without kinds that have none.
    #[serde(serialize_with = "named")]
    pub packets: Vec<(&'static str, u64)>,
    /// Octets of these packets with all headers.
    #[serde(serialize_with = "named")]
    pub octets: Vec<(&'static str, u64)>,
    /// Packets that a queue or a limit dropped.
    pub dropped: u64,
    /// Packets that were lost behind the edge. Packets that receivers lose are not counted, because receivers have loss
    /// processes of their own.
    pub lost: u64,
    /// Time in seconds for which the channel was in use.
    pub airtime_s: f64,
}

impl EdgeDirection {
    /// Returns the number of packets of a kind that entered.
    pub fn packets_of(&self, kind: &str) -> u64 {
        self.packets.iter().find(|(name, _)| *name == kind).map_or(0, |(_, count)| *count)
    }
}

fn named<S: Serializer>(counts: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().copied())
}

/// Outcome of the receivers at a node.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NodeOutcome {
    /// Name of the node.
    pub name: String,
    /// Number of receivers.
    pub receivers: u32,
    /// Receivers that never had everything.
    pub incomplete: u32,
    /// Time in seconds at which the last of the receivers had everything, if all have.
    pub completion_time_s: Option<f64>,
    /// NAKs that the receivers sent.
    pub naks: u64,
    /// Sum of the content that the receivers heard, where they have engines of their own.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub heard: Option<HeardOutcome>,
}

/// Content that receivers heard.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct HeardOutcome {
    /// Octets of content that were new.
    pub useful_octets: u64,
    /// Goodput of one receiver in bit/s: the mean new content, divided by the time from the beginning of data until all
    /// receivers of the node were complete, or until the end of the replication.
    pub goodput_bit_per_s: f64,
    /// Octets of content that brought nothing new.
    pub useless_octets: u64,
    /// Segments that came behind a later segment, and so filled gaps.
    pub repairs: u64,
    /// Mean time from the detection of a gap until it was filled.
    pub repair_latency_mean_s: Option<f64>,
    /// Longest time from the detection of a gap until it was filled.
    pub repair_latency_max_s: f64,
}

/// Figures of an element. It is serialized as its node's name, then its figures by name.
#[derive(Clone, PartialEq, Debug)]
pub struct ElementOutcome {
    /// Name of the element's node.
    pub name: String,
    /// Figures that the element reports.
    pub figures: Vec<Figure>,
}

impl Serialize for ElementOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Figures<'a>(#[serde(serialize_with = "by_name")] &'a [Figure]);
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("figures", &Figures(&self.figures))?;
        map.end()
    }
}

impl AsRef<Replication> for TreeReplication {
    fn as_ref(&self) -> &Replication {
        &self.common
    }
}

impl TreeReplication {
    /// Returns the outcome of `tree`, which has run.
    pub fn of<P: OnTree>(index: u64, tree: &Tree<'_, P>, per_receiver: bool) -> Self {
        Self {
            common: Replication::of(index, tree, per_receiver),
            edges: tree.edges().iter().map(edge::<P>).collect(),
            nodes: (0..tree.groups().len()).map(|group| node(tree, group)).collect(),
            elements: elements(tree),
            unheard: tree.tally().unheard,
            expired: tree.tally().expired,
        }
    }

    /// Returns the edge of this name.
    pub fn edge(&self, name: &str) -> Option<&EdgeOutcome> {
        self.edges.iter().find(|edge| edge.name == name)
    }

    /// Returns the receivers at the node of this name.
    pub fn node(&self, name: &str) -> Option<&NodeOutcome> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

fn edge<P: OnTree>(edge: &Edge<P::Message>) -> EdgeOutcome {
    let direction = |to| {
        let kinds = P::KINDS.iter().copied().chain(["flow", "seal"]);
        let counts: Vec<(&'static str, KindCount)> =
            kinds.zip(edge.counts(to).iter().copied()).filter(|(_, count)| count.packets > 0).collect();
        let totals = Carried::of(edge.totals(to));
        EdgeDirection {
            packets: counts.iter().map(|(kind, count)| (*kind, count.packets)).collect(),
            octets: counts.iter().map(|(kind, count)| (*kind, count.octets)).collect(),
            dropped: totals.dropped,
            lost: edge.lost(to),
            airtime_s: totals.airtime_s,
        }
    };
    EdgeOutcome { name: edge.name().to_owned(), forward: direction(End::Terminal), back: direction(End::Hub) }
}

fn node<P: OnTree>(tree: &Tree<'_, P>, number: usize) -> NodeOutcome {
    let group = &tree.groups()[number];
    let last = (0..group.receivers()).map(|n| group.completed(n)).max();
    let done = last.filter(|at| *at != farcast_core::Time::NEVER);
    let until = done.unwrap_or_else(|| tree.end());
    let seconds = tree.began().map_or(0.0, |began| until.since(began).as_secs_f64());
    NodeOutcome {
        name: tree.name(tree.node_of(number)).to_owned(),
        receivers: group.receivers(),
        incomplete: group.incomplete(),
        completion_time_s: done.map(farcast_core::Time::as_secs_f64),
        naks: group.naks(),
        heard: heard(group, seconds),
    }
}

fn heard<P: OnTree>(group: &Group<P>, seconds: f64) -> Option<HeardOutcome> {
    let Kind::Engines(stations) = &group.kind else { return None };
    let each: Vec<&ReceivedContent> =
        stations.iter().filter_map(|station| station.content.as_deref()).collect();
    if each.is_empty() {
        return None;
    }
    let useful: u64 = each.iter().map(|one| one.useful_octets).sum();
    let repairs: u64 = each.iter().map(|one| one.repairs).sum();
    let latency: f64 = each.iter().map(|one| one.repair_time.as_secs_f64()).sum();
    let longest = each.iter().map(|one| one.longest_repair).max().unwrap_or_default();
    let per_receiver = useful as f64 * 8.0 / each.len() as f64;
    Some(HeardOutcome {
        useful_octets: useful,
        goodput_bit_per_s: if seconds > 0.0 { per_receiver / seconds } else { 0.0 },
        useless_octets: each.iter().map(|one| one.useless_octets).sum(),
        repairs,
        repair_latency_mean_s: (repairs > 0).then(|| latency / repairs as f64),
        repair_latency_max_s: longest.as_secs_f64(),
    })
}

fn elements<P: OnTree>(tree: &Tree<'_, P>) -> Vec<ElementOutcome> {
    let with = |node: u32| {
        let figures = tree.element(node)?.figures();
        Some(ElementOutcome { name: tree.name(node).to_owned(), figures })
    };
    (0..tree.shape().nodes()).filter_map(with).collect()
}
