//! The command that a receiver runs for every product that is complete, on a thread of its own: the network does not
//! wait for it.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Runs one shell command after the other.
#[derive(Debug)]
pub(crate) struct Hook {
    command: String,
    /// Whether standard output is for events, so that what the command prints goes to standard error.
    aside: bool,
    jobs: Sender<Command>,
    ends: Receiver<io::Result<ExitStatus>>,
    /// Commands whose end has not been told.
    running: usize,
}

impl Hook {
    #[expect(clippy::disallowed_methods, reason = "the command line owns its threads")]
    pub(crate) fn new(command: &str, aside: bool) -> Self {
        let (jobs, queue) = channel::<Command>();
        let (tell, ends) = channel();
        std::thread::spawn(move || {
            for mut job in queue {
                if tell.send(job.status()).is_err() {
                    return;
                }
            }
        });
        Self { command: command.into(), aside, jobs, ends, running: 0 }
    }

    /// Runs the command with these variables, behind those that still run.
    pub(crate) fn run<const N: usize>(&mut self, variables: [(&str, OsString); N]) {
        let mut job = Command::new("sh");
        job.args(["-c", &self.command]).envs(variables).stdin(Stdio::null());
        if self.aside {
            job.stdout(Stdio::from(io::stderr()));
        }
        if self.jobs.send(job).is_ok() {
            self.running += 1;
        }
    }

    /// How a command ended whose end has not been told, if one has.
    pub(crate) fn ended(&mut self) -> Option<io::Result<ExitStatus>> {
        let ended = self.ends.try_recv().ok();
        self.running -= usize::from(ended.is_some());
        ended
    }

    /// Waits for the end of a command; `None` where none runs.
    pub(crate) fn wait(&mut self) -> Option<io::Result<ExitStatus>> {
        self.running = self.running.checked_sub(1)?;
        self.ends.recv().ok()
    }
}
