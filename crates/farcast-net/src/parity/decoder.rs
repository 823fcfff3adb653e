//! The receiver's side: keeps parity, and rebuilds from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use farcast_core::Run;
use farcast_delivery::{ErasureCode, Geometry};
use farcast_fec::{BlockCode, ParitySymbol};
use farcast_files::{Happening, Incoming};

use super::code;
use crate::error::NetError;

/// Bytes of symbols held, from which on it is worth looking for those that nobody needs any more.
const CROWDED: usize = 1 << 20;

/// A parity symbol's number, and its bytes.
type Symbol = (u32, Box<[u8]>);

/// Keeps parity symbols until their block can be rebuilt.
#[derive(Debug)]
pub(crate) struct ParityDecoder {
    code: Arc<BlockCode>,
    geometry: Geometry,
    held: BTreeMap<u32, Vec<Symbol>>,
    /// Bytes of symbols held, and when to look next for those of complete blocks.
    bytes: usize,
    crowded: usize,
    /// Buffers of jobs that are done.
    spare: Vec<Vec<u8>>,
}

impl ParityDecoder {
    pub(crate) fn new(geometry: Geometry, symbols: u32, kind: ErasureCode) -> Result<Self, NetError> {
        let code = Arc::new(code(&geometry, symbols, kind)?);
        Ok(Self { code, geometry, held: BTreeMap::new(), bytes: 0, crowded: CROWDED, spare: Vec::new() })
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Keeps a symbol; the engine passes each one once, only those that its block can still need, and no more than may
    /// be held. Symbols of blocks that were completed otherwise go when they may be half of all.
    pub(crate) fn keep(&mut self, incoming: &Incoming, block: u32, symbol: u32, bytes: &[u8]) {
        if self.bytes > self.crowded {
            let complete = |run: Run| incoming.held().count_in(run) == run.count();
            self.held.retain(|&block, _| self.geometry.block_run(block).is_some_and(|run| !complete(run)));
            self.bytes = self.held.values().flatten().map(|(_, bytes)| bytes.len()).sum();
            self.crowded = CROWDED.max(self.bytes * 2);
        }
        self.bytes += bytes.len();
        self.held.entry(block).or_default().push((symbol, bytes.into()));
    }

    /// Forgets the symbols of the blocks that have any of `segments`: they may be lies too, and the engine asks for
    /// others.
    pub(crate) fn forget(&mut self, segments: Run) {
        let (first, last) =
            (self.geometry.block_of(segments.first()), self.geometry.block_of(segments.last()));
        self.held.retain(|block, _| !(first..=last).contains(block));
    }

    /// All that it takes to rebuild what is missing of `block`; `None` where no symbols of it are held. They are used
    /// up.
    pub(crate) fn gather(
        &mut self,
        incoming: &mut Incoming,
        block: u32,
    ) -> Result<Option<DecodeJob>, NetError> {
        let (Some(symbols), Some(run)) = (self.held.remove(&block), self.geometry.block_run(block)) else {
            return Ok(None);
        };
        self.bytes -= symbols.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let gaps = incoming.held().gaps_in(run);
        let missing = gaps.flat_map(Run::segments).map(|segment| (segment - run.first()) as usize).collect();
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(run.count() as usize * usize::from(self.geometry.segment_size()), 0);
        incoming.read(run.first(), &mut bytes)?;
        Ok(Some(DecodeJob { code: Arc::clone(&self.code), block, missing, symbols, bytes, rebuilt: false }))
    }

    /// Stores what a job has rebuilt, save what has come by itself meanwhile, and takes its buffer back; whether it had
    /// rebuilt anything.
    pub(crate) fn store(
        &mut self,
        job: DecodeJob,
        incoming: &mut Incoming,
        happenings: &mut Vec<Happening>,
    ) -> Result<bool, NetError> {
        let stored = match self.geometry.block_run(job.block) {
            Some(run) if job.rebuilt => self.store_missing(&job, run, incoming, happenings).map(|()| true),
            _ => Ok(false),
        };
        self.reuse(job);
        stored
    }

    fn store_missing(
        &self,
        job: &DecodeJob,
        run: Run,
        incoming: &mut Incoming,
        happenings: &mut Vec<Happening>,
    ) -> Result<(), NetError> {
        let len = usize::from(self.geometry.segment_size());
        for &index in &job.missing {
            let segment = run.first() + index as u32;
            let payload = &job.bytes[index * len..][..usize::from(self.geometry.payload_len(segment))];
            happenings.extend(incoming.store(segment, &[payload])?);
        }
        Ok(())
    }

    /// Takes back the buffer of a job.
    pub(crate) fn reuse(&mut self, job: DecodeJob) {
        self.spare.push(job.bytes);
    }
}

/// A block to be rebuilt, with all that it takes.
pub(crate) struct DecodeJob {
    code: Arc<BlockCode>,
    block: u32,
    /// What is missing, counted from the block's first segment.
    missing: Vec<usize>,
    symbols: Vec<Symbol>,
    /// The block, with anything in place of what is missing.
    bytes: Vec<u8>,
    /// Whether all of it is there.
    rebuilt: bool,
}

impl DecodeJob {
    pub(crate) fn block(&self) -> u32 {
        self.block
    }

    /// What rebuilding takes: a look at all of the block for each that is missing.
    pub(crate) fn work(&self) -> usize {
        self.missing.len() * self.bytes.len()
    }

    /// Bytes that it takes, of the block and of symbols.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.symbols.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Rebuilds what is missing. Where symbols do not do, that stays so.
    pub(crate) fn run(&mut self) {
        let symbols: Vec<ParitySymbol<'_>> = self
            .symbols
            .iter()
            .map(|(index, bytes)| ParitySymbol { index: *index as usize, bytes })
            .collect();
        self.rebuilt = self.code.decode(&mut self.bytes, &self.missing, &symbols).is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farcast_files::{Options, ProductId};

    #[test]
    fn symbols_of_complete_blocks_do_not_pile_up() {
        // A product of 1000 blocks of 10 DTUs of 1000 bytes, whose head is not the one that it should have.
        let dir = tempfile::tempdir().unwrap();
        let geometry = Geometry::new(10_000_000, 1000, 10).unwrap();
        let id = ProductId::from_bytes([7; 32]);
        let mut incoming = Incoming::open(dir.path(), id, geometry.size(), 1000, Options::default()).unwrap();
        let mut decoder = ParityDecoder::new(geometry, 20, ErasureCode::BySize).unwrap();
        let segment = [1; 1000];
        for block in 1..1000 {
            for symbol in 0..9 {
                decoder.keep(&incoming, block, symbol, &segment);
            }
            let _ = incoming.store(block * 10, &[segment.as_slice(); 10]).unwrap();
            assert!(decoder.held.len() <= CROWDED / 9000 + 2, "{} after {block}", decoder.held.len());
        }
        // What is still needed stays, however much it is.
        let dir = tempfile::tempdir().unwrap();
        let incoming = Incoming::open(dir.path(), id, geometry.size(), 1000, Options::default()).unwrap();
        let mut decoder = ParityDecoder::new(geometry, 20, ErasureCode::BySize).unwrap();
        for block in 0..1000 {
            (0..9).for_each(|symbol| decoder.keep(&incoming, block, symbol, &segment));
        }
        assert_eq!((decoder.held.len(), decoder.bytes), (1000, 9_000_000));
    }
}
