//! Programs to start.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::EmuError;

/// A program to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Name that the user gave to it; it precedes each line of [`Output::Prefixed`].
    pub name: String,
    /// Command line or program to run.
    pub run: ProgramCommand,
    /// Environment variables besides those of this process, or in their place.
    pub environment: Vec<(String, String)>,
    /// Standard input.
    pub input: Input,
    /// Standard output and standard error.
    pub output: Output,
    /// Process group.
    pub place: ProcessGroup,
}

/// Command that a program consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProgramCommand {
    /// A command line, run by `sh -c`.
    Shell(String),
    /// A program, looked for in PATH if it has no slash, and its arguments.
    Direct(OsString, Vec<OsString>),
}

/// Source of a program's standard input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The standard input of this process.
    Inherit,
    /// No input.
    Null,
}

/// Destination of a program's standard output and standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Standard output and standard error of this process.
    Inherit,
    /// Standard error of this process for both, line by line, with `NAME: ` before each. Lines of more than 8192 octets
    /// are broken.
    Prefixed,
}

/// Process group of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessGroup {
    /// farcast's own group: keys such as Ctrl-C reach the program, and it may use the terminal.
    Foreground,
    /// A group of its own, which keys do not reach.
    Background,
}

impl Program {
    /// Creates a program in the background without input, whose output is prefixed.
    pub fn background(name: &str, run: ProgramCommand) -> Self {
        let (name, environment) = (name.into(), Vec::new());
        Self {
            name,
            run,
            environment,
            input: Input::Null,
            output: Output::Prefixed,
            place: ProcessGroup::Background,
        }
    }

    /// Creates a program in the foreground with the input and output of this process.
    pub fn foreground(name: &str, run: ProgramCommand) -> Self {
        let (name, environment) = (name.into(), Vec::new());
        Self {
            name,
            run,
            environment,
            input: Input::Inherit,
            output: Output::Inherit,
            place: ProcessGroup::Foreground,
        }
    }

    /// Returns the command that starts the program, and the reader of its prefixed output.
    pub(super) fn command(&self) -> Result<(Command, Option<PipeReader>), EmuError> {
        let mut command = match &self.run {
            ProgramCommand::Shell(line) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(line);
                shell
            }
            ProgramCommand::Direct(program, arguments) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        };
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.input == Input::Null {
            command.stdin(Stdio::null());
        }
        if self.place == ProcessGroup::Background {
            command.process_group(0);
        }
        let output = match self.output {
            Output::Inherit => None,
            Output::Prefixed => Some(prefixed(&mut command).map_err(EmuError::when("make a pipe"))?),
        };
        Ok((command, output))
    }
}

/// Connects both outputs to one pipe, so that their lines stay in order. Returns the read end.
fn prefixed(command: &mut Command) -> io::Result<PipeReader> {
    let (read, write) = io::pipe()?;
    command.stdout(write.try_clone()?).stderr(write);
    Ok(read)
}
