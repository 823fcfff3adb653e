//! Which receivers of a population hold which parity symbols, kept by block.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};

use super::lacking::Lacking;
use crate::config::ReceiverConfig;
use crate::receiver::control::Terms;
use crate::receiver::parity::{Cost, is_decodable};

/// How one receiver stands with a block of which it lacks something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Need {
    /// DTUs that it lacks.
    missing: u32,
    /// Symbols that it holds: a block has at most 32,768.
    held: u16,
    /// Symbols that it has room for; 0 as long as it has taken none.
    room: u16,
}

/// A block of which parity was sent while someone lacked something of it.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Those who lack something, ascending, and how each of them stands.
    who: Vec<u32>,
    needs: Vec<Need>,
    /// Of each symbol that was sent, those who lacked something and did not get it, ascending: whom it would be new to
    /// if it came again. Who is not in `who` any more may be there yet.
    missed: BTreeMap<u32, Vec<u32>>,
}

impl Block {
    fn need(&self, receiver: u32) -> Option<&Need> {
        self.who.binary_search(&receiver).ok().map(|place| &self.needs[place])
    }

    /// Calls `keep` with everyone who lacks something, in order, and leaves out those for whom it says no.
    fn retain(&mut self, mut keep: impl FnMut(u32, &mut Need) -> bool) {
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

/// What each receiver's parity takes of its memory.
#[derive(Clone, Debug)]
struct Memory {
    cost: Cost,
    limit: u64,
    /// Bytes of each receiver; empty where nobody can reach the limit.
    used: Vec<u64>,
}

impl Memory {
    /// Whether there is room for symbols of a block with which `receiver` stands so, and makes it.
    fn admits(&mut self, receiver: u32, need: &mut Need) -> bool {
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

    /// `receiver` forgets the symbols of a block.
    fn release(&mut self, receiver: u32, need: Need) {
        if let Some(used) = self.used.get_mut(receiver as usize) {
            *used -= self.cost.bytes(need.room.into());
        }
    }
}

/// The parity that all receivers of a population hold: a receiver costs the blocks of which it lacks something when
/// their parity comes, and the symbols that it loses.
#[derive(Clone, Debug)]
pub(super) struct Parity {
    blocks: BTreeMap<u32, Block>,
    memory: Memory,
    /// Those who have rebuilt the block at hand and still stand in the lists of its segments: taking many off at once
    /// costs no more than taking off one.
    rebuilt: Bitmap,
    /// Reused: DTUs that each receiver lacks of a block; all 0.
    counts: Vec<u32>,
}

impl Parity {
    /// What `receivers` receivers hold of a transmission that has parity: nothing. `None` of one that has none.
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

    /// Parity of `block`, whose segments these are, is sent: from here on it is known who needs how much of it.
    pub(super) fn begin(&mut self, block: u32, segments: Run, lacking: &mut Lacking) {
        if self.blocks.contains_key(&block) {
            return;
        }
        // Who rebuilds it lacks nothing more of it, also of what was never sent.
        lacking.give_up_unsent(segments);
        let mut who = Vec::new();
        lacking.count_in(segments, &mut self.counts, &mut who);
        let need = |&receiver: &u32| {
            let missing = core::mem::take(&mut self.counts[receiver as usize]);
            Need { missing, held: 0, room: 0 }
        };
        let needs = who.iter().map(need).collect();
        self.blocks.insert(block, Block { who, needs, missed: BTreeMap::new() });
    }

    /// Those to whom `symbol` of `block` would be new and of use, ascending, into `list`.
    pub(super) fn who(&self, block: u32, symbol: u32, list: &mut Vec<u32>) {
        list.clear();
        let Some(block) = self.blocks.get(&block) else { return };
        match block.missed.get(&symbol) {
            None => list.extend_from_slice(&block.who),
            Some(missed) => list.extend(missed.iter().filter(|&&receiver| block.need(receiver).is_some())),
        }
    }

    /// `symbol` of `block` reaches those of `who` who are not among `lost`, both ascending. Those who have then rebuilt
    /// the block come into `rebuilt`.
    pub(super) fn sent(
        &mut self,
        (block, symbol): (u32, u32),
        who: &[u32],
        lost: &[u32],
        lacking: &mut Lacking,
        rebuilt: &mut Vec<u32>,
    ) {
        rebuilt.clear();
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

    /// A segment of `block` has reached `got`, who lacked it, ascending: some of them may rebuild the block now.
    pub(super) fn filled(&mut self, block: u32, got: &[u32], lacking: &mut Lacking) {
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

    /// Leaves out of `list` those who have rebuilt the block at hand.
    pub(super) fn leave_out_rebuilt(&self, list: &mut Vec<u32>) {
        if !self.rebuilt.is_empty() {
            list.retain(|&receiver| !self.rebuilt.contains(receiver));
        }
    }

    /// Takes those who have rebuilt the block at hand, whose segments these are, off the lists of who lacks them.
    pub(super) fn settle(&mut self, segments: Run, lacking: &mut Lacking) {
        if !self.rebuilt.is_empty() {
            lacking.strike(segments, &self.rebuilt);
            self.rebuilt.clear();
        }
    }

    /// Symbols of `block` that `receiver` holds.
    pub(super) fn held(&self, block: u32, receiver: u32) -> u32 {
        self.blocks.get(&block).and_then(|block| block.need(receiver)).map_or(0, |need| need.held.into())
    }
}
