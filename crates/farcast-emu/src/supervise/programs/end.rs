//! Stopping programs.

use farcast_core::{Span, Time};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use signal_hook::consts::SIGINT;

use super::{ProcessGroup, ProgramId, Programs, Running};
use crate::EmuError;
use crate::supervise::Exit;

/// Longest time until a killed process is gone.
const PATIENCE: Span = Span::from_secs(10);

/// Processes that a signal is for.
#[derive(Clone, Copy, Debug)]
enum Target {
    Process(Pid),
    Group(Pid),
    /// All processes in this PID namespace but init.
    All,
}

impl Target {
    fn of(running: &Running) -> Self {
        let pid = Pid::from_raw(running.pid.as_raw_pid());
        match running.place {
            // Its group is that of this process, and the outer process's.
            ProcessGroup::Foreground => Self::Process(pid),
            ProcessGroup::Background => Self::Group(pid),
        }
    }

    /// Sends `signal`, or with `None` only checks. Returns `true` if there is a process.
    fn signal(self, signal: impl Into<Option<Signal>>) -> bool {
        let sent = match self {
            Self::Process(pid) => kill(pid, signal),
            Self::Group(pid) => killpg(pid, signal),
            Self::All => kill(Pid::from_raw(-1), signal),
        };
        sent.is_ok()
    }

    /// Asks the process to end. A stopped process gets the signal only once it continues.
    fn terminate(self) {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
    }
}

impl Programs {
    /// Stops a program: SIGTERM, and SIGKILL once `grace` is over. In the background that is for its whole process
    /// group, in the foreground for the program alone, whose group is also this process's. Returns how it ended, which
    /// [`wait`](Programs::wait) then does not report; `None` if that was reported before.
    ///
    /// # Errors
    /// [`EmuError::Unkillable`], or the system's error of waiting.
    pub fn stop(&mut self, id: ProgramId, grace: Span) -> Result<Option<Exit>, EmuError> {
        self.reap()?;
        if let Some(running) = self.running.iter().find(|running| running.id == id) {
            let (target, name) = (Target::of(running), running.name.clone());
            target.terminate();
            let gone = |programs: &Self| !programs.is_running(id) && !target.signal(None);
            if !self.gone_within(grace, gone)? {
                target.signal(Signal::SIGKILL);
                if !self.gone_within(PATIENCE, gone)? {
                    return Err(EmuError::Unkillable(name));
                }
            }
        }
        let told = self.ended.iter().position(|ended| ended.id == id);
        Ok(told.and_then(|index| self.ended.remove(index)).map(|ended| ended.exit))
    }

    /// Stops the program in the foreground after the interrupt `signal`. Ctrl-C has reached the program too, and it may
    /// end by itself (iperf3 prints its summary). So after SIGINT it has `grace` before it is stopped like by
    /// [`stop`](Self::stop).
    ///
    /// # Errors
    /// Like [`stop`](Self::stop).
    pub fn stop_interrupted(
        &mut self,
        id: ProgramId,
        signal: i32,
        grace: Span,
    ) -> Result<Option<Exit>, EmuError> {
        if signal == SIGINT {
            self.gone_within(grace, |programs| !programs.is_running(id))?;
        }
        self.stop(id, grace)
    }

    /// Stops everything in the PID namespace, including processes that programs started: SIGTERM to all at once, and
    /// SIGKILL once `grace` is over. Then waits until all output of the programs has been printed.
    /// [`wait`](Programs::wait) reports how programs ended.
    ///
    /// # Errors
    /// [`EmuError::Unkillable`], or the system's error of waiting.
    pub fn stop_all(&mut self, grace: Span) -> Result<(), EmuError> {
        Target::All.terminate();
        let gone = |_: &Self| !Target::All.signal(None);
        if !self.gone_within(grace, gone)? {
            Target::All.signal(Signal::SIGKILL);
            if !self.gone_within(PATIENCE, gone)? {
                let name = self.running.first().map_or("of another", |running| &running.name);
                return Err(EmuError::Unkillable(name.into()));
            }
        }
        self.lines.finish();
        Ok(())
    }

    /// Waits until `gone` returns `true`, for `limit` at most. Returns `true` if it did.
    fn gone_within(&mut self, limit: Span, gone: impl Fn(&Self) -> bool) -> Result<bool, EmuError> {
        let until = self.clock.now() + limit;
        loop {
            self.reap()?;
            if gone(self) {
                return Ok(true);
            }
            if self.clock.now() >= until {
                return Ok(false);
            }
            self.pause(self.next_look(until), &[])?;
        }
    }

    /// Returns the time of the next check: not every process whose end matters is a child of this one.
    fn next_look(&self, until: Time) -> Time {
        until.min(self.clock.now() + Span::from_millis(20))
    }
}
