//! Signals as a source to poll, and waiting for several descriptors.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use farcast_core::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::EmuError;

/// Signals that wait in a descriptor until they are taken.
#[derive(Debug)]
pub(super) struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// Handles `signals` from now on, in all threads.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn watch(signals: &[i32]) -> Result<Self, EmuError> {
        let watched = || {
            let (read, write) = UnixStream::pair()?;
            SignalDelivery::with_pipe(read, write, SignalOnly, signals)
        };
        watched().map(Self).map_err(|error: io::Error| EmuError::when("handle signals")(error))
    }

    /// Takes the signals that came since the last call; one that came several times is there once.
    pub(super) fn take(&mut self) -> impl Iterator<Item = i32> {
        self.0.pending()
    }
}

impl AsFd for Signals {
    /// Returns a descriptor that is readable when signals wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }
}

/// Returns the signals that ask farcast to end, without those that it was started to ignore.
pub(super) fn interrupts() -> Vec<i32> {
    let ignored = fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    let heeded = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(heeded).collect()
}

/// Returns the set of ignored signals in a process's status (proc(5)): bit `n - 1` is signal `n`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Waits until one of `sources` can be read or is at its end, or `limit` is over, or a signal was handled. Returns
/// `true` in the first case.
///
/// # Errors
/// The system's error.
pub(super) fn wait(sources: &[BorrowedFd<'_>], limit: Option<Span>) -> Result<bool, EmuError> {
    let timeout = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (limit.as_nanos() % 1_000_000_000).cast_signed(),
    });
    let mut sources: Vec<_> =
        sources.iter().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)).collect();
    match poll(&mut sources, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(EmuError::when("wait for programs")(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_of_ignored_signals_is_read_as_the_manual_says() {
        // SIGHUP is 1, SIGINT 2, SIGPIPE 13.
        let status =
            "Name:\tx\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert_eq!(ignored(status), 1 << 12 | 1);
        assert_eq!(ignored("SigIgn:\tnonsense"), 0);
        assert_eq!(ignored(""), 0);
    }

    #[test]
    fn a_wait_ends_with_its_limit_and_with_the_end_of_a_source() {
        let (read, write) = io::pipe().unwrap();
        assert!(!wait(&[read.as_fd()], Some(Span::from_millis(1))).unwrap());
        drop(write);
        assert!(wait(&[read.as_fd()], None).unwrap());
    }
}
