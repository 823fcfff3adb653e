//! Memory of a transfer.

use farcast_scenario::Links;
use farcast_scenario::receivers::Group as Receivers;

use super::{Group, NakTiming, Pace, PassWait, Transfer};

/// Octets of a receiver of a population: its times, its counts, its state.
const POPULATION: u64 = 64;
/// Octets of a receiver of a population with proofs, besides: its token and its last report.
const PROOF: u64 = 32;
/// Octets of a receiver of a population for each block that it lacks something of when parity comes, and for the
/// symbols that it loses.
const NEED: u64 = 16;
/// Octets of an engine, without received data.
const ENGINE: u64 = 2048;
/// Octets of a group member at the sender. They include its label in a tree whose nodes are half full, and its
/// registration and its Done under way in a queue that doubles when it is full.
const MEMBER: u64 = 2816;
/// The same where receivers take turns, so that few messages are under way.
const TURN: u64 = 1408;
/// Octets of the sender's note of what a member lacks in one block, which it keeps until the block is through.
const LACK: u64 = 40;
/// Octets of a message under way, without its bitmap, in three places: the population's messages, the group's output,
/// and the queue. Each place doubles when it is full.
const MESSAGE: u64 = 768;
/// Octets that the allocator takes for each octet that is asked for.
const ALLOCATED: f64 = 1.25;

impl Transfer {
    /// Estimates the peak memory of the transfer's two sides, in octets.
    pub(super) fn needs(&self, groups: &[Receivers], links: &Links, engines: bool) -> u64 {
        let sender = &self.configs.sender;
        let segments = sender.product.size.div_ceil(u64::from(sender.dtu_size).max(1)).max(1);
        let block = u64::from(sender.block_size).clamp(1, segments);
        let blocks = segments.div_ceil(block);
        let naks = blocks.min(self.configs.receiver.naks_per_request.into());
        let alone = links.back.constant_delay().is_some();
        let parity = sender.parity_symbols > 0;
        let is_open = sender.group == Group::OpenUnlimited;
        let by_turns = sender.turns && !is_open;
        // The sender takes merged NAKs under the same conditions.
        let merged = alone && is_open && !parity && sender.pass_wait == PassWait::FixedTimer;
        // Answers that leave one by one need not wait for each other. In a chain of stages they do, and answers to each
        // repeated request wait behind them.
        let rounds = match (alone, sender.nak_timing) {
            (true, NakTiming::EachBlock) => 1,
            (true, NakTiming::EndOfFirstPass) => naks,
            (false, _) => naks.saturating_mul(1 + u64::from(sender.status_retry_count)),
        };
        // One request asks about all blocks that have left before the formal start of data.
        let rounds = rounds + self.early_blocks().min(naks);
        let mut octets = 0.0;
        for group in groups {
            let loss = group.losses.as_ref().unwrap_or(&links.losses).share(sender.dtu_size.into());
            let receivers = f64::from(group.receivers);
            let gaps = if engines {
                segments as f64 / 8.0
            } else {
                // For each segment, a list or a bit set of the receivers that lack it.
                segments as f64 * (loss * 8.0).min(0.125)
            };
            let of_a_block = 1.0 - (1.0 - loss).powf(block as f64);
            let needs = if parity && !engines { of_a_block * (blocks * NEED) as f64 } else { 0.0 };
            let answers = if merged || by_turns {
                0.0
            } else {
                of_a_block * rounds as f64 * (MESSAGE + block.div_ceil(8)) as f64
            };
            let proof = if sender.secret.is_some() { PROOF } else { 0 };
            let base = if engines { ENGINE } else { POPULATION + proof };
            let each = if by_turns { TURN } else { MEMBER };
            let lack = if by_turns { 0 } else { blocks * LACK };
            let member = if is_open { 0.0 } else { each as f64 + of_a_block * lack as f64 };
            octets += receivers * (gaps + needs + answers + base as f64 + member) * ALLOCATED;
        }
        // A cast from a float saturates.
        octets as u64
    }

    /// Estimates the number of blocks that leave before the formal start of data. Receivers register late in that time,
    /// and data goes on for as long again.
    fn early_blocks(&self) -> u64 {
        let sender = &self.configs.sender;
        let Pace::Rate { rate, .. } = sender.pace else { return 0 };
        let block = rate.time_of_bytes(u64::from(sender.block_size) * u64::from(sender.dtu_size));
        (sender.early_data * 2).as_nanos().div_ceil(block.as_nanos().max(1))
    }
}
