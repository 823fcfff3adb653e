//! Shape of a tree: nodes, edges, and the paths between them.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use super::TreeError;

/// Marks the near end of an edge, where a far end has its number.
pub(super) const NEAR: u32 = u32::MAX;
/// Stands for every end of an edge, or for every node.
pub(super) const EVERYONE: u32 = u32::MAX - 1;
/// Stands for the missing edge and node above the root.
const NONE: u32 = u32::MAX;

/// Address of the first port. The other ports follow, node by node. They end where the addresses of receivers begin.
const FIRST_PORT: u32 = 0x0A20_0000;
/// Maximum number of ports of a tree.
const MOST_PORTS: usize = 0x20_0000;

/// Attachment of a node to an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Port {
    pub(super) edge: u32,
    /// End of the edge: [`NEAR`], or the number of the far end.
    pub(super) place: u32,
}

/// Step from a node to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) edge: u32,
    /// End of the edge where the step begins.
    pub(super) from: u32,
    /// End of the edge where the step leads.
    pub(super) to: u32,
}

/// Child of a node.
#[derive(Clone, Copy, Debug)]
struct Child {
    /// Number of the child in the order of the walk.
    enter: u32,
    step: Step,
}

#[derive(Clone, Debug)]
struct Place {
    /// Range of the node's ports in the list of all ports.
    ports: [u32; 2],
    /// Number of the node in a depth-first walk from the root, and the number behind the last node below it.
    walk: [u32; 2],
    /// Range of the node's children in the list of all children, in the order of the walk.
    below: [u32; 2],
    /// Step to the parent.
    above: Step,
    above_node: u32,
}

/// Checked shape of a tree: a value exists only if nodes and edges form a tree.
#[derive(Clone, Debug)]
pub struct Shape {
    places: Vec<Place>,
    ports: Vec<Port>,
    below: Vec<Child>,
    edges: Vec<(u32, Vec<u32>)>,
    /// `true` for each edge on which far ends hear each other only through the near end.
    relays: Vec<bool>,
    /// `true` for each edge whose near end is nearest to the root.
    outward: Vec<bool>,
}

/// Edge of a shape: its nodes, and the far ends' hearing of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeShape<'a> {
    /// Node at the near end.
    pub near: u32,
    /// Nodes at the far ends.
    pub far: &'a [u32],
    /// `true` if far ends hear each other only when the near end forwards what it has heard, as behind a satellite's
    /// hub; `false` if all ends hear all, as on a LAN.
    pub relayed: bool,
}

impl Shape {
    /// Makes the shape of a tree with `nodes` nodes and these edges, with paths computed from `root`.
    ///
    /// # Errors
    /// The graph is not a tree: [`TreeError::Cycle`], [`TreeError::Alone`], or an edge without a far end, with a number
    /// that no node has, or with more ports in all than there are addresses.
    pub fn new(nodes: u32, edges: &[EdgeShape<'_>], root: u32) -> Result<Self, TreeError> {
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

    /// Finds the parent of each node, and numbers the nodes.
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
        // Size of the subtree of each node. The nodes that were found last have no node below them.
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

    /// Returns the number of nodes.
    pub fn nodes(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns the ports of a node, in the order of the edges: interface 1 and so on.
    pub(super) fn ports_of(&self, node: u32) -> &[Port] {
        let [first, end] = self.places[node as usize].ports;
        &self.ports[first as usize..end as usize]
    }

    /// Returns the address of each port of a node: interface 1 and so on.
    pub fn addresses(&self, node: u32) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let [first, end] = self.places[node as usize].ports;
        (first..end).map(|port| Ipv4Addr::from_bits(FIRST_PORT + port))
    }

    /// Returns the node with a port of this address.
    pub(super) fn node_with(&self, address: Ipv4Addr) -> Option<u32> {
        let port = address.to_bits().checked_sub(FIRST_PORT)?;
        if port >= self.ports.len() as u32 {
            return None;
        }
        let node = self.places.partition_point(|place| place.ports[1] <= port);
        Some(node as u32)
    }

    /// Returns the interface by which a node is attached to an edge, from 1; 0 if it is not.
    pub(super) fn interface(&self, node: u32, edge: u32) -> u32 {
        let found = self.ports_of(node).iter().position(|port| port.edge == edge);
        found.map_or(0, |at| at as u32 + 1)
    }

    /// Returns the node at an end of an edge.
    pub(super) fn node_at(&self, edge: u32, place: u32) -> u32 {
        let (near, far) = &self.edges[edge as usize];
        if place == NEAR { *near } else { far[place as usize] }
    }

    /// Returns the other ends of the edge that a port is at.
    fn others(&self, port: Port) -> impl Iterator<Item = u32> + use<> {
        let far = self.edges[port.edge as usize].1.len() as u32;
        std::iter::once(NEAR).chain(0..far).filter(move |place| *place != port.place)
    }

    /// Returns `true` if an edge's near end is the one nearest to the root.
    pub(super) fn is_outward(&self, edge: u32) -> bool {
        self.outward[edge as usize]
    }

    /// Returns `true` if far ends of an edge hear each other only through the near end.
    pub(super) fn is_relayed(&self, edge: u32) -> bool {
        self.relays[edge as usize]
    }

    /// Returns the next step from `node` to `target`, which is another node.
    pub(super) fn step(&self, node: u32, target: u32) -> Step {
        let to = self.places[target as usize].walk[0];
        let here = &self.places[node as usize];
        if here.walk[0] < to && to < here.walk[1] {
            return self.allowed(self.step_below(here, to));
        }
        let above = &self.places[here.above_node as usize];
        // The target may be below a neighbour on the same edge.
        if above.walk[0] < to && to < above.walk[1] {
            let beside = self.step_below(above, to);
            if beside.edge == here.above.edge {
                return self.allowed(Step { from: here.above.from, ..beside });
            }
        }
        self.allowed(here.above)
    }

    /// Returns the step. Where far ends do not hear each other, it is cut short at the near end between them.
    fn allowed(&self, step: Step) -> Step {
        let both_far = step.from != NEAR && step.to != NEAR;
        if both_far && self.relays[step.edge as usize] { Step { to: NEAR, ..step } } else { step }
    }

    /// Returns the step from `place` to the child above the node with number `to` in the walk.
    fn step_below(&self, place: &Place, to: u32) -> Step {
        let below = &self.below[place.below[0] as usize..place.below[1] as usize];
        below[below.partition_point(|child| child.enter <= to) - 1].step
    }
}

#[cfg(test)]
mod tests;
