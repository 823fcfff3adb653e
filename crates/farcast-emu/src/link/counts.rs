//! Counts of packets that have passed a link.

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
    /// Adds a packet.
    pub fn count(&mut self, octets: usize) {
        self.packets += 1;
        self.octets = self.octets.saturating_add(octets as u64);
    }

    /// Removes a packet.
    pub(crate) fn uncount(&mut self, octets: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.octets = self.octets.saturating_sub(octets as u64);
    }
}

/// Counts of the packets of one direction by fate. A packet to all terminals enters once and is delivered or lost at
/// each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Packets that entered.
    pub entered: Sum,
    /// Packets that were written to a device.
    pub delivered: Sum,
    /// Packets that a loss process, an outage or a stage's errors took.
    pub lost: Sum,
    /// Lost packets that a stage gave up, after it had retransmitted them as often or for as long as it may.
    pub given_up: Sum,
    /// Packets that a limit dropped: a queue, a stage's, or the emulator's memory.
    pub dropped: Sum,
    /// Packets that the device refused; they are not losses of the link.
    pub not_taken: Sum,
    /// Packets that were still inside when the link ended.
    pub held: Sum,
}

/// Counts of one terminal: of packets to it, and of packets from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TerminalCounts {
    /// Packets written to its device, and packets from it written to the hub's.
    pub delivered: [Sum; 2],
    /// Packets lost behind the last stage.
    pub lost: [Sum; 2],
}
