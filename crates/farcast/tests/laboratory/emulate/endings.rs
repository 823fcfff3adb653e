//! Exit codes and streams of a run, and the environment of its programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::run::{Emulate, Way, link};
use crate::common::{Ended, Place, pause, wait_until};

fn simple() -> String {
    let way = Way::new(10_000_000, 5, 100_000);
    link(way, way)
}

/// Runs an emulation with this script at the near end.
fn near(script: &str) -> Ended {
    let place = Place::new();
    Emulate::toml(&place, "near", &simple()).near(script).start().wait().ended
}

#[test]
fn the_near_programs_exit_code_is_ours() {
    for (script, code) in [
        ("ping -q -c 3 -i 0.1 $FARCAST_PEER", 0),
        ("exit 7", 7),
        ("exit 125", 125),
        ("kill -TERM $$", 128 + 15),
        ("kill -KILL $$", 128 + 9),
    ] {
        let ended = near(script);
        assert_eq!(ended.code, Some(code), "{script}: {}", ended.story());
    }
}

/// A run without any packet has its own exit code. A program's own code stays.
#[test]
fn a_run_of_which_nothing_passed_has_a_code_of_its_own() {
    for (script, verdict) in [("true", "NOTHING PASSED"), ("exit 123", "123 is what the program ended with")]
    {
        let ended = near(script);
        assert_eq!(ended.code, Some(123), "{script}: {}", ended.story());
        assert!(ended.stderr.contains(verdict), "{script}: {}", ended.story());
    }
}

/// A run whose packets left too late also has its own exit code. Here the process that carries the packets is stopped
/// for a while.
#[test]
fn a_run_that_is_invalid_has_a_code_of_its_own() {
    let place = Place::new();
    let near = "echo runs; ping -q -i 0.002 -w 2 $FARCAST_PEER > /dev/null; exit 0";
    let run = place.start("late", Emulate::toml(&place, "late", &simple()).near(near).command());
    wait_until("it runs", || run.stdout().contains("runs"));
    pause(Duration::from_millis(300));
    let outer = run.child.id();
    let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).unwrap();
    let inner: i32 = children.split_whitespace().next().unwrap().parse().unwrap();
    let signal = |signal| kill_process(Pid::from_raw(inner).unwrap(), signal).unwrap();
    signal(Signal::STOP);
    pause(Duration::from_millis(500));
    signal(Signal::CONT);
    let ended = run.wait();
    assert_eq!(ended.code, Some(122), "{}", ended.story());
    assert!(ended.stderr.contains("INVALID"), "{}", ended.story());
}

#[test]
fn the_exit_code_counts_where_nobody_reads_the_summary() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farcast"));
    command.args(["emulate", "geo", "--", "sh", "-c", "exit 3"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn our_own_failures_exit_125_with_one_sentence() {
    let place = Place::new();
    let run = |label: &str, link: &str, options: &[&str]| {
        let command = Emulate::named(&place, label, link).options(options).near("true").command();
        place.run(label, command)
    };
    let absent = place.path("absent.toml");
    let absent = absent.to_str().unwrap();
    run("absent", absent, &[]).assert_one_sentence(125, &["absent.toml"]);
    run("preset", "jupiter", &[]).assert_one_sentence(125, &["jupiter", "geo"]);
    run("key", "geo", &["--set", "link.forward.color=3"]).assert_one_sentence(125, &["color"]);
    run("unit", "geo", &["--set", "link.forward.rate=3"]).assert_one_sentence(125, &["rate"]);
    fs::write(place.path("bad.toml"), "[link.forward]\nrate = \n").unwrap();
    let bad = place.path("bad.toml");
    run("bad", bad.to_str().unwrap(), &[]).assert_one_sentence(125, &["bad.toml", "2"]);
}

#[test]
fn outputs_that_are_one_file_are_refused_and_nothing_is_written() {
    let place = Place::new();
    let toml = simple();
    for (label, one, other, named) in [
        ("same", ["--log", "a.csv"], ["--report", "a.csv"], ["--log", "--report"]),
        ("dots", ["--trace", "a.csv"], ["--log", "below/.././a.csv"], ["--log", "--trace"]),
        ("link", ["--report", "link.toml"], ["--log", "a.csv"], ["the link", "--report"]),
    ] {
        fs::create_dir_all(place.path("below")).unwrap();
        let mut command = Emulate::toml(&place, "link", &toml);
        for [option, name] in [one, other] {
            command = command.options(&[option, place.path(name).to_str().unwrap()]);
        }
        let ended = place.run(label, command.near("true").command());
        ended.assert_one_sentence(125, &[named[0], named[1], "are one file"]);
        assert!(!place.path("a.csv").exists());
        assert_eq!(fs::read_to_string(place.path("link.toml")).unwrap(), toml);
    }
}

#[test]
fn programs_know_where_they_are() {
    let place = Place::new();
    let told = "FARCAST_ADDRESS=$FARCAST_ADDRESS PEER=$FARCAST_PEER HUB=$FARCAST_HUB \
                TERMINALS=$FARCAST_TERMINALS TERMINAL=${FARCAST_TERMINAL-none} DEVICE=$FARCAST_DEVICE";
    let emulated = Emulate::toml(&place, "told", &simple())
        .far(&format!("echo far: {told}; sleep 60"))
        .near(&format!("sleep 1; echo near: {told}; ls /sys/class/net > /dev/null; ip -o -4 address"))
        .start()
        .succeed();
    let (near, far) = (&emulated.ended.stdout, &emulated.ended.stderr);
    let common = "HUB=10.0.0.1 TERMINALS=10.64.0.1";
    let expected =
        format!("near: FARCAST_ADDRESS=10.64.0.1 PEER=10.0.0.1 {common} TERMINAL=0 DEVICE=farcast0\n");
    assert!(near.starts_with(&expected), "{}", emulated.ended.story());
    let expected =
        format!("far: FARCAST_ADDRESS=10.0.0.1 PEER=10.64.0.1 {common} TERMINAL=none DEVICE=farcast0\n");
    assert!(far.contains(&expected), "{}", emulated.ended.story());
    // A program in the emulation sees a loopback interface and the link, and nothing of this machine.
    let interfaces: Vec<&str> =
        near.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(interfaces, ["lo", "farcast0"], "{near}");
}

#[test]
fn the_near_program_has_our_input_and_output() {
    let place = Place::new();
    let farcast = Emulate::toml(&place, "streams", &simple())
        .far("echo words of the far end; sleep 60")
        .near("cat; sleep 1; echo errors >&2")
        .command();
    let mut command = Command::new("sh");
    command.args(["-c", "printf 'one\\ntwo' | \"$@\"", "sh"]);
    command.arg(farcast.get_program()).args(farcast.get_args());
    let ended = place.run("streams", command);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(123), "one\ntwo"), "{}", ended.story());
    for part in ["errors\n", ": words of the far end\n"] {
        assert!(ended.stderr.contains(part), "{part:?}: {}", ended.story());
    }
}

#[test]
fn a_shell_at_the_near_end() {
    let place = Place::new();
    let shell = place.path("shell");
    fs::write(&shell, "#!/bin/sh\necho a shell of $FARCAST_ADDRESS\nexit 9\n").unwrap();
    fs::set_permissions(&shell, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Emulate::toml(&place, "shell", &simple()).options(&["--shell"]).command();
    command.env("SHELL", &shell);
    let ended = place.run("shell", command);
    let expected = (Some(9), "a shell of 10.64.0.1\n");
    assert_eq!((ended.code, ended.stdout.as_str()), expected, "{}", ended.story());
}
