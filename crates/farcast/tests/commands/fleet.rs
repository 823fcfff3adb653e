//! Transfers to receivers that a file lists, and the list of those that lack something.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Place, member, wait_until};

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

const HEADER: &str = "receiver,address,state,lacks_segments,lacks_octets,unheard_s";

/// Returns the rows of a list of receivers without everything.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.split("\r\n").map(|line| line.split(',').map(str::to_owned).collect());
    assert_eq!(lines.next(), Some(HEADER.split(',').map(str::to_owned).collect()), "{text}");
    let mut rows: Vec<Vec<String>> = lines.collect();
    assert_eq!(rows.pop(), Some(vec![String::new()]), "the last line ends: {text}");
    rows
}

#[test]
fn those_that_are_absent_are_listed_and_nobody_else() {
    for (protocol, patience) in [
        ("mftp", &["--silence", "1 s"][..]),
        ("norm", &["--robust", "2", "--rtt", "20 ms"]),
        ("mdp", &["--robust", "2", "--rtt", "20 ms"]),
        ("pgm", &["--linger", "1 s"]),
    ] {
        let place = Place::new();
        let file = place.file("product.bin", 10_000);
        let (by, missing) = (["--protocol", protocol], place.path("missing.csv"));
        let args = [&RATE[..], &by, patience, &["--missing", missing.to_str().unwrap()]].concat();
        fs::write(&missing, "old").unwrap();

        let receiver = place.receive("7", &by);
        let list = listed(&place, "7\n8\n", "");
        let sent = place.send(&[&file], &[&args[..], &["--receivers", &list]].concat()).wait();
        assert_eq!(sent.summary()["exit_code"], 3, "{protocol}: {}", sent.summary());
        assert_eq!(rows(&missing), [["8", "", "absent", "", "", ""]], "{protocol}");
        receiver.succeed();

        let receiver = place.receive("7", &by);
        place.send(&[&file], &[&args[..], &["--receivers", "7"]].concat()).succeed();
        assert!(rows(&missing).is_empty(), "{protocol}");
        receiver.succeed();
    }
}

#[test]
fn a_sender_that_is_stopped_lists_what_receivers_lack() {
    for protocol in ["mftp", "norm"] {
        let place = Place::new();
        let file = place.file("product.bin", 2_000_000);
        let (by, missing) = (["--protocol", protocol], place.path("missing.csv"));
        // By NORM the requests of a receiver name it.
        let lossy = [&by[..], &["--simulate-loss", "20 %"]].concat();
        let receiver = place.receive("7", &lossy);
        let args = ["--rate", "4 Mbit/s", "--receivers", "7,8", "--missing", missing.to_str().unwrap()];
        let sender = place.send(&[&file], &[&by[..], &args].concat());
        receiver.until("joined");
        let runs = |event: &Value| event["elapsed_s"].as_f64() > Some(1.5);
        wait_until("some of it is sent", || sender.events().iter().any(runs));
        sender.terminate();
        sender.wait().assert_failed(1, &["stopped"]);
        let rows = rows(&missing);
        assert_eq!(rows.len(), 2, "{rows:?}");
        let lacks = &rows[0];
        assert_eq!((lacks[0].as_str(), lacks[2].as_str()), ("7", "lacks"), "{rows:?}");
        assert!(lacks[5].parse::<f64>().unwrap() < 60.0, "{rows:?}");
        if protocol == "mftp" {
            let [segments, octets] = [3, 4].map(|at| lacks[at].parse::<u64>().unwrap());
            assert!(segments > 0 && octets > segments && octets <= 2_000_000, "{rows:?}");
            assert!(lacks[1].starts_with("127.0.0.1:"), "{rows:?}");
        }
        assert_eq!(rows[1], ["8", "", "absent", "", "", ""]);
        drop(receiver);
    }
}

#[test]
fn a_transfer_that_does_not_begin_lists_all() {
    let place = Place::new();
    let (file, missing) = (place.file("product.bin", 2_000_000), place.path("missing.csv"));
    let args = ["--rate", "1 Mbit/s", "--protocol", "norm", "--receivers", "7,8"];
    let first = place.send(&[&file], &args);
    first.until("started");
    let option = ["--missing", missing.to_str().unwrap()];
    place.send(&[&file], &[&args[..], &option].concat()).wait().assert_failed(1, &["in use"]);
    assert_eq!(rows(&missing), [["7", "", "absent", "", "", ""], ["8", "", "absent", "", "", ""]]);
}

#[test]
fn where_receivers_are_unknown_none_can_be_listed() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    for (args, part) in [
        (&["--protocol", "norm"][..], "name them with --receivers"),
        (&["--one-way"], "one way nobody can confirm"),
        (&["--unlimited"], "with --unlimited none is known"),
    ] {
        let args = [&RATE[..], args, &["--missing", "missing.csv"]].concat();
        place.run("sender", place.send_command(&[&file], &args)).assert_one_sentence(2, &["--missing", part]);
    }
    let list = listed(&place, "7\n", "");
    let path = place.path("stations.txt");
    let args = [&RATE[..], &["--receivers", &list, "--missing", path.to_str().unwrap()]].concat();
    place.run("sender", place.send_command(&[&file], &args)).assert_one_sentence(2, &["are one file"]);
    let nowhere = place.path("no/missing.csv");
    let args = [&RATE[..], &["--receivers", "7", "--missing", nowhere.to_str().unwrap()]].concat();
    place
        .run("sender", place.send_command(&[&file], &args))
        .assert_one_sentence(2, &["--missing", "directory"]);
}

/// Runs `command` on a terminal of 24 lines, which script(1) makes, to its end. Returns what was drawn.
fn drawn(place: &Place, command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let line = format!("stty rows 24 cols 80; {}", words.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            script.env(key, value);
        }
    }
    script.env("SHELL", "/bin/sh").env("TERM", "xterm-256color");
    place.start("terminal", script).wait().stdout
}

#[test]
fn many_receivers_fit_a_terminal() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let names: Vec<String> = (1..=17).map(|n| format!("station-{n}")).collect();
    let running: Vec<_> = names.iter().map(|name| place.receive(name, &[])).collect();
    let list = listed(&place, &names.join("\n"), ",absent");
    let args = ["--rate", "2 Mbit/s", "--silence", "3 s", "--receivers", &list];
    let drawn = drawn(&place, &place.send_command(&[&file], &args));
    for receiver in running {
        receiver.succeed();
    }
    for part in [
        "17 of 18 confirmed; for absent",
        "  and 9 more",
        "and so on (--log has all)",
        "and 3 more receivers; --json and --report have all of them",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    for kind in ["registered: ", "done: "] {
        assert_eq!(drawn.matches(kind).count(), 10, "{kind}: {drawn}");
    }
    // The one that lacks it is the first of the table.
    let rule = drawn.find("------").unwrap();
    assert!(drawn[rule..].lines().nth(1).unwrap().starts_with("absent "), "{drawn}");
}
