//! Programs never outlive farcast, however it ends. This program starts itself in place of farcast: it has no harness
//! because it begins with one thread, and because the kernel kills what is in a PID namespace without asking a harness.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, start threads, and says what it has done"
)]

mod endings;
mod inner;
mod ordinary;
mod programs;
mod run;
mod terminal;

use std::process::ExitCode;

type Case = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["outer", rest @ ..] => inner::outer(rest),
        ["inner", lifeline, mode, programs @ ..] => inner::inner(lifeline, mode, programs),
        filters => {
            all(filters);
            ExitCode::SUCCESS
        }
    }
}

/// Runs the cases whose name has one of `filters` in it, or all.
fn all(filters: &[&str]) {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root to become somebody else; run `sudo -E cargo test`"
    );
    let filters: Vec<_> = filters.iter().filter(|filter| !filter.starts_with('-')).collect();
    let mut passed = 0;
    for (name, case) in [endings::CASES, programs::CASES, ordinary::CASES, terminal::CASES].concat() {
        if filters.is_empty() || filters.iter().any(|filter| name.contains(**filter)) {
            println!("test {name} ...");
            case();
            passed += 1;
        }
    }
    println!("test result: ok. {passed} passed; 0 failed; 0 ignored");
}
