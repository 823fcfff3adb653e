//! Counters of a tree.

/// Counters of one replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeTally {
    /// Packets that reached a node with their address where nothing takes them, or whose address no node has.
    pub unheard: u64,
    /// Packets whose time to live ended before they reached their address.
    pub expired: u64,
}

/// Counter of packets of one kind in one direction of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindCount {
    /// Packets that entered.
    pub packets: u64,
    /// Octets of the packets with all headers.
    pub octets: u64,
}

impl KindCount {
    /// Counts a run of `segments` packets of which all but the last have `full` octets.
    pub(super) fn count(&mut self, segments: u32, full: u64, last: u64) {
        self.packets += u64::from(segments);
        self.octets += full * u64::from(segments - 1) + last;
    }
}
