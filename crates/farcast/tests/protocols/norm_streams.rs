//! Streams by NORM, from standard input to standard output, and to and from NRL's libnorm, on separate hosts that lose
//! some of their incoming datagrams.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::stage::Stage;
use crate::common::{self, Place, Running, noise};

/// Starts the library's program at host `n`.
fn libnorm(stage: &Stage, peer: &Path, n: usize, args: &[&str]) -> Running {
    let (address, port) = stage.place.group.split_once(':').unwrap();
    let mut command = Command::new(peer);
    command.args([args[0], address, port, "eth0"]).args(&args[1..]);
    stage.place.start(&format!("libnorm{n}"), stage.hosts.at(n, &command))
}

/// Compiles a program with the library, in `dir`.
fn peer(dir: &Path) -> PathBuf {
    let header = Path::new("/usr/include/normApi.h");
    assert!(header.exists(), "this test needs the Debian package libnorm-dev; run scripts/setup");
    let program = dir.join("norm_stream_peer");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protocols/norm_stream_peer.c");
    let mut compile = Command::new("c++");
    common::run(compile.args(["-x", "c++", "-O1", "-o"]).arg(&program).args([source, "-lnorm"]));
    program
}

#[test]
fn named_receivers_have_all_of_it_whatever_is_lost() {
    for (loss, octets) in [(0, 0), (5, 1), (5, 1_000_000), (20, 300_000)] {
        let stage = Stage::new("norm", (3, loss), &noise(1, octets));
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
fn blocks_of_more_symbols_than_octets_can_number_are_repaired() {
    let stage = Stage::new("norm", (2, 5), &noise(8, 1_000_000));
    let receivers = stage.receive_all();
    let ended =
        stage.sends_input(&["--receivers", "2,3", "--block-size", "200", "--parity", "100"]).succeed();
    assert!(ended.stderr.contains("all named receivers have the stream"), "{}", ended.stderr);
    for receiver in receivers {
        receiver.succeed();
    }
    stage.assert_same();
}

#[test]
fn a_small_window_holds_the_sender_and_loses_nothing() {
    let stage = Stage::new("norm", (2, 5), &noise(2, 1_000_000));
    let receivers = stage.receive_all();
    stage.sends_input(&["--receivers", "2,3", "--window", "1 B", "--block-size", "16"]).succeed();
    for receiver in receivers {
        receiver.succeed();
    }
    stage.assert_same();
}

#[test]
fn a_named_receiver_that_is_not_there_is_told() {
    let stage = Stage::new("norm", (1, 0), b"for two");
    let receiver = stage.receives(2, &[]);
    let ended = stage.sends_input(&["--receivers", "2,nobody"]).wait();
    ended.assert_failed(3, &["a named receiver lacks some of it"]);
    receiver.succeed();
    stage.assert_same();
}

#[test]
fn what_is_written_is_there_before_the_stream_ends() {
    let stage = Stage::new("norm", (1, 0), b"first\nsecond\n");
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
    let stage = Stage::new("norm", (3, 0), &lines);
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
        let stage = Stage::new("norm", (receivers, loss), &noise(3, 1_000_000));
        let peer = peer(stage.place.root());
        let running = stage.receive_all();
        let input = stage.input.to_str().unwrap();
        libnorm(&stage, &peer, 1, &["send", "40000000", input, &receivers.to_string()]).succeed();
        for receiver in running {
            receiver.succeed();
        }
        stage.assert_same();
    }
}

#[test]
fn farcast_streams_to_libnorm() {
    for (receivers, loss) in [(1, 0), (3, 5)] {
        let stage = Stage::new("norm", (receivers, loss), &noise(4, 1_000_000));
        let peer = peer(stage.place.root());
        let receive = |n: usize| {
            let output = stage.output(n);
            let running = libnorm(&stage, &peer, n, &["receive", &n.to_string(), output.to_str().unwrap()]);
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
