//! State of the terminal before the programs, and its restoration.

use std::os::fd::OwnedFd;

use nix::sys::signal::{SigSet, Signal};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// Controlling terminal, held by a process group in its foreground.
#[derive(Debug)]
pub(super) struct Terminal {
    tty: OwnedFd,
    group: Pid,
    modes: Option<Termios>,
}

impl Terminal {
    /// Returns the terminal of this process in its current state; `None` without one, or in its background.
    pub(super) fn now() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
        let group = getpgrp();
        let modes = tcgetattr(&tty).ok();
        (tcgetpgrp(&tty).ok()? == group).then_some(Self { tty, group, modes })
    }

    /// Brings this process's group to the foreground again. After programs that were killed (`killed`) it also restores
    /// the modes. A program that ended by itself is assumed to have set the modes on purpose.
    pub(super) fn restore(&self, killed: bool) {
        // SIGTTOU stops a process in the background for this call, unless the process blocks it (tcsetpgrp(3)).
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTTOU);
        let before = blocked.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
        // The terminal may be gone, as after SIGHUP; then there is nothing to restore.
        if tcgetpgrp(&self.tty).ok() != Some(self.group) {
            let _ = tcsetpgrp(&self.tty, self.group);
        }
        if let Some(modes) = self.modes.as_ref().filter(|_| killed) {
            let _ = tcsetattr(&self.tty, OptionalActions::Now, modes);
        }
        if let Ok(before) = before {
            let _ = before.thread_set_mask();
        }
    }
}
