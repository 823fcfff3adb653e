//! The monotonic clock that drives the engines, and waiting for sockets until an instant of it.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use farcast_core::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Result of a wait: the set of sources that can be read.
#[derive(Clone, Copy, Debug)]
pub struct Readable(u64);

impl Readable {
    /// Returns `true` if source number `index` can be read; sources count from 0, in the order given to
    /// [`Clock::wait`].
    pub fn has(self, index: usize) -> bool {
        index < 64 && self.0 & 1 << index != 0
    }
}

/// A monotonic clock whose epoch is the instant at which it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Returns a clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "the driver is where the clock is read")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Time {
        let elapsed = self.0.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Waits until one of `sources`, at most 64, can be read or `until` has come.
    pub fn wait(&self, sources: &[BorrowedFd<'_>], until: Time) -> io::Result<Readable> {
        let mut fds: Vec<PollFd<'_>> =
            sources.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let span = until.since(self.now()).as_nanos();
        let timeout = Timespec {
            tv_sec: i64::try_from(span / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (span % 1_000_000_000).cast_signed(),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {
                let readable = fds.iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty());
                Ok(Readable(readable.fold(0, |all, (index, _)| all | 1 << index)))
            }
            Err(rustix::io::Errno::INTR) => Ok(Readable(0)),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Lets this thread's timers expire when they are due: by default Linux may be 50 us late, which is a datagram at
/// 240 Mbit/s.
pub(crate) fn sharpen_timers() {
    // Where it is refused, the pacer's credit makes up for late wake-ups.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
