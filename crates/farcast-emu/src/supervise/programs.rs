//! Programs in namespaces: starting them, waiting for their ends, stopping them.

mod end;
mod program;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use farcast_core::{Span, Time};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};
use signal_hook::consts::SIGCHLD;

use super::lines::Lines;
use super::signals::{Signals, wait};
use super::{Exit, Guard};
use crate::namespace::Namespace;
use crate::{Clock, EmuError};
pub use program::{Input, Output, ProcessGroup, Program, ProgramCommand};

/// Identifier of a program that was started; the first is 0, the next 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProgramId(pub u32);

/// The end of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramEnd {
    /// Identifier of the program.
    pub id: ProgramId,
    /// Manner of its end.
    pub exit: Exit,
}

/// A program that runs, or whose end is not yet known.
#[derive(Debug)]
struct Running {
    id: ProgramId,
    name: String,
    /// Process of the program, which leads its group if it is in the background.
    pid: Pid,
    place: ProcessGroup,
}

/// The programs of this process, which is init of a PID namespace. It waits for every process that becomes its child,
/// including those whose parents have ended. Nothing else in this process may wait for a child.
#[derive(Debug)]
pub struct Programs {
    running: Vec<Running>,
    /// Ends that were not reported yet.
    ended: VecDeque<ProgramEnd>,
    children: Signals,
    lines: Lines,
    clock: Clock,
    next: u32,
}

impl Programs {
    /// Creates the table without programs. The guard proves that this process is init of its namespace.
    ///
    /// # Errors
    /// The system's error of handling SIGCHLD.
    pub fn new(_guard: &Guard) -> Result<Self, EmuError> {
        Ok(Self {
            running: Vec::new(),
            ended: VecDeque::new(),
            children: Signals::watch(&[SIGCHLD])?,
            lines: Lines::new(),
            clock: Clock::start(),
            next: 0,
        })
    }

    /// Starts `program` in `namespace`.
    ///
    /// # Errors
    /// The system's error, for example if the program does not exist.
    pub fn start(&mut self, namespace: &Namespace, program: &Program) -> Result<ProgramId, EmuError> {
        let (mut command, output) = program.command()?;
        // If anything fails from here on, the write end goes with the command, and the thread for its output ends.
        if let Some(output) = output {
            self.lines.carry(&program.name, output)?;
        }
        let child = namespace.spawn(&mut command)?;
        let id = ProgramId(self.next);
        self.next += 1;
        let pid = Pid::from_child(&child);
        self.running.push(Running { id, name: program.name.clone(), pid, place: program.place });
        Ok(id)
    }

    /// Waits for the end of a program. Returns `None` once `limit` is over, or one of the `wakers` can be read or is at
    /// its end. Each end is reported once.
    ///
    /// # Errors
    /// The system's error of waiting.
    pub fn wait(&mut self, limit: Span, wakers: &[BorrowedFd<'_>]) -> Result<Option<ProgramEnd>, EmuError> {
        let until = self.clock.now() + limit;
        loop {
            self.reap()?;
            let ended = self.ended.pop_front();
            if ended.is_some() || self.clock.now() >= until || wait(wakers, Some(Span::ZERO))? {
                return Ok(ended);
            }
            self.pause(until, wakers)?;
        }
    }

    /// Returns `true` if the program runs, as far as known: [`wait`](Self::wait) has not seen its end.
    pub fn is_running(&self, id: ProgramId) -> bool {
        self.running.iter().any(|running| running.id == id)
    }

    /// Waits until a child ends, or `until` has come, or one of the `wakers` can be read.
    fn pause(&self, until: Time, wakers: &[BorrowedFd<'_>]) -> Result<(), EmuError> {
        let sources: Vec<_> = [self.children.as_fd()].into_iter().chain(wakers.iter().copied()).collect();
        wait(&sources, Some(until.since(self.clock.now()))).map(drop)
    }

    /// Records every child that has ended. Returns `true` if there are children left.
    fn reap(&mut self) -> Result<bool, EmuError> {
        // Before the check: a child that ends after it makes the descriptor readable again.
        self.children.take().for_each(drop);
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.note(pid, ExitStatus::from_raw(status.as_raw())),
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(EmuError::when("wait for programs")(errno)),
            }
        }
    }

    /// Records the end of a program; ends of other processes are ignored.
    fn note(&mut self, pid: Pid, status: ExitStatus) {
        if let Some(index) = self.running.iter().position(|running| running.pid == pid) {
            let id = self.running.remove(index).id;
            self.ended.push_back(ProgramEnd { id, exit: Exit::of(status) });
        }
    }
}

impl AsFd for Programs {
    /// Returns a descriptor that is readable when [`wait`](Programs::wait) may have an end to report, for a poll set of
    /// the caller.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.children.as_fd()
    }
}
