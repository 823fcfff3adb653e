//! However farcast ends, nothing is left behind.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::Case;
use crate::run::{ProgramCommand, within};

pub(crate) const CASES: &[Case] = &[
    ("kill_9_of_the_outer_process", kill_9_of_the_outer_process),
    ("kill_9_of_the_inner_process", kill_9_of_the_inner_process),
    ("kill_9_at_any_moment", kill_9_at_any_moment),
    ("sigterm_ends_it_in_good_order", sigterm_ends_it_in_good_order),
    ("sigterm_to_the_inner_process", sigterm_to_the_inner_process),
    ("sigterm_to_the_whole_group_is_one", sigterm_to_the_whole_group_is_one),
    ("a_second_sigterm_ends_it_at_once", a_second_sigterm_ends_it_at_once),
    ("sigterm_at_any_moment", sigterm_at_any_moment),
    ("sigquit_ends_it_at_once", sigquit_ends_it_at_once),
    ("what_was_ignored_stays_ignored", what_was_ignored_stays_ignored),
    ("a_panic_inside", a_panic_inside),
    ("those_who_ignore_sigterm", those_who_ignore_sigterm),
    ("those_who_were_stopped", those_who_were_stopped),
    ("daemons", daemons),
    ("nothing_is_seen_outside", nothing_is_seen_outside),
];

/// Says that it is there, and stays.
const STAYS: &str = "echo ready; sleep 1000";

/// Leaves the session, the group, its parents and its environment behind.
const DAEMONS: &str = "setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); \
                       env -i /usr/bin/setsid /usr/bin/sleep 1000 & trap '' TERM HUP INT; sleep 1000";

/// Waits for the near program and the daemons: two processes of ours, and a shell and three daemons that have kept
/// their environment.
fn come_up(run: &ProgramCommand) {
    run.until("ready");
    within("the daemons do not come up", || run.processes() >= 2 + 1 + 4);
}

fn kill_9_of_the_outer_process() {
    let run = ProgramCommand::start("1000", &[STAYS, DAEMONS]);
    come_up(&run);
    let traces = run.traces();
    traces.assert_kinds(&[("net:", 2), ("pid:", 1), ("mnt:", 1), ("user:", 0)]);
    run.signal(Signal::KILL);
    run.over().assert_code(137);
    traces.assert_gone();
}

fn kill_9_of_the_inner_process() {
    let run = ProgramCommand::start("1000", &[STAYS, DAEMONS]);
    come_up(&run);
    let traces = run.traces();
    kill_process(run.inner(), Signal::KILL).unwrap();
    run.over().assert_code(137);
    traces.assert_gone();
}

fn kill_9_at_any_moment() {
    for milliseconds in 0..20 {
        let run = ProgramCommand::start("1000", &[STAYS, DAEMONS]);
        thread::sleep(Duration::from_millis(milliseconds));
        run.signal(Signal::KILL);
        run.over().assert_code(137);
    }
}

fn sigterm_ends_it_in_good_order() {
    let far = "trap 'echo bye; exit' TERM; echo up >&2; while :; do sleep 0.01; done";
    let run = ProgramCommand::start("5000", &[STAYS, far]);
    run.until("ready");
    run.until_error("far0: up");
    let traces = run.traces();
    run.signal(Signal::TERM);
    let over = run.over();
    over.assert_code(143);
    assert!(over.stderr.lines().any(|line| line == "far0: bye"), "{}", over.stderr);
    traces.assert_gone();
}

fn sigterm_to_the_inner_process() {
    let run = ProgramCommand::start("5000", &[STAYS, "sleep 1000"]);
    run.until("ready");
    let traces = run.traces();
    kill_process(run.inner(), Signal::TERM).unwrap();
    run.over().assert_code(143);
    traces.assert_gone();
}

/// Signals like `timeout`: first the child, then all processes in the group.
fn sigterm_to_the_whole_group_is_one() {
    let exe = fs::read_link("/proc/self/exe").unwrap();
    let near = "trap 'sleep 0.5; exit 9' TERM; echo ready; while :; do sleep 0.01; done";
    let run = ProgramCommand::of(Command::new("timeout").arg("1000").arg(exe).args(["outer", "5000", near]));
    run.until("ready");
    run.signal(Signal::TERM);
    // A second interrupt would have ended it at once, with 143.
    run.over().assert_code(9);
}

fn a_second_sigterm_ends_it_at_once() {
    let ignores = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    // Within the grace nothing else would end it.
    let run = ProgramCommand::start("1000000", &[ignores, ignores]);
    run.until("ready");
    let traces = run.traces();
    run.signal(Signal::TERM);
    thread::sleep(Duration::from_millis(500));
    run.signal(Signal::TERM);
    run.over().assert_code(143);
    traces.assert_gone();
}

/// Before the outer process handles signals it is killed; from then on none is lost.
fn sigterm_at_any_moment() {
    for milliseconds in 0..20 {
        let run = ProgramCommand::start("1000", &[STAYS, "sleep 1000"]);
        thread::sleep(Duration::from_millis(milliseconds));
        run.signal(Signal::TERM);
        run.over().assert_code(143);
    }
}

fn sigquit_ends_it_at_once() {
    let run = ProgramCommand::start("1000000", &[STAYS, DAEMONS]);
    run.until("ready");
    let traces = run.traces();
    run.signal(Signal::QUIT);
    run.over().assert_code(131);
    traces.assert_gone();
}

fn what_was_ignored_stays_ignored() {
    let exe = fs::read_link("/proc/self/exe").unwrap();
    let exe = exe.display();
    let near = "echo ready; read line; exit 5";
    let script = format!("trap '' HUP; exec {exe} outer 1000 '{near}' 'sleep 1000'");
    let mut run = ProgramCommand::of(Command::new("sh").args(["-c", &script]));
    run.until("ready");
    run.signal(Signal::HUP);
    kill_process(run.inner(), Signal::HUP).unwrap();
    run.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    run.over().assert_code(5);
}

fn a_panic_inside() {
    let mut run = ProgramCommand::start("panic", &["echo ready; read line", DAEMONS]);
    run.until("ready");
    let traces = run.traces();
    drop(run.stdin.take());
    let over = run.over();
    over.assert_code(101);
    assert!(over.stderr.contains("and so does this"), "{}", over.stderr);
    traces.assert_gone();
}

fn those_who_ignore_sigterm() {
    let ignores = "trap '' TERM HUP INT; echo deaf; while :; do sleep 0.1; done";
    let mut run = ProgramCommand::start("200", &["echo ready; read line; exit 3", ignores, ignores]);
    run.until("ready");
    run.until_error("far0: deaf");
    run.until_error("far1: deaf");
    let traces = run.traces();
    drop(run.stdin.take());
    run.over().assert_code(3);
    traces.assert_gone();
}

fn those_who_were_stopped() {
    // A stopped process hears of SIGTERM only when it goes on; otherwise only SIGKILL would end it.
    let stopped = "trap 'echo bye; exit' TERM; echo up; kill -STOP $$; sleep 1000";
    let mut run = ProgramCommand::start("100000", &["echo ready; read line; exit 3", stopped]);
    run.until("ready");
    run.until_error("far0: up");
    drop(run.stdin.take());
    run.over().assert_code(3);
}

fn daemons() {
    let mut run = ProgramCommand::start("200", &["echo ready; read line", DAEMONS]);
    come_up(&run);
    let traces = run.traces();
    drop(run.stdin.take());
    run.over().assert_code(1);
    traces.assert_gone();
}

/// Mounts and devices of a run, while it runs.
fn nothing_is_seen_outside() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap().matches(" /proc ").count();
    let device = || fs::exists("/sys/class/net/farcast0").unwrap();
    let (mounts_before, device_before) = (mounts(), device());
    let run = ProgramCommand::start("1000", &[STAYS, "grep -c farcast0 /proc/net/dev"]);
    run.until("ready");
    // The device is inside.
    run.until_error("far0: 1");
    assert_eq!((mounts(), device()), (mounts_before, device_before));
    run.signal(Signal::TERM);
    run.over().assert_code(143);
}
