//! The receiver's side of parity: keeps symbols, in memory or on disk, and rebuilds missing segments from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use farcast_core::{Bitmap, Run};
use farcast_delivery::{ErasureCode, Geometry};
use farcast_fec::{BlockCode, ParitySymbol};
use farcast_files::{Coding, Happening, Incoming};

use super::code;
use crate::error::NetError;

/// Bytes of held symbols beyond which those of complete blocks are worth removing.
const CROWDED: usize = 1 << 20;

/// Most segments that are stored by one call.
const AT_ONCE: usize = 64;

/// Number of a parity symbol, and its bytes.
type Symbol = (u32, Box<[u8]>);

/// Keeps parity symbols until their block can be rebuilt.
#[derive(Debug)]
pub(crate) struct ParityDecoder {
    code: Arc<BlockCode>,
    geometry: Geometry,
    /// Layout of symbols on disk; `None` if they are held in memory.
    on_disk: Option<Coding>,
    held: BTreeMap<u32, Vec<Symbol>>,
    /// Bytes of held symbols, and the number of bytes at which those of complete blocks are removed next.
    bytes: usize,
    crowded: usize,
    /// Buffers of finished jobs, to be used again.
    spare: Vec<Vec<u8>>,
}

impl ParityDecoder {
    pub(crate) fn new(geometry: Geometry, symbols: u32, kind: ErasureCode) -> Result<Self, NetError> {
        let code = Arc::new(code(&geometry, symbols, kind)?);
        let (held, spare) = (BTreeMap::new(), Vec::new());
        Ok(Self { code, geometry, on_disk: None, held, bytes: 0, crowded: CROWDED, spare })
    }

    /// Returns a decoder that keeps symbols on disk.
    pub(crate) fn on_disk(geometry: Geometry, symbols: u32, kind: ErasureCode) -> Result<Self, NetError> {
        let symbol_len = geometry.segment_size();
        let coding = Coding { symbol_len, source: geometry.code_size(), parity: symbols };
        Ok(Self { on_disk: Some(coding), ..Self::new(geometry, symbols, kind)? })
    }

    /// Returns `true` if symbols are kept on disk, so that rebuilding can wait without taking memory.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.on_disk.is_some()
    }

    /// Returns the symbols that an earlier run has kept on disk, by block. Forgets those of complete blocks.
    pub(crate) fn kept(&self, incoming: &mut Incoming) -> Result<Vec<(u32, Bitmap)>, NetError> {
        let Some(coding) = self.on_disk else { return Ok(Vec::new()) };
        let mut kept = Vec::new();
        for (block, symbols) in incoming.kept_parity(coding)? {
            let missing = |run: Run| incoming.held().count_in(run) < run.count();
            if self.geometry.block_run(block).is_some_and(missing) {
                let mut map = Bitmap::new(coding.parity);
                for &symbol in &symbols {
                    map.insert(symbol);
                }
                kept.push((block, map));
            } else {
                incoming.forget_parity(block, false)?;
            }
        }
        Ok(kept)
    }

    /// Keeps consecutive symbols of `block` from `first` on, as [`keep`](Self::keep) does with one. Returns `false` if
    /// there was no room; then no symbol of the block is left.
    pub(crate) fn keep_run(
        &mut self,
        incoming: &mut Incoming,
        block: u32,
        first: u32,
        payloads: &[&[u8]],
    ) -> Result<bool, NetError> {
        let Some(coding) = self.on_disk else {
            (first..).zip(payloads).for_each(|(symbol, bytes)| self.keep(incoming, block, symbol, bytes));
            return Ok(true);
        };
        Ok(incoming.keep_parity(coding, block, first, payloads)?)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Keeps a symbol in memory. The engine passes each symbol once, only those that its block can still need, and no
    /// more than may be held. Once the held bytes have doubled, removes the symbols of blocks that are complete without
    /// them.
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

    /// Forgets the symbols of the blocks that have any of `segments`. These symbols may be forged too, and the engine
    /// asks for others.
    pub(crate) fn forget(&mut self, incoming: &mut Incoming, segments: Run) {
        let (first, last) =
            (self.geometry.block_of(segments.first()), self.geometry.block_of(segments.last()));
        self.held.retain(|block, _| !(first..=last).contains(block));
        if self.is_on_disk() {
            // A symbol that cannot be erased spoils one more rebuilding after a restart, which digests detect.
            (first..=last).for_each(|block| drop(incoming.forget_parity(block, true)));
        }
    }

    /// Collects everything needed to rebuild the missing segments of `block`. Returns `None` if no symbols of it are
    /// held, or if held segments cannot be read any more. The symbols are used up; on disk they stay until the result
    /// is [stored](Self::store).
    pub(crate) fn gather(
        &mut self,
        incoming: &mut Incoming,
        block: u32,
    ) -> Result<Option<DecodeJob>, NetError> {
        let Some(run) = self.geometry.block_run(block) else { return Ok(None) };
        let symbols = if self.is_on_disk() {
            incoming.read_parity(block)?
        } else {
            let Some(symbols) = self.held.remove(&block) else { return Ok(None) };
            self.bytes -= symbols.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            symbols
        };
        let gaps = incoming.held().gaps_in(run);
        let missing = gaps.flat_map(Run::segments).map(|segment| (segment - run.first()) as usize).collect();
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(run.count() as usize * usize::from(self.geometry.segment_size()), 0);
        if !incoming.read(run.first(), &mut bytes)? {
            return Ok(None);
        }
        Ok(Some(DecodeJob { code: Arc::clone(&self.code), block, missing, symbols, bytes, rebuilt: false }))
    }

    /// Stores the segments that a job has rebuilt, except those that have arrived meanwhile, and takes its buffer back.
    /// Returns `true` if the job had rebuilt the block.
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
        if self.is_on_disk() && stored.is_ok() {
            incoming.forget_parity(job.block, !job.rebuilt)?;
        }
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
        let mut payloads = Vec::new();
        for row in job.missing.chunk_by(|one, next| one + 1 == *next).flat_map(|row| row.chunks(AT_ONCE)) {
            let Some(&index) = row.first() else { continue };
            let first = run.first() + index as u32;
            payloads.clear();
            payloads.extend((first..).zip(row).map(|(segment, &index)| {
                &job.bytes[index * len..][..usize::from(self.geometry.payload_len(segment))]
            }));
            happenings.extend(incoming.store(first, &payloads)?);
        }
        Ok(())
    }

    /// Returns the bytes that a job for `block` takes.
    pub(crate) fn job_bytes(&self, block: u32) -> usize {
        // The job holds at most as much parity as is missing.
        2 * self.geometry.block_len(block) as usize * usize::from(self.geometry.segment_size())
    }

    /// Takes back a job whose result is not to be stored.
    pub(crate) fn give_up(&mut self, job: DecodeJob, incoming: &mut Incoming) {
        self.forget_block(incoming, job.block);
        self.reuse(job);
    }

    /// Forgets the symbols of `block` that are on disk.
    pub(crate) fn forget_block(&mut self, incoming: &mut Incoming, block: u32) {
        if self.is_on_disk() {
            // Errors do not matter here, as in `forget`.
            let _ = incoming.forget_parity(block, true);
        }
    }

    /// Takes back the buffer of a job.
    fn reuse(&mut self, job: DecodeJob) {
        self.spare.push(job.bytes);
    }
}

/// A block to be rebuilt, with all that it takes.
pub(crate) struct DecodeJob {
    code: Arc<BlockCode>,
    block: u32,
    /// Missing segments, counted from the block's first one.
    missing: Vec<usize>,
    symbols: Vec<Symbol>,
    /// Bytes of the block; those of missing segments are arbitrary until they are rebuilt.
    bytes: Vec<u8>,
    /// All segments of the block are there.
    rebuilt: bool,
}

impl DecodeJob {
    pub(crate) fn block(&self) -> u32 {
        self.block
    }

    /// Returns the work of rebuilding, in bytes: a pass over the whole block for each missing segment.
    pub(crate) fn work(&self) -> usize {
        self.missing.len() * self.bytes.len()
    }

    /// Returns the bytes of the block and of the symbols.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.symbols.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Rebuilds the missing segments. If the symbols do not suffice, they stay missing.
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
        // Symbols that are still needed stay, however many they are.
        let dir = tempfile::tempdir().unwrap();
        let incoming = Incoming::open(dir.path(), id, geometry.size(), 1000, Options::default()).unwrap();
        let mut decoder = ParityDecoder::new(geometry, 20, ErasureCode::BySize).unwrap();
        for block in 0..1000 {
            (0..9).for_each(|symbol| decoder.keep(&incoming, block, symbol, &segment));
        }
        assert_eq!((decoder.held.len(), decoder.bytes), (1000, 9_000_000));
    }
}
