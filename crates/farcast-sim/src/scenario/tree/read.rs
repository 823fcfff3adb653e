//! Reader of tree scenarios.

use farcast_core::Span;
use farcast_core::units::BitRate;
use farcast_scenario::links::LinkSpec;
use farcast_scenario::receivers;
use farcast_scenario::{Document, DocumentError, Links, Reader};

use super::super::traffic::TrafficSpec;
use super::super::transfer::TransferSpec;
use super::{EdgeSpec, Kind, NodeSpec, SOURCE, TreeScenario, groups};

/// Maximum number of nodes of a scenario.
const MOST_NODES: usize = 1_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Source,
    Receiver,
    Host,
    Router,
    Element,
    Repairer,
}

const WORDS: [(&str, Word); 6] = [
    ("source", Word::Source),
    ("receiver", Word::Receiver),
    ("host", Word::Host),
    ("router", Word::Router),
    ("element", Word::Element),
    ("repairer", Word::Repairer),
];

/// Nodes while edges are read, with their connected components.
struct Nodes<'d> {
    specs: Vec<NodeSpec>,
    tables: Vec<Reader<'d>>,
    /// Sorted names, each with the node's number.
    names: Vec<(String, u32)>,
    /// Parent of each node in a disjoint-set forest of connected nodes; a root is its own parent.
    with: Vec<u32>,
    /// Number of edges at each node.
    edges: Vec<u32>,
}

impl TreeScenario {
    /// Returns `true` if a document is a scenario of a tree, and not of a star.
    pub fn is_one(document: &Document) -> bool {
        let mut top = document.root();
        top.holds("node") || top.holds("edge")
    }

    /// Reads a scenario. Queues without a limit in the scenario get one by [`Links::default_queues`], each edge's from
    /// its own round trip.
    ///
    /// # Errors
    /// The first mistake in the document: file, line, key, the mistake, and allowed values.
    pub fn read(document: &Document) -> Result<Self, DocumentError> {
        let mut top = document.root();
        let name = top.text_or("name", String::new())?;
        let engines = top.flag_or("engines", false)?;
        let time_limit = top.span_or("time_limit", Span::from_secs(24 * 3600))?;
        if time_limit.is_zero() {
            return Err(top.refuse("time_limit", "nothing happens in no time", "a time above zero"));
        }
        let mut nodes = Nodes::read(&mut top)?;
        let mut edges = Vec::new();
        let mut default_queues = Vec::new();
        let mut slowest: Option<(u64, Links)> = None;
        for mut table in top.tables("edge")? {
            let (mut links, spec) = nodes.edge(&mut table)?;
            table.finish()?;
            for mut queue in links.default_queues(Span::ZERO) {
                queue.stage = format!("{}.{}", spec.name, queue.stage);
                queue.key = format!("edge.{}.{}", spec.name, queue.key);
                default_queues.push(queue);
            }
            let rate = rate(&links.forward).map_or(u64::MAX, BitRate::as_bps);
            if slowest.as_ref().is_none_or(|(least, _)| rate < *least) {
                slowest = Some((rate, links.clone()));
            }
            edges.extend(spec.made(links, &nodes.specs));
        }
        let Some((_, slowest)) = slowest else {
            return Err(top.refuse("edge", "it is empty", "at least one [[edge]]"));
        };
        let flows = nodes.flows(&mut top, &slowest)?;
        let groups = groups(&nodes.specs);
        let transfer =
            if groups.is_empty() { None } else { Some(TransferSpec::read(&mut top, &groups, &slowest)?) };
        let is_element = |node: &NodeSpec| matches!(node.kind, Kind::Element | Kind::Repairer);
        if transfer.as_ref().is_some_and(TransferSpec::is_sealed) && nodes.specs.iter().any(is_element) {
            let why = "elements on the way cannot read what is sealed";
            return Err(top.refuse("protocol", why, "no \"sealed\", or routers in place of elements"));
        }
        let specs = nodes.finish(transfer.as_ref())?;
        if transfer.is_none() && flows.is_empty() {
            let wrong = "nothing is sent: there are neither receivers nor flows";
            return Err(top.refuse("node", wrong, "a source and a receiver, or [[flow]]"));
        }
        top.finish()?;
        Ok(Self { name, engines, time_limit, nodes: specs, edges, flows, transfer, slowest, default_queues })
    }
}

/// Returns the rate of a link, if it has one.
fn rate(link: &LinkSpec) -> Option<BitRate> {
    if let LinkSpec::Pipe(pipe) = link { pipe.config.rate } else { None }
}

/// Edge as read from its table. With `each`, it stands for several edges.
struct Read {
    name: String,
    near: u32,
    far: Vec<u32>,
    each: bool,
    relayed: bool,
}

impl Read {
    /// Returns the edges that the table stands for.
    fn made(self, mut links: Links, nodes: &[NodeSpec]) -> Vec<EdgeSpec> {
        let delay = links.forward.constant_delay().filter(|_| links.stages.is_empty());
        if delay.is_some()
            && let LinkSpec::Pipe(pipe) = &mut links.forward
        {
            pipe.config = farcast_link::PipeConfig::default();
        }
        let Self { name, near, far, each, relayed } = self;
        let edge = |name, far| EdgeSpec { name, near, far, relayed, links: links.clone(), delay };
        if !each {
            return vec![edge(name, far)];
        }
        let one = |node: u32| edge(format!("{name}.{}", nodes[node as usize].name), vec![node]);
        far.into_iter().map(one).collect()
    }
}

impl<'d> Nodes<'d> {
    fn read(top: &mut Reader<'d>) -> Result<Self, DocumentError> {
        let mut tables = top.tables("node")?;
        if tables.len() > MOST_NODES {
            return Err(top.refuse("node", "there are too many nodes", format!("at most {MOST_NODES}")));
        }
        let mut specs = Vec::new();
        let mut left = receivers::MOST;
        for table in &mut tables {
            let name = table.text("name")?;
            let kind = match table.choice("kind", &WORDS)? {
                Word::Receiver => {
                    if left == 0 {
                        let allowed = format!("at most {}", receivers::MOST);
                        return Err(table.refuse(
                            "receivers",
                            "there are too many receivers in all",
                            allowed,
                        ));
                    }
                    let receivers = table.integer_or("receivers", 1..=left, 1)?;
                    left -= receivers;
                    Kind::Receivers(receivers)
                }
                Word::Source if specs.iter().any(|spec: &NodeSpec| spec.kind == Kind::Source) => {
                    return Err(table.refuse("kind", "there is a source already", "one source"));
                }
                Word::Source => Kind::Source,
                Word::Host => Kind::Host,
                Word::Router => Kind::Router,
                Word::Element => Kind::Element,
                Word::Repairer => Kind::Repairer,
            };
            specs.push(NodeSpec { name, kind });
        }
        let mut names: Vec<_> = specs.iter().zip(0..).map(|(spec, at)| (spec.name.clone(), at)).collect();
        names.sort_unstable();
        let count = specs.len() as u32;
        Ok(Self { specs, tables, names, with: (0..count).collect(), edges: vec![0; count as usize] })
    }

    /// Returns the node of this name, which `key` of `table` holds.
    fn find(&self, table: &Reader<'_>, key: &'static str, name: &str) -> Result<u32, DocumentError> {
        let found = self.names.binary_search_by(|(other, _)| other.as_str().cmp(name));
        found
            .map(|at| self.names[at].1)
            .map_err(|_| table.refuse(key, format!("there is no node {name:?}"), "the name of a [[node]]"))
    }

    /// Returns the node that represents all nodes connected with a node.
    fn root(&mut self, mut node: u32) -> u32 {
        while self.with[node as usize] != node {
            let above = self.with[self.with[node as usize] as usize];
            self.with[node as usize] = above;
            node = above;
        }
        node
    }

    fn edge(&mut self, table: &mut Reader<'_>) -> Result<(Links, Read), DocumentError> {
        let name = table.text("name")?;
        let from = table.text("from")?;
        let near = self.find(table, "from", &from)?;
        if matches!(self.specs[near as usize].kind, Kind::Receivers(_)) {
            let wrong = format!("{from:?} is a receiver, and these are at the far ends of edges");
            return Err(table.refuse("from", wrong, "the receiver among to"));
        }
        let names = table.list_of_texts("to")?;
        if names.is_empty() {
            return Err(table.refuse("to", "the edge leads nowhere", "the names of one node or more"));
        }
        let each = table.flag_or("each", false)?;
        let relayed = table.flag_or("relayed", false)?;
        let mut far = Vec::with_capacity(names.len());
        self.edges[near as usize] += if each { names.len() as u32 } else { 1 };
        for other in &names {
            let node = self.find(table, "to", other)?;
            let (a, b) = (self.root(near), self.root(node));
            if a == b {
                let wrong = format!("there is a way from {from:?} to {other:?} already");
                return Err(table.refuse("to", wrong, "one way between two nodes: edges form a tree"));
            }
            self.with[b as usize] = a;
            self.edges[node as usize] += 1;
            if matches!(self.specs[node as usize].kind, Kind::Receivers(_)) && self.edges[node as usize] > 1 {
                let wrong = format!("{other:?} is a receiver, and is at another edge already");
                return Err(table.refuse("to", wrong, "one edge for each receiver"));
            }
            far.push(node);
        }
        let symmetric = table.flag_or("symmetric", false)?;
        let mut links = Links::read(table)?;
        if symmetric {
            if !links.back.is_nothing() {
                let wrong = "link.return says what the way back is";
                return Err(table.refuse("symmetric", wrong, "link.forward alone, or no symmetric"));
            }
            if !matches!(links.forward, LinkSpec::Pipe(_)) {
                let wrong = "only a pipe is the same in both directions";
                return Err(table.refuse("symmetric", wrong, "link.return as well"));
            }
            links.back = links.forward.clone();
        }
        Ok((links, Read { name, near, far, each, relayed }))
    }

    /// Reads the flows, if there are any.
    fn flows(
        &self,
        top: &mut Reader<'_>,
        links: &Links,
    ) -> Result<Vec<([u32; 2], TrafficSpec)>, DocumentError> {
        let mut flows = Vec::new();
        for mut table in top.optional_tables("flow")?.unwrap_or_default() {
            let (from, to) = (table.text("from")?, table.text("to")?);
            let ends = [self.find(&table, "from", &from)?, self.find(&table, "to", &to)?];
            if ends[0] == ends[1] {
                return Err(table.refuse("to", "both ends are at one node", "another node"));
            }
            flows.push((ends, TrafficSpec::read_from(table, SOURCE, links)?));
        }
        Ok(flows)
    }

    /// Checks the positions of all nodes, and returns the nodes.
    fn finish(mut self, transfer: Option<&TransferSpec>) -> Result<Vec<NodeSpec>, DocumentError> {
        let source = self.specs.iter().position(|spec| spec.kind == Kind::Source);
        for number in 0..self.specs.len() as u32 {
            let (all, own) = (self.root(source.unwrap_or(0) as u32), self.root(number));
            let (spec, table) = (&self.specs[number as usize], &self.tables[number as usize]);
            if self.edges[number as usize] == 0 {
                return Err(table.refuse("name", "no edge leads to this node", "an [[edge]] that does"));
            }
            if all != own {
                let wrong = "no way leads from the other nodes to this one";
                return Err(table.refuse("name", wrong, "edges that join all nodes to one tree"));
            }
            let several = self.edges[number as usize] > 1;
            match spec.kind {
                Kind::Host if several => {
                    let wrong = "a host has one edge, and this one has several";
                    return Err(table.refuse("kind", wrong, "a router"));
                }
                Kind::Receivers(_) if source.is_none() => {
                    let wrong = "there are receivers, and nobody sends to them";
                    return Err(table.refuse("kind", wrong, "a source as well"));
                }
                Kind::Source if transfer.is_none() => {
                    let wrong = "there is a source, and nobody receives";
                    return Err(table.refuse("kind", wrong, "a receiver as well"));
                }
                Kind::Element | Kind::Repairer if !transfer.is_some_and(TransferSpec::has_elements) => {
                    let wrong = "the protocol of the transfer has no elements";
                    return Err(table.refuse("kind", wrong, "a router"));
                }
                _ => {}
            }
        }
        self.tables.into_iter().try_for_each(Reader::finish)?;
        Ok(self.specs)
    }
}
