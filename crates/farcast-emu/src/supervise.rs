//! Programs in namespaces that never outlive farcast, however it ends.
//!
//! # Guarantee that nothing is left behind
//!
//! Two processes of farcast run, one inside the other:
//!
//! | process | role |
//! |---|---|
//! | outer | the process that the user started; [`contain`] starts the other and waits for it |
//! | inner | init of a PID namespace of its own (`pid_namespaces(7)`); it does the work and starts the programs |
//!
//! All processes that the inner one starts, and their descendants, are in its PID namespace: no double fork, session or
//! process group leads out of it. When init of a PID namespace ends, by return, panic, crash or `kill -9`, the kernel
//! kills every process in the namespace. The wait for init returns only once they are gone. The kernel takes down a
//! network namespace with its devices, and a mount namespace with its mounts, once no process and no descriptor holds
//! it any more. So one thing remains to be shown: that the inner process ends when the outer one does.
//!
//! - The inner process asks for SIGKILL at its parent's death (`PR_SET_PDEATHSIG`). That signal comes at the end of the
//!   *thread* that started it, so the outer process has one thread and starts no other.
//! - The parent may have died before that request. The inner process therefore holds the read end of a pipe, the
//!   *lifeline*, whose only write end is the outer's: at its end of file the outer process is gone. A thread begins to
//!   watch the pipe after the request, so that no death between the two is missed.
//!
//! Names in the file system would outlive the processes, so nothing here has one: network namespaces are descriptors,
//! mounts are private to the inner process, and the lifeline is a pipe.
//!
//! # Interrupts
//!
//! SIGINT, SIGTERM and SIGHUP, unless they were ignored when farcast was started (as `nohup` does), reach the outer
//! process, which writes their number into the lifeline. So the inner process gets even interrupts that came before it
//! could handle signals: init loses signals for which it has no handler. The inner process also handles signals sent to
//! itself. It counts both paths separately, because Ctrl-C and `timeout` signal the whole process group and would count
//! twice. The first interrupt is reported to the caller, which stops everything in good order. The second ends the
//! inner process, and with it all else, at once. SIGQUIT (Ctrl-\) ends the outer process, and with it all else, at
//! once.
//!
//! # The terminal
//!
//! Both processes and the program in the [foreground](ProcessGroup::Foreground) are in the process group that the user's shell
//! made. Ctrl-C reaches that program, Ctrl-Z stops it (the link goes on), and a shell there has job control. All other
//! programs have process groups of their own: after Ctrl-C, only [`Programs::stop_all`] stops them. A shell that ends
//! cannot give the terminal back, because it cannot name the process group outside; the outer process takes it back.

mod guard;
mod interrupts;
mod lines;
mod listening;
mod outer;
mod programs;
mod rights;
mod signals;
mod terminal;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

pub use guard::Guard;
pub use listening::{listening, wait_until_listening};
pub use outer::contain;
pub use programs::{Input, Output, ProcessGroup, Program, ProgramCommand, ProgramEnd, ProgramId, Programs};

/// End of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// The process exited with this code, 0 to 255.
    Code(i32),
    /// This signal killed the process.
    Signal(i32),
}

impl Exit {
    /// Returns the exit code as a shell reports it: that of the process, or 128 plus the signal's number.
    pub fn code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }

    /// Converts the status that `wait` returned.
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}
