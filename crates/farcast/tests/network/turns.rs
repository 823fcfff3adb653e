//! `send --wait`: waits for a group that another sender uses.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{self, Place, Running, noise, wait_until};

/// Sender on the group of `place` that takes about `seconds` s, with its data under way.
struct First {
    sender: Running,
    receiver: Running,
    file: PathBuf,
}

impl First {
    fn new(place: &Place, seconds: usize) -> Self {
        let file = place.file("first.bin", seconds * 500_000);
        let receiver = place.receive("ant", &[]);
        let sender = place.send(&[&file], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
        wait_until("data", || receiver.has("files"));
        Self { sender, receiver, file }
    }

    /// Waits for the sender's end, which must be as if it were alone. Returns the time of its last event.
    fn end(self, place: &Place) -> f64 {
        let sent = self.sender.succeed();
        self.receiver.succeed();
        place.assert_received(&self.file, &["ant"]);
        assert_eq!(
            common::dtus_sent(&sent.summary()),
            common::segments(&sent.summary()) + 1,
            "nothing again"
        );
        sent.summary()["time"].as_f64().unwrap()
    }
}

/// Reasons for which the second sender must wait.
const CAUSES: [Cause; 2] = [Cause::Lock, Cause::Data];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// The first sender is on the same host.
    Lock,
    /// The first sender is on another host, as far as the second one knows.
    Data,
}

/// Starts a second sender, to `bee`.
fn second(place: &Place, cause: Cause, args: &[&str]) -> Running {
    let other = place.file("second.bin", 100_000);
    let mut command = place.send_command(&[&other], &["--rate", "4 Mbit/s", "--receivers", "bee", "--json"]);
    if cause == Cause::Data {
        command.env("XDG_STATE_HOME", place.path("elsewhere"));
    }
    command.args(args);
    place.start("second", command)
}

/// Asserts that `event` names the sender that the second one waits for.
fn assert_names(event: &Value, first: &First, place: &Place, cause: Cause) {
    let reason = event["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("{} is in use by ", place.group)), "{event}");
    match cause {
        Cause::Lock => {
            assert_eq!(event["process"], first.sender.child.id(), "{event}");
            assert!(reason.ends_with(&format!("process {}", first.sender.child.id())), "{event}");
        }
        Cause::Data => assert!(event["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{event}"),
    }
}

#[test]
fn it_begins_when_the_group_is_free_with_what_the_files_are_then() {
    for cause in CAUSES {
        let place = Place::new();
        let first = First::new(&place, 6);
        let second = second(&place, cause, &["--wait"]);
        assert_names(&second.until("waiting"), &first, &place, cause);
        // A receiver that registers while another sender sends is served by that one, so none may be there before.
        let bee = place.receive("bee", &[]);
        let changed = place.path("second.bin");
        fs::write(&changed, noise(7, 200_000)).unwrap();
        let end = first.end(&place);
        let sent = second.succeed();
        bee.succeed();
        place.assert_received(&changed, &["bee"]);
        assert_eq!(sent.all("waiting").len(), 1, "{cause:?}: {}", sent.story());
        let ends: Vec<Value> = sent.all("ended").into_iter().map(|event| event["outcome"].clone()).collect();
        assert_eq!(ends, ["finished"], "{cause:?}");
        let began = sent.all("started")[0]["time"].as_f64().unwrap();
        assert!(began > end - 0.5, "{cause:?}: {began} is before {end}");
    }
}

/// Other protocols' engines do not mind a second sender, but one that is told to wait listens first.
#[test]
fn every_protocol_waits_for_a_sender_on_another_host() {
    std::thread::scope(|scope| {
        for protocol in ["norm", "mdp", "pgm", "one-way"] {
            scope.spawn(move || waits_for_a_sender_elsewhere(protocol));
        }
    });
}

fn waits_for_a_sender_elsewhere(protocol: &str) {
    let place = Place::new();
    let by = ["--protocol", protocol, "--rate", "4 Mbit/s"];
    // One way nobody asks again for what a busy machine drops.
    let named: &[&str] = if protocol == "one-way" { &["--repeat", "2"] } else { &["--receivers", "ant"] };
    let ant = place.receive("ant", &by[..2]);
    let sender = place.send(&[&place.file("first.bin", 2_000_000)], &[&by[..], named].concat());
    wait_until("data", || ant.has("files") || ant.has("joined"));
    let other = place.file("second.bin", 100_000);
    let mut command = place.send_command(&[&other], &[&by[..], &["--wait", "--json"]].concat());
    command.env("XDG_STATE_HOME", place.path("elsewhere"));
    let second = place.start("second", command);
    let waiting = second.until("waiting");
    assert!(waiting["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{protocol}: {waiting}");
    let first = sender.wait();
    let sent = second.wait();
    let time = |ended: &common::Ended, kind| ended.all(kind)[0]["time"].as_f64().unwrap();
    assert!(time(&sent, "round") > time(&first, "summary"), "{protocol}: {} {}", first.story(), sent.story());
    assert_eq!(sent.all("waiting").len(), 1, "{protocol}: {}", sent.story());
    ant.succeed();
    let mut late = place.send_command(&[&other], &[&by[..], &["--wait", "3 s"]].concat());
    let begin = Instant::now();
    late.env("XDG_STATE_HOME", place.path("elsewhere"));
    let alone = place.run("alone", late);
    assert!(matches!(alone.code, Some(0 | 4)), "{protocol}: {}", alone.story());
    assert!(begin.elapsed() > Duration::from_secs(2), "{protocol}: it did not listen");
}

#[test]
fn when_the_time_is_over_it_is_refused_as_ever() {
    for (cause, said) in [
        (Cause::Lock, "still in use by another farcast send"),
        (Cause::Data, "still in use by a transmission from"),
    ] {
        let place = Place::new();
        let mut first = First::new(&place, 8);
        let begin = Instant::now();
        let ended = second(&place, cause, &["--wait", "2 s"]).wait();
        ended.assert_one_sentence(1, &[&place.group, said, "choose another group"]);
        assert_eq!(ended.all("waiting").len(), 1, "{cause:?}: {}", ended.story());
        let waited = begin.elapsed();
        assert!(waited >= Duration::from_secs(2), "{cause:?}: {waited:?}");
        assert!(first.sender.is_running(), "{cause:?}: it gave up late, after {waited:?}");
        first.end(&place);
    }
}

#[test]
fn an_interrupt_ends_the_wait() {
    for cause in CAUSES {
        let place = Place::new();
        let mut first = First::new(&place, 8);
        let second = second(&place, cause, &["--wait"]);
        second.until("waiting");
        second.terminate();
        second.wait().assert_one_sentence(1, &["stopped"]);
        assert!(first.sender.is_running(), "{cause:?}");
        first.end(&place);
    }
}

#[test]
fn people_are_told_once_and_see_it_on_the_terminal() {
    let place = Place::new();
    let first = First::new(&place, 6);
    let command = place.send_command(
        &[&place.file("second.bin", 1_000)],
        &["--rate", "4 Mbit/s", "--receivers", "bee", "--wait", "3 s"],
    );
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let plain = place.start("plain", command);
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qec", &format!("stty cols 120 rows 20; exec {}", words.join(" "))]);
    terminal.arg(place.path("transcript")).env("TERM", "xterm").env("XDG_STATE_HOME", place.path("state"));
    place.run("terminal", terminal).assert_failed(1, &[]);
    let whom = format!("another farcast send on this host, process {}", first.sender.child.id());
    let said = plain.wait().stderr;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("waiting: ") && lines[0].contains(&whom), "{said}");
    let shown = fs::read_to_string(place.path("transcript")).unwrap();
    assert!(shown.contains(&format!("for {whom}")), "{shown}");
    first.end(&place);
}

#[test]
fn a_path_is_not_taken_for_the_time() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let mut command = place.farcast(["send", "--to", &place.group, "--rate", "max", "--wait"]);
    command.arg(&file);
    place.run("sender", command).assert_failed(2, &["--wait", "it must be a time", "behind the paths"]);
}
