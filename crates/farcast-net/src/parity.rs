//! Parity symbols: computed by the sender's owner of the bytes, used by the receiver's.

use std::collections::BTreeMap;
use std::io::IoSliceMut;

use farcast_core::Run;
use farcast_fec::{BlockCode, Field, ParitySymbol};
use farcast_files::{Happening, Incoming, Outgoing};
use farcast_mftp::Geometry;

use crate::error::NetError;

/// The most memory that coding one block may take, bytes: announced numbers alone could ask for gigabytes.
const CODING_BUDGET: usize = 256 << 20;

/// Bytes of symbols held, from which on it is worth looking for those that nobody needs any more.
const CROWDED: usize = 1 << 20;

fn code(geometry: &Geometry, symbols: u32) -> Result<BlockCode, NetError> {
    let (block, parity) = (geometry.block_size().min(geometry.segments()), symbols);
    let refuse = |reason: String| NetError::Parity { block, parity, reason };
    let code = BlockCode::new(block as usize, parity as usize, usize::from(geometry.dtu_size()));
    let code = code.map_err(|error| refuse(error.to_string()))?;
    if code.working_memory() > CODING_BUDGET {
        return Err(refuse("coding them takes more than 256 MiB; choose smaller blocks".into()));
    }
    Ok(code)
}

/// Computes the parity of blocks as it is asked for, and keeps that of the last block.
#[derive(Debug)]
pub(crate) struct ParityEncoder {
    code: BlockCode,
    geometry: Geometry,
    block: Option<u32>,
    source: Vec<u8>,
    parity: Vec<u8>,
    /// Which symbols of the block are there.
    made: Vec<bool>,
}

impl ParityEncoder {
    pub(crate) fn new(geometry: Geometry, symbols: u32) -> Result<Self, NetError> {
        Ok(Self {
            code: code(&geometry, symbols)?,
            geometry,
            block: None,
            source: Vec::new(),
            parity: Vec::new(),
            made: Vec::new(),
        })
    }

    /// Parity symbol `symbol` of `block`.
    pub(crate) fn symbol(
        &mut self,
        outgoing: &mut Outgoing,
        block: u32,
        symbol: u32,
    ) -> Result<&[u8], NetError> {
        if self.block != Some(block) {
            self.load(outgoing, block)?;
        }
        let (len, symbols, at) =
            (usize::from(self.geometry.dtu_size()), self.code.parity_symbols(), symbol as usize);
        let failed = |reason: String| NetError::Parity { block, parity: symbol, reason };
        let made = self.made.get_mut(at).ok_or_else(|| failed("there is no such symbol".into()))?;
        if !*made {
            *made = true;
            let run = match self.code.field() {
                // Each takes a look at all of the block, so only those that are wanted are made.
                Field::Gf256 => at..at + 1,
                _ => 0..symbols,
            };
            let parity = &mut self.parity[run.start * len..run.end * len];
            let encoded = self.code.encode(&self.source, run.start, parity);
            encoded.map_err(|error| failed(error.to_string()))?;
            self.made[run].fill(true);
        }
        Ok(&self.parity[at * len..][..len])
    }

    fn load(&mut self, outgoing: &mut Outgoing, block: u32) -> Result<(), NetError> {
        let len = usize::from(self.geometry.dtu_size());
        self.block = None;
        self.source.clear();
        self.source.resize(self.geometry.block_len(block) as usize * len, 0);
        self.parity.resize(self.code.parity_symbols() * len, 0);
        self.made.clear();
        self.made.resize(self.code.parity_symbols(), false);
        let offset = u64::from(block) * u64::from(self.geometry.block_size()) * len as u64;
        let inside = (self.geometry.size() - offset).min(self.source.len() as u64) as usize;
        outgoing.read_segments(offset, &mut [IoSliceMut::new(&mut self.source[..inside])])?;
        self.block = Some(block);
        Ok(())
    }
}

/// A parity symbol's number, and its bytes.
type Symbol = (u32, Box<[u8]>);

/// Keeps parity symbols until their block can be rebuilt.
#[derive(Debug)]
pub(crate) struct ParityDecoder {
    code: BlockCode,
    geometry: Geometry,
    held: BTreeMap<u32, Vec<Symbol>>,
    /// Bytes of symbols held, and when to look next for those of complete blocks.
    bytes: usize,
    crowded: usize,
}

impl ParityDecoder {
    pub(crate) fn new(geometry: Geometry, symbols: u32) -> Result<Self, NetError> {
        let code = code(&geometry, symbols)?;
        Ok(Self { code, geometry, held: BTreeMap::new(), bytes: 0, crowded: CROWDED })
    }

    /// Keeps a symbol; the engine passes each one once, only those that its block can still need, and no more than may be
    /// held. Symbols of blocks that were completed otherwise go when they may be half of all.
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

    /// Forgets the symbols of the blocks that have any of `segments`: they may be lies too, and the engine asks for others.
    pub(crate) fn forget(&mut self, segments: Run) {
        let (first, last) =
            (self.geometry.block_of(segments.first()), self.geometry.block_of(segments.last()));
        self.held.retain(|block, _| !(first..=last).contains(block));
    }

    /// Rebuilds and stores what is missing of `block`; whether that worked.
    pub(crate) fn rebuild(
        &mut self,
        incoming: &mut Incoming,
        block: u32,
        happenings: &mut Vec<Happening>,
    ) -> Result<bool, NetError> {
        let (Some(symbols), Some(run)) = (self.held.remove(&block), self.geometry.block_run(block)) else {
            return Ok(false);
        };
        self.bytes -= symbols.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let len = usize::from(self.geometry.dtu_size());
        let missing: Vec<usize> = run
            .segments()
            .filter(|&segment| !incoming.held().contains(segment))
            .map(|segment| (segment - run.first()) as usize)
            .collect();
        let mut bytes = vec![0; run.count() as usize * len];
        incoming.read(run.first(), &mut bytes)?;
        let symbols: Vec<ParitySymbol<'_>> =
            symbols.iter().map(|(index, bytes)| ParitySymbol { index: *index as usize, bytes }).collect();
        if self.code.decode(&mut bytes, &missing, &symbols).is_err() {
            return Ok(false);
        }
        for index in missing {
            let segment = run.first() + index as u32;
            let payload = &bytes[index * len..][..usize::from(self.geometry.payload_len(segment))];
            happenings.extend(incoming.store(segment, &[payload])?);
        }
        Ok(true)
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
        let mut decoder = ParityDecoder::new(geometry, 20).unwrap();
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
        let mut decoder = ParityDecoder::new(geometry, 20).unwrap();
        for block in 0..1000 {
            (0..9).for_each(|symbol| decoder.keep(&incoming, block, symbol, &segment));
        }
        assert_eq!((decoder.held.len(), decoder.bytes), (1000, 9_000_000));
    }
}
