//! Node ids.

use alloc::vec::Vec;
use core::fmt;

/// Node id: chosen by the user, unique in a session. In NORM and MDP, 0 and 2^32 - 1 do not name a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// No node.
    pub const NONE: Self = Self(0);
    /// Any node.
    pub const ANY: Self = Self(u32::MAX);

    /// Returns `true` if the id can name a node.
    pub const fn is_somebody(self) -> bool {
        self.0 != Self::NONE.0 && self.0 != Self::ANY.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Returns a node of `nodes` and `node` whose id cannot name a node or is another's, if there is one.
pub fn invalid_node(nodes: &[NodeId], node: NodeId) -> Option<NodeId> {
    let mut nodes: Vec<NodeId> = nodes.iter().copied().chain([node]).collect();
    nodes.sort_unstable();
    let nobody = nodes.iter().find(|node| !node.is_somebody()).copied();
    nobody.or_else(|| nodes.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]))
}
