//! Stopping programs.

use farcast_core::{Span, Time};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use signal_hook::consts::SIGINT;

use super::{Place, ProgramId, Programs, Running};
use crate::EmuError;
use crate::supervise::Exit;

/// How long a killed process may take to be gone.
const PATIENCE: Span = Span::from_secs(10);

/// Which processes a signal is for.
#[derive(Clone, Copy, Debug)]
enum Target {
    Process(Pid),
    Group(Pid),
    /// All in this PID namespace but init.
    All,
}

impl Target {
    fn of(running: &Running) -> Self {
        let pid = Pid::from_raw(running.pid.as_raw_pid());
        match running.place {
            // Its group is ours, and the outer process's.
            Place::Foreground => Self::Process(pid),
            Place::Background => Self::Group(pid),
        }
    }

    /// Sends `signal`, or with `None` only looks; whether there is a process.
    fn signal(self, signal: impl Into<Option<Signal>>) -> bool {
        let sent = match self {
            Self::Process(pid) => kill(pid, signal),
            Self::Group(pid) => killpg(pid, signal),
            Self::All => kill(Pid::from_raw(-1), signal),
        };
        sent.is_ok()
    }

    /// Asks it to end. A stopped process hears that only once it goes on.
    fn terminate(self) {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
    }
}

impl Programs {
    /// Stops a program: SIGTERM, and SIGKILL once `grace` is over. In the background that is for its whole process
    /// group, in the foreground for the program alone, whose group is also ours. How it ended, which
    /// [`wait`](Programs::wait) then does not tell; `None` if it has been told.
    ///
    /// # Errors
    /// [`EmuError::Unkillable`], or what the system says against waiting.
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

    /// Stops the program in the foreground after the interrupt `signal`. Ctrl-C has reached it too, and it may want to
    /// end in its own way (iperf3 prints its summary), so after SIGINT it has `grace` to itself. Otherwise like
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

    /// Stops everything in the PID namespace, whoever started it: SIGTERM to all at once, and SIGKILL once `grace` is
    /// over. Then waits until all that the programs printed has come out. [`wait`](Programs::wait) tells how programs
    /// ended.
    ///
    /// # Errors
    /// [`EmuError::Unkillable`], or what the system says against waiting.
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

    /// Waits until `gone` says so, for `limit` at most; whether it did.
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

    /// When to look again: not every process whose end matters is our child.
    fn next_look(&self, until: Time) -> Time {
        until.min(self.clock.now() + Span::from_millis(20))
    }
}
