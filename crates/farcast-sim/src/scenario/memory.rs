//! How much memory a replication takes.

use super::Scenario;

/// What anything takes, in octets.
const LEAST: u64 = 16 << 20;
/// A flow with its two ends.
const FLOW: u64 = 64 << 10;

impl Scenario {
    /// About how much memory a replication takes at its peak, in octets: what grows with receivers, segments, losses,
    /// and answers under way.
    pub fn memory(&self) -> u64 {
        let flows = FLOW.saturating_mul(self.flows() as u64);
        let transfer = self
            .transfer
            .as_ref()
            .map_or(0, |transfer| transfer.memory(&self.groups, &self.links, self.engines));
        LEAST.saturating_add(flows).saturating_add(transfer)
    }
}
