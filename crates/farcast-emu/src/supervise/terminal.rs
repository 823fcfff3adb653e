//! The terminal as it was before the programs, and how it becomes so again.

use std::os::fd::OwnedFd;

use nix::sys::signal::{SigSet, Signal};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The controlling terminal, held by a process group that is in its foreground.
#[derive(Debug)]
pub(super) struct Terminal {
    tty: OwnedFd,
    group: Pid,
    modes: Option<Termios>,
}

impl Terminal {
    /// The terminal of this process as it is now; `None` without one, or in its background.
    pub(super) fn now() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
        let group = getpgrp();
        let modes = tcgetattr(&tty).ok();
        (tcgetpgrp(&tty).ok()? == group).then_some(Self { tty, group, modes })
    }

    /// Makes this process's group the one in the foreground again, and after programs that were killed (`killed`) sets
    /// the modes too. What a program that ended by itself did to the modes it meant to do.
    pub(super) fn restore(&self, killed: bool) {
        // Whoever is in the background is stopped by SIGTTOU for this, unless it blocks that (tcsetpgrp(3)).
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
