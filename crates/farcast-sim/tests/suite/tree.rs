//! Trees: comparison of trees of depth one with stars, and with results that can be counted.

mod elements;
mod pgm;

use farcast_core::{Span, Time};
use farcast_delivery::{Protocol, SenderEngine};
use farcast_scenario::document::DocumentError;
use farcast_sim::outcome::{HeardOutcome, Replication, TreeReplication};
use farcast_sim::replicate::replicate;
use farcast_sim::scenario::{Scenario, Task, TreeScenario, TreeTask};
use farcast_sim::star::{Cut, Pulse, Star, StarConfig};
use farcast_sim::trace::{Trace, TraceConfig};
use farcast_sim::tree::{OnTree, Tree, TreeConfig};

use crate::worlds::{document, scenario};

/// Task that runs a tree.
struct Run {
    index: u64,
    cut: Cut,
}

impl TreeTask for Run {
    type Output = TreeReplication;

    fn on<P: OnTree>(self, world: TreeConfig<P>, _codec: <P as Protocol>::Codec) -> TreeReplication {
        let mut tree = Tree::new(TreeConfig { cut: self.cut, ..world }, None).unwrap();
        tree.run();
        TreeReplication::of(self.index, &tree, true)
    }
}

fn as_tree(scenario: &Scenario, seed: u64, index: u64) -> Replication {
    scenario.visit_as_tree(seed, index, Run { index, cut: Cut::Whole }).unwrap().common
}

/// Asserts that a scenario has the same outcome as a star and as a tree.
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

#[test]
fn a_sealed_star_is_a_sealed_tree_of_depth_one() {
    for settings in [&["protocol.sealed=true"][..], &["protocol.sealed=true", "engines=true"]] {
        agree("mftp-bgan, sealed", &scenario(crate::worlds::BGAN, settings), 1..4);
    }
}

/// Task that returns the trace of a star, or of the same scenario as a tree.
struct Traced;

impl Task for Traced {
    type Output = Vec<u8>;

    fn on<P: Protocol>(self, world: StarConfig<P>, codec: P::Codec) -> Vec<u8> {
        let routes = world.sender.as_ref().map(SenderEngine::routes);
        let mut trace = Trace::<_, P>::new(Vec::new(), routes, codec, &TraceConfig::default()).unwrap();
        Star::new(world, Some(&mut trace)).unwrap().run();
        trace.finish().unwrap()
    }
}

impl TreeTask for Traced {
    type Output = Vec<u8>;

    fn on<P: OnTree>(self, world: TreeConfig<P>, codec: P::Codec) -> Vec<u8> {
        let routes = world.sender.as_ref().map(|(_, sender)| sender.routes());
        let mut trace = Trace::<_, P>::new(Vec::new(), routes, codec, &TraceConfig::default()).unwrap();
        Tree::new(world, Some(&mut trace)).unwrap().run();
        trace.finish().unwrap()
    }
}

#[test]
fn a_star_and_its_tree_have_the_same_trace() {
    for text in [crate::worlds::BGAN, include_str!("../../../../scenarios/umts.toml")] {
        let scenario = scenario(text, &[]);
        let star = scenario.visit(1, 0, Traced).unwrap();
        let tree = scenario.visit_as_tree(1, 0, Traced).unwrap();
        assert!(star.len() > 10_000, "{}", scenario.name());
        assert_eq!(star.len(), tree.len(), "{}", scenario.name());
        assert!(star == tree, "{}", scenario.name());
    }
}

/// Topology of the paper on PGM over satellites, with MFTP over routers.
const PAPER: &str = include_str!("tree/paper.toml");
/// Octets of the file.
const FILE: u64 = 300_000;

fn read(text: &str, settings: &[&str]) -> Result<TreeScenario, DocumentError> {
    TreeScenario::read(&document(text, settings)?)
}

fn paper(settings: &[&str]) -> TreeScenario {
    read(PAPER, settings).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &TreeScenario, seed: u64) -> TreeReplication {
    scenario.visit(seed, 0, Run { index: 0, cut: Cut::Whole }).unwrap()
}

fn heard(one: &TreeReplication, receiver: u32) -> HeardOutcome {
    one.node(&format!("R{receiver}")).unwrap().heard.unwrap()
}

#[test]
fn losses_of_one_edge_are_those_of_all_behind_it_and_repairs_reach_who_lost_nothing() {
    let one = run(&paper(&["edge.satellite.link.forward.per=0.1"]), 1);
    assert_eq!(one.common.transfer.as_ref().unwrap().incomplete, 0);
    let (first, behind) = (heard(&one, 1), heard(&one, 6));
    for receiver in 1..=10 {
        let own = heard(&one, receiver);
        assert_eq!(own.useful_octets, FILE, "R{receiver}");
        assert_eq!(own, if receiver <= 5 { first } else { behind }, "R{receiver}");
    }
    // Without elements, repairs reach network A too, where they are of no use.
    let sent_again = one.edge("terrestrial").unwrap().forward.packets_of("repair");
    assert!(sent_again > 10, "{one:?}");
    assert_eq!((first.repairs, first.useless_octets), (0, sent_again * 1000));
    assert!(behind.repairs > 10 && behind.repair_latency_mean_s.unwrap() > 0.5);
    // Every NAK of the five crosses the satellite.
    let naks: u64 = (6..=10).map(|n| one.node(&format!("R{n}")).unwrap().naks).sum();
    assert!(naks >= 5);
    assert_eq!(one.edge("satellite").unwrap().back.packets_of("nak"), naks);
    assert_eq!(one.edge("sources.S1").unwrap().forward.packets_of("nak"), naks);
    assert!(one.edge("satellite").unwrap().forward.lost > 10);
    assert_eq!((one.unheard, one.expired), (0, 0));
    // TCP passes the satellite and not network A.
    assert!(one.common.flows[0].octets > 100_000);
    assert!(one.edge("satellite").unwrap().forward.packets_of("flow") > 100);
    assert_eq!(one.edge("A.R1").unwrap().forward.packets_of("flow"), 0);
    assert_eq!(one.edge("B.R6").unwrap().forward.packets_of("flow"), 0);
}

#[test]
fn losses_of_each_receiver_are_its_own_and_a_receiver_more_changes_no_others() {
    let per = ["edge.B.link.forward.per=0.1"];
    let one = run(&paper(&per), 1);
    let each: Vec<_> = (6..=10).map(|receiver| heard(&one, receiver).repairs).collect();
    assert!(each.iter().any(|repairs| *repairs != each[0]), "{each:?}");
    let more =
        PAPER.replace("\"R5\"]", "\"R5\", \"R12\"]") + "\n[[node]]\nname = \"R12\"\nkind = \"receiver\"\n";
    let other = run(&read(&more, &per).unwrap(), 1);
    for receiver in 1..=10 {
        assert_eq!(heard(&one, receiver), heard(&other, receiver), "R{receiver}");
    }
    assert_eq!(heard(&other, 12), heard(&one, 1));
    assert_ne!(run(&paper(&per), 2).nodes, one.nodes, "another seed");
}

/// Task that runs a tree and looks at it once before the end.
struct LookAt(Time);

impl TreeTask for LookAt {
    type Output = (Option<TreeReplication>, TreeReplication);

    fn on<P: OnTree>(self, world: TreeConfig<P>, _codec: <P as Protocol>::Codec) -> Self::Output {
        let mut tree = Tree::new(world, None).unwrap();
        let mut then = None;
        let over = tree.run_with_look(&Pulse::default(), self.0, |tree| {
            then = Some(TreeReplication::of(0, tree, true));
        });
        assert!(over);
        (then, TreeReplication::of(0, &tree, true))
    }
}

#[test]
fn a_look_on_the_way_sees_what_a_shorter_run_does_and_changes_nothing() {
    let settings = ["edge.satellite.link.forward.per=0.05", "time_limit=\"6 s\""];
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    let (then, whole) = paper(&settings).visit(3, 0, LookAt(at(2))).unwrap();
    assert_eq!(whole, run(&paper(&settings), 3));
    let (then, short) = (then.unwrap(), run(&paper(&[settings[0], "time_limit=\"2 s\""]), 3));
    for receiver in [1, 6] {
        let octets = heard(&then, receiver).useful_octets;
        assert_eq!(octets, heard(&short, receiver).useful_octets, "R{receiver}");
        assert!(octets > 0 && octets < heard(&whole, receiver).useful_octets, "R{receiver}");
    }
    assert_eq!(then.common.flows[0].octets, short.common.flows[0].octets);
    let (beyond, same) = paper(&settings).visit(3, 0, LookAt(at(7))).unwrap();
    assert_eq!((beyond.map(|one| one.nodes), same == whole), (Some(whole.nodes.clone()), true));
}

#[test]
fn cutting_runs_changes_nothing() {
    let settings = ["edge.satellite.link.forward.per=0.05", "edge.B.link.forward.per=0.02"];
    let scenario = paper(&settings);
    let whole = run(&scenario, 3);
    for cut in [Cut::One, Cut::Random(1), Cut::Random(2)] {
        assert_eq!(scenario.visit(3, 0, Run { index: 0, cut }).unwrap(), whole, "{cut:?}");
    }
}

#[test]
fn many_receivers_at_a_leaf_are_a_population_or_engines() {
    let text = PAPER.replace(
        "name = \"R6\"\nkind = \"receiver\"",
        "name = \"R6\"\nkind = \"receiver\"\nreceivers = 1000",
    );
    let scenario = read(&text, &["edge.B.link.forward.per=0.01"]).unwrap();
    let one = run(&scenario, 1);
    assert_eq!(one.common.transfer.as_ref().unwrap().incomplete, 0);
    assert_eq!(one.node("R6").unwrap().receivers, 1000);
    assert!(one.node("R6").unwrap().naks > one.node("R7").unwrap().naks);
    let engines = run(&scenario.with_engines(), 1);
    let (a, b) = (one.node("R6").unwrap(), engines.node("R6").unwrap());
    assert!(a.heard.is_none() && b.heard.unwrap().useful_octets == 1000 * FILE);
}

#[test]
fn what_is_no_tree_is_an_error_with_its_place() {
    let error = |text: &str| match read(text, &[]) {
        Ok(_) => panic!("allowed: {text}"),
        Err(error) => error.to_string(),
    };
    let with = |edge: &str| format!("{PAPER}\n[[edge]]\nname = \"more\"\n{edge}\n");
    for (text, expected) in [
        (
            with("from = \"R11\"\nto = [\"S2\"]"),
            "edge.more.to: there is a way from \"R11\" to \"S2\" already",
        ),
        (with("from = \"G0\"\nto = [\"G1\"]"), "edge.more.to: there is a way from \"G0\" to \"G1\" already"),
        (with("from = \"G0\"\nto = [\"G9\"]"), "edge.more.to: there is no node \"G9\""),
        (with("from = \"G0\"\nto = []"), "edge.more.to: the edge leads nowhere"),
        (with("from = \"R1\"\nto = [\"G2\"]"), "edge.more.from: \"R1\" is a receiver"),
        (
            format!("{PAPER}\n[[node]]\nname = \"X\"\nkind = \"host\"\n"),
            "node.X.name: no edge leads to this node",
        ),
        (
            PAPER.replace("name = \"G0\"\nkind = \"router\"", "name = \"G0\"\nkind = \"element\""),
            "node.G0.kind: the protocol of the transfer has no elements",
        ),
        (
            PAPER.replace("name = \"S2\"\nkind = \"host\"", "name = \"S2\"\nkind = \"source\""),
            "node.S2.kind: there is a source already",
        ),
        (PAPER.replace("to = \"R11\"", "to = \"S2\""), "flow.tcp.to: both ends are at one node"),
        (PAPER.replace("to = \"R11\"", "to = \"R99\""), "flow.tcp.to: there is no node \"R99\""),
        (
            PAPER.replace("name = \"G2\"\nkind = \"router\"", "name = \"G2\"\nkind = \"host\""),
            "node.G2.kind: a host has one edge",
        ),
    ] {
        let told = error(&text);
        assert!(told.starts_with("test.toml:") && told.contains(expected), "{told}");
    }
    let apart = with("from = \"X\"\nto = [\"Y\"]")
        + "[[node]]\nname = \"X\"\nkind = \"host\"\n[[node]]\nname = \"Y\"\nkind = \"host\"\n";
    assert!(
        error(&apart).contains("node.X.name: no way leads from the other nodes to this one"),
        "{}",
        error(&apart)
    );
}

#[test]
fn the_example_of_the_page_runs() {
    let page = include_str!("../../../../docs/src/tree.md");
    let example = page.split("```toml").nth(1).unwrap().split("```").next().unwrap();
    let scenario = read(example, &["time_limit=10 min", "flow.tcp.size=1 MB"]).unwrap();
    let one = run(&scenario, 1);
    assert!(one.node("R1").unwrap().heard.unwrap().useful_octets > 0);
    assert!(one.edge("branches.H").unwrap().forward.packets_of("flow") > 600);
}
