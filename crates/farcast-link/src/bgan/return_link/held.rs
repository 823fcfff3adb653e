//! What one terminal holds, where its queue has a limit.

use alloc::collections::VecDeque;

use farcast_core::Time;
use farcast_core::stage::Backlog;

use crate::pipe::QueueLimit;

/// The packets of a terminal that have entered and have not been sent. A packet that was given slots may have long to wait
/// for them, so it counts until the last of them has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    total: Backlog,
    /// Those that were given slots, in their order: when the last slot ends, and octets.
    granted: VecDeque<(Time, u64)>,
}

impl Held {
    /// Takes a packet that enters at `now`, if `limit` has room for it.
    pub(super) fn admit(&mut self, now: Time, octets: u64, limit: QueueLimit) -> bool {
        while let Some((_, sent)) = self.granted.pop_front_if(|&mut (ends, _)| ends <= now) {
            self.forget(sent);
        }
        let fits = limit.room(self.total, octets) > 0;
        if fits {
            self.total.frames += 1;
            self.total.octets = self.total.octets.saturating_add(octets);
        }
        fits
    }

    /// A packet was given slots, the last of which ends at `ends`.
    pub(super) fn grant(&mut self, ends: Time, octets: u64) {
        self.granted.push_back((ends, octets));
    }

    /// A packet was given up.
    pub(super) fn give_up(&mut self, octets: u64) {
        self.forget(octets);
    }

    fn forget(&mut self, octets: u64) {
        self.total.frames -= 1;
        self.total.octets = self.total.octets.saturating_sub(octets);
    }
}
