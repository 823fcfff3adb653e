//! Paths in trees, compared with the edges of random trees.

use farcast_core::random::RandomStream;

use super::*;

/// Returns the edges of a tree of `nodes` nodes with edges of up to four ends, drawn from `seed`.
fn some(nodes: u32, seed: u64) -> Vec<(u32, Vec<u32>, bool)> {
    let mut random = RandomStream::derive(seed, &[]);
    let mut edges = Vec::new();
    let mut next = 1;
    while next < nodes {
        let above = random.below(next.into()) as u32;
        let count = (1 + random.below(3) as u32).min(nodes - next);
        let mut ends: Vec<u32> = (next..next + count).chain([above]).collect();
        // Any of the ends may be the near end.
        let near = ends.swap_remove(random.below(ends.len() as u64) as usize);
        edges.push((near, ends, random.chance(0.5)));
        next += count;
    }
    edges
}

fn shape(edges: &[(u32, Vec<u32>, bool)], nodes: u32, root: u32) -> Result<Shape, TreeError> {
    let between: Vec<_> =
        edges.iter().map(|(near, far, relayed)| EdgeShape { near: *near, far, relayed: *relayed }).collect();
    Shape::new(nodes, &between, root)
}

#[test]
fn every_way_leads_there_and_passes_no_edge_more_often_than_relaying_asks() {
    for seed in 0..30 {
        let nodes = 2 + seed as u32 * 2;
        let edges = some(nodes, seed);
        let shape = shape(&edges, nodes, seed as u32 % nodes).unwrap();
        for from in 0..nodes {
            for to in (0..nodes).filter(|to| *to != from) {
                let mut at = from;
                let mut passed: Vec<u32> = Vec::new();
                while at != to {
                    let step = shape.step(at, to);
                    assert_eq!(shape.node_at(step.edge, step.from), at);
                    let far_to_far = step.from != NEAR && step.to != NEAR;
                    assert!(!far_to_far || !edges[step.edge as usize].2, "far ends do not hear each other");
                    at = shape.node_at(step.edge, step.to);
                    passed.push(step.edge);
                    let times = passed.iter().filter(|edge| **edge == step.edge).count();
                    assert!(times <= if edges[step.edge as usize].2 { 2 } else { 1 });
                    assert!(passed.len() <= 2 * nodes as usize, "a loop");
                }
            }
        }
    }
}

#[test]
fn each_port_has_an_address_of_its_own() {
    let edges = some(40, 7);
    let shape = shape(&edges, 40, 3).unwrap();
    let mut all = Vec::new();
    for node in 0..40 {
        for address in shape.addresses(node) {
            assert_eq!(shape.node_with(address), Some(node));
            all.push(address);
        }
        assert_eq!(shape.addresses(node).count(), shape.ports_of(node).len());
        for (interface, port) in (1..).zip(shape.ports_of(node)) {
            assert_eq!(shape.interface(node, port.edge), interface);
        }
    }
    let ports = all.len() as u32;
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len() as u32, ports);
    assert_eq!(shape.node_with(Ipv4Addr::from_bits(FIRST_PORT + ports)), None);
    assert_eq!(shape.node_with(Ipv4Addr::from_bits(FIRST_PORT - 1)), None);
}

#[test]
fn what_is_no_tree_is_refused() {
    let edge = |near, far: &[u32]| (near, far.to_vec(), false);
    let twice = [edge(0, &[1]), edge(0, &[1])];
    assert!(matches!(shape(&twice, 2, 0), Err(TreeError::Cycle { edge: 1, .. })));
    let ring = [edge(0, &[1]), edge(1, &[2]), edge(2, &[0])];
    assert!(matches!(shape(&ring, 3, 0), Err(TreeError::Cycle { .. })));
    assert!(matches!(shape(&[edge(0, &[0])], 1, 0), Err(TreeError::Cycle { edge: 0, node: 0 })));
    assert!(matches!(shape(&[edge(0, &[1, 1])], 2, 0), Err(TreeError::Cycle { edge: 0, node: 1 })));
    assert!(matches!(shape(&[edge(0, &[1])], 3, 0), Err(TreeError::Alone { node: 2 })));
    assert!(matches!(shape(&[edge(0, &[])], 1, 0), Err(TreeError::NoFarEnd { edge: 0 })));
    assert!(matches!(shape(&[edge(0, &[5])], 2, 0), Err(TreeError::NoSuchNode { edge: 0 })));
}
