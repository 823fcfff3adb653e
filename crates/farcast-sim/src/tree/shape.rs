//! Who stands where: nodes, edges, and the ways between them.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use super::TreeError;

/// An end of an edge: the near one, or one of the far ones by its number.
pub(super) const NEAR: u32 = u32::MAX;
/// Every end of an edge, or every node.
pub(super) const EVERYONE: u32 = u32::MAX - 1;
/// The root has no edge above it.
const NONE: u32 = u32::MAX;

/// The address of the first port; the others follow, node by node. They end where those of receivers begin.
const FIRST_PORT: u32 = 0x0A20_0000;
/// Ports that a tree may have.
const MOST_PORTS: usize = 0x20_0000;

/// Where a node is at an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Port {
    pub(super) edge: u32,
    /// [`NEAR`], or the number of the far end.
    pub(super) place: u32,
}

/// A step from a node to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) edge: u32,
    /// Where the step begins.
    pub(super) from: u32,
    /// Where it leads.
    pub(super) to: u32,
}

/// A node below another.
#[derive(Clone, Copy, Debug)]
struct Child {
    /// Its number in the order of the walk.
    enter: u32,
    step: Step,
}

#[derive(Clone, Debug)]
struct Place {
    /// Its ports, in the list of all.
    ports: [u32; 2],
    /// Its number in a walk from the root that takes what is below a node directly after it, and the number behind the
    /// last below it.
    walk: [u32; 2],
    /// Those below it, in the list of all, in the order of the walk.
    below: [u32; 2],
    /// The step to the node above it.
    above: Step,
    above_node: u32,
}

/// The tree: it is one, or there is none of these.
#[derive(Clone, Debug)]
pub struct Shape {
    places: Vec<Place>,
    ports: Vec<Port>,
    below: Vec<Child>,
    edges: Vec<(u32, Vec<u32>)>,
    /// Edges on which far ends hear each other only by way of the near one.
    relays: Vec<bool>,
    /// Whether the near end of an edge is the one nearest to the root.
    outward: Vec<bool>,
}

/// An edge: between which nodes, and who hears whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Between<'a> {
    /// The node at the near end.
    pub near: u32,
    /// Those at the far ends.
    pub far: &'a [u32],
    /// Whether far ends hear each other only when the near one sends on what it has heard, as behind a satellite's hub;
    /// else all hear all, as on a LAN.
    pub relayed: bool,
}

impl Shape {
    /// So many nodes with these edges, whose ways are looked for from `root`.
    ///
    /// # Errors
    /// It is no tree: [`TreeError::Cycle`], [`TreeError::Alone`], or an edge without a far end, with a number that no
    /// node has, or with more ports in all than there are addresses.
    pub fn new(nodes: u32, edges: &[Between<'_>], root: u32) -> Result<Self, TreeError> {
        let mut at: Vec<Vec<Port>> = vec![Vec::new(); nodes as usize];
        for (number, edge) in (0..).zip(edges) {
            if edge.far.is_empty() {
                return Err(TreeError::NoFarEnd { edge: number });
            }
            let far = (0..).zip(edge.far.iter().copied());
            for (place, node) in std::iter::once((NEAR, edge.near)).chain(far) {
                let ports = at.get_mut(node as usize).ok_or(TreeError::NoSuchNode { edge: number })?;
                if ports.last().is_some_and(|port| port.edge == number) {
                    return Err(TreeError::Cycle { edge: number, node });
                }
                ports.push(Port { edge: number, place });
            }
        }
        let ports: Vec<Port> = at.iter().flatten().copied().collect();
        if ports.len() > MOST_PORTS {
            return Err(TreeError::TooManyPorts);
        }
        let mut shape = Self {
            places: Vec::with_capacity(nodes as usize),
            ports,
            below: Vec::new(),
            edges: edges.iter().map(|edge| (edge.near, edge.far.to_vec())).collect(),
            relays: edges.iter().map(|edge| edge.relayed).collect(),
            outward: vec![true; edges.len()],
        };
        let mut first = 0;
        for own in &at {
            let end = first + own.len() as u32;
            let nowhere = Step { edge: NONE, from: 0, to: 0 };
            let place = Place {
                ports: [first, end],
                walk: [NONE; 2],
                below: [0; 2],
                above: nowhere,
                above_node: NONE,
            };
            shape.places.push(place);
            first = end;
        }
        shape.walk(root)?;
        Ok(shape)
    }

    /// Finds who is above whom, and numbers the nodes.
    fn walk(&mut self, root: u32) -> Result<(), TreeError> {
        let mut seen = vec![false; self.edges.len()];
        let mut found = vec![false; self.places.len()];
        let mut below: Vec<Vec<(Step, u32)>> = vec![Vec::new(); self.places.len()];
        let mut waiting = VecDeque::from([root]);
        found[root as usize] = true;
        let mut order = Vec::with_capacity(self.places.len());
        while let Some(node) = waiting.pop_front() {
            order.push(node);
            for port in self.ports_of(node).to_vec() {
                if std::mem::replace(&mut seen[port.edge as usize], true) {
                    continue;
                }
                self.outward[port.edge as usize] = port.place == NEAR;
                for place in self.others(port) {
                    let next = self.node_at(port.edge, place);
                    if std::mem::replace(&mut found[next as usize], true) {
                        return Err(TreeError::Cycle { edge: port.edge, node: next });
                    }
                    below[node as usize].push((Step { edge: port.edge, from: port.place, to: place }, next));
                    let above = Step { edge: port.edge, from: place, to: port.place };
                    let entry = &mut self.places[next as usize];
                    (entry.above, entry.above_node) = (above, node);
                    waiting.push_back(next);
                }
            }
        }
        if let Some(node) = found.iter().position(|found| !found) {
            return Err(TreeError::Alone { node: node as u32 });
        }
        // How many are below each, itself among them: those that were found last have nobody below them.
        let mut sizes = vec![1u32; self.places.len()];
        for &node in order.iter().rev() {
            sizes[node as usize] +=
                below[node as usize].iter().map(|(_, next)| sizes[*next as usize]).sum::<u32>();
        }
        self.places[root as usize].walk = [0, sizes[root as usize]];
        for &node in &order {
            let mut enter = self.places[node as usize].walk[0] + 1;
            let first = self.below.len() as u32;
            for &(step, next) in &below[node as usize] {
                let end = enter + sizes[next as usize];
                self.places[next as usize].walk = [enter, end];
                self.below.push(Child { enter, step });
                enter = end;
            }
            self.places[node as usize].below = [first, self.below.len() as u32];
        }
        Ok(())
    }

    /// How many nodes.
    pub fn nodes(&self) -> u32 {
        self.places.len() as u32
    }

    /// The ports of a node, in the order of the edges: interface 1 and so on.
    pub(super) fn ports_of(&self, node: u32) -> &[Port] {
        let [first, end] = self.places[node as usize].ports;
        &self.ports[first as usize..end as usize]
    }

    /// The address of each port of a node: interface 1 and so on.
    pub fn addresses(&self, node: u32) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let [first, end] = self.places[node as usize].ports;
        (first..end).map(|port| Ipv4Addr::from_bits(FIRST_PORT + port))
    }

    /// The node with a port of this address.
    pub(super) fn node_with(&self, address: Ipv4Addr) -> Option<u32> {
        let port = address.to_bits().checked_sub(FIRST_PORT)?;
        if port >= self.ports.len() as u32 {
            return None;
        }
        let node = self.places.partition_point(|place| place.ports[1] <= port);
        Some(node as u32)
    }

    /// The interface by which a node is at an edge, from 1.
    pub(super) fn interface(&self, node: u32, edge: u32) -> u32 {
        let found = self.ports_of(node).iter().position(|port| port.edge == edge);
        found.map_or(0, |at| at as u32 + 1)
    }

    /// The node at an end of an edge.
    pub(super) fn node_at(&self, edge: u32, place: u32) -> u32 {
        let (near, far) = &self.edges[edge as usize];
        if place == NEAR { *near } else { far[place as usize] }
    }

    /// The other ends of the edge that a port is at.
    fn others(&self, port: Port) -> impl Iterator<Item = u32> + use<> {
        let far = self.edges[port.edge as usize].1.len() as u32;
        std::iter::once(NEAR).chain(0..far).filter(move |place| *place != port.place)
    }

    /// Whether an edge's near end is the one nearest to the root.
    pub(super) fn is_outward(&self, edge: u32) -> bool {
        self.outward[edge as usize]
    }

    /// Whether far ends of an edge hear each other only by way of the near one.
    pub(super) fn is_relayed(&self, edge: u32) -> bool {
        self.relays[edge as usize]
    }

    /// The next step from `node` to `target`, which is another.
    pub(super) fn step(&self, node: u32, target: u32) -> Step {
        let to = self.places[target as usize].walk[0];
        let here = &self.places[node as usize];
        if here.walk[0] < to && to < here.walk[1] {
            return self.allowed(self.step_below(here, to));
        }
        let above = &self.places[here.above_node as usize];
        // Somebody beside it on the same edge.
        if above.walk[0] < to && to < above.walk[1] {
            let beside = self.step_below(above, to);
            if beside.edge == here.above.edge {
                return self.allowed(Step { from: here.above.from, ..beside });
            }
        }
        self.allowed(here.above)
    }

    /// A step, or where far ends do not hear each other the one to the near end between them.
    fn allowed(&self, step: Step) -> Step {
        let both_far = step.from != NEAR && step.to != NEAR;
        if both_far && self.relays[step.edge as usize] { Step { to: NEAR, ..step } } else { step }
    }

    /// The step to that below `place` under which the node with this number in the walk is.
    fn step_below(&self, place: &Place, to: u32) -> Step {
        let below = &self.below[place.below[0] as usize..place.below[1] as usize];
        below[below.partition_point(|child| child.enter <= to) - 1].step
    }
}

#[cfg(test)]
mod tests;
