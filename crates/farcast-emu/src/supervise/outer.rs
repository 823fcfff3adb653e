//! The outer process, which the user started: it starts the inner one, passes interrupts on, and waits.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::sched::{CloneFlags, unshare};
use rustix::io::FdFlags;
use signal_hook::consts::SIGCHLD;

use super::rights::become_root;
use super::signals::{Signals, interrupts, wait};
use super::terminal::Terminal;
use super::{Exit, guard};
use crate::EmuError;

/// Starts this program again as init of a PID namespace, waits for its end, and returns how it ended. The closure makes
/// the `arguments` from the lifeline's descriptor number. The arguments must lead the new process to
/// [`Guard::adopt`](super::Guard::adopt) before it starts a thread. Standard input, output and error are inherited.
///
/// Without the right to make a PID namespace, this process first becomes root of a user namespace.
///
/// Only for a process with one thread, and only once: from then on it can start neither threads nor processes.
///
/// # Errors
/// [`EmuError::UserNamespaces`] if the system does not let users create them, [`EmuError::Threads`] in a process with
/// other threads, or the system's error.
pub fn contain(arguments: impl FnOnce(RawFd) -> Vec<OsString>) -> Result<Exit, EmuError> {
    let terminal = Terminal::now();
    // Before there is a child, so that its end is not missed, even if SIGCHLD was ignored before.
    let mut signals = Signals::watch(&[interrupts(), vec![SIGCHLD]].concat())?;
    let (read, mut write) = io::pipe().map_err(EmuError::when("make a pipe"))?;
    // An inner process that does not read must not block this one.
    let prepared = rustix::io::ioctl_fionbio(&write, true).map_err(io::Error::from);
    let prepared = prepared.and_then(|()| write.write_all(&guard::greeting()));
    prepared.map_err(EmuError::when("write to a pipe"))?;
    separate_processes()?;
    let arguments = arguments(read.as_raw_fd());
    rustix::io::fcntl_setfd(&read, FdFlags::empty()).map_err(EmuError::when("hand on a pipe"))?;
    let inner = start(arguments)?;
    drop(read);
    let (exit, interrupted) = outlast(inner, &mut signals, &mut write)?;
    if let Some(terminal) = terminal {
        terminal.restore(interrupted || matches!(exit, Exit::Signal(_)));
    }
    Ok(exit)
}

/// Makes the next process that this one starts init of a PID namespace.
fn separate_processes() -> Result<(), EmuError> {
    let separate = || unshare(CloneFlags::CLONE_NEWPID);
    match separate() {
        Err(nix::Error::EPERM) => {
            become_root()?;
            separate()
        }
        result => result,
    }
    .map_err(EmuError::when("make a PID namespace"))
}

fn start(arguments: Vec<OsString>) -> Result<Child, EmuError> {
    // The file that this process runs, even if another file has its name by now.
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.args(arguments).spawn().map_err(EmuError::when("start farcast again in a PID namespace"))
}

/// Waits for the end of the inner process and passes interrupts on. Returns how the process ended, and `true` if an
/// interrupt was passed on.
fn outlast(
    mut inner: Child,
    signals: &mut Signals,
    lifeline: &mut impl Write,
) -> Result<(Exit, bool), EmuError> {
    let mut interrupted = false;
    loop {
        for signal in signals.take().filter(|signal| *signal != SIGCHLD) {
            interrupted = true;
            // The write fails if the inner process has ended, or has left thousands unread.
            let _ = lifeline.write(&[signal as u8]);
        }
        if let Some(status) = inner.try_wait().map_err(EmuError::when("wait for the inner process"))? {
            return Ok((Exit::of(status), interrupted));
        }
        wait(&[signals.as_fd()], None)?;
    }
}
