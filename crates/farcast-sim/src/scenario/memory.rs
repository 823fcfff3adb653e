//! Memory of a replication.

use farcast_scenario::Links;
use farcast_scenario::receivers::Group;

use super::Scenario;
use super::transfer::TransferSpec;

/// Octets that any replication takes.
const LEAST: u64 = 22 << 20;
/// Octets of a flow with its two ends.
const FLOW: u64 = 64 << 10;

/// Estimates the peak memory of a replication in octets. It grows with receivers, segments, losses, and answers under
/// way.
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
    /// Estimates the peak memory of a replication in octets.
    pub fn memory(&self) -> u64 {
        of(self.flows(), self.transfer.as_ref(), &self.groups, &self.links, self.engines)
    }
}
