//! Standard output, standard error and the log, which may be closed or full, or have no reader. A transfer goes on to
//! its end, and the exit code tells that output was lost.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Ended, Place, wait_until};

/// Opens a device that is always full.
fn full() -> Stdio {
    fs::File::options().write(true).open("/dev/full").unwrap().into()
}

/// Returns `command` with these streams closed from the start.
fn closed(command: &Command, streams: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec \"$@\" {streams}"), "sh"]).arg(command.get_program());
    shell.args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(key, value),
            None => shell.env_remove(key),
        };
    }
    shell
}

/// Returns the exit code of `command`, whose reader leaves after the first line.
fn behind_head(mut command: Command) -> Option<i32> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "it printed nothing");
    end(&mut child)
}

/// Returns the exit code for `2>&1 | head -1`: the reader of both streams leaves.
fn both_behind_head(command: &Command) -> Option<i32> {
    let mut command = closed(command, "2>&1");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "it printed nothing");
    end(&mut child)
}

fn end(child: &mut Child) -> Option<i32> {
    let mut status = None;
    wait_until("its end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

/// Returns the exit code and standard error of `command`, which writes to `stdout`.
fn told(mut command: Command, stdout: Stdio) -> (Option<i32>, String) {
    let mut child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (end(&mut child), said)
}

/// Returns the file and the commands of the sender and the receiver, for a transfer of a second or more.
fn transfer(place: &Place, json: bool) -> (PathBuf, Command, Command) {
    let file = place.file("product.bin", 400_000);
    let mut send = place.send_command(&[&file], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
    let mut receive = place.receive_command("ant", &["--once"]);
    if json {
        send.arg("--json");
        receive.arg("--json");
    }
    (file, send, receive)
}

fn arrived(place: &Place, file: &Path) {
    place.assert_received(file, &["ant"]);
}

#[test]
fn a_reader_that_leaves_ends_no_transfer() {
    for json in [true, false] {
        let place = Place::new();
        let (file, send, receive) = transfer(&place, json);
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| both_behind_head(&receive));
            assert_eq!(both_behind_head(&send), Some(0), "the sender, json {json}");
            assert_eq!(receiver.join().unwrap(), Some(0), "the receiver, json {json}");
        });
        arrived(&place, &file);
    }
}

#[test]
fn streams_that_are_closed_end_no_transfer() {
    for streams in ["2>&-", "2>&- </dev/null"] {
        let place = Place::new();
        let (file, send, receive) = transfer(&place, false);
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| told(closed(&receive, streams), Stdio::null()).0);
            assert_eq!(told(closed(&send, streams), Stdio::null()).0, Some(0), "the sender, {streams}");
            assert_eq!(receiver.join().unwrap(), Some(0), "the receiver, {streams}");
        });
        arrived(&place, &file);
    }
}

#[test]
fn a_result_that_cannot_be_written_is_told_by_the_exit_code() {
    for is_closed in [true, false] {
        let place = Place::new();
        let (file, send, receive) = transfer(&place, true);
        let run = |command: Command| {
            if is_closed { told(closed(&command, ">&-"), Stdio::null()) } else { told(command, full()) }
        };
        std::thread::scope(|scope| {
            let receiver = scope.spawn(move || run(receive));
            for (code, said) in [run(send), receiver.join().unwrap()] {
                assert_eq!(code, Some(1), "closed {is_closed}: {said}");
                let why = if is_closed { "Bad file descriptor" } else { "No space left" };
                let expected = "farcast: cannot write to standard output: ";
                assert!(said.starts_with(expected) && said.contains(why), "{said}");
                assert_eq!(said.lines().count(), 1, "said once: {said}");
            }
        });
        arrived(&place, &file);
    }
}

#[test]
fn who_prints_nothing_needs_no_standard_output() {
    let place = Place::new();
    let (file, mut send, mut receive) = transfer(&place, false);
    send.arg("--quiet");
    receive.arg("--quiet");
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| told(closed(&receive, ">&-"), Stdio::null()));
        assert_eq!(told(closed(&send, ">&-"), Stdio::null()), (Some(0), String::new()));
        assert_eq!(receiver.join().unwrap(), (Some(0), String::new()));
    });
    arrived(&place, &file);
}

#[test]
fn a_log_that_cannot_be_written_is_told_by_the_exit_code() {
    let place = Place::new();
    let (file, mut send, mut receive) = transfer(&place, true);
    send.args(["--log", "/dev/full"]);
    receive.args(["--log", "/dev/full"]);
    let receiver = place.start("ant", receive);
    receiver.until("listening");
    let sender = place.run("sender", send);
    for ended in [sender, receiver.wait()] {
        ended.assert_one_sentence(1, &["cannot write the log /dev/full", "No space left"]);
        assert_eq!(ended.all("summary").len(), 1, "it went on to its end: {}", ended.story());
    }
    arrived(&place, &file);
}

/// Returns every other command that prints.
fn commands(place: &Place) -> Vec<Command> {
    [
        &["--help"][..],
        &["--version"],
        &["send", "--help"],
        &["simulate", "--list"],
        &["simulate", "mftp-bgan", "--show"],
        &["simulate", "mftp-bgan", "-n", "2"],
        &["simulate", "mftp-bgan", "-n", "2", "--json", "--per-receiver"],
        &["model", "mathis", "--mss", "1460 B", "--rtt", "560 ms", "--loss", "0.01"],
        &["model", "mathis", "--mss", "1460 B", "--rtt", "560 ms", "--loss", "0.01", "--json"],
        &["reproduce", "mftp-bgan", "--quick", "--json"],
        &["emulate", "--list"],
    ]
    .map(|args| place.farcast(args))
    .into()
}

#[test]
fn no_command_minds_a_reader_that_leaves() {
    let place = Place::new();
    for command in commands(&place) {
        let name = format!("{command:?}");
        let mut said = closed(&command, "2>err");
        said.current_dir(place.root());
        assert_eq!(behind_head(said), Some(0), "{name}");
        let said = fs::read_to_string(place.path("err")).unwrap();
        assert!(!said.contains("farcast: "), "{name} complains: {said}");
        assert_eq!(both_behind_head(&command), Some(0), "{name} with both");
    }
}

#[test]
fn every_command_tells_that_its_result_is_lost() {
    let place = Place::new();
    for command in commands(&place) {
        let name = format!("{command:?}");
        let failed = if name.contains("emulate") { 125 } else { 1 };
        for (code, said) in [told(closed(&command, ">&-"), Stdio::null()), told(command, full())] {
            assert_eq!(code, Some(failed), "{name}: {said}");
            let lost: Vec<&str> =
                said.lines().filter(|line| line.contains("cannot write to standard output")).collect();
            assert_eq!(lost.len(), 1, "{name}: {said}");
        }
    }
}

/// Runs a transfer to a receiver with a hook. Returns the place, the file and the end of the receiver.
fn with_hook(hook: &str, args: &[&str]) -> (Place, PathBuf, Ended) {
    let place = Place::new();
    let file = place.file("product.bin", 50_000);
    let receiver = place.receive("ant", &[&["--on-complete", hook], args].concat());
    place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    let ended = receiver.wait();
    (place, file, ended)
}

#[test]
fn a_hook_that_fails_is_told_by_the_exit_code() {
    for (hook, part) in [("exit 7", "exit status: 7"), ("kill -9 $$", "signal: 9")] {
        let (place, file, ended) = with_hook(hook, &[]);
        ended.assert_one_sentence(1, &["--on-complete ended with", part]);
        assert_eq!(ended.summary()["complete"], true, "{}", ended.story());
        arrived(&place, &file);
    }
    let (_, _, ended) = with_hook("true", &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

/// Files are sent to a receiver of streams. It reports that, takes nothing, and is not reported to have them.
#[test]
fn files_are_no_stream() {
    for (protocol, patience) in [("norm", ["--robust", "2"]), ("pgm", ["--linger", "1 s"])] {
        let place = Place::new();
        let file = place.file("product.bin", 400_000);
        let listen = ["--protocol", protocol, "--stream", "--name", "7", "--interface", "127.0.0.1"];
        let mut receive = place.farcast(["receive", "--from", &place.group]);
        receive.args(listen).arg("--log").arg(place.path("log"));
        let receiver = place.start("receiver", receive);
        wait_until("the receiver", || receiver.stderr().contains("listening"));
        let words = ["--protocol", protocol, "--rate", "10 Mbit/s", "--receivers", "7", "--rtt", "20 ms"];
        let sent = place.send(&[&file], &[&words[..], &patience].concat()).wait();
        assert_eq!(sent.code, Some(3), "{protocol}: {}", sent.story());
        let wire = sent.summary()["wire_bytes"].as_u64().unwrap();
        assert!(wire < 600_000, "{protocol}: {wire} octets for nobody");
        wait_until("a word", || receiver.stderr().contains("sends files, no stream"));
        receiver.terminate();
        assert_eq!(receiver.wait().stdout, "", "{protocol}: nothing of it is a stream");
    }
}
