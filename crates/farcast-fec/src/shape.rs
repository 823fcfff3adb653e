//! The numbers of a code and the checks that every codec makes before it touches memory.

use alloc::vec;

use crate::error::{CodeError, DecodeError, EncodeError};

/// Longest symbol, in bytes: the limit of a 16-bit length field.
pub const MAX_SYMBOL_LEN: usize = 65_535;

/// Most symbols of a block, source and parity together, over GF(2^8): its multiplicative group has 255
/// elements (RFC 5510 §8.2: `n <= q - 1`).
pub const MAX_SMALL_BLOCK: usize = 255;

/// Most source symbols, and most parity symbols, of a block over GF(2^16): every pair of numbers up to this has a code.
pub const MAX_LARGE_SYMBOLS: usize = 32_768;

/// Most source symbols, and most parity symbols, of a [`WideReedSolomon`](crate::WideReedSolomon) code: making one
/// takes their square in look-ups.
pub const MAX_WIDE_SYMBOLS: usize = 8192;

/// A parity symbol that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParitySymbol<'a> {
    /// Index among the block's parity symbols, from 0 (NORM's encoding symbol number minus the number of source
    /// symbols).
    pub index: usize,
    /// Bytes of the symbol: exactly one symbol length.
    pub bytes: &'a [u8],
}

/// `k`, `p` and the symbol length of a code, in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) source_symbols: usize,
    pub(crate) parity_symbols: usize,
    pub(crate) symbol_len: usize,
}

impl Shape {
    /// Creates a shape whose source and parity symbols together are at most [`MAX_SMALL_BLOCK`].
    pub(crate) fn small(source: usize, parity: usize, symbol_len: usize) -> Result<Self, CodeError> {
        let max_source = MAX_SMALL_BLOCK - 1;
        if !(1..=max_source).contains(&source) {
            return Err(CodeError::SourceSymbols { given: source, max: max_source });
        }
        Self::checked(source, parity, MAX_SMALL_BLOCK - source, symbol_len)
    }

    /// Creates a shape with at most [`MAX_LARGE_SYMBOLS`] of either kind, of an even length.
    pub(crate) fn large(source: usize, parity: usize, symbol_len: usize) -> Result<Self, CodeError> {
        Self::even(source, parity, MAX_LARGE_SYMBOLS, symbol_len)
    }

    /// Creates a shape with at most [`MAX_WIDE_SYMBOLS`] of either kind, of an even length.
    pub(crate) fn wide(source: usize, parity: usize, symbol_len: usize) -> Result<Self, CodeError> {
        Self::even(source, parity, MAX_WIDE_SYMBOLS, symbol_len)
    }

    fn even(source: usize, parity: usize, most: usize, symbol_len: usize) -> Result<Self, CodeError> {
        if !(1..=most).contains(&source) {
            return Err(CodeError::SourceSymbols { given: source, max: most });
        }
        let shape = Self::checked(source, parity, most, symbol_len)?;
        if symbol_len % 2 == 1 {
            return Err(CodeError::OddSymbolLength { given: symbol_len });
        }
        Ok(shape)
    }

    fn checked(
        source: usize,
        parity: usize,
        max_parity: usize,
        symbol_len: usize,
    ) -> Result<Self, CodeError> {
        if !(1..=max_parity).contains(&parity) {
            return Err(CodeError::ParitySymbols { given: parity, max: max_parity });
        }
        if !(1..=MAX_SYMBOL_LEN).contains(&symbol_len) {
            return Err(CodeError::SymbolLength { given: symbol_len, max: MAX_SYMBOL_LEN });
        }
        Ok(Self { source_symbols: source, parity_symbols: parity, symbol_len })
    }

    /// Returns the symbols in a block of `len` bytes, if their number is whole and neither zero nor too large.
    fn symbols_of(&self, len: usize) -> Option<usize> {
        let symbols = len / self.symbol_len;
        (len.is_multiple_of(self.symbol_len) && (1..=self.source_symbols).contains(&symbols))
            .then_some(symbols)
    }

    /// Checks lengths, in bytes, of a source block and of a buffer for the parity from `first` on.
    pub(crate) fn check_encode(&self, source: usize, first: usize, parity: usize) -> Result<(), EncodeError> {
        let Self { source_symbols, parity_symbols, symbol_len } = *self;
        if self.symbols_of(source).is_none() {
            return Err(EncodeError::BlockLength { given: source, symbol_len, source_symbols });
        }
        if !parity.is_multiple_of(symbol_len) {
            return Err(EncodeError::ParityLength { given: parity, symbol_len });
        }
        let count = parity / symbol_len;
        match first.checked_add(count) {
            Some(end) if end <= parity_symbols => Ok(()),
            _ => Err(EncodeError::ParityRange { first, count, parity_symbols }),
        }
    }

    /// Checks all arguments of a decoding and returns the parity symbols to use: as many as are missing.
    pub(crate) fn check_decode<'a, 'b>(
        &self,
        block: usize,
        missing: &[usize],
        parity: &'a [ParitySymbol<'b>],
    ) -> Result<&'a [ParitySymbol<'b>], DecodeError> {
        let Self { source_symbols, symbol_len, .. } = *self;
        let Some(symbols) = self.symbols_of(block) else {
            return Err(DecodeError::BlockLength { given: block, symbol_len, source_symbols });
        };
        check_missing(missing, symbols)?;
        self.check_parity(parity)?;
        parity.get(..missing.len()).ok_or(DecodeError::NotEnough {
            missing: missing.len(),
            short_by: missing.len().saturating_sub(parity.len()),
        })
    }

    fn check_parity(&self, parity: &[ParitySymbol<'_>]) -> Result<(), DecodeError> {
        let Self { parity_symbols, symbol_len, .. } = *self;
        let mut seen = vec![false; parity_symbols];
        for &ParitySymbol { index, bytes } in parity {
            let Some(seen) = seen.get_mut(index) else {
                return Err(DecodeError::ParityIndex { index, parity_symbols });
            };
            if bytes.len() != symbol_len {
                return Err(DecodeError::ParityLength { index, given: bytes.len(), symbol_len });
            }
            if core::mem::replace(seen, true) {
                return Err(DecodeError::DuplicateParity { index });
            }
        }
        Ok(())
    }
}

fn check_missing(missing: &[usize], symbols: usize) -> Result<(), DecodeError> {
    if let Some(&index) = missing.iter().find(|&&index| index >= symbols) {
        return Err(DecodeError::MissingIndex { index, symbols });
    }
    match missing.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(DecodeError::MissingOrder { index: pair[1] }),
        None => Ok(()),
    }
}
