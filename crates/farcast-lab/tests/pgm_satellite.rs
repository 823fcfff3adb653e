//! Properties of the paper's tree that a run of seconds shows; the study itself takes minutes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use farcast_lab::shipped;
use farcast_sim::outcome::{HeardOutcome, TreeReplication};
use farcast_sim::replicate::Replicable as _;
use farcast_sim::scenario::TreeScenario;
use farcast_sim::star::Pulse;

/// Settings of a source of 600 kbit/s, for half a minute.
const CBR: [&str; 3] =
    ["protocol.source_rate=\"600 kbit/s\"", "protocol.rate=\"10 Mbit/s\"", "time_limit=\"30 s\""];
const ALONE: &str = "flow.tcp.start=\"100 h\"";
const LOSSY: &str = "edge.satellite.link.forward.per=0.1";
const FIXED: &str = "protocol.rate_control=\"fixed\"";
const BEFORE: &str = "node.G1.kind=\"repairer\"";

fn run(settings: &[&str]) -> TreeReplication {
    let mut document = shipped::document("pgm-satellite").unwrap();
    for setting in CBR.iter().chain(settings) {
        document.set(setting).unwrap();
    }
    let scenario = TreeScenario::read(&document).unwrap();
    scenario.replicate(1, 0, false, &Pulse::default()).unwrap().unwrap()
}

fn heard(one: &TreeReplication, name: &str) -> HeardOutcome {
    one.node(name).unwrap().heard.unwrap()
}

fn repairs_to_a(one: &TreeReplication) -> u64 {
    (1..=5).map(|n| one.edge(&format!("A.R{n}")).unwrap().forward.packets_of("rdata")).sum()
}

/// With a repairer at the gateway, network A hears no repair and receives as without losses, with and without PGMCC.
#[test]
fn a_repairer_before_the_satellite_shields_network_a() {
    for control in [FIXED, "protocol.rate_control=\"pgmcc\""] {
        let of = |settings: &[&str]| run(&[&[ALONE, control], settings].concat());
        let (calm, lossy, bare) = (of(&[BEFORE]), of(&[BEFORE, LOSSY]), of(&[LOSSY]));
        assert_eq!(repairs_to_a(&lossy), 0, "{control}");
        assert_eq!(heard(&lossy, "R1"), heard(&calm, "R1"), "{control}");
        // Receivers behind the satellite lose packets, and the repairer repairs them.
        assert!(heard(&lossy, "R6").repairs > 50, "{control}: {:?}", heard(&lossy, "R6"));
        assert!(lossy.edge("satellite").unwrap().forward.packets_of("rdata") > 50, "{control}");
        // Without a repairer, every repair comes to network A, where no receiver needs it.
        assert!(repairs_to_a(&bare) > 0 && heard(&bare, "R1").useless_octets > 0, "{control}");
    }
}

/// Without congestion control the source keeps its rate, whatever the losses; with it, the worst receiver sets the
/// rate.
#[test]
fn congestion_control_alone_makes_network_a_pay() {
    let kbps = |settings: &[&str]| heard(&run(settings), "R1").useful_octets as f64 * 8.0 / 30.0 / 1000.0;
    let fixed = kbps(&[ALONE, FIXED, LOSSY]);
    assert!((590.0..=601.0).contains(&fixed), "{fixed} kbit/s");
    let controlled = kbps(&[ALONE, LOSSY]);
    assert!(controlled < 0.5 * fixed, "{controlled} kbit/s");
}
