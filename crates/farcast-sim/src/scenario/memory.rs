//! How much memory a replication takes.

use farcast_mftp::{Group, NakTiming};

use super::{Scenario, Transfer};

/// What anything takes, in octets.
const LEAST: u64 = 16 << 20;
/// A receiver of a population: its times, its counts, its state.
const POPULATION: u64 = 64;
/// An engine, without what it has received.
const ENGINE: u64 = 2048;
/// A flow with its two ends.
const FLOW: u64 = 64 << 10;
/// A member of a group at the sender, with its label, and its registration under way.
const MEMBER: u64 = 768;
/// A message under way, without its bitmap.
const MESSAGE: u64 = 192;

impl Scenario {
    /// About how much memory a replication takes at its peak, in octets: what grows with receivers, segments, losses, and
    /// answers under way.
    pub fn memory(&self) -> u64 {
        let flows = FLOW.saturating_mul(self.flows() as u64);
        let transfer = self.transfer.as_ref().map_or(0, |transfer| self.memory_of(transfer));
        LEAST.saturating_add(flows).saturating_add(transfer)
    }

    fn memory_of(&self, transfer: &Transfer) -> u64 {
        let sender = &transfer.protocol.sender;
        let segments = sender.product.size.div_ceil(u64::from(sender.dtu_size).max(1)).max(1);
        let block = u64::from(sender.block_size).clamp(1, segments);
        let blocks = segments.div_ceil(block);
        let naks = blocks.min(transfer.protocol.receiver.naks_per_request.into());
        let alone = self.links.back.constant_delay().is_some();
        let merged = alone && sender.group == Group::OpenUnlimited;
        // Answers that leave one by one need not wait for each other. In a chain of stages they do, and those to each
        // repeated request behind them.
        let rounds = match (alone, sender.nak_timing) {
            (true, NakTiming::EachBlock) => 1,
            (true, NakTiming::EndOfFirstPass) => naks,
            (false, _) => naks.saturating_mul(1 + u64::from(sender.status_retry_count)),
        };
        let mut octets = 0.0;
        for group in &transfer.groups {
            let loss = group.losses.as_ref().unwrap_or(&self.links.losses).share(sender.dtu_size.into());
            let receivers = f64::from(group.receivers);
            let gaps = if self.has_engines() {
                segments as f64 / 8.0
            } else {
                // A list of those who lack a segment, or a bit of each.
                segments as f64 * (loss * 8.0).min(0.125)
            };
            let of_a_block = 1.0 - (1.0 - loss).powf(block as f64);
            let answers =
                if merged { 0.0 } else { of_a_block * rounds as f64 * (MESSAGE + block.div_ceil(8)) as f64 };
            let base = if self.has_engines() { ENGINE } else { POPULATION };
            let member = if sender.group == Group::OpenUnlimited { 0 } else { MEMBER };
            octets += receivers * (gaps + answers + (base + member) as f64);
        }
        // A cast from a float saturates.
        octets as u64
    }
}
