//! Receivers of a population that hold each parity symbol, by block.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};

use super::lacking::ReceiverGaps;
use crate::config::ReceiverConfig;
use crate::receiver::control::Terms;
use crate::receiver::parity::{Cost, is_decodable};

/// Parity symbol of a block.
#[derive(Clone, Copy)]
pub(super) struct SymbolId {
    pub(super) block: u32,
    pub(super) symbol: u32,
}

/// Receivers that a symbol reaches: those in `who` that are not in `lost`, both in ascending order.
#[derive(Clone, Copy)]
pub(super) struct Reach<'a> {
    pub(super) who: &'a [u32],
    pub(super) lost: &'a [u32],
}

/// State of one receiver for a block of which it lacks DTUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BlockNeed {
    /// Number of DTUs that it lacks.
    missing: u32,
    /// Number of symbols that it holds; a block has at most 32,768.
    held: u16,
    /// Number of symbols for which it has reserved memory; 0 as long as it holds none.
    room: u16,
}

/// State of a block of which parity was sent while receivers lacked DTUs of it.
#[derive(Clone, Debug, Default)]
struct ParityBlock {
    /// Receivers that lack DTUs, in ascending order, and the state of each.
    who: Vec<u32>,
    needs: Vec<BlockNeed>,
    /// For each symbol that was sent, the receivers that lacked DTUs and did not get it, in ascending order. The symbol
    /// would be new to them if it came again. The lists may contain receivers that are no longer in `who`.
    missed: BTreeMap<u32, Vec<u32>>,
}

impl ParityBlock {
    fn need(&self, receiver: u32) -> Option<&BlockNeed> {
        self.who.binary_search(&receiver).ok().map(|place| &self.needs[place])
    }

    /// Calls `keep` for each receiver that lacks DTUs, in order, and removes those for which it returns `false`.
    fn retain(&mut self, mut keep: impl FnMut(u32, &mut BlockNeed) -> bool) {
        let mut kept = 0;
        for place in 0..self.who.len() {
            let (receiver, mut need) = (self.who[place], self.needs[place]);
            if keep(receiver, &mut need) {
                (self.who[kept], self.needs[kept]) = (receiver, need);
                kept += 1;
            }
        }
        self.who.truncate(kept);
        self.needs.truncate(kept);
    }
}

/// Memory that each receiver's parity takes.
#[derive(Clone, Debug)]
struct Memory {
    cost: Cost,
    limit: u64,
    /// Bytes of each receiver; empty if no receiver can reach the limit.
    used: Vec<u64>,
}

impl Memory {
    /// Reserves memory for symbols of a block with this state of `receiver`. Returns `false` if there is no room.
    fn admits(&mut self, receiver: u32, need: &mut BlockNeed) -> bool {
        let old = u32::from(need.room);
        let room = self.cost.room(old, need.missing);
        if let Some(used) = self.used.get_mut(receiver as usize) {
            let more = self.cost.bytes(room) - self.cost.bytes(old);
            if *used + more > self.limit {
                return false;
            }
            *used += more;
        }
        need.room = u16::try_from(room).unwrap_or(u16::MAX);
        true
    }

    /// Releases the memory of a block's symbols at `receiver`.
    fn release(&mut self, receiver: u32, need: BlockNeed) {
        if let Some(used) = self.used.get_mut(receiver as usize) {
            *used -= self.cost.bytes(need.room.into());
        }
    }
}

/// Parity that all receivers of a population hold. The cost of a receiver depends on the incomplete blocks for which
/// parity comes, and on the symbols that it loses.
#[derive(Clone, Debug)]
pub(super) struct PopulationParity {
    blocks: BTreeMap<u32, ParityBlock>,
    memory: Memory,
    /// Receivers that have rebuilt the current block and are still in the lists of its segments. To remove many at once
    /// costs no more than to remove one.
    rebuilt: Bitmap,
    /// Buffer of the DTUs that each receiver lacks of a block; all 0 between uses.
    counts: Vec<u32>,
}

impl PopulationParity {
    /// Creates the empty parity state of `receivers` receivers; `None` for a transmission without parity.
    pub(super) fn new(receivers: u32, terms: &Terms, config: &ReceiverConfig) -> Option<Self> {
        if terms.offer.parity_symbols == 0 {
            return None;
        }
        let (cost, geometry, n) = (Cost::of(terms), terms.geometry(), receivers as usize);
        let most = cost.bytes(cost.room(0, geometry.block_len(0))).saturating_mul(geometry.blocks().into());
        let bounded = most > config.parity_memory_bytes;
        let used = if bounded { alloc::vec![0; n] } else { Vec::new() };
        Some(Self {
            blocks: BTreeMap::new(),
            memory: Memory { cost, limit: config.parity_memory_bytes, used },
            rebuilt: Bitmap::new(receivers),
            counts: alloc::vec![0; n],
        })
    }

    /// Begins to track the parity needs of `block`, with these segments, when its parity is first sent.
    pub(super) fn begin(&mut self, block: u32, segments: Run, lacking: &mut ReceiverGaps) {
        if self.blocks.contains_key(&block) {
            return;
        }
        // A receiver that rebuilds the block lacks none of its segments, even those that were never sent.
        lacking.give_up_unsent(segments);
        let mut who = Vec::new();
        lacking.count_in(segments, &mut self.counts, &mut who);
        let need = |&receiver: &u32| {
            let missing = core::mem::take(&mut self.counts[receiver as usize]);
            BlockNeed { missing, held: 0, room: 0 }
        };
        let needs = who.iter().map(need).collect();
        self.blocks.insert(block, ParityBlock { who, needs, missed: BTreeMap::new() });
    }

    /// Collects into `list`, in ascending order, the receivers to which `symbol` of `block` would be new and useful.
    pub(super) fn who(&self, block: u32, symbol: u32, list: &mut Vec<u32>) {
        list.clear();
        let Some(block) = self.blocks.get(&block) else { return };
        match block.missed.get(&symbol) {
            None => list.extend_from_slice(&block.who),
            Some(missed) => list.extend(missed.iter().filter(|&&receiver| block.need(receiver).is_some())),
        }
    }

    /// Records the receivers that a symbol reaches. Collects into `rebuilt` the receivers that can then rebuild the block.
    pub(super) fn sent(
        &mut self,
        SymbolId { block, symbol }: SymbolId,
        reach: Reach<'_>,
        lacking: &mut ReceiverGaps,
        rebuilt: &mut Vec<u32>,
    ) {
        rebuilt.clear();
        let Reach { who, lost } = reach;
        let Self { blocks, memory, rebuilt: bits, .. } = self;
        let Some(state) = blocks.get_mut(&block) else { return };
        let mut missed = Vec::new();
        let (mut who, mut lost) = (who.iter().copied().peekable(), lost.iter().copied().peekable());
        state.retain(|receiver, need| {
            if who.next_if_eq(&receiver).is_none() {
                return true;
            }
            if lost.next_if_eq(&receiver).is_some() || !memory.admits(receiver, need) {
                missed.push(receiver);
                return true;
            }
            need.held += 1;
            if !is_decodable(need.missing, need.held.into()) {
                return true;
            }
            memory.release(receiver, *need);
            lacking.rebuilt(receiver, need.missing);
            bits.insert(receiver);
            rebuilt.push(receiver);
            false
        });
        state.missed.insert(symbol, missed);
        if state.who.is_empty() {
            blocks.remove(&block);
        }
    }

    /// Records that a segment of `block` has reached the receivers in `got`, in ascending order, which lacked it. Some
    /// of them may now rebuild the block.
    pub(super) fn filled(&mut self, block: u32, got: &[u32], lacking: &mut ReceiverGaps) {
        let Self { blocks, memory, rebuilt: bits, .. } = self;
        let Some(state) = blocks.get_mut(&block) else { return };
        let mut complete = false;
        for &receiver in got {
            let Ok(place) = state.who.binary_search(&receiver) else { continue };
            let need = &mut state.needs[place];
            need.missing -= 1;
            if !is_decodable(need.missing, need.held.into()) {
                continue;
            }
            memory.release(receiver, *need);
            if need.missing > 0 {
                lacking.rebuilt(receiver, need.missing);
                bits.insert(receiver);
            }
            (need.missing, complete) = (0, true);
        }
        if complete {
            state.retain(|_, need| need.missing > 0);
        }
        if state.who.is_empty() {
            blocks.remove(&block);
        }
    }

    /// Removes from `list` the receivers that have rebuilt the current block.
    pub(super) fn leave_out_rebuilt(&self, list: &mut Vec<u32>) {
        if !self.rebuilt.is_empty() {
            list.retain(|&receiver| !self.rebuilt.contains(receiver));
        }
    }

    /// Removes the receivers that have rebuilt the current block, with these segments, from the lists of those that
    /// lack them.
    pub(super) fn settle(&mut self, segments: Run, lacking: &mut ReceiverGaps) {
        if !self.rebuilt.is_empty() {
            lacking.strike(segments, &self.rebuilt);
            self.rebuilt.clear();
        }
    }

    /// Returns the number of symbols of `block` that `receiver` holds.
    pub(super) fn held(&self, block: u32, receiver: u32) -> u32 {
        self.blocks.get(&block).and_then(|block| block.need(receiver)).map_or(0, |need| need.held.into())
    }
}
