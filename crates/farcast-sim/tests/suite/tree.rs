//! The world of trees: against the star, whose results a tree of depth one has, and against what can be counted.

use farcast_delivery::Protocol;
use farcast_sim::outcome::{Replication, TreeReplication};
use farcast_sim::replicate::replicate;
use farcast_sim::scenario::{Scenario, TreeTask};
use farcast_sim::tree::{OnTree, Tree, TreeConfig};

use crate::worlds::scenario;

/// Runs a tree.
struct Run {
    index: u64,
}

impl TreeTask for Run {
    type Output = TreeReplication;

    fn on<P: OnTree>(self, world: TreeConfig<P>, _codec: <P as Protocol>::Codec) -> TreeReplication {
        let mut tree = Tree::new(world).unwrap();
        tree.run();
        TreeReplication::of(self.index, &tree, true)
    }
}

fn as_tree(scenario: &Scenario, seed: u64, index: u64) -> Replication {
    scenario.visit_as_tree(seed, index, Run { index }).unwrap().common
}

/// A scenario is the same as a star and as a tree.
fn agree(name: &str, scenario: &Scenario, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let star = replicate(scenario, seed, 0, true).unwrap();
        let tree = as_tree(scenario, seed, 0);
        assert_eq!(star, tree, "{name}, seed {seed}");
    }
}

#[test]
fn every_shipped_star_is_a_tree_of_depth_one() {
    let shipped = [
        ("mftp-bgan", crate::worlds::BGAN),
        ("tcp-geo", include_str!("../../../../scenarios/tcp-geo.toml")),
        ("umts", include_str!("../../../../scenarios/umts.toml")),
        ("inmarsat", include_str!("../../../../scenarios/inmarsat.toml")),
        ("iridium", include_str!("../../../../scenarios/iridium.toml")),
        ("sgls", include_str!("../../../../scenarios/sgls.toml")),
        ("sgls-mdp", include_str!("../../../../scenarios/sgls-mdp.toml")),
    ];
    for (name, text) in shipped {
        agree(name, &scenario(text, &[]), 1..3);
    }
}
