//! Counting of interrupts: the first, and the second.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use farcast_core::{Span, Time};
use rustix::event::{EventfdFlags, eventfd};

use crate::EmuError;

/// Time within which signals by one path count as one: `timeout` signals its child and then its process group.
const ONE: Span = Span::from_millis(300);

/// Path of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InterruptPath {
    /// Signal to this process.
    Direct,
    /// Signal to the outer process, which passed it on.
    PassedOn,
}

/// Number of interrupts by one path.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    count: u32,
    last: Option<Time>,
}

/// Number of interrupts: the larger of the two paths' counts, because one Ctrl-C takes both.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Interrupts {
    direct: Count,
    passed_on: Count,
}

impl Interrupts {
    /// Counts a signal that came at `now`. Returns the number of interrupts so far.
    pub(super) fn count(&mut self, way: InterruptPath, now: Time) -> u32 {
        let counted = match way {
            InterruptPath::Direct => &mut self.direct,
            InterruptPath::PassedOn => &mut self.passed_on,
        };
        if counted.last.is_none_or(|last| now.since(last) >= ONE) {
            counted.count = counted.count.saturating_add(1);
            counted.last = Some(now);
        }
        self.direct.count.max(self.passed_on.count)
    }
}

/// The first interrupt, which the guard's thread passes to the thread that acts.
#[derive(Debug)]
pub(super) struct FirstInterrupt {
    /// Number of the signal, 0 as long as there is none.
    signal: AtomicI32,
    event: OwnedFd,
}

impl FirstInterrupt {
    pub(super) fn new() -> Result<Self, EmuError> {
        let event =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(EmuError::when("make an event for interrupts"))?;
        Ok(Self { signal: AtomicI32::new(0), event })
    }

    /// Stores that `signal` came; all but the first are forgotten.
    pub(super) fn tell(&self, signal: i32) {
        let _ = self.signal.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
        // An eventfd blocks only near 2^64.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Returns the first signal, once one came.
    pub(super) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

impl AsFd for FirstInterrupt {
    /// Returns a descriptor that is readable from the first interrupt on.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::signals::wait;
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    #[test]
    fn one_ctrl_c_counts_once_however_late_the_outer_process_passes_it_on() {
        let mut interrupts = Interrupts::default();
        assert_eq!(interrupts.count(InterruptPath::Direct, at(1000)), 1);
        assert_eq!(interrupts.count(InterruptPath::PassedOn, at(9000)), 1);
        assert_eq!(interrupts.count(InterruptPath::Direct, at(10_000)), 2);
    }

    #[test]
    fn what_comes_close_together_by_one_way_counts_once() {
        let mut interrupts = Interrupts::default();
        for ms in [0, 1, 299] {
            assert_eq!(interrupts.count(InterruptPath::PassedOn, at(ms)), 1, "{ms} ms");
        }
        // A key that is held down repeats about 30 times a second, and is a second interrupt in the end.
        assert_eq!(interrupts.count(InterruptPath::PassedOn, at(300)), 2);
    }

    #[test]
    fn the_first_interrupt_is_told_by_number_and_descriptor() {
        let told = FirstInterrupt::new().unwrap();
        assert_eq!(told.signal(), None);
        assert!(!wait(&[told.as_fd()], Some(Span::ZERO)).unwrap());
        told.tell(15);
        told.tell(2);
        assert_eq!(told.signal(), Some(15));
        assert!(wait(&[told.as_fd()], Some(Span::ZERO)).unwrap());
    }
}
