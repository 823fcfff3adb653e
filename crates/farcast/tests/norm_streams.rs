//! Streams by NORM, from standard input to standard output, and to and from NRL's libnorm, on hosts of their own that
//! lose what they hear.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and open its own files"
)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Hosts, Place, Running, noise};

/// Host 1 sends, the others receive.
struct Stage {
    place: Place,
    hosts: Hosts,
    receivers: usize,
    input: PathBuf,
}

impl Stage {
    /// `octets` are sent to `receivers` hosts that lose `loss` percent of what they hear, and so does who sends.
    fn new(receivers: usize, loss: u32, octets: &[u8]) -> Self {
        let (place, hosts) = (Place::new(), Hosts::new(receivers + 1));
        for n in 1..=receivers + 1 {
            hosts.ip(n, &["route", "add", "224.0.0.0/4", "dev", "eth0"]);
            if loss > 0 {
                hosts.lose(n, loss);
            }
        }
        let input = place.path("input");
        std::fs::write(&input, octets).unwrap();
        Self { place, hosts, receivers, input }
    }

    fn nodes(&self) -> std::ops::RangeInclusive<usize> {
        2..=self.receivers + 1
    }

    fn names(&self) -> String {
        self.nodes().map(|n| n.to_string()).collect::<Vec<_>>().join(",")
    }

    fn output(&self, n: usize) -> PathBuf {
        self.place.path(&format!("output{n}"))
    }

    /// `command` in a shell, with these redirections, at host `n`.
    fn shell(&self, n: usize, script: &str, command: &Command) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
        let set = command.get_envs().filter_map(|(key, value)| value.map(|value| (key, value)));
        shell.envs(set);
        self.place.start(&format!("host{n}"), self.hosts.at(n, &shell))
    }

    /// Sends what `script` gives to `"$@"`.
    fn sends(&self, script: &str, args: &[&str]) -> Running {
        let mut command = self.place.farcast(["send", "--stream", "--protocol", "norm"]);
        command.args(["--to", &self.place.group, "--interface", "eth0", "--node", "1"]).args(args);
        self.shell(1, script, &command)
    }

    fn sends_input(&self, args: &[&str]) -> Running {
        let script = format!("exec \"$@\" < '{}'", self.input.display());
        self.sends(&script, &[&["--rate", "40 Mbit/s", "--rtt", "20 ms"], args].concat())
    }

    fn receives(&self, n: usize, args: &[&str]) -> Running {
        let mut command = self.place.farcast(["receive", "--stream", "--protocol", "norm"]);
        command
            .args(["--from", &self.place.group, "--interface", "eth0", "--name", &n.to_string()])
            .args(args);
        let running = self.shell(n, &format!("exec \"$@\" > '{}'", self.output(n).display()), &command);
        common::wait_until("a receiver", || running.stderr().contains("listening"));
        running
    }

    fn receive_all(&self) -> Vec<Running> {
        self.nodes().map(|n| self.receives(n, &[])).collect()
    }

    /// The library at host `n`.
    fn libnorm(&self, peer: &Path, n: usize, args: &[&str]) -> Running {
        let (address, port) = self.place.group.split_once(':').unwrap();
        let mut command = Command::new(peer);
        command.args([args[0], address, port, "eth0"]).args(&args[1..]);
        self.place.start(&format!("libnorm{n}"), self.hosts.at(n, &command))
    }

    fn assert_same(&self) {
        self.nodes().for_each(|n| self.assert_has(n));
    }

    fn assert_has(&self, n: usize) {
        let (sent, got) = (std::fs::read(&self.input).unwrap(), std::fs::read(self.output(n)).unwrap());
        assert!(sent == got, "host {n}: {} octets of {}, or others", got.len(), sent.len());
    }
}

/// The library as a program, in `dir`.
fn peer(dir: &Path) -> PathBuf {
    let header = Path::new("/usr/include/normApi.h");
    assert!(header.exists(), "this test needs the Debian package libnorm-dev; run scripts/setup");
    let program = dir.join("norm_stream_peer");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/norm_stream_peer.c");
    let mut compile = Command::new("c++");
    common::run(compile.args(["-x", "c++", "-O1", "-o"]).arg(&program).args([source, "-lnorm"]));
    program
}

#[test]
fn named_receivers_have_all_of_it_whatever_is_lost() {
    for (loss, octets) in [(0, 0), (5, 1), (5, 1_000_000), (20, 300_000)] {
        let stage = Stage::new(3, loss, &noise(1, octets));
        let receivers = stage.receive_all();
        let ended = stage.sends_input(&["--receivers", &stage.names()]).succeed();
        assert!(ended.stderr.contains("all named receivers have the stream"), "{}", ended.stderr);
        for receiver in receivers {
            receiver.succeed();
        }
        stage.assert_same();
    }
}

#[test]
fn a_small_window_holds_the_sender_and_loses_nothing() {
    let stage = Stage::new(2, 5, &noise(2, 1_000_000));
    let receivers = stage.receive_all();
    stage.sends_input(&["--receivers", "2,3", "--window", "1 B", "--block-size", "16"]).succeed();
    for receiver in receivers {
        receiver.succeed();
    }
    stage.assert_same();
}

#[test]
fn a_named_receiver_that_is_not_there_is_told() {
    let stage = Stage::new(1, 0, b"for two");
    let receiver = stage.receives(2, &[]);
    let ended = stage.sends_input(&["--receivers", "2,nobody"]).wait();
    ended.assert_failed(3, &["a named receiver lacks some of it"]);
    receiver.succeed();
    stage.assert_same();
}

#[test]
fn what_is_written_is_there_before_the_stream_ends() {
    let stage = Stage::new(1, 0, b"first\nsecond\n");
    let mut receiver = stage.receives(2, &[]);
    let done = stage.place.path("done");
    let script =
        format!("(echo first; until [ -e '{}' ]; do sleep 0.05; done; echo second) | \"$@\"", done.display());
    let sender = stage.sends(&script, &["--rate", "1 Mbit/s", "--receivers", "2"]);
    common::wait_until("the first line", || std::fs::read(stage.output(2)).unwrap() == b"first\n");
    assert!(receiver.is_running());
    std::fs::write(done, "").unwrap();
    sender.succeed();
    receiver.succeed();
    stage.assert_same();
}

#[test]
fn who_comes_late_begins_with_a_line_or_is_told_what_cannot_be_had() {
    let lines: Vec<u8> = (0..20_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    let stage = Stage::new(3, 0, &lines);
    let whole = stage.receives(2, &[]);
    // 200 kB at 400 kbit/s take four seconds; of what was sent, a quarter is kept.
    let script = format!("exec \"$@\" < '{}'", stage.input.display());
    let args =
        ["--rate", "400 kbit/s", "--rtt", "20 ms", "--lines", "--window", "50 kB", "--block-size", "8"];
    let sender = stage.sends(&script, &args);
    common::wait_until("half of it", || std::fs::metadata(stage.output(2)).unwrap().len() > 120_000);
    let (late, told) = (stage.receives(3, &["--from-now"]), stage.receives(4, &[]));
    told.wait().assert_failed(1, &["the stream's beginning cannot be had any more"]);
    sender.succeed();
    whole.succeed();
    late.succeed();
    stage.assert_has(2);
    let got = std::fs::read(stage.output(3)).unwrap();
    assert!(got.starts_with(b"line ") && lines.ends_with(&got), "{} octets", got.len());
    assert!((1_000..150_000).contains(&got.len()), "{} octets", got.len());
}

#[test]
fn a_stream_goes_to_standard_output_alone() {
    let place = Place::new();
    let receive = |args: &[&str]| {
        let mut command = place.farcast(["receive", "--protocol", "norm", "--from", &place.group]);
        place.run("receive", {
            command.args(args);
            command
        })
    };
    receive(&["--stream", "--json"]).assert_failed(2, &["--json goes to standard output"]);
    receive(&["--stream", "--into", "here"]).assert_failed(2, &["--into"]);
    receive(&["--from-now", "--into", "here"]).assert_failed(2, &["--stream"]);
    let mut mftp = place.farcast(["send", "--stream", "--to", &place.group]);
    mftp.args(["--rate", "1 Mbit/s"]);
    place.run("send", mftp).assert_failed(2, &["--stream goes with --protocol norm"]);
}

#[test]
fn libnorm_streams_to_farcast() {
    for (receivers, loss) in [(1, 0), (3, 5)] {
        let stage = Stage::new(receivers, loss, &noise(3, 1_000_000));
        let peer = peer(stage.place.root());
        let running = stage.receive_all();
        let input = stage.input.to_str().unwrap();
        stage.libnorm(&peer, 1, &["send", "40000000", input, &receivers.to_string()]).succeed();
        for receiver in running {
            receiver.succeed();
        }
        stage.assert_same();
    }
}

#[test]
fn farcast_streams_to_libnorm() {
    for (receivers, loss) in [(1, 0), (3, 5)] {
        let stage = Stage::new(receivers, loss, &noise(4, 1_000_000));
        let peer = peer(stage.place.root());
        let receive = |n: usize| {
            let output = stage.output(n);
            let running = stage.libnorm(&peer, n, &["receive", &n.to_string(), output.to_str().unwrap()]);
            common::wait_until("libnorm", || running.stdout().contains("listening"));
            running
        };
        let running: Vec<Running> = stage.nodes().map(receive).collect();
        stage.sends_input(&["--receivers", &stage.names()]).succeed();
        for receiver in &running {
            common::wait_until("the end", || receiver.stdout().contains("complete"));
            assert!(!receiver.stdout().contains("broken"));
        }
        stage.assert_same();
    }
}
