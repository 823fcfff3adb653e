//! Streams by PGM, from standard input to standard output, and to and from OpenPGM, on separate hosts that lose some of
//! their incoming datagrams.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::stage::Stage;
use crate::common::{self, Place, Running, noise};

const RTT: [&str; 2] = ["--rtt", "20 ms"];

fn stage(receivers: usize, loss: u32, octets: &[u8]) -> Stage {
    Stage::new("pgm", (receivers, loss), octets)
}

fn receives(stage: &Stage, n: usize, args: &[&str]) -> Running {
    stage.receives(n, &[&RTT[..], args].concat())
}

fn receive_all(stage: &Stage) -> Vec<Running> {
    stage.nodes().map(|n| receives(stage, n, &[])).collect()
}

fn lines(count: u32) -> Vec<u8> {
    (0..count).flat_map(|n| format!("line {n}\n").into_bytes()).collect()
}

#[test]
fn named_receivers_have_all_of_it_whatever_is_lost() {
    for (loss, octets, args) in [
        (0, 0, &[][..]),
        (5, 1, &[]),
        (5, 1_000_000, &[]),
        (20, 300_000, &["--window", "20 kB"]),
        (2, 300_000, &["--cc"]),
    ] {
        let stage = stage(2, loss, &noise(1, octets));
        let receivers = receive_all(&stage);
        let ended = stage.sends_input(&[&["--receivers", &stage.names()], args].concat()).succeed();
        assert!(ended.stderr.contains("all named receivers have the stream"), "{}", ended.stderr);
        for receiver in receivers {
            receiver.succeed();
        }
        stage.assert_same();
    }
}

#[test]
fn a_named_receiver_that_is_not_there_is_told() {
    let stage = stage(1, 0, b"for two");
    let receiver = receives(&stage, 2, &[]);
    let ended = stage.sends_input(&["--receivers", "2,nobody", "--linger", "1 s"]).wait();
    ended.assert_failed(3, &["a named receiver lacks some of it"]);
    receiver.succeed();
    stage.assert_same();
}

#[test]
fn what_is_written_is_there_before_the_stream_ends() {
    let stage = stage(1, 0, b"first\nsecond\n");
    let mut receiver = receives(&stage, 2, &[]);
    let done = stage.place.path("done");
    let script =
        format!("(echo first; until [ -e '{}' ]; do sleep 0.05; done; echo second) | \"$@\"", done.display());
    let sender = stage.sends(&script, &["--rate", "1 Mbit/s", "--receivers", "2", "--lines"]);
    common::wait_until("the first line", || std::fs::read(stage.output(2)).unwrap() == b"first\n");
    assert!(receiver.is_running());
    std::fs::write(done, "").unwrap();
    sender.succeed();
    receiver.succeed();
    stage.assert_same();
}

#[test]
fn who_comes_late_has_all_while_it_is_kept_and_else_begins_with_a_line() {
    let lines = lines(2_000);
    let stage = stage(4, 0, &lines);
    let whole = receives(&stage, 2, &[]);
    // 2,000 lines of a TPDU each take four seconds and more; 200 of them are kept.
    let script = format!("exec \"$@\" < '{}'", stage.input.display());
    let args =
        ["--rate", "250 kbit/s", "--rtt", "20 ms", "--lines", "--window", "20 kB", "--segment-size", "100"];
    let sender = stage.sends(&script, &[&args[..], &["--linger", "1 s"]].concat());
    common::wait_until("some of it", || std::fs::metadata(stage.output(2)).unwrap().len() > 0);
    let early = receives(&stage, 3, &[]);
    let now = receives(&stage, 4, &["--from-now"]);
    common::wait_until("half of it", || std::fs::metadata(stage.output(2)).unwrap().len() > 8_000);
    let late = receives(&stage, 5, &[]);
    sender.succeed();
    whole.succeed();
    early.succeed();
    stage.assert_has(2);
    stage.assert_has(3);
    for (n, receiver, least) in [(4, now, 0), (5, late, 8_000)] {
        let ended = receiver.succeed();
        let got = std::fs::read(stage.output(n)).unwrap();
        assert!(got.starts_with(b"line ") && lines.ends_with(&got), "{n}: {} octets", got.len());
        let before = lines.len() - got.len();
        assert!(before > least && !got.is_empty(), "{n}: {before} octets are not there");
        // Each line is a number.
        let number = lines[..before].split(|&octet| octet == b'\n').count() - 1;
        let said = format!("it is received from where it is, with number {number}\n");
        assert!(ended.stderr.contains(&said), "{said}{}", ended.stderr);
    }
}

#[test]
fn what_is_lost_for_good_is_told_and_is_a_failure() {
    let lines = lines(2_000);
    let stage = stage(3, 0, &lines);
    let whole = receives(&stage, 2, &[]);
    let (stops, skips) = (receives(&stage, 3, &[]), receives(&stage, 4, &["--skip-gaps"]));
    let script = format!("exec \"$@\" < '{}'", stage.input.display());
    let args =
        ["--rate", "250 kbit/s", "--rtt", "20 ms", "--lines", "--window", "1 kB", "--segment-size", "100"];
    let sender = stage.sends(&script, &[&args[..], &["--linger", "1 s"]].concat());
    let until = |octets| {
        common::wait_until("some of it", || std::fs::metadata(stage.output(2)).unwrap().len() > octets);
    };
    until(1_000);
    stage.hosts.cut(3);
    stage.hosts.cut(4);
    until(4_000);
    stage.hosts.mend();
    stops.wait().assert_failed(1, &["what has number", "cannot be had"]);
    let ended = skips.wait();
    ended.assert_failed(1, &["what has number", "cannot be had", "it goes on with number"]);
    sender.succeed();
    whole.succeed();
    stage.assert_has(2);
    let (stopped, skipped) =
        (std::fs::read(stage.output(3)).unwrap(), std::fs::read(stage.output(4)).unwrap());
    assert!(lines.starts_with(&stopped) && stopped.len() < 4_000, "{} octets", stopped.len());
    // It was cut off a little later, and has some more of the lines before the gap.
    let same = lines.iter().zip(&skipped).take_while(|(sent, got)| sent == got).count();
    let gap = skipped[..same].iter().rposition(|&octet| octet == b'\n').map_or(0, |at| at + 1);
    let rest = &skipped[gap..];
    assert!(skipped.starts_with(&stopped) && gap >= stopped.len(), "{} octets, {gap}", stopped.len());
    assert!(lines.ends_with(rest) && rest.len() > 4_000, "{} octets", rest.len());
    let lost = lines.len() - skipped.len();
    assert!(lost > 1_000, "{lost} octets");
}

#[test]
fn a_sender_that_is_killed_is_a_failure_and_what_came_is_there() {
    let stage = stage(1, 0, b"what there was\n");
    let receiver = receives(&stage, 2, &["--patience", "2 s"]);
    // A pipe that has no end, as who reads it may write to it, too.
    let pipe = stage.place.path("pipe");
    common::run(Command::new("mkfifo").arg(&pipe));
    let script =
        format!("exec 3<>'{}'; cat '{}' >&3; exec \"$@\" <&3", pipe.display(), stage.input.display());
    let sender = stage.sends(&script, &["--rate", "1 Mbit/s"]);
    common::wait_until("a line", || std::fs::metadata(stage.output(2)).unwrap().len() > 0);
    sender.kill9();
    receiver.wait().assert_failed(1, &["the sender has left before the stream's end"]);
    stage.assert_same();
}

/// Under PGMCC without a receiver that acknowledges, a packet leaves every few seconds. The input that has been read
/// then takes long.
#[test]
fn who_interrupts_twice_waits_no_longer() {
    let stage = stage(1, 0, &lines(1000));
    let mut sender = stage.sends_input(&["--cc"]);
    common::wait_until("the sender", || sender.stderr().contains("sending standard input"));
    common::pause(Duration::from_millis(500));
    sender.terminate();
    common::pause(Duration::from_secs(2));
    assert!(sender.is_running(), "what has been read is sent");
    sender.terminate();
    common::pause(Duration::from_secs(1));
    assert!(!sender.is_running(), "it waits on");
    sender.wait().assert_failed(1, &[]);
}

#[test]
fn a_stream_goes_over_ip_itself() {
    let stage = stage(2, 2, &noise(5, 200_000));
    let receivers: Vec<Running> = stage.nodes().map(|n| receives(&stage, n, &["--raw"])).collect();
    stage.sends_input(&["--receivers", &stage.names(), "--raw"]).succeed();
    for receiver in receivers {
        receiver.succeed();
    }
    stage.assert_same();
}

#[test]
fn what_goes_with_no_stream_is_refused() {
    let place = Place::new();
    let send = |args: &[&str]| {
        let mut command = place.farcast(["send", "--protocol", "pgm", "--to", &place.group]);
        command.args(["--rate", "1 Mbit/s"]).args(args);
        place.run("send", command)
    };
    send(&["--stream", "--parity", "auto"]).assert_failed(2, &["parity is for files"]);
    send(&["--stream", "--predict", "mftp-bgan"]).assert_failed(2, &["--predict is for files"]);
    send(&["--stream", "--raw", "--unicast-port", "7"]).assert_failed(2, &["--unicast-port is a UDP port"]);
    send(&["file", "--unicast-port", "7"]).assert_failed(2, &["--stream"]);
}

/// Compiles a program with OpenPGM, in `dir`.
fn peer(dir: &Path) -> PathBuf {
    let headers = "/usr/include/pgm-5.3";
    assert!(Path::new(headers).exists(), "this test needs the Debian package libpgm-dev; run scripts/setup");
    let program = dir.join("openpgm_peer");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../farcast-pgm/tests/openpgm/peer.c");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-I", headers, "-o"]).arg(&program).args([source, "-lpgm", "-lpthread", "-lm"]);
    common::run(&mut compile);
    program
}

/// Starts OpenPGM's program at host `n` for the task `what`, with further words.
fn openpgm(stage: &Stage, n: usize, (what, words): (&str, &[&str])) -> Running {
    let (address, port) = stage.place.group.split_once(':').unwrap();
    let mut command = Command::new(peer(stage.place.root()));
    command.args([what, "udp", address, port, "-"]).args(words);
    command.env("OPENPGM_INTERFACE", format!("10.77.0.{n}")).env("OPENPGM_CLOSE", "1");
    stage.place.start(&format!("openpgm{n}"), stage.hosts.at(n, &command))
}

fn port(stage: &Stage) -> &str {
    stage.place.group.split_once(':').unwrap().1
}

/// Returns the checksum that OpenPGM's program prints of a message.
fn sum(octets: &[u8]) -> u32 {
    octets.iter().fold(0, |sum: u32, &octet| sum.wrapping_mul(31).wrapping_add(octet.into()))
}

#[test]
fn farcast_streams_to_openpgm() {
    // Lines of up to three TPDUs.
    let line = |n: u32| {
        let mut line = vec![b'a' + (n % 26) as u8; (n * 97 % 3000) as usize];
        line.push(b'\n');
        line
    };
    let input: Vec<u8> = (0..400).flat_map(line).collect();
    for loss in [0, 5] {
        let stage = stage(1, loss, &input);
        let receiver = openpgm(&stage, 2, ("receive", &[]));
        common::wait_until("OpenPGM", || receiver.stdout().contains("listening"));
        let args = ["--lines", "--unicast-port", port(&stage), "--linger", "4 s"];
        let sender = stage.sends_input(&args);
        let heard =
            |receiver: &Running| receiver.stdout().lines().filter(|line| !line.starts_with("Warn")).count();
        common::wait_until("all of it", || heard(&receiver) > 400 || receiver.stdout().contains("reset"));
        let said = receiver.stdout();
        let expected = (0..400).map(|n| format!("{} {}", line(n).len(), sum(&line(n))));
        let got = said.lines().filter(|line| !line.starts_with("Warn")).skip(1);
        assert!(got.map(str::to_owned).eq(expected), "loss {loss}: {said}");
        sender.succeed();
    }
}

#[test]
fn openpgm_streams_to_farcast() {
    let length = |n: u32| 200 + 997 * n % 1200;
    let octet = |n: u32, i: u32| if i < 4 { n.to_be_bytes()[i as usize] } else { (31 * n + 7 * i) as u8 };
    let octets: Vec<u8> = (0..1000).flat_map(|n| (0..length(n)).map(move |i| octet(n, i))).collect();
    for loss in [0, 5] {
        let stage = stage(1, loss, &octets);
        let receiver = receives(&stage, 2, &["--unicast-port", port(&stage)]);
        let sender = openpgm(&stage, 1, ("send", &["1000", "1000000"]));
        receiver.succeed();
        stage.assert_same();
        sender.succeed();
    }
}
