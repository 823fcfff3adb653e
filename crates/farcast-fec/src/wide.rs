//! Reed-Solomon codes over GF(2^16), for protocols that prescribe them (NORM's FEC Encoding ID 2 with `m` = 16).
//! farcast's own blocks that are too large for GF(2^8) have a faster code ([`BlockCode`](crate::BlockCode)).

use crate::error::{CodeError, DecodeError, EncodeError};
use crate::gf65536::{Gf65536, WordOrder};
use crate::lagrange::Lagrange;
use crate::reed_solomon::PointSet;
use crate::shape::{ParitySymbol, Shape};

/// A systematic Reed-Solomon code over GF(2^16).
///
/// Words of two bytes at the same place of all symbols form one code word.
#[derive(Clone, Debug)]
pub struct WideReedSolomon {
    code: Lagrange<Gf65536>,
}

impl WideReedSolomon {
    /// Creates a code of `source_symbols` (1 to 8,192) and `parity_symbols` (1 to 8,192) of `symbol_len` bytes (2 to
    /// 65,534, even). Takes `source_symbols`² table look-ups, so keep it for many blocks.
    ///
    /// `source_symbols` is the nominal length of a block: it fixes the matrix. Blocks may be shorter.
    pub fn new(
        points: PointSet,
        order: WordOrder,
        source_symbols: usize,
        parity_symbols: usize,
        symbol_len: usize,
    ) -> Result<Self, CodeError> {
        let shape = Shape::wide(source_symbols, parity_symbols, symbol_len)?;
        Ok(Self { code: Lagrange::new(Gf65536(order), points, shape) })
    }

    /// Returns the source symbols in a full block.
    pub fn source_symbols(&self) -> usize {
        self.shape().source_symbols
    }

    /// Returns the parity symbols of a block.
    pub fn parity_symbols(&self) -> usize {
        self.shape().parity_symbols
    }

    /// Returns the length of every symbol, in bytes.
    pub fn symbol_len(&self) -> usize {
        self.shape().symbol_len
    }

    /// Computes parity symbols `first`, `first + 1`, … of a block, as many as `parity` has room for
    /// ([`ReedSolomon::encode`](crate::ReedSolomon::encode)).
    pub fn encode(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), EncodeError> {
        self.code.encode(source, first, parity)
    }

    /// Rebuilds the `missing` source symbols of a block, in place
    /// ([`ReedSolomon::decode`](crate::ReedSolomon::decode)).
    pub fn decode(
        &self,
        block: &mut [u8],
        missing: &[usize],
        parity: &[ParitySymbol<'_>],
    ) -> Result<(), DecodeError> {
        self.code.decode(block, missing, parity)
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.code.shape()
    }
}
