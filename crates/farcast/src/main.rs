//! `farcast`: deliver files reliably to many receivers over links that break ordinary transfer.
#![deny(unsafe_code)]

#[expect(clippy::doc_markdown, reason = "doc comments are what --help prints")]
mod args;
mod cli;
mod compare;
mod demo;
mod element;
mod emulate;
mod failure;
mod help;
mod hook;
mod interrupt;
mod keys;
mod laboratory;
mod manual;
mod model;
mod options;
mod output;
mod outputs;
mod partials;
mod progress;
mod protocols;
mod receive;
mod report;
mod reproduce;
mod send;
mod simulate;
mod stdio;
mod sweep;
mod table;
mod text;
mod tune;
mod warnings;

use std::process::ExitCode;

use cli::{Cli, Command};
use failure::{Exit, Failure};
use farcast_report::text::{is_obeyed, visible};

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    allow_descriptors();
    warnings::print();
    let result = match cli.command {
        Command::Emulate(args) => return emulate::run(&args),
        Command::Send(mut args) => send::run(&mut args),
        Command::Receive(args) => receive::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Element(args) => element::run(&args),
        Command::Repair(args) => element::repair(&args),
        Command::Partials(args) => partials::run(&args),
        Command::Key(args) => keys::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => Ok(manual::completions(&args)),
        Command::Manual(args) => manual::manual(&args),
    };
    let exit = result.unwrap_or_else(|failure| {
        output::error(&failure.sentence);
        failure.exit
    });
    let exit = if exit == Exit::Done && stdio::lost() { Exit::Failed } else { exit };
    ExitCode::from(exit as u8)
}

/// Raises the limit of open files: trees have many files, and each emulated host has its own.
fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If the limit cannot be raised it stays, and files are closed where they are too many.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Handles a command line that makes no sense, or asks for help.
fn refused(error: &clap::Error) -> ExitCode {
    let emulates = std::env::args_os().nth(1).is_some_and(|command| command == "emulate");
    let wrong = || if emulates { emulate::usage_exit() } else { ExitCode::from(Exit::Usage as u8) };
    let printed = match help::asked(error, std::env::args_os().skip(1)) {
        Some(Ok(mut command)) => command.print_help(),
        Some(Err(sentence)) => {
            output::error(&sentence);
            return wrong();
        }
        None if error.exit_code() == 0 => error.print(),
        None => {
            say_refusal(error);
            return wrong();
        }
    };
    // Help is a result, so a failure to print it counts.
    stdio::printed(printed);
    if stdio::lost() {
        return ExitCode::from(if emulates { emulate::OWN_FAILURE } else { Exit::Failed as u8 });
    }
    ExitCode::SUCCESS
}

/// Prints the error of the command line. Its words may be names of strangers' files, which shells put there. The error
/// is therefore about the words as they are shown.
fn say_refusal(error: &clap::Error) {
    let arguments: Vec<String> =
        std::env::args_os().map(|one| visible(&one.to_string_lossy()).into_owned()).collect();
    let shown = Cli::read(arguments.iter().map(Into::into)).err();
    let text = shown.as_ref().unwrap_or(error).render().to_string();
    if shown.is_some() || !text.contains(|c| c != '\n' && is_obeyed(c)) {
        // A failure to print is ignored: the exit code tells the error, too.
        let _ = shown.as_ref().unwrap_or(error).print();
    } else {
        stdio::say(text.trim_end());
    }
}
