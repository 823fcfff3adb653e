//! `farcast simulate` of a tree: PGM with an element and a repairer on the way.

use serde_json::Value;

use crate::common::{Ended, Place};

/// Scenario with a source, an element, and behind a satellite a repairer with an island that loses a tenth.
const ISLAND: &str = r#"
name = "an island"
time_limit = "10 min"
node = [
    { name = "S", kind = "source" },
    { name = "G", kind = "element" },
    { name = "near", kind = "receiver" },
    { name = "foot", kind = "repairer" },
    { name = "far", kind = "receiver" },
]
[[edge]]
name = "line"
from = "S"
to = ["G"]
link.forward = { rate = "10 Mbit/s", delay = "10 ms", queue_packets = 50 }
link.return = { rate = "10 Mbit/s", delay = "10 ms", queue_packets = 50 }
[[edge]]
name = "lan"
from = "G"
to = ["near"]
link.forward = { delay = "1 ms" }
link.return = { delay = "1 ms" }
[[edge]]
name = "satellite"
from = "G"
to = ["foot"]
link.forward = { rate = "2 Mbit/s", delay = "250 ms" }
link.return = { rate = "64 kbit/s", delay = "250 ms" }
[[edge]]
name = "island"
from = "foot"
to = ["far"]
link.forward = { delay = "1 ms", per = 0.1 }
link.return = { delay = "1 ms" }
[protocol]
name = "pgm"
file = "200 kB"
rate = "1 Mbit/s"
"#;

fn simulate(text: &str, args: &[&str]) -> Ended {
    let place = Place::new();
    let path = place.path("island.toml");
    std::fs::write(&path, text).unwrap();
    let mut command = place.farcast(["simulate"]);
    command.arg(&path).args(args);
    place.run("simulate", command)
}

#[test]
fn what_passes_each_edge_is_told_as_json_and_as_tables() {
    let ended = simulate(ISLAND, &["--json", "-n", "3"]);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let object: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(object["summary"]["replications"], 3);
    for one in object["replications"].as_array().unwrap() {
        let named = |list: &str, name: &str| {
            let list = one[list].as_array().unwrap();
            list.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} in {one}")).clone()
        };
        // The island is served by its repairer: no repair passes the satellite, and none is asked for over it.
        let satellite = named("edges", "satellite");
        assert_eq!(satellite["forward"]["packets"]["rdata"], Value::Null, "{satellite}");
        assert_eq!(satellite["return"]["packets"]["nak"], Value::Null, "{satellite}");
        assert!(named("edges", "island")["forward"]["packets"]["rdata"].as_u64().unwrap() > 0);
        assert_eq!(named("nodes", "far")["useful_octets"], 200_000);
        assert_eq!(named("nodes", "near")["useless_octets"], 0);
        assert!(named("elements", "foot")["figures"]["element"]["served"].as_u64().unwrap() > 0);
    }
    let ended = simulate(ISLAND, &["-n", "3", "--threads", "2"]);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    for part in
        ["an island: 2 receivers, 3 replications", "packets of edge", "receivers at", "RDATA of its own"]
    {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.story());
    }
}

#[test]
fn a_replication_of_a_tree_has_a_trace_and_a_timeline() {
    let place = Place::new();
    let (packets, page) = (place.path("x.pcapng"), place.path("x.html"));
    let files = ["-n", "1", "--trace", packets.to_str().unwrap(), "--timeline", page.to_str().unwrap()];
    let ended = simulate(ISLAND, &files);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let octets = std::fs::read(&packets).unwrap();
    for interface in ["sender", "receivers", "elements"] {
        assert!(octets.windows(interface.len()).any(|part| part == interface.as_bytes()), "{interface}");
    }
    assert!(std::fs::read_to_string(&page).unwrap().contains("an island"));
}

#[test]
fn what_a_tree_cannot_have_is_refused_in_a_sentence() {
    let says = |text: &str, args: &[&str], part: &str| {
        let ended = simulate(text, args);
        ended.assert_one_sentence(2, &[part]);
    };
    says(&ISLAND.replace("to = [\"far\"]", "to = [\"away\"]"), &[], "there is no node \"away\"");
    says(
        &ISLAND.replace("name = \"pgm\"", "name = \"norm\""),
        &[],
        "the protocol of the transfer has no elements",
    );
    says(ISLAND, &["--set", "edge.island.link.forward.per=2"], "edge.island.link.forward.per");
}
