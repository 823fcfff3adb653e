//! The inner process: init of its PID namespace, which ends when the outer process does.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::Exit;
use super::interrupts::{FirstInterrupt, InterruptPath, Interrupts};
use super::signals::{Signals, interrupts, wait};
use crate::{Clock, EmuError};

/// Exit code of an inner process whose outer process is gone; nobody sees it.
const ABANDONED: i32 = 125;

/// Returns the first octets that the outer process writes into the lifeline: its process number.
pub(super) fn greeting() -> [u8; 4] {
    std::process::id().to_ne_bytes()
}

/// Guard that ends this process with the outer one, and receives interrupts. It continues after this value is dropped.
#[derive(Debug)]
pub struct Guard {
    outer: u32,
    proc: Result<(), EmuError>,
    told: Arc<FirstInterrupt>,
}

impl Guard {
    /// Makes this process end when the outer one does, gives it a mount namespace with a `/proc` of its own, and begins
    /// to watch for interrupts. `lifeline` is the descriptor number from which [`contain`](super::contain) made the
    /// arguments.
    ///
    /// From now on mounts of this process do not propagate. The new `/proc` shows the PID namespace only, and so do
    /// `ps` and `pkill` in it. Some containers refuse it, see [`refused_proc`](Self::refused_proc).
    ///
    /// Only for a process with one thread: threads that run already stay in the old mount namespace.
    ///
    /// # Errors
    /// [`EmuError::NotContained`] if `contain` did not start this process, or the system's error.
    pub fn adopt(lifeline: RawFd) -> Result<Self, EmuError> {
        if !rustix::process::getpid().is_init() {
            return Err(EmuError::NotContained);
        }
        let lifeline = own(lifeline)?;
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(EmuError::when("ask for a signal at the end of the outer process"))?;
        let outer = read_greeting(&lifeline)?;
        // The kernel took the name from `/proc/self/exe`.
        let _ = rustix::thread::set_name(c"farcast");
        let proc = mount_proc();
        let told = Arc::new(FirstInterrupt::new()?);
        // The watch begins after that request: if the outer process died before, the pipe is at its end by now.
        let watch =
            GuardSources { lifeline, signals: Signals::watch(&interrupts())?, told: Arc::clone(&told) };
        let thread = thread::Builder::new().name("guard".into()).spawn(move || watch.run());
        thread.map_err(EmuError::when("start a thread"))?;
        Ok(Self { outer, proc, told })
    }

    /// Returns the number of the outer process, as the user sees it.
    pub fn outer(&self) -> u32 {
        self.outer
    }

    /// Returns the reason for which `/proc` still shows the processes outside, if it does.
    pub fn refused_proc(&self) -> Option<&EmuError> {
        self.proc.as_ref().err()
    }

    /// Returns the signal that interrupted farcast first, if one did. The caller should then stop everything in good
    /// order. A second interrupt ends this process at once, with 128 plus the signal's number as its code.
    pub fn interrupted(&self) -> Option<i32> {
        self.told.signal()
    }
}

impl AsFd for Guard {
    /// Returns a descriptor that is readable from the first interrupt on.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

/// Takes ownership of the inherited descriptor `lifeline`, so that no program inherits it.
fn own(lifeline: RawFd) -> Result<OwnedFd, EmuError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let owned = rustix::fs::open(format!("/proc/self/fd/{lifeline}"), flags, Mode::empty())
        .map_err(|_| EmuError::NotContained)?;
    let status = rustix::fs::fstat(&owned).map_err(EmuError::when("look at the lifeline"))?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Fifo {
        return Err(EmuError::NotContained);
    }
    nix::unistd::close(lifeline).map_err(EmuError::when("close the inherited lifeline"))?;
    Ok(owned)
}

/// Reads the outer process's number.
fn read_greeting(lifeline: &OwnedFd) -> Result<u32, EmuError> {
    let mut greeting = [0; 4];
    // The number was written in one piece before this process began.
    match rustix::io::read(lifeline, &mut greeting) {
        Ok(4) => Ok(u32::from_ne_bytes(greeting)),
        _ => Err(EmuError::NotContained),
    }
}

/// Puts a new `/proc` over the old one, in a mount namespace of its own.
fn mount_proc() -> Result<(), EmuError> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(EmuError::when("make a mount namespace"))?;
    // Otherwise mounts made here would appear outside too, if `/` is shared.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(EmuError::when("make mounts private"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(EmuError::when("mount /proc"))
}

/// Sources that the guard's thread watches.
struct GuardSources {
    lifeline: OwnedFd,
    signals: Signals,
    told: Arc<FirstInterrupt>,
}

impl GuardSources {
    /// Watches until the process ends.
    fn run(mut self) {
        let (clock, mut interrupts) = (Clock::start(), Interrupts::default());
        loop {
            let mut octets = [0; 16];
            let passed_on = match rustix::io::read(&self.lifeline, &mut octets) {
                Ok(0) => end(ABANDONED),
                Ok(count) => &octets[..count],
                Err(_) => &[],
            };
            let passed_on = passed_on.iter().map(|signal| (InterruptPath::PassedOn, i32::from(*signal)));
            let direct = self.signals.take().map(|signal| (InterruptPath::Direct, signal));
            for (way, signal) in passed_on.chain(direct) {
                match interrupts.count(way, clock.now()) {
                    1 => self.told.tell(signal),
                    _ => end(Exit::Signal(signal).code().into()),
                }
            }
            if wait(&[self.lifeline.as_fd(), self.signals.as_fd()], None).is_err() {
                end(ABANDONED);
            }
        }
    }
}

/// Ends this process, and so every process in its PID namespace.
#[expect(clippy::exit, reason = "the point is to end whatever the other threads do")]
fn end(code: i32) -> ! {
    std::process::exit(code)
}
