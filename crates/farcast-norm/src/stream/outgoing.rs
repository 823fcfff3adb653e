//! Blocks of a stream that its sender keeps.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::nack::RepairLimit;
use farcast_fec::BlockCode;

use super::asked::Need;
use super::segment::{HEADER, Segment};

/// Block that the sender keeps.
#[derive(Clone, Debug)]
struct Block {
    /// Source symbols, each with its header and padding.
    symbols: Vec<u8>,
    /// Octets of each complete symbol, without padding.
    lens: Vec<u16>,
    /// Source symbols, and parity symbols behind them, that are to be repeated or sent on demand.
    due: Bitmap,
    /// Number of parity symbols that were sent or are scheduled.
    used: u32,
    /// `true` if exactly the requested symbols are due.
    explicit: bool,
    repairs: RepairLimit,
    /// Time until which the block is kept, where no named receiver acknowledges it.
    until: Time,
}

/// Next symbol to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) block: u32,
    pub(super) symbol: u32,
    /// Octets of the symbol, including its header.
    pub(super) len: u16,
    pub(super) repair: bool,
    pub(super) explicit: bool,
}

/// Division of a stream into blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamCut {
    /// Source symbols of a block.
    pub(super) len: u16,
    /// Octets of a symbol's content.
    pub(super) segment: u16,
    /// Parity symbols of a block.
    pub(super) parity: u16,
    /// Parity symbols of a block that leave unasked.
    pub(super) auto: u16,
}

/// Blocks that can be repaired, and the block that is being filled.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    /// Source and parity symbols of a block, and octets of a symbol's content.
    len: u32,
    parity: u32,
    segment: usize,
    auto: u32,
    code: Option<BlockCode>,
    /// Number of the first block.
    first: u32,
    blocks: VecDeque<Block>,
    spare: Vec<Block>,
    most: usize,
    /// First symbol that was never sent.
    fresh: (u32, u32),
    /// Octets in the symbol that is being filled, and the position in it of the first message's beginning, plus one.
    fill: usize,
    message: u16,
    /// `true` if the next octet begins a message.
    begins: bool,
    /// Octets of the stream so far.
    offset: u64,
    ended: bool,
}

impl Outgoing {
    /// Makes a window of `most` blocks.
    pub(super) fn new(cut: StreamCut, code: Option<BlockCode>, most: usize) -> Self {
        let StreamCut { len, segment, parity, auto } = cut;
        Self {
            len: len.into(),
            parity: parity.into(),
            segment: segment.into(),
            auto: auto.into(),
            code,
            first: 0,
            blocks: VecDeque::new(),
            spare: Vec::new(),
            most,
            fresh: (0, 0),
            fill: 0,
            message: 0,
            begins: true,
            offset: 0,
            ended: false,
        }
    }

    fn symbol_len(&self) -> usize {
        self.segment + HEADER
    }

    fn block(&self, block: u32) -> Option<&Block> {
        self.blocks.get(block.checked_sub(self.first)? as usize)
    }

    fn block_mut(&mut self, block: u32) -> Option<&mut Block> {
        self.blocks.get_mut(block.checked_sub(self.first)? as usize)
    }

    /// Returns the number of octets of the stream so far.
    pub(super) fn octets(&self) -> u64 {
        self.offset
    }

    /// Returns the number of the first block that can be repaired.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// Returns the first symbol that was never sent.
    pub(super) fn fresh(&self) -> (u32, u32) {
        self.fresh
    }

    /// Returns the symbol that was sent last for the first time, if any was.
    pub(super) fn last_sent(&self) -> Option<(u32, u32)> {
        match self.fresh {
            (0, 0) => None,
            (block, 0) => Some((block - 1, self.len - 1)),
            (block, symbol) => Some((block, symbol - 1)),
        }
    }

    /// Returns the number of source symbols of a block. The last block may have fewer.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns `true` if all blocks are in use and the last one is full.
    fn is_full(&self) -> bool {
        self.blocks.len() == self.most
            && self.blocks.back().is_some_and(|last| last.lens.len() == self.len as usize)
    }

    /// Drops the first block if there is no room for another and `may` allows it. Returns `true` if there is room.
    pub(super) fn make_room(&mut self, may: impl FnOnce(u32, Time) -> bool) -> bool {
        if !self.is_full() {
            return true;
        }
        let Some(first) = self.blocks.front() else { return true };
        let through = self.fresh.0 > self.first && first.due.is_empty();
        if !through || !may(self.first, first.until) {
            return false;
        }
        self.first += 1;
        self.spare.extend(self.blocks.pop_front());
        true
    }

    /// Returns the block that is being filled.
    fn filling(&mut self) -> &mut Block {
        if self.blocks.back().is_none_or(|last| last.lens.len() == self.len as usize) {
            let repairs = RepairLimit::of(self.len);
            let block = match self.spare.pop() {
                Some(mut block) => {
                    block.lens.clear();
                    block.due.clear();
                    Block { used: 0, explicit: false, repairs, until: Time::ZERO, ..block }
                }
                None => Block {
                    symbols: vec![0; self.len as usize * self.symbol_len()],
                    lens: Vec::with_capacity(self.len as usize),
                    due: Bitmap::new(self.len + self.parity),
                    used: 0,
                    explicit: false,
                    repairs,
                    until: Time::ZERO,
                },
            };
            self.blocks.push_back(block);
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    /// Takes octets as far as the current symbol has room, and returns their number. There must be room for a block.
    pub(super) fn take(&mut self, octets: &[u8]) -> usize {
        if self.begins && self.message == 0 && !octets.is_empty() {
            self.message = self.fill as u16 + 1;
        }
        self.begins &= octets.is_empty();
        let (fill, symbol) = (self.fill, self.symbol_len());
        let count = octets.len().min(self.segment - fill);
        let block = self.filling();
        let at = block.lens.len() * symbol + HEADER + fill;
        block.symbols[at..at + count].copy_from_slice(&octets[..count]);
        self.fill += count;
        self.offset += count as u64;
        if self.fill == self.segment {
            self.seal();
        }
        count
    }

    /// Makes the next octet begin a message.
    pub(super) fn end_message(&mut self) {
        self.begins = true;
    }

    /// Completes the current symbol, if it has any octets.
    pub(super) fn seal(&mut self) {
        if self.fill > 0 {
            self.put();
        }
    }

    /// Ends the stream. There must be room for a block.
    pub(super) fn end(&mut self) {
        if !self.ended {
            self.message = 0;
            self.put();
            self.ended = true;
        }
    }

    fn put(&mut self) {
        let (len, symbol) = (self.fill, self.symbol_len());
        let offset = (self.offset - len as u64) as u32;
        let header = Segment { len: len as u16, message: core::mem::take(&mut self.message), offset };
        self.fill = 0;
        let block = self.filling();
        let at = block.lens.len() * symbol;
        let place = &mut block.symbols[at..at + symbol];
        header.write(place);
        place[HEADER + len..].fill(0);
        block.lens.push((HEADER + len) as u16);
    }

    /// Returns the approximate number of symbols that wait to be sent for the first time.
    pub(super) fn backlog(&self) -> usize {
        let blocks = self.blocks.len().saturating_sub((self.fresh.0 - self.first) as usize);
        blocks * self.len as usize
    }

    /// Returns the next symbol: repeated ones come first, the lowest of them, then new ones.
    pub(super) fn next(&self) -> Option<Next> {
        let due = self.blocks.iter().enumerate().find_map(|(at, block)| {
            let symbol = block.due.next_set(0)?;
            let len = block.lens.get(symbol as usize).map_or(self.symbol_len() as u16, |&len| len);
            // Parity that leaves with a block was not requested.
            let unasked = symbol >= self.len && symbol < self.len + self.auto && !block.explicit;
            let (block, explicit) = (self.first + at as u32, block.explicit);
            Some(Next { block, symbol, len, repair: !unasked, explicit })
        });
        let fresh = || {
            let (block, symbol) = self.fresh;
            let len = *self.block(block)?.lens.get(symbol as usize)?;
            Some(Next { block, symbol, len, repair: false, explicit: false })
        };
        due.or_else(fresh)
    }

    /// Appends the octets of `next`.
    pub(super) fn put_payload(&self, next: &Next, out: &mut Vec<u8>) {
        let (Some(block), symbol) = (self.block(next.block), self.symbol_len()) else { return };
        if let (Some(parity), Some(code)) = (next.symbol.checked_sub(self.len), &self.code) {
            let at = out.len();
            out.resize(at + symbol, 0);
            // A block with parity has all its symbols, and the code has this parity symbol.
            let coded = code.encode(&block.symbols, parity as usize, &mut out[at..]);
            debug_assert!(coded.is_ok());
        } else {
            let at = next.symbol as usize * symbol;
            out.extend_from_slice(&block.symbols[at..at + usize::from(next.len)]);
        }
    }

    /// Notes that `next` has left, and keeps its block until `until` at least.
    pub(super) fn sent(&mut self, until: Time, next: &Next) {
        let (len, auto) = (self.len, self.auto);
        let is_fresh = self.fresh == (next.block, next.symbol);
        let Some(block) = self.block_mut(next.block) else { return };
        block.until = block.until.max(until);
        block.due.remove(next.symbol);
        if next.repair {
            block.repairs.note(1);
        }
        if block.due.is_empty() {
            block.explicit = false;
        }
        if is_fresh {
            if next.symbol + 1 == len {
                block.used = block.used.max(auto);
                if let Some(run) = Run::new(len, auto) {
                    block.due.insert_run(run);
                }
                self.fresh = (next.block + 1, 0);
            } else {
                self.fresh.1 += 1;
            }
        }
    }

    /// Schedules repairs of `block`: parity that was never sent, as much as the worst receiver needs, if there is
    /// enough; else exactly the requested symbols. Returns `true` if any of them was not scheduled yet, and `None` if
    /// the block had so many repairs that no more are sent.
    pub(super) fn repair(&mut self, block: u32, need: &Need) -> Option<bool> {
        let (len, parity, fresh) = (self.len, self.parity, self.fresh);
        let Some(place) = self.block_mut(block) else { return Some(false) };
        if place.repairs.are_spent() {
            return None;
        }
        let before = place.due.count();
        let whole = fresh.0 > block;
        if whole && !need.whole && need.count <= parity - place.used {
            if let Some(run) = Run::new(len + place.used, need.count) {
                place.used += need.count;
                place.due.insert_run(run);
            }
        } else {
            let end = if whole { len + parity } else { fresh.1 };
            for run in need.asked(len).filter_map(|run| run.clip(0, end)) {
                place.due.insert_run(run);
                place.used = place.used.max(run.end().saturating_sub(len));
            }
            place.explicit |= place.due.count() > before;
        }
        Some(place.due.count() > before)
    }
}
