//! What is to be started, and how.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::EmuError;

/// A program to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// What the user calls it; it stands before each line of [`Output::Prefixed`].
    pub name: String,
    /// What to run.
    pub run: Run,
    /// Variables that it sees beside ours, or in their place.
    pub environment: Vec<(String, String)>,
    /// Where it reads.
    pub input: Input,
    /// Where it writes.
    pub output: Output,
    /// Which process group it is in.
    pub place: Place,
}

/// What a program runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Run {
    /// A command line, run by `sh -c`.
    Shell(String),
    /// A program, looked for in PATH if it has no slash, and its arguments.
    Direct(OsString, Vec<OsString>),
}

/// Where a program reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// From our standard input.
    Inherit,
    /// Nothing.
    Null,
}

/// Where a program writes its standard output and standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// To ours.
    Inherit,
    /// Both to our standard error, line by line, with `NAME: ` before each. Lines of more than 8192 octets are broken.
    Prefixed,
}

/// Which process group a program is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In farcast's own: keys such as Ctrl-C reach it, and it may use the terminal.
    Foreground,
    /// In one of its own, which keys do not reach.
    Background,
}

impl Program {
    /// A program in the background without input, whose output is prefixed.
    pub fn background(name: &str, run: Run) -> Self {
        let (name, environment) = (name.into(), Vec::new());
        Self {
            name,
            run,
            environment,
            input: Input::Null,
            output: Output::Prefixed,
            place: Place::Background,
        }
    }

    /// A program in the foreground with our input and output.
    pub fn foreground(name: &str, run: Run) -> Self {
        let (name, environment) = (name.into(), Vec::new());
        Self {
            name,
            run,
            environment,
            input: Input::Inherit,
            output: Output::Inherit,
            place: Place::Foreground,
        }
    }

    /// The command that starts it, and where its prefixed output comes.
    pub(super) fn command(&self) -> Result<(Command, Option<PipeReader>), EmuError> {
        let mut command = match &self.run {
            Run::Shell(line) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(line);
                shell
            }
            Run::Direct(program, arguments) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        };
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.input == Input::Null {
            command.stdin(Stdio::null());
        }
        if self.place == Place::Background {
            command.process_group(0);
        }
        let output = match self.output {
            Output::Inherit => None,
            Output::Prefixed => Some(prefixed(&mut command).map_err(EmuError::when("make a pipe"))?),
        };
        Ok((command, output))
    }
}

/// Leads both outputs into one pipe, so that their lines stay in order; its other end.
fn prefixed(command: &mut Command) -> io::Result<PipeReader> {
    let (read, write) = io::pipe()?;
    command.stdout(write.try_clone()?).stderr(write);
    Ok(read)
}
