//! Block of a stream at its receiver.

use alloc::vec;
use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run};
use farcast_fec::{BlockCode, ParitySymbol};

/// Shape of a stream's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Source symbols of a block.
    pub(super) len: u32,
    /// Parity symbols of a block.
    pub(super) parity: u32,
    /// Octets of a symbol.
    pub(super) symbol: usize,
}

impl Shape {
    /// Returns the maximum number of octets that a block takes.
    pub(super) fn octets(self) -> u64 {
        // No more parity is kept than the block has source symbols.
        let symbols = u64::from(self.len) + u64::from(self.len.min(self.parity));
        symbols * self.symbol as u64
    }
}

/// Content of a block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    symbols: Vec<u8>,
    have: Bitmap,
    /// Parity symbols that are there: their numbers, and their octets, one after the other.
    parity: Vec<u32>,
    octets: Vec<u8>,
}

impl Block {
    pub(super) fn new(shape: Shape) -> Self {
        Self { symbols: Vec::new(), have: Bitmap::new(shape.len), parity: Vec::new(), octets: Vec::new() }
    }

    /// Empties the block, so that it can be another one.
    pub(super) fn clear(&mut self) {
        self.have.clear();
        self.parity.clear();
        self.octets.clear();
    }

    /// Stores source symbol `symbol`, which has at most as many octets as a symbol may have. Returns `true` if it is
    /// new.
    pub(super) fn store(&mut self, shape: Shape, symbol: u32, octets: &[u8]) -> bool {
        if !self.have.insert(symbol) {
            return false;
        }
        self.symbols.resize(shape.len as usize * shape.symbol, 0);
        let at = symbol as usize * shape.symbol;
        let place = &mut self.symbols[at..at + shape.symbol];
        let (head, padding) = place.split_at_mut(octets.len());
        head.copy_from_slice(octets);
        padding.fill(0);
        true
    }

    /// Keeps parity symbol `symbol`, counted from 0, which has all its octets. Returns `true` if it is new and helps.
    pub(super) fn keep(&mut self, shape: Shape, symbol: u32, octets: &[u8]) -> bool {
        if self.lacks(shape) == 0 || self.parity.contains(&symbol) {
            return false;
        }
        self.parity.push(symbol);
        self.octets.extend_from_slice(octets);
        true
    }

    /// Returns the number of symbols that have yet to come until the block is complete or can be rebuilt.
    pub(super) fn lacks(&self, shape: Shape) -> u32 {
        (shape.len - self.have.count()).saturating_sub(self.parity.len() as u32)
    }

    /// Rebuilds the missing symbols, if there is enough parity.
    pub(super) fn rebuild(&mut self, shape: Shape, code: &BlockCode) -> Result<(), Reject> {
        if self.have.is_full() || self.lacks(shape) > 0 {
            return Ok(());
        }
        self.symbols.resize(shape.len as usize * shape.symbol, 0);
        let missing: Vec<usize> =
            self.gaps(0..shape.len).flat_map(Run::segments).map(|one| one as usize).collect();
        let held = self.parity.iter().zip(self.octets.chunks_exact(shape.symbol));
        let parity: Vec<ParitySymbol<'_>> =
            held.map(|(&index, bytes)| ParitySymbol { index: index as usize, bytes }).collect();
        let rebuilt = code.decode(&mut self.symbols, &missing, &parity);
        self.parity.clear();
        self.octets.clear();
        rebuilt.map_err(|_| Reject::Inconsistent)?;
        self.have = Bitmap::full(shape.len);
        Ok(())
    }

    /// Returns source symbol `symbol` with its padding, if it is there.
    pub(super) fn symbol(&self, shape: Shape, symbol: u32) -> Option<&[u8]> {
        let at = symbol as usize * shape.symbol;
        if self.have.contains(symbol) { self.symbols.get(at..at + shape.symbol) } else { None }
    }

    /// Returns `true` if encoding symbol `symbol` is there.
    pub(super) fn holds(&self, shape: Shape, symbol: u32) -> bool {
        match symbol.checked_sub(shape.len) {
            None => self.have.contains(symbol),
            Some(parity) => self.parity.contains(&parity),
        }
    }

    /// Returns runs of missing source symbols in `range`.
    pub(super) fn gaps(&self, range: core::ops::Range<u32>) -> impl Iterator<Item = Run> + '_ {
        let run = Run::new(range.start, range.end.saturating_sub(range.start));
        run.into_iter().flat_map(|run| self.have.gaps_in(run))
    }

    /// Returns runs of missing parity symbols, as encoding symbols, with at most `count` symbols.
    pub(super) fn parity_gaps(&self, shape: Shape, count: u32) -> Vec<Run> {
        let mut map = Bitmap::new(shape.parity);
        for &symbol in &self.parity {
            map.insert(symbol);
        }
        let mut left = count;
        let mut runs = vec![];
        for gap in map.iter_gaps() {
            let Some(run) = Run::new(shape.len + gap.first(), gap.count().min(left)) else { break };
            left -= run.count();
            runs.push(run);
        }
        runs
    }
}
