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

/// A block that was sent, or the beginning of one.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    serial: u64,
    pub(super) pass: u32,
    pub(super) block: u32,
    pub(super) dtus: u32,
    /// When its first DTU left, and when the request behind the last did.
    pub(super) began: Time,
    pub(super) asked: Time,
    /// How many members have acknowledged it.
    count: u32,
    /// What those who lost some of it need, in DTUs.
    pub(super) needs: BTreeMap<ClientId, u32>,
    /// How it was paced, in hundredths of what the way was taken to carry.
    pub(super) gain: u64,
}

impl Flight {
    /// Notes that `dtus` of a block left in a pass from `began` on, and were `asked` about.
    pub(super) fn push(
        &mut self,
        (pass, block): (u32, u32),
        dtus: u32,
        (began, asked): (Time, Time),
        gain: u64,
    ) {
        self.sent += 1;
        self.entries.push_back(Entry {
            serial: self.sent,
            pass,
            block,
            dtus,
            began,
            asked,
            count: 0,
            needs: BTreeMap::new(),
            gain,
        });
    }

    /// Member `client` says that after `pass` it needs so many DTUs of `block`.
    pub(super) fn report(&mut self, (pass, block): (u32, u32), client: ClientId, need: u32) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|e| (e.pass, e.block) == (pass, block)) {
            entry.needs.insert(client, need);
        }
    }

    /// A member has acknowledged the entries behind the first of these up to the second: the newest that `enough` have
    /// acknowledged now, if that is one of them.
    pub(super) fn acknowledge(&mut self, (before, acked): (u64, u64), enough: u32) -> Option<u64> {
        let mut newest = None;
        for entry in self.entries.iter_mut().filter(|entry| entry.serial > before && entry.serial <= acked) {
            entry.count += 1;
            if entry.count == enough {
                newest = Some(entry.serial);
            }
        }
        newest
    }

    /// The entries behind the one of serial number `first` up to that of `last`, as far as they are not forgotten.
    pub(super) fn between(&self, first: u64, last: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.serial > first && entry.serial <= last)
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
    pub(super) fn last_block(&self) -> Option<u32> {
        self.entries.back().map(|entry| entry.block)
    }
}
