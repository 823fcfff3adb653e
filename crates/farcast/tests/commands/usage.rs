//! Impossible command lines: they are refused at once, with a remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use farcast_core::BitRate;
use serde_json::Value;

use crate::common::{self, Place, member};

const RATE: [&str; 2] = ["--rate", "20 Mbit/s"];
const PROTOCOLS: [&str; 5] = ["mftp", "norm", "mdp", "pgm", "one-way"];

#[test]
fn names_that_nobody_can_have_are_refused_at_once() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let long = "n".repeat(65);
    for protocol in PROTOCOLS {
        for (names, part) in [
            ("", "is it a variable without a value?"),
            (" ", "is it a variable without a value?"),
            ("r1,", "is there a comma too many?"),
            ("r1,,r2", "is there a comma too many?"),
            ("r1, r1", "names \"r1\" twice"),
            (&long, "1 to 64 bytes"),
            ("r1,a\u{1b}b", "control character"),
        ] {
            let args = [&RATE[..], &["--protocol", protocol, "--receivers", names]].concat();
            let ended = place.run("sender", place.send_command(&[&file], &args));
            ended.assert_one_sentence(2, &["--receivers", part]);
        }
        for (name, part) in [("", "empty"), (&long, "1 to 64 bytes"), ("a,b", "comma")] {
            let ended = place.run("ant", place.receive_command(name, &["--protocol", protocol]));
            ended.assert_one_sentence(2, &["--name", part]);
        }
        let ended =
            place.run("ant", place.receive_command("ant", &["--protocol", protocol, "--trust", "a,,b"]));
        ended.assert_one_sentence(2, &["--trust", "comma"]);
        let ended = place
            .run("ant", place.receive_command("ant", &["--protocol", protocol, "--accept", "10.0.0.1,"]));
        ended.assert_failed(2, &["--accept"]);
    }
    for protocol in ["norm", "mdp", "pgm"] {
        let args = [&RATE[..], &["--protocol", protocol, "--receivers", "1, 0"]].concat();
        place
            .run("sender", place.send_command(&[&file], &args))
            .assert_one_sentence(2, &["\"0\" is no node"]);
    }
    let elements = place.farcast(["element", "--interfaces", "e0, e0"]);
    place.run("element", elements).assert_one_sentence(2, &["e0 is named twice"]);
    let elements = place.farcast(["element", "--interfaces", "e0,"]);
    place.run("element", elements).assert_one_sentence(2, &["--interfaces", "comma"]);
}

#[test]
fn space_around_a_name_is_no_part_of_it() {
    for protocol in ["mftp", "norm"] {
        let place = Place::new();
        let file = place.file("product.bin", 1_000);
        let receivers = ["7", "8"].map(|name| place.receive(name, &["--protocol", protocol]));
        let args = [&RATE[..], &["--protocol", protocol, "--receivers", "7, 8 "]].concat();
        let sent = place.send(&[&file], &args).succeed().summary();
        assert_eq!(member(&sent, "8")["complete"], true, "{sent}");
        for receiver in receivers {
            receiver.succeed();
        }
        place.assert_received(&file, &["7", "8"]);
    }
}

#[test]
fn where_nobody_can_press_enter_that_is_said() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let send = || place.send_command(&[&file], &[&RATE[..], &["--start-on-enter"]].concat());
    let mut command = send();
    command.stdin(Stdio::null());
    let ended = place.run("sender", command);
    ended.assert_one_sentence(2, &["--start-on-enter", "standard input has ended", "--wait-for"]);
    // One that ends later.
    let mut command = send();
    command.stdin(Stdio::piped());
    let mut sender = place.start("sender", command);
    common::wait_until("it begins", || sender.stderr().contains("sending"));
    drop(sender.child.stdin.take());
    sender.wait().assert_failed(1, &["--start-on-enter", "standard input has ended", "stopped"]);
    // And where somebody can.
    let receiver = place.receive("ant", &[]);
    let mut command = send();
    command.arg("--json").stdin(Stdio::piped());
    let mut sender = place.start("sender", command);
    sender.until("registered");
    sender.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    sender.succeed();
    receiver.succeed();
}

#[test]
fn a_name_that_is_too_long_is_named_with_its_remedy() {
    let place = Place::new();
    // 6 directories of 250 octets: as long as a path may be here, and longer than a segment.
    let name = "n".repeat(250);
    let deep = (0..6).fold(place.path("tree"), |path, _| path.join(&name));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("end"), "end").unwrap();
    let tree = place.path("tree");
    for (protocol, larger) in [("norm", true), ("mdp", true), ("pgm", false)] {
        let send = |more: &[&str]| {
            let args = [
                &RATE[..],
                &["--protocol", protocol, "--robust", "1"][..if protocol == "pgm" { 2 } else { 4 }],
                more,
            ]
            .concat();
            place.run("sender", place.send_command(&[&tree], &args))
        };
        let ended = send(&[]);
        ended.assert_one_sentence(
            2,
            &["the name of the file tree/nnn", "/end has 1514 octets", "--protocol mftp"],
        );
        let said = ended.stderr.split("--segment-size ").nth(1);
        let size = said.map(|rest| rest.split(' ').next().unwrap());
        assert_eq!(size.is_some(), larger, "{}", ended.story());
        if let Some(size) = size {
            let ended = send(&["--segment-size", size]);
            assert_eq!(ended.code, Some(0), "{}", ended.story());
        }
    }
}

/// The output of a receiver's command stays out of the events, and the summary is the last event.
#[test]
fn a_summary_is_the_last_event() {
    for protocol in ["mftp", "norm"] {
        let place = Place::new();
        let file = place.file("product.bin", 1_000);
        let receiver =
            place.receive("7", &["--protocol", protocol, "--on-complete", "echo not json; sleep 0.2"]);
        let args = [&RATE[..], &["--protocol", protocol, "--receivers", "7"]].concat();
        let sent = place.send(&[&file], &args).succeed();
        let got = receiver.succeed();
        for ended in [&sent, &got] {
            assert_eq!(ended.events().last().unwrap()["event"], "summary", "{}", ended.story());
            ended.events().iter().for_each(assert_as_the_schema_says);
        }
        assert_eq!(got.all("on_complete").len(), 1, "{}", got.story());
        assert!(got.stderr.contains("not json"), "{}", got.story());
    }
}

/// If few files may be open at once, fewer are kept open.
#[test]
fn many_files_need_few_descriptors() {
    for protocol in ["mftp", "norm", "pgm"] {
        let place = Place::new();
        for n in 0..200 {
            place.file(&format!("tree/{}/file{n}", n / 20), 100);
        }
        let receiver = place.receive("7", &["--protocol", protocol]);
        let args = [&RATE[..], &["--protocol", protocol, "--receivers", "7"]].concat();
        let send = place.send_command(&[&place.path("tree")], &args);
        let ended = place.run("sender", few_descriptors(&place, 40, &send));
        assert_eq!(ended.code, Some(0), "{protocol}: {}", ended.story());
        receiver.wait();
    }
}

/// Options without effect, and impossible options, are refused with a remedy.
#[test]
fn options_that_would_do_nothing_are_refused() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let refused = |args: &[&str], parts: &[&str]| {
        let ended = place.run("sender", place.send_command(&[&file], &[&RATE[..], args].concat()));
        ended.assert_failed(2, parts);
    };
    for protocol in PROTOCOLS {
        refused(&["--protocol", protocol, "--replications", "5"], &["--predict <LINK>"]);
        let known: &[&str] = match protocol {
            "mftp" => &["--wait-for", "1"],
            "one-way" => &[],
            _ => &["--receivers", "1"],
        };
        let args = [&["--protocol", protocol, "--predict", "tcp-geo"], known].concat();
        refused(&args, &["tcp-geo is a scenario", "name a link alone, as geo"]);
    }
    refused(&["--stats", "--predict", "geo", "--wait-for", "1"], &["--stats", "--predict"]);
    refused(&["--unlimited", "--predict", "geo"], &["without --unlimited", "--wait-for"]);
    refused(&["--receivers", "a,b", "--wait-for", "3"], &["--wait-for 3 waits for more than the 2"]);
    let ended = place.run(
        "sender",
        place.send_command(&[&file], &[&RATE[..], &["--wait-for", "1", "--predict", "nosuch"]].concat()),
    );
    ended.assert_one_sentence(2, &["nosuch", "one of the shipped links (geo"]);
    assert!(!ended.stderr.contains("mftp-bgan"), "{}", ended.story());
    for protocol in PROTOCOLS {
        let mut command =
            place.farcast(["receive", "--from", "239.1.1.1:0", "--protocol", protocol, "--into"]);
        command.arg(place.path("in"));
        place.run("ant", command).assert_one_sentence(2, &["--from must not have port 0"]);
    }
    let mut command = place.farcast(["key", "trust"]);
    command.arg(place.file("no-key", 2));
    let ended = place.run("key", command);
    assert!(!ended.stderr.contains("a name is missing"), "{}", ended.story());
}

/// An impossible place for results is reported before any work.
#[test]
fn places_where_results_cannot_go_are_refused_at_once() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let (file, inside) = (file.to_str().unwrap(), format!("{}/x", file.display()));
    let directory = place.path("there");
    fs::create_dir(&directory).unwrap();
    let (directory, absent) = (directory.to_str().unwrap(), place.path("absent/x.html"));
    let absent = absent.to_str().unwrap();
    let into = place.path("in");
    let into = into.to_str().unwrap();
    let refused = |args: &[&str], code: i32, part: &str| {
        let ended = place.run("command", place.farcast(args.iter().copied()));
        ended.assert_one_sentence(code, &[part]);
        assert!(
            !ended.stderr.contains("os error") && !ended.stderr.contains("(at path"),
            "{}",
            ended.story()
        );
    };
    for out in [file, &inside] {
        refused(&["sweep", "mftp-bgan", "--vary", "protocol.srt.n=2,3", "--out", out], 2, "is no directory");
        refused(&["reproduce", "tcp-reference", "--quick", "--out", out], 2, "is no directory");
    }
    for (path, part) in [(directory, "is a directory: name a file"), (absent, "there is no directory")] {
        for option in ["--report", "--trace", "--timeline"] {
            refused(&["simulate", "mftp-bgan", "-n", "1", option, path], 2, part);
            refused(&["emulate", "geo", option, path, "--", "true"], 125, part);
        }
        for option in ["--report", "--plan"] {
            refused(&["tune", "mftp-bgan", option, path], 2, part);
        }
        refused(&["compare", "a.csv", "b.csv", "--report", path], 2, part);
        let send = ["send", file, "--to", "239.1.1.1", "--rate", "1 Mbit/s", "--report", path];
        refused(&send, 2, part);
        refused(&["receive", "--from", "239.1.1.1", "--into", into, "--report", path], 2, part);
    }
}

/// The rate at the end is that of the data that has left, in the time that it took.
#[test]
fn what_was_cut_short_has_the_rate_of_what_left() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    for (protocol, limit) in
        [("norm", "--time-limit"), ("mdp", "--time-limit"), ("pgm", "--time-limit"), ("one-way", "--for")]
    {
        let args = ["--rate", "2 Mbit/s", "--protocol", protocol, limit, "800 ms"];
        let ended = place.run("sender", place.send_command(&[&file], &args));
        let rate =
            ended.stdout.rsplit_once("; not sealed").unwrap().0.rsplit_once(", ").unwrap().1.to_owned();
        let bps = rate.parse::<BitRate>().unwrap_or_else(|_| panic!("{rate}: {}", ended.story())).as_bps();
        assert!((500_000..2_300_000).contains(&bps), "{protocol}: {rate}: {}", ended.story());
    }
    // The wait until no receiver asks any more is no time of data.
    let file = place.file("small.bin", 300_000);
    let args = ["--rate", "20 Mbit/s", "--protocol", "norm", "--robust", "2", "--json"];
    let sent = place.run("sender", place.send_command(&[&file], &args)).summary();
    let (data, whole) = (sent["data_time_s"].as_f64().unwrap(), sent["time_s"].as_f64().unwrap());
    assert!(data > 0.1 && data < 0.5 && whole > 2.0 * data, "{sent}");
}

/// An empty file has no ratio of sent octets to its size.
#[test]
fn nothing_is_no_multiple_of_itself() {
    let place = Place::new();
    let file = place.file("empty", 0);
    let args = [&RATE[..], &["--one-way"]].concat();
    let ended = place.run("sender", place.send_command(&[&file], &args));
    assert!(!ended.stdout.contains("times the size"), "{}", ended.story());
    let ended = place.run("sender", place.send_command(&[&file], &[&args[..], &["--json"]].concat()));
    assert_eq!(ended.summary()["wire_bytes_over_size"], Value::Null, "{}", ended.story());
}

/// Returns the path of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the schema's entry for each event.
fn schema() -> BTreeMap<String, Value> {
    let text = fs::read_to_string(repository().join("docs/src/events.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let one = |one: &Value| (one["properties"]["event"]["const"].as_str().unwrap().to_owned(), one.clone());
    schema["oneOf"].as_array().unwrap().iter().map(one).collect()
}

/// Asserts that an event is one of the schema's, with all required keys.
fn assert_as_the_schema_says(event: &Value) {
    let schema = schema();
    let kind = event["event"].as_str().unwrap();
    let known = schema.get(kind).unwrap_or_else(|| panic!("{kind} is not in the schema: {event}"));
    assert!(event["time"].is_number(), "{event}");
    for key in known["required"].as_array().unwrap() {
        let value = &event[key.as_str().unwrap()];
        let right = match known["properties"][key.as_str().unwrap()]["type"].as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            _ => !value.is_null(),
        };
        assert!(right, "{key} of {event}");
    }
}

/// Collects the kinds of events in source text: quoted words where an event is reported.
fn told_in(text: &str, kinds: &mut BTreeSet<String>) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for before in [".event(\"", ".event( \"", "kind: \"", ".list(\""] {
        let told = text.split(before).skip(1).filter_map(|rest| rest.split('"').next());
        kinds.extend(told.map(str::to_owned));
    }
    for behind in ["\", json!(", "\", fields"] {
        let parts: Vec<&str> = text.split(behind).collect();
        let told = parts[..parts.len() - 1].iter().filter_map(|part| part.rsplit('"').next());
        kinds.extend(
            told.filter(|kind| kind.bytes().all(|c| c.is_ascii_lowercase() || c == b'_')).map(str::to_owned),
        );
    }
}

fn sources(dir: &Path, text: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else {
            let source = fs::read_to_string(&path).unwrap();
            text.push((path, source));
        }
    }
}

/// Every event of the sources is in the schema and on the page, and the schema has no others.
#[test]
fn every_event_is_in_the_schema_and_on_the_page() {
    let mut told = BTreeSet::new();
    for part in ["send.rs", "receive.rs", "element.rs"] {
        told_in(&fs::read_to_string(repository().join("crates/farcast/src").join(part)).unwrap(), &mut told);
    }
    let mut all = Vec::new();
    for part in ["farcast/src/send", "farcast/src/receive", "farcast-transfer/src"] {
        sources(&repository().join("crates").join(part), &mut all);
    }
    for (_, text) in &all {
        told_in(text, &mut told);
    }
    // What does not pass the seal.
    told.extend(
        ["sealed", "not_sealed", "not_trusted", "no_key", "other_scope", "earlier", "foreign"]
            .map(str::to_owned),
    );
    let schema: BTreeSet<String> = schema().into_keys().collect();
    assert_eq!(told, schema);
    let page = fs::read_to_string(repository().join("docs/src/formats.md")).unwrap();
    let section = page.split("\n## Events\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let missing: Vec<&String> =
        schema.iter().filter(|kind| !section.contains(&format!("`{kind}`"))).collect();
    assert!(missing.is_empty(), "{missing:?} are not on the page");
}

/// A receiver of many small files needs few descriptors, even with a low limit.
#[test]
fn many_small_files_are_received_with_few_descriptors() {
    // By MDP, receivers count with half a second of round trip, and ask the more rarely.
    for (protocol, count) in [("norm", 800), ("pgm", 800), ("one-way", 800), ("mftp", 800), ("mdp", 150)] {
        let place = Place::new();
        fs::create_dir(place.path("tree")).unwrap();
        for n in 0..count {
            fs::write(place.path("tree").join(format!("f{n}")), format!("file {n}\n")).unwrap();
        }
        let args = ["--protocol", protocol, "--once", "--json"];
        let receive = few_descriptors(&place, 64, &place.receive_command("7", &args));
        let receiver = place.start("receiver", receive);
        receiver.until("listening");
        let mut args = [&RATE[..], &["--protocol", protocol]].concat();
        if protocol != "one-way" {
            args.extend(["--receivers", "7"]);
        }
        place.run("sender", few_descriptors(&place, 64, &place.send_command(&[&place.path("tree")], &args)));
        receiver.succeed();
        let got = walk(&place.path("7"));
        assert_eq!(got, count, "{protocol}");
    }
}

#[test]
fn a_start_behind_the_end_of_announcing_is_refused() {
    let place = Place::new();
    let file = place.file("file", 10);
    let args = [&RATE[..], &["--start-after", "9 s", "--announce-time", "8 s"]].concat();
    let ended = place.run("sender", place.send_command(&[&file], &args));
    ended.assert_one_sentence(2, &["--start-after 9.0 s is later than --announce-time 8.0 s"]);
}

#[test]
fn a_receiver_of_another_protocol_says_that_it_cannot_read_what_comes() {
    let protocols = ["mftp", "norm", "mdp", "pgm", "one-way"];
    for (at, listens) in protocols.into_iter().enumerate() {
        let sends = protocols[(at + 1) % protocols.len()];
        let place = Place::new();
        let file = place.file("product.bin", 500_000);
        let receiver = place.receive("7", &["--protocol", listens]);
        let mut args = [&RATE[..], &["--protocol", sends]].concat();
        args.extend((sends == "mftp").then_some("--unlimited"));
        let sender = place.send(&[&file], &args);
        assert_eq!(receiver.until("foreign")["source"], "127.0.0.1", "{listens} hears {sends}");
        drop((sender, receiver));
    }
}

#[test]
fn a_receiver_says_no_sentence_twice() {
    for protocol in ["mftp", "norm", "mdp", "one-way"] {
        let place = Place::new();
        let file = place.file("product.bin", 1000);
        fs::create_dir_all(place.path("7/product.bin/in the way")).unwrap();
        let receiver =
            place.start("receiver", place.receive_command("7", &["--protocol", protocol, "--once"]));
        common::wait_until("a receiver", || receiver.stderr().contains("listens on"));
        let named: &[&str] = if protocol == "one-way" { &[] } else { &["--receivers", "7"] };
        let args = [&RATE[..], &["--protocol", protocol, "--time-limit", "5 s"], named].concat();
        place.send(&[&file], &args).wait();
        let ended = receiver.wait();
        assert!(matches!(ended.code, Some(1 | 3)), "{protocol}: {}", ended.story());
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let (last, before) = lines.split_last().unwrap();
        let last = last.strip_prefix("farcast: ").unwrap();
        assert!(!before.contains(&last), "{protocol}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("in the way") || ended.stderr.contains("product.bin"),
            "{}",
            ended.stderr
        );
    }
}

/// Returns `command` with a limit of `count` descriptors.
fn few_descriptors(place: &Place, count: u32, command: &std::process::Command) -> std::process::Command {
    let mut few = std::process::Command::new("sh");
    let script = format!("ulimit -n {count}; exec \"$@\"");
    few.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    few.env("XDG_STATE_HOME", place.path("state")).env("XDG_CONFIG_HOME", place.path("config"));
    few
}

/// Returns the number of files below `dir`.
fn walk(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { walk(&path) } else { 1 }).sum()
}
