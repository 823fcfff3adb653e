//! Signals: a hangup, a log that is moved away, and the end of a command that has done its work.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Ended, Place, Running, wait_until};

fn hang_up(running: &Running) {
    kill_process(Pid::from_child(&running.child), Signal::HUP).unwrap();
}

/// Sends a hangup to `command` as soon as it has printed `word`. Returns its end.
fn hung_up(place: &Place, command: Command, word: &str) -> Ended {
    let running = place.start("hung-up", command);
    wait_until(word, || running.stderr().contains(word) || running.stdout().contains(word));
    hang_up(&running);
    running.wait()
}

#[test]
fn a_hangup_ends_what_runs_long_in_good_order() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let send = place.send_command(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]);
    hung_up(&place, send, "sending").assert_failed(1, &["stopped"]);
    for protocol in ["norm", "mdp", "pgm"] {
        let args = ["--rate", "20 Mbit/s", "--receivers", "7", "--protocol", protocol];
        hung_up(&place, place.send_command(&[&file], &args), "sending").assert_failed(1, &["stopped"]);
    }
    let receive = hung_up(&place, place.receive_command("ant", &[]), "listens");
    assert_eq!(receive.code, Some(0), "{}", receive.story());
    let once = hung_up(&place, place.receive_command("ant", &["--once"]), "listens");
    once.assert_failed(1, &["stopped before anything came"]);
    let demo = hung_up(&place, place.farcast(["demo", "--rate", "1 Mbit/s"]), "sending");
    demo.assert_failed(1, &["the demo was stopped"]);
    let mut sweep =
        place.farcast(["sweep", "mftp-bgan", "--vary", "receivers=100,200", "-n", "100000", "--out"]);
    sweep.arg(place.path("sweep"));
    let sweep = place.start("sweep", sweep);
    // Once the sweep has written anything, it handles signals.
    let is_written = |entry: fs::DirEntry| entry.metadata().is_ok_and(|metadata| metadata.len() > 0);
    let written = || fs::read_dir(place.path("sweep")).is_ok_and(|all| all.flatten().any(is_written));
    wait_until("a journal", written);
    hang_up(&sweep);
    assert_eq!(sweep.wait().code, Some(1));
}

#[test]
fn what_was_started_to_ignore_a_hangup_ignores_it() {
    let place = Place::new();
    let receive = place.receive_command("ant", &[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(receive.get_program())
        .args(receive.get_args());
    let running = place.start("ant", command);
    wait_until("a receiver", || running.stderr().contains("listens"));
    hang_up(&running);
    running.terminate();
    let ended = running.wait();
    assert_eq!(ended.code, Some(0), "the second signal ends at once, with 1: {}", ended.story());
}

#[test]
fn a_log_that_was_moved_is_opened_anew() {
    let place = Place::new();
    let (log, moved) = (place.path("log"), place.path("log.1"));
    let running = place.start("ant", place.receive_command("ant", &["--log", log.to_str().unwrap()]));
    let has = |path: &std::path::Path, event: &str| {
        fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("\"event\":\"{event}\"")))
    };
    wait_until("a log", || has(&log, "listening"));
    fs::rename(&log, &moved).unwrap();
    hang_up(&running);
    wait_until("another log", || log.exists());
    let file = place.file("product.bin", 1_000);
    let sent = place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]);
    sent.succeed();
    wait_until("a summary in the new log", || has(&log, "summary"));
    assert!(!has(&moved, "summary") && !has(&log, "listening"));
    running.terminate();
    assert_eq!(running.wait().code, Some(0));
}

/// A receiver with all files under their final names has succeeded, even if it is stopped in that moment.
#[test]
fn a_receiver_that_is_stopped_when_it_is_complete_has_succeeded() {
    for protocol in ["mftp", "norm", "mdp", "pgm"] {
        for _ in 0..4 {
            let place = Place::new();
            let file = place.file("product.bin", 200_000);
            let receiver = place.receive("7", &["--protocol", protocol]);
            let args = ["--rate", "50 Mbit/s", "--receivers", "7", "--protocol", protocol];
            let sender = place.send(&[&file], &args);
            wait_until("the file", || place.path("7/product.bin").exists());
            receiver.terminate();
            let ended = receiver.wait();
            assert_eq!(ended.code, Some(0), "{protocol}: {}", ended.story());
            assert_eq!(ended.summary()["complete"], true, "{protocol}");
            sender.kill9();
        }
    }
}

#[test]
fn a_receiver_that_runs_until_it_is_stopped_ends_well_in_mid_transfer() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let mut command = place.receive_command("ant", &[]);
    command.arg("--json");
    let receiver = place.start("ant", command);
    receiver.until("listening");
    let sender = place.send(&[&file], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
    receiver.until("joined");
    receiver.terminate();
    let ended = receiver.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    assert_eq!(ended.summary()["complete"], false);
    sender.kill9();
}
