//! The wall clock as engines see it, and waiting.

use std::num::NonZeroU64;
use std::os::fd::AsFd;

use farcast_core::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::EmuError;

/// The system's monotonic clock, whose epoch is its making.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds on the system's clock.
    epoch: u64,
}

/// What the system's clock shows, in nanoseconds.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.cast_unsigned())
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { epoch: monotonic() }
    }

    /// The time since the start.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.epoch))
    }

    /// An instant on the system's clock.
    pub(crate) fn on_the_system(self, at: Time) -> Timespec {
        let nanos = self.epoch.saturating_add(at.as_nanos());
        Timespec {
            tv_sec: (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        }
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
