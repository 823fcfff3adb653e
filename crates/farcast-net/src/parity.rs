//! Parity symbols: computed by the sender's owner of the bytes, used by the receiver's.

use std::collections::BTreeMap;
use std::io::IoSliceMut;

use farcast_core::Run;
use farcast_fec::{BlockCode, ParitySymbol};
use farcast_files::{Happening, Incoming, Outgoing};
use farcast_mftp::Geometry;

use crate::error::NetError;

/// The most memory that coding one block may take, bytes: announced numbers alone could ask for gigabytes.
const CODING_BUDGET: usize = 256 << 20;

/// Blocks with symbols held, from which on it is worth looking for those that need them no more.
const CROWDED: usize = 64;

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
}

impl ParityEncoder {
    pub(crate) fn new(geometry: Geometry, symbols: u32) -> Result<Self, NetError> {
        Ok(Self {
            code: code(&geometry, symbols)?,
            geometry,
            block: None,
            source: Vec::new(),
            parity: Vec::new(),
        })
    }

    /// Parity symbol `symbol` of `block`.
    pub(crate) fn symbol(
        &mut self,
        outgoing: &mut Outgoing,
        block: u32,
        symbol: u32,
    ) -> Result<&[u8], NetError> {
        let len = usize::from(self.geometry.dtu_size());
        if self.block != Some(block) {
            self.source.clear();
            self.source.resize(self.geometry.block_len(block) as usize * len, 0);
            self.parity.resize(self.code.parity_symbols() * len, 0);
            let offset = u64::from(block) * u64::from(self.geometry.block_size()) * len as u64;
            let inside = (self.geometry.size() - offset).min(self.source.len() as u64) as usize;
            outgoing.read_segments(offset, &mut [IoSliceMut::new(&mut self.source[..inside])])?;
            self.code.encode(&self.source, 0, &mut self.parity).map_err(|error| NetError::Parity {
                block,
                parity: symbol,
                reason: error.to_string(),
            })?;
            self.block = Some(block);
        }
        let none = || NetError::Parity { block, parity: symbol, reason: "there is no such symbol".into() };
        self.parity.get(symbol as usize * len..).and_then(|rest| rest.get(..len)).ok_or_else(none)
    }
}

/// Keeps parity symbols until their block can be rebuilt.
#[derive(Debug)]
pub(crate) struct ParityDecoder {
    code: BlockCode,
    geometry: Geometry,
    held: BTreeMap<u32, Vec<(u32, Vec<u8>)>>,
}

impl ParityDecoder {
    pub(crate) fn new(geometry: Geometry, symbols: u32) -> Result<Self, NetError> {
        Ok(Self { code: code(&geometry, symbols)?, geometry, held: BTreeMap::new() })
    }

    /// Keeps a symbol; the engine passes each one once, and only those that its block can still need. Symbols of blocks
    /// that were completed otherwise go first when there are many.
    pub(crate) fn keep(&mut self, incoming: &Incoming, block: u32, symbol: u32, bytes: &[u8]) {
        if self.held.len() >= CROWDED {
            let complete = |run: Run| incoming.held().count_in(run) == run.count();
            self.held.retain(|&block, _| self.geometry.block_run(block).is_some_and(|run| !complete(run)));
        }
        self.held.entry(block).or_default().push((symbol, bytes.to_vec()));
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
