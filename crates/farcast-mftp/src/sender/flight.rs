//! Blocks in flight: flow control by acknowledgement, for sending without a rate.

use alloc::collections::{BTreeMap, VecDeque};

use farcast_core::Time;

use crate::message::ClientId;

/// Blocks that were sent and not yet acknowledged by every receiver, oldest first.
///
/// Each block sent in a pass is an entry with a serial number from 1. An ACK names pass and block; it
/// acknowledges its entry and all before it, because a receiver answers requests in the order of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    entries: VecDeque<Entry>,
    sent: u64,
}

/// Block that leaves in a pass, and the request behind it.
#[derive(Clone, Copy)]
pub(super) struct SentBlock {
    pub(super) pass: u32,
    pub(super) block: u32,
    pub(super) dtus: u32,
    /// Times at which its first DTU and the request leave.
    pub(super) began: Time,
    pub(super) asked: Time,
    /// Pace of the block, in hundredths of the estimated rate.
    pub(super) gain: u64,
}

/// Block that was sent, or the beginning of one.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    serial: u64,
    pub(super) pass: u32,
    pub(super) block: u32,
    pub(super) dtus: u32,
    /// Times at which its first DTU and the request behind its last DTU left.
    pub(super) began: Time,
    pub(super) asked: Time,
    /// Number of members that have acknowledged it.
    count: u32,
    /// DTUs needed by each member that lost some.
    pub(super) needs: BTreeMap<ClientId, u32>,
    /// Pace of the block, in hundredths of the estimated rate.
    pub(super) gain: u64,
}

impl Flight {
    /// Adds an entry.
    pub(super) fn push(&mut self, block: SentBlock) {
        self.sent += 1;
        let SentBlock { pass, block, dtus, began, asked, gain } = block;
        let (serial, count, needs) = (self.sent, 0, BTreeMap::new());
        self.entries.push_back(Entry { serial, pass, block, dtus, began, asked, count, needs, gain });
    }

    /// Records that member `client` needs `need` DTUs of `block` after `pass`.
    pub(super) fn report(&mut self, pass: u32, block: u32, client: ClientId, need: u32) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|e| (e.pass, e.block) == (pass, block)) {
            entry.needs.insert(client, need);
        }
    }

    /// Records that a member has acknowledged the entries after `before` up to `acked`. Returns the newest of them that
    /// reaches `enough` acknowledgements by this.
    pub(super) fn acknowledge(&mut self, before: u64, acked: u64, enough: u32) -> Option<u64> {
        let mut newest = None;
        for entry in self.entries.iter_mut().filter(|entry| entry.serial > before && entry.serial <= acked) {
            entry.count += 1;
            if entry.count == enough {
                newest = Some(entry.serial);
            }
        }
        newest
    }

    /// Returns the entries after serial number `first` up to `last` that are still stored.
    pub(super) fn between(&self, first: u64, last: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.serial > first && entry.serial <= last)
    }

    /// Returns the serial number that an ACK of `block` in `pass` acknowledges.
    pub(super) fn serial(&self, pass: u32, block: u32) -> Option<u64> {
        self.entries.iter().rev().find(|e| (e.pass, e.block) == (pass, block)).map(|entry| entry.serial)
    }

    /// Returns the serial number of the newest entry.
    pub(super) fn newest(&self) -> u64 {
        self.sent
    }

    /// Drops entries up to `acked`, and returns the number of DTUs that remain unacknowledged.
    pub(super) fn outstanding(&mut self, acked: u64) -> u32 {
        while self.entries.front().is_some_and(|entry| entry.serial <= acked) {
            self.entries.pop_front();
        }
        self.entries.iter().map(|entry| entry.dtus).fold(0, u32::saturating_add)
    }

    /// Returns the newest unacknowledged block, for a repeated request.
    pub(super) fn last_block(&self) -> Option<u32> {
        self.entries.back().map(|entry| entry.block)
    }
}
