//! The sender's side: computes parity.

use std::io::IoSliceMut;

use farcast_fec::{BlockCode, Field};
use farcast_files::Outgoing;
use farcast_mftp::Geometry;

use super::code;
use crate::error::NetError;

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
