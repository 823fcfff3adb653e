//! Command that a receiver runs for every complete product. It runs on a thread of its own, so that the network does
//! not wait for it.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Runner of one shell command after the other.
#[derive(Debug)]
pub(crate) struct Hook {
    command: String,
    /// Set if standard output is for events. The command's standard output then goes to standard error.
    aside: bool,
    jobs: Sender<Command>,
    ends: Receiver<io::Result<ExitStatus>>,
    /// Number of commands whose end has not been reported.
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

    /// Runs the command with these variables, after those that still run.
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

    /// Returns the exit status of a command that has ended and was not reported yet, if there is one.
    pub(crate) fn ended(&mut self) -> Option<io::Result<ExitStatus>> {
        let ended = self.ends.try_recv().ok();
        self.running -= usize::from(ended.is_some());
        ended
    }

    /// Waits for the end of a command. Returns `None` if none runs.
    pub(crate) fn wait(&mut self) -> Option<io::Result<ExitStatus>> {
        self.running = self.running.checked_sub(1)?;
        self.ends.recv().ok()
    }
}
