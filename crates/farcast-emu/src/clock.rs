//! The monotonic clock of the system as engines see it, and waiting.

use std::num::NonZeroU64;
use std::os::fd::AsFd;

use farcast_core::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::EmuError;

/// The system's monotonic clock, counted from the creation of this value.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Start of this clock on the system's clock, in nanoseconds.
    epoch: u64,
}

/// Returns the time of the system's monotonic clock, in nanoseconds.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.cast_unsigned())
}

impl Clock {
    /// Starts a clock at 0 now.
    pub fn start() -> Self {
        Self { epoch: monotonic() }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.epoch))
    }

    /// Returns an instant as a time of the system's clock.
    pub(crate) fn on_the_system(self, at: Time) -> Timespec {
        let nanos = self.epoch.saturating_add(at.as_nanos());
        Timespec {
            tv_sec: (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        }
    }

    /// Waits until `source` can be read or `until` has come, to the nanosecond. Returns `true` if `source` can be read.
    ///
    /// # Errors
    /// The system's error, if it refuses to wait.
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

/// Makes this thread's timers expire when they are due; by default Linux may be 50 us late.
pub(crate) fn sharpen_timers() {
    // If the system refuses, timers come a little late, which engines allow.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
