//! How much memory a replication takes.

use farcast_scenario::Links;
use farcast_scenario::receivers::Group;

use super::Scenario;
use super::transfer::TransferSpec;

/// What anything takes, in octets.
const LEAST: u64 = 22 << 20;
/// A flow with its two ends.
const FLOW: u64 = 64 << 10;

/// About how much memory a replication takes at its peak, in octets: what grows with receivers, segments, losses, and
/// answers under way.
pub(super) fn of(
    flows: usize,
    transfer: Option<&TransferSpec>,
    groups: &[Group],
    links: &Links,
    engines: bool,
) -> u64 {
    let flows = FLOW.saturating_mul(flows as u64);
    let transfer = transfer.map_or(0, |transfer| transfer.memory(groups, links, engines));
    LEAST.saturating_add(flows).saturating_add(transfer)
}

impl Scenario {
    /// About how much memory a replication takes at its peak, in octets.
    pub fn memory(&self) -> u64 {
        of(self.flows(), self.transfer.as_ref(), &self.groups, &self.links, self.engines)
    }
}
