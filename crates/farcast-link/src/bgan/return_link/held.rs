//! Packets that one terminal holds, kept only if its queue has a limit.

use farcast_core::Time;
use farcast_core::stage::Backlog;

use crate::pipe::{QueueLimit, WaitingFrames};

/// The packets of a terminal that have entered and have not been sent. A packet that was given slots may have long to
/// wait for them, so it counts until the last of them has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldPackets {
    /// Packets that have not been given slots.
    asking: Backlog,
    /// Packets that have been given slots; each leaves when its last slot ends.
    granted: WaitingFrames,
}

impl HeldPackets {
    /// Takes a packet that enters at `now`, if `limit` has room for it. Returns `false` if there is no room.
    pub(super) fn admit(&mut self, now: Time, octets: u64, limit: QueueLimit) -> bool {
        self.granted.settle(now);
        let Backlog { frames, octets: granted } = self.granted.total();
        let held = Backlog {
            frames: self.asking.frames + frames,
            octets: self.asking.octets.saturating_add(granted),
        };
        let fits = limit.room(held, octets) > 0;
        if fits {
            self.asking.frames += 1;
            self.asking.octets = self.asking.octets.saturating_add(octets);
        }
        fits
    }

    /// Records that a packet was given slots, the last of which ends at `ends`: no earlier than those of earlier
    /// packets.
    pub(super) fn grant(&mut self, ends: Time, octets: u64) {
        self.give_up(octets);
        self.granted.push_one(ends, octets);
    }

    /// Records that a packet was given up, or no longer asks for slots.
    pub(super) fn give_up(&mut self, octets: u64) {
        self.asking.frames -= 1;
        self.asking.octets = self.asking.octets.saturating_sub(octets);
    }
}
