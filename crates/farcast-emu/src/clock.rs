//! The wall clock as engines see it, and waiting.

use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Instant;

use farcast_core::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::EmuError;

/// A monotonic clock whose epoch is its making.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "a driver is where the clock is read")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn now(&self) -> Time {
        let elapsed = self.0.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Waits until `source` can be read or `until` has come, to the nanosecond that the system has; whether it can be
    /// read.
    ///
    /// # Errors
    /// What the system says against waiting.
    pub fn wait(&self, source: impl AsFd, until: Time) -> Result<bool, EmuError> {
        let span = until.since(self.now()).as_nanos();
        let timeout = Timespec {
            tv_sec: i64::try_from(span / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (span % 1_000_000_000).cast_signed(),
        };
        let mut sources = [PollFd::new(&source, PollFlags::IN)];
        match poll(&mut sources, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(EmuError::when("wait for packets")(errno)),
        }
    }
}

/// Lets this thread's timers expire when they are due; by default Linux may be 50 us late.
pub(crate) fn sharpen_timers() {
    // Where it is refused, timers come a little late, which engines allow.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
