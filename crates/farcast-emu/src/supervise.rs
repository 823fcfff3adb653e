//! Programs in namespaces that never outlive farcast, however it ends.
//!
//! # Nothing is left behind
//!
//! Two processes of farcast run, one inside the other:
//!
//! | process | what it is |
//! |---|---|
//! | outer | what the user started; [`contain`] starts the other and waits for it |
//! | inner | init of a PID namespace of its own (`pid_namespaces(7)`); it does the work and starts the programs |
//!
//! Every process that the inner one starts, and all that those start, are in its PID namespace: no double fork, session
//! or process group leads out of it. When init of a PID namespace ends, by return, panic, crash or `kill -9`, the
//! kernel kills every process in the namespace, and the wait for init is over only once they are gone. A network
//! namespace that no process and no descriptor holds any more is taken down with its devices, a mount namespace with
//! its mounts. So one thing remains to be shown: that the inner process ends when the outer one does.
//!
//! - The inner process asks for SIGKILL at its parent's death (`PR_SET_PDEATHSIG`). That signal comes at the end of the
//!   *thread* that started it, so the outer process has one thread and starts no other.
//! - The parent may have died before that request. The inner process holds the read end of a pipe whose only write end
//!   is the outer's, the *lifeline*: at its end of file the outer process is no more. A thread begins to watch it after
//!   the request, so that nothing is missed between the two.
//!
//! What lives in the file system by name is outside all this, so nothing here has a name there: network namespaces are
//! descriptors, mounts are private to the inner process, and the lifeline is a pipe.
//!
//! # Interrupts
//!
//! SIGINT, SIGTERM and SIGHUP, unless they were ignored when farcast was started (as `nohup` does), reach the outer
//! process, which writes their number into the lifeline. The inner process therefore learns of them even when they came
//! before it could handle signals: init loses what it has no handler for. It also handles those sent to itself, and
//! counts both ways apart, because Ctrl-C and `timeout` signal the whole process group and would count twice. The first
//! is told to the caller, who stops everything in good order; the second ends the inner process, and all else with it,
//! at once. SIGQUIT (Ctrl-\) ends the outer process, and all else with it, at once.
//!
//! # The terminal
//!
//! Both processes and the program in the [foreground](Place::Foreground) are in the process group that the user's shell
//! made: Ctrl-C reaches that program, Ctrl-Z stops it (the link goes on), and a shell there has job control. All other
//! programs have process groups of their own and hear of Ctrl-C only by [`Programs::stop_all`]. A shell that ends
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
pub use programs::{Ended, Input, Output, Place, Program, ProgramId, Programs, Run};

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Exit {
    /// The exit code as a shell tells it: that of the process, or 128 and the signal's number.
    pub fn code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }

    /// What `wait` says of a process that is no more.
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}
