//! Blocks in flight: flow control by acknowledgement, for sending without a rate.

use alloc::collections::VecDeque;

/// Blocks that were sent and not yet acknowledged by every receiver, oldest first.
///
/// Each block sent in a pass is an entry with a serial number from 1. An ACK names pass and block; it
/// acknowledges its entry and all before it, because a receiver answers requests in the order of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    entries: VecDeque<Entry>,
    sent: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    serial: u64,
    pass: u32,
    block: u32,
    dtus: u32,
}

impl Flight {
    /// Notes that `dtus` of `block` left in `pass`.
    pub(super) fn push(&mut self, pass: u32, block: u32, dtus: u32) {
        self.sent += 1;
        self.entries.push_back(Entry { serial: self.sent, pass, block, dtus });
    }

    /// The serial number that an ACK of `block` in `pass` acknowledges.
    pub(super) fn serial(&self, pass: u32, block: u32) -> Option<u64> {
        self.entries.iter().rev().find(|e| (e.pass, e.block) == (pass, block)).map(|entry| entry.serial)
    }

    /// The serial number of the newest entry.
    pub(super) fn newest(&self) -> u64 {
        self.sent
    }

    /// Forgets entries up to `acked`; how many DTUs remain unacknowledged.
    pub(super) fn outstanding(&mut self, acked: u64) -> u32 {
        while self.entries.front().is_some_and(|entry| entry.serial <= acked) {
            self.entries.pop_front();
        }
        self.entries.iter().map(|entry| entry.dtus).fold(0, u32::saturating_add)
    }

    /// The newest block that is still unacknowledged, to ask about again.
    pub(super) fn last(&self) -> Option<(u32, u32)> {
        self.entries.back().map(|entry| (entry.pass, entry.block))
    }
}
