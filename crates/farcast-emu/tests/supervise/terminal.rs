//! Keys: on a terminal that script(1) makes.

use std::fs;
use std::io::Write;
use std::process::Command;

use crate::Case;
use crate::run::{ProgramCommand, within};

pub(crate) const CASES: &[Case] = &[
    ("ctrl_c_reaches_the_near_program_alone", ctrl_c_reaches_the_near_program_alone),
    ("a_shell_has_job_control", a_shell_has_job_control),
    ("the_terminal_is_given_back", the_terminal_is_given_back),
];

/// Ctrl-C.
const INTERRUPT: &[u8] = b"\x03";

/// The stand-in on a terminal: the test reads its output, and types keys into its standard input. `then` is the command
/// that the shell around it runs afterwards.
fn on_a_terminal(programs: &[&str], then: &str) -> ProgramCommand {
    let exe = fs::read_link("/proc/self/exe").unwrap();
    let programs = programs.join("' '");
    // The shell around it gets Ctrl-C too. Some end by it even where the program that they waited for did not.
    let line = format!("trap : INT; stty -echo; {} outer 2000 '{programs}'; {then}", exe.display());
    let mut script = Command::new("script");
    // It runs the user's shell, which differs between machines.
    script.env("SHELL", "/bin/sh");
    ProgramCommand::of(script.args(["--quiet", "--return", "--command", &line, "/dev/null"]))
}

/// Waits for lines that hold `texts`, in any order; a terminal adds octets of its own.
fn until(run: &ProgramCommand, texts: &[&str]) {
    let mut missing = texts.to_vec();
    while !missing.is_empty() {
        let line = run.line();
        missing.retain(|text| !line.contains(text));
    }
}

fn ctrl_c_reaches_the_near_program_alone() {
    let near = "trap \"sleep 0.3; exit 30\" INT; echo ready; while :; do sleep 0.01; done";
    let far = "trap \"echo heard\" INT; echo up; while :; do sleep 0.01; done";
    let mut run = on_a_terminal(&[near, far], "exit $?");
    until(&run, &["ready", "far0: up"]);
    run.stdin.as_mut().unwrap().write_all(INTERRUPT).unwrap();
    let over = run.over();
    // It took its time: had one Ctrl-C counted as two, it would have been killed.
    over.assert_code(30);
    assert!(!over.stdout.iter().any(|line| line.contains("heard")), "{:?}", over.stdout);
}

fn a_shell_has_job_control() {
    let mut run = on_a_terminal(&["exec bash --norc --noprofile -i"], "exit $?");
    let mut keys = run.stdin.take().unwrap();
    // The shell's words are joined at run time, so that the test does not find them in the echoed command.
    keys.write_all(b"sleep 1000 & echo be''gun\n").unwrap();
    until(&run, &["begun"]);
    keys.write_all(b"jobs; kill %1; wait; echo wai''ting; sleep 2000\n").unwrap();
    until(&run, &["Running"]);
    until(&run, &["waiting"]);
    // A shell loses input that comes while it starts a program.
    within("the sleeper does not start", || run.runs(b"sleep\x002000\0"));
    keys.write_all(INTERRUPT).unwrap();
    // Only the sleeper in the foreground has ended: neither the shell nor farcast.
    keys.write_all(b"echo sti''ll $?; exit 3\n").unwrap();
    until(&run, &["still 130"]);
    let over = run.over();
    over.assert_code(3);
}

fn the_terminal_is_given_back() {
    // The shell inside takes the terminal for itself and cannot give it back. `+` is a process in the foreground
    // (ps(1)).
    let near = "exec bash --norc --noprofile -i";
    let mut run = on_a_terminal(&[near], "echo state $(ps -o stat= -p $$); exit 0");
    run.stdin.as_mut().unwrap().write_all(b"exit\n").unwrap();
    let over = run.over();
    over.assert_code(0);
    let state = over.stdout.iter().find(|line| line.starts_with("state ")).expect("a state");
    assert!(state.contains('+'), "{state}");
}
