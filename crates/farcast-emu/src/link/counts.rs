//! What has passed a link.

use serde::Serialize;

/// Packets and their octets, with IP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Sum {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
}

impl Sum {
    /// One packet more.
    pub fn count(&mut self, octets: usize) {
        self.packets += 1;
        self.octets = self.octets.saturating_add(octets as u64);
    }

    /// One packet less.
    pub(crate) fn uncount(&mut self, octets: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.octets = self.octets.saturating_sub(octets as u64);
    }
}

/// What became of the packets of one direction. A packet to all terminals enters once and is delivered or lost at each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// They entered.
    pub entered: Sum,
    /// They were written to a device.
    pub delivered: Sum,
    /// A loss process, an outage or a stage's errors took them.
    pub lost: Sum,
    /// Of these, a stage gave them up, after it had repeated them as often or for as long as it may.
    pub given_up: Sum,
    /// A limit dropped them: a queue, a stage's, or the emulator's memory.
    pub dropped: Sum,
    /// The device did not take them; that is no loss of the link's.
    pub not_taken: Sum,
    /// They were still inside when the link ended.
    pub held: Sum,
}

/// What one terminal got and lost: of what comes to it, and of what it sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TerminalCounts {
    /// Written to its device; of what it sent, to the hub's.
    pub delivered: [Sum; 2],
    /// Lost behind the last stage.
    pub lost: [Sum; 2],
}
