//! An ordinary user, as far as namespaces go.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::Case;
use crate::run::{ProgramCommand, as_nobody, outer};

pub(crate) const CASES: &[Case] = &[
    ("an_ordinary_user_leaves_nothing_behind", an_ordinary_user_leaves_nothing_behind),
    ("a_container_may_refuse_a_new_proc", a_container_may_refuse_a_new_proc),
];

/// Returns `true` if users may make user namespaces here, by a test with util-linux.
fn may() -> bool {
    as_nobody(Command::new("unshare").args(["--user", "--map-root-user", "true"])).status().unwrap().success()
}

fn an_ordinary_user_leaves_nothing_behind() {
    let start = |programs: &[&str]| ProgramCommand::of(as_nobody(outer("1000").args(programs)));
    if !may() {
        let over = start(&["exit 7"]).over();
        over.assert_code(125);
        assert!(over.stderr.starts_with("no right to make namespaces: run as root, or "), "{}", over.stderr);
        return;
    }
    let over = start(&["id -u; exit 7"]).over();
    over.assert_code(7);
    assert_eq!(over.stdout, ["0"]);
    for (signal, code) in [(Signal::KILL, 137), (Signal::TERM, 143)] {
        let run = start(&["echo ready; sleep 1000", "setsid sleep 1000 & exec sleep 1000"]);
        run.until("ready");
        let traces = run.traces();
        traces.assert_kinds(&[("user:", 1), ("net:", 2), ("pid:", 1), ("mnt:", 1)]);
        run.signal(signal);
        run.over().assert_code(code);
        traces.assert_gone();
    }
}

/// Containers hide parts of `/proc`, and a new one would show them; so the kernel refuses it to ordinary users.
fn a_container_may_refuse_a_new_proc() {
    if !may() {
        return;
    }
    let exe = fs::read_link("/proc/self/exe").unwrap();
    let user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let hide = "mount -t tmpfs none /proc/scsi 2>/dev/null || mount -t tmpfs none /proc/sys";
    let script = format!(
        "{hide}; exec {user} {} outer 1000 'echo ready; sleep 1000' 'setsid sleep 1000'",
        exe.display()
    );
    let run = ProgramCommand::of(Command::new("unshare").args(["--mount", "sh", "-c", &script]));
    run.until("ready");
    let traces = run.traces();
    run.signal(Signal::TERM);
    let over = run.over();
    over.assert_code(143);
    assert!(over.stderr.starts_with("no /proc: no right to mount /proc: "), "{}", over.stderr);
    traces.assert_gone();
}
