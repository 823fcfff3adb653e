//! `farcast emulate --control`: a view of a running emulation in the terminal, or one request to it.

mod draw;
mod keys;
mod screen;
mod state;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};

use farcast_core::Span;
use farcast_emu::control::{AnswerLine, Control, ControlError, Request};
use farcast_report::text::visible_json;
use serde::Serialize;

use crate::{Failure, stdio};

/// Interval between two snapshots where standard output is not a terminal.
const LINE_EVERY: Span = Span::from_secs(1);

/// Process and request that the words `[PID] [REQUEST]` name.
#[derive(PartialEq, Debug)]
struct Words {
    pid: Option<u32>,
    request: Option<Request>,
}

/// Shows the emulation of process `PID`, or the only one, or sends it a request. The `words` are `[PID] [REQUEST]`.
/// Returns the exit code: 0, or 1 if the emulation refused the request.
pub(crate) fn run(words: &[String]) -> Result<u8, Failure> {
    let Words { pid, request } = understood(words)?;
    let control = Control::connect(pid)?;
    match request {
        Some(Request::Watch { every }) => print_snapshots(control, every),
        Some(request) => ask(control, &request),
        None if io::stdout().is_terminal() => screen::show(control),
        None => print_snapshots(control, LINE_EVERY),
    }
}

fn understood(words: &[String]) -> Result<Words, Failure> {
    let (pid, request) = match words {
        [] => (None, None),
        [one] if one.trim_start().starts_with('{') => (None, Some(one)),
        [pid] => (Some(pid), None),
        [pid, request] => (Some(pid), Some(request)),
        _ => {
            return Err(Failure::usage(
                "--control takes a process id and a request: quote the request's JSON",
            ));
        }
    };
    let pid = pid.map(|pid| {
        let sentence = format!("--control {pid}: it takes a process id, a request in JSON, or both");
        pid.parse().map_err(|_| Failure::usage(sentence))
    });
    let request = request.map(|request| Request::parse(request.as_bytes())).transpose();
    let request = request.map_err(|error| Failure::usage(format!("--control: {error}")))?;
    Ok(Words { pid: pid.transpose()?, request })
}

/// Prints the answer to one request.
fn ask(mut control: Control, request: &Request) -> Result<u8, Failure> {
    let (line, exit) = match control.request(request) {
        Ok(answer) => (AnswerLine::Ok(answer), 0),
        Err(ControlError::Refused(sentence)) => (AnswerLine::Error(sentence), 1),
        Err(error) => return Err(error.into()),
    };
    print(&line)?;
    Ok(exit)
}

/// Prints a snapshot on a line at every interval, until the emulation ends or nobody reads on.
fn print_snapshots(control: Control, every: Span) -> Result<u8, Failure> {
    for snapshot in control.watch(every)? {
        if !print(&snapshot?)? {
            break;
        }
    }
    Ok(0)
}

/// Prints an object on a line. Returns `false` if nobody reads it.
fn print(object: &impl Serialize) -> Result<bool, Failure> {
    let line = serde_json::to_string(object)?;
    Ok(stdio::print(|out| writeln!(out, "{}", visible_json(&line))))
}
