//! Reed-Solomon codes over GF(2^8).

use crate::error::{CodeError, DecodeError, EncodeError};
use crate::gf256::Gf256;
use crate::lagrange::Lagrange;
use crate::shape::{ParitySymbol, Shape};

/// Points at which the message polynomial is evaluated: symbol `j` of a block is its value at point `j`.
///
/// Codes with different points are different codes; the crate's documentation names the users of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PointSet {
    /// `0, α^0, α^1, …`: NRL NORM (FEC Encoding IDs 5 and 129) and `OpenPGM`, after L. Rizzo's `fec.c`.
    Rizzo,
    /// `α^0, α^1, α^2, …`: the formula in RFC 5510 §8.2.
    Rfc5510,
    /// `0, 1, 2, 3, …` as bit patterns: the Backblaze family (reed-solomon-erasure and its relatives).
    Integers,
}

/// A systematic Reed-Solomon code over GF(2^8) for blocks of at most 255 symbols.
///
/// Bytes at the same place of all symbols form one code word; symbols may have any length.
#[derive(Clone, Debug)]
pub struct ReedSolomon {
    code: Lagrange<Gf256>,
}

impl ReedSolomon {
    /// Creates a code of `source_symbols` (1 to 254) and `parity_symbols` (at least 1, both together at most 255), each
    /// of `symbol_len` bytes (1 to 65,535). Takes `source_symbols`² table look-ups, so keep it for many blocks.
    ///
    /// `source_symbols` is the nominal length of a block: it fixes the matrix. Blocks may be shorter.
    pub fn new(
        points: PointSet,
        source_symbols: usize,
        parity_symbols: usize,
        symbol_len: usize,
    ) -> Result<Self, CodeError> {
        let shape = Shape::small(source_symbols, parity_symbols, symbol_len)?;
        Ok(Self { code: Lagrange::new(Gf256, points, shape) })
    }

    /// Returns the evaluation points.
    pub fn points(&self) -> PointSet {
        self.code.points()
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

    /// Computes parity symbols `first`, `first + 1`, … of a block, as many as `parity` has room for.
    ///
    /// `source` holds the block's symbols one after the other, each padded to the symbol length; fewer than
    /// [`source_symbols`](Self::source_symbols) make a shortened block. Each parity symbol costs one pass over the
    /// source, so a single one costs no more than its share.
    pub fn encode(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), EncodeError> {
        self.code.encode(source, first, parity)
    }

    /// Rebuilds the `missing` source symbols of a block, in place.
    ///
    /// `block` holds the block's symbols one after the other (a shortened block: fewer than
    /// [`source_symbols`](Self::source_symbols)); the places of the missing ones are overwritten. `missing` lists their
    /// indices, from 0, strictly increasing. Only the first `missing.len()` symbols of `parity`, which may have any
    /// order, are used. On an error the block is untouched.
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
