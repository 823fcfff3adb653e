//! The sender's side of parity that leaves block by block: computes most symbols before they are needed.

use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::Arc;

use farcast_core::Run;
use farcast_delivery::Geometry;
use farcast_fec::BlockCode;
use farcast_files::Outgoing;

use super::{BlockParity, CodingThread, code};
use crate::error::NetError;

/// Most blocks that are kept, including those being computed: the one being sent and the one after it.
const MOST_BLOCKS: usize = 2;
/// Most bytes that two blocks may take; if they take more, only one is kept.
const MOST_BYTES: usize = 64 << 20;

/// Computes the parity of blocks. A thread computes the symbols that are sent soon; others are computed when they are
/// needed.
pub(crate) struct ParityEncoder {
    code: Arc<BlockCode>,
    geometry: Geometry,
    thread: CodingThread<EncodedBlock>,
    /// Blocks at hand, the latest one last.
    here: Vec<EncodedBlock>,
    /// Numbers of the blocks that the thread works on.
    under_way: Vec<u32>,
    most: usize,
    /// The last argument of [`prepare`](Self::prepare), if all of its symbols are computed or begun.
    begun: Option<[Option<(u32, Run)>; MOST_BLOCKS]>,
}

impl ParityEncoder {
    /// Returns an encoder whose thread reads `outgoing`, a clone of the object that is sent.
    pub(crate) fn new(
        geometry: Geometry,
        BlockParity { symbols, kind }: BlockParity,
        mut outgoing: Outgoing,
    ) -> Result<Self, NetError> {
        let code = Arc::new(code(&geometry, symbols, kind)?);
        let bytes = (code.source_symbols() + code.parity_symbols()) * code.symbol_len();
        let coder = Arc::clone(&code);
        let thread = CodingThread::start(move |block: &mut EncodedBlock| {
            // A block that cannot be read or coded is tried again when it is needed, and the error is reported then.
            if block.is_loaded || block.load(&mut outgoing, &geometry).is_ok() {
                let _ = block.make(&coder, block.wanted.clone());
            }
        });
        Ok(Self {
            code,
            geometry,
            thread,
            here: Vec::new(),
            under_way: Vec::new(),
            most: if bytes * MOST_BLOCKS > MOST_BYTES { 1 } else { MOST_BLOCKS },
            begun: None,
        })
    }

    /// Begins to compute the symbols that are probably sent soon, the first of them first.
    pub(crate) fn prepare(&mut self, soon: [Option<(u32, Run)>; MOST_BLOCKS]) {
        if self.begun == Some(soon) {
            return;
        }
        while let Ok(block) = self.thread.done().try_recv() {
            self.take_back(block);
        }
        let is_soon = |number: u32| soon.iter().flatten().any(|&(soon, _)| soon == number);
        let mut all = true;
        for &(number, run) in soon.iter().flatten() {
            if self.under_way.contains(&number) {
                continue;
            }
            let wanted = run.first() as usize..run.end() as usize;
            let known = self.here.iter().position(|block| block.number == number);
            if known.is_some_and(|at| self.here[at].has(&wanted)) {
                continue;
            }
            let known = known.map(|at| self.here.remove(at));
            let Some(mut block) = known.or_else(|| self.room_for(number, is_soon)) else {
                all = false;
                continue;
            };
            block.wanted = wanted;
            match self.thread.begin(block) {
                Ok(()) => self.under_way.push(number),
                Err(block) => self.here.push(block),
            }
        }
        self.begun = all.then_some(soon);
    }

    /// Returns parity symbol `symbol` of `block`. Waits for a block that the thread works on, and computes any other
    /// here.
    pub(crate) fn symbol(
        &mut self,
        outgoing: &mut Outgoing,
        block: u32,
        symbol: u32,
    ) -> Result<&[u8], NetError> {
        let (len, at) = (usize::from(self.geometry.segment_size()), symbol as usize);
        let failed = |reason: String| NetError::Parity { block, parity: symbol, reason };
        if at >= self.code.parity_symbols() {
            return Err(failed("there is no such symbol".into()));
        }
        let index = self.find(block);
        let block = &mut self.here[index];
        if !block.is_loaded {
            block.load(outgoing, &self.geometry)?;
        }
        block.make(&self.code, at..at + 1).map_err(|error| failed(error.to_string()))?;
        Ok(&block.parity[at * len..][..len])
    }

    /// Returns the index of block `number`, which may be empty yet.
    fn find(&mut self, number: u32) -> usize {
        loop {
            if let Some(at) = self.here.iter().position(|block| block.number == number) {
                return at;
            }
            if !self.under_way.contains(&number)
                && let Some(block) = self.room_for(number, |_| false)
            {
                self.here.push(block);
            } else if let Ok(block) = self.thread.done().recv() {
                self.take_back(block);
            } else {
                // The thread has ended and its blocks are lost.
                self.under_way.clear();
            }
        }
    }

    /// Returns an empty block. If there are enough blocks already, it takes the place of one that `is_kept` does not
    /// protect.
    fn room_for(&mut self, number: u32, is_kept: impl Fn(u32) -> bool) -> Option<EncodedBlock> {
        let mut block = if self.here.len() + self.under_way.len() < self.most {
            EncodedBlock::default()
        } else {
            let at = self.here.iter().position(|block| !is_kept(block.number))?;
            self.here.remove(at)
        };
        block.empty(number, &self.code);
        Some(block)
    }

    fn take_back(&mut self, block: EncodedBlock) {
        self.under_way.retain(|&number| number != block.number);
        self.here.push(block);
    }
}

/// A block and its parity.
#[derive(Default)]
struct EncodedBlock {
    number: u32,
    /// The source bytes are loaded.
    is_loaded: bool,
    source: Vec<u8>,
    parity: Vec<u8>,
    /// Symbols that are computed.
    made: Vec<bool>,
    /// Symbols that the thread is to compute.
    wanted: Range<usize>,
}

impl EncodedBlock {
    /// Turns the block into block `number`, without source or symbols.
    fn empty(&mut self, number: u32, code: &BlockCode) {
        (self.number, self.is_loaded) = (number, false);
        self.parity.resize(code.parity_symbols() * code.symbol_len(), 0);
        self.made.clear();
        self.made.resize(code.parity_symbols(), false);
    }

    fn has(&self, symbols: &Range<usize>) -> bool {
        self.made.get(symbols.clone()).is_some_and(|made| made.iter().all(|&made| made))
    }

    fn load(&mut self, outgoing: &mut Outgoing, geometry: &Geometry) -> Result<(), NetError> {
        load_block(outgoing, geometry, self.number, &mut self.source)?;
        self.is_loaded = true;
        Ok(())
    }

    /// Computes those of `symbols` that are missing.
    fn make(&mut self, code: &BlockCode, symbols: Range<usize>) -> Result<(), farcast_fec::EncodeError> {
        let len = code.symbol_len();
        let end = symbols.end.min(self.made.len());
        let mut next = symbols.start;
        while let Some(first) = (next..end).find(|&symbol| !self.made[symbol]) {
            let run = if code.makes_single_symbols() {
                // Each symbol takes a pass over the whole block, so only those that are wanted are computed.
                first..(first..end).find(|&symbol| self.made[symbol]).unwrap_or(end)
            } else {
                0..self.made.len()
            };
            code.encode(&self.source, run.start, &mut self.parity[run.start * len..run.end * len])?;
            self.made[run.clone()].fill(true);
            next = run.end;
        }
        Ok(())
    }
}

/// Reads `block` of `outgoing` into `source`, its last symbol padded with zeros.
pub(super) fn load_block(
    outgoing: &mut Outgoing,
    geometry: &Geometry,
    block: u32,
    source: &mut Vec<u8>,
) -> Result<(), NetError> {
    let len = usize::from(geometry.segment_size());
    source.resize(geometry.block_len(block) as usize * len, 0);
    let offset = u64::from(geometry.first_of(block)) * len as u64;
    let inside = (geometry.size() - offset).min(source.len() as u64) as usize;
    let (inside, past) = source.split_at_mut(inside);
    past.fill(0);
    outgoing.read_segments(offset, &mut [IoSliceMut::new(inside)])?;
    Ok(())
}

#[cfg(test)]
mod tests;
