//! Transfers to receivers that a file lists.

use std::fs;

use serde_json::Value;

use crate::common::{Place, member};

const RATE: [&str; 2] = ["--rate", "20 Mbit/s"];
/// Protocols whose receivers are named where nothing is sealed.
const PROTOCOLS: [&str; 4] = ["mftp", "norm", "mdp", "pgm"];

/// Returns the option for the list with `text`, and `rest` behind it.
fn listed(place: &Place, text: &str, rest: &str) -> String {
    let path = place.path("stations.txt");
    fs::write(&path, text).unwrap();
    format!("@{}{rest}", path.display())
}

fn names(summary: &Value) -> Vec<&str> {
    summary["receivers"].as_array().unwrap().iter().map(|one| one["receiver"].as_str().unwrap()).collect()
}

#[test]
fn a_file_names_receivers_as_the_list_does() {
    for protocol in PROTOCOLS {
        let place = Place::new();
        let file = place.file("product.bin", 10_000);
        let by = ["--protocol", protocol];
        let running = ["7", "bee", "@9"].map(|name| place.receive(name, &by));
        let list = listed(&place, "# stations\r\n7\r\n\n  @9   # Oslo", ",bee");
        let args = [&RATE[..], &by, &["--receivers", &list]].concat();
        let sent = place.send(&[&file], &args).succeed().summary();
        assert_eq!(names(&sent).len(), 3, "{sent}");
        for name in ["7", "bee", "@9"] {
            assert_eq!(member(&sent, name)["complete"], true, "{sent}");
        }
        for receiver in running {
            receiver.succeed();
        }
    }
}

#[test]
fn a_wrong_line_is_refused_with_its_number() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let refused = |protocol: &str, list: &str, parts: &[&str]| {
        let args = [&RATE[..], &["--protocol", protocol, "--receivers", list]].concat();
        let ended = place.run("sender", place.send_command(&[&file], &args));
        ended.assert_one_sentence(2, parts);
    };
    for protocol in PROTOCOLS {
        for (text, rest, parts) in [
            ("7\n\n8\n7\n", "", ["stations.txt:4: \"7\" is named twice", "stations.txt:1: remove"]),
            ("7\n8\n", ",8", ["stations.txt:2: \"8\" is in --receivers itself", "remove"]),
            ("7,8\n", "", ["stations.txt:1: \"7,8\" has a comma", "a line of its own"]),
            ("# all\n", ",7", ["stations.txt\" names no receiver", "one in each line"]),
        ] {
            refused(protocol, &listed(&place, text, rest), &parts);
        }
        refused(protocol, "@absent.txt", &["cannot read \"absent.txt\"", "@ stands before"]);
    }
    // These names have the same 28 bits.
    let alike = listed(&place, "station-4309\n7\nstation-8747\n", "");
    refused("mftp", &alike, &["stations.txt:3: station-4309 and station-8747 look alike"]);
    for protocol in ["norm", "mdp", "pgm"] {
        refused(protocol, &listed(&place, "7\n0\n", ""), &["stations.txt:2: \"0\" is no node"]);
        let same = listed(&place, "10.0.0.1\n\n167772161\n", "");
        refused(protocol, &same, &["stations.txt:3: 10.0.0.1 and 167772161 are the same node"]);
    }
}

#[test]
fn a_list_is_not_written_over() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let list = listed(&place, "7\n", "");
    let path = place.path("stations.txt");
    for option in ["--log", "--report"] {
        let args = [&RATE[..], &["--receivers", &list, option, path.to_str().unwrap()]].concat();
        let ended = place.run("sender", place.send_command(&[&file], &args));
        ended.assert_one_sentence(2, &["--receivers", option, "are one file"]);
    }
    assert_eq!(fs::read_to_string(path).unwrap(), "7\n");
}
