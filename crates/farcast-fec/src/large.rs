//! Blocks of more than 255 symbols: Reed-Solomon over GF(2^16) by additive FFT.
//!
//! The code is that of `reed-solomon-simd` (the "Leopard" construction of S.-J. Lin, T. Y. Al-Naffouri, Y. S.
//! Han and W.-H. Chung, "Novel polynomial basis with fast Fourier transform and its application to
//! Reed-Solomon erasure codes", IEEE Trans. Inf. Theory 62(11), 2016). Encoding and decoding cost O(n log n) for any
//! number of symbols asked for or lost. Its bytes are farcast's own: no standard prescribes them, and vectors pin them.

use alloc::vec;
use core::cmp::Ordering;

use reed_solomon_simd::{Error, ReedSolomonDecoder, ReedSolomonEncoder};

use crate::error::{CodeError, DecodeError, EncodeError};
use crate::shape::{ParitySymbol, Shape};

/// Panic message if the library refuses checked arguments: a mistake in this crate.
const CHECKED: &str = "shape, lengths and indices were checked";

/// Unit of the library's symbol lengths, in bytes.
const UNIT: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct LargeCode {
    shape: Shape,
}

impl LargeCode {
    pub(crate) fn new(source: usize, parity: usize, symbol_len: usize) -> Result<Self, CodeError> {
        Ok(Self { shape: Shape::large(source, parity, symbol_len)? })
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns an upper bound, in bytes, of the memory for symbols that one call takes beside the caller's.
    pub(crate) fn working_memory(&self) -> usize {
        let Shape { source_symbols, parity_symbols, symbol_len } = self.shape;
        let (source_power, parity_power) =
            (source_symbols.next_power_of_two(), parity_symbols.next_power_of_two());
        // The decoder rounds the lesser kind up to a power of two, and then the sum of both.
        let high = source_symbols + parity_power;
        let low = source_power + parity_symbols;
        let symbols = match source_power.cmp(&parity_power) {
            Ordering::Greater => high,
            Ordering::Less => low,
            Ordering::Equal => high.max(low),
        };
        let symbols = symbols.next_power_of_two();
        symbols.saturating_mul(symbol_len.next_multiple_of(UNIT))
    }

    pub(crate) fn encode(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), EncodeError> {
        self.shape.check_encode(source.len(), first, parity.len())?;
        self.run_encoder(source, first, parity).expect(CHECKED);
        Ok(())
    }

    fn run_encoder(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), Error> {
        let Shape { source_symbols, parity_symbols, symbol_len } = self.shape;
        let mut encoder = ReedSolomonEncoder::new(source_symbols, parity_symbols, symbol_len)?;
        for symbol in source.chunks_exact(symbol_len) {
            encoder.add_original_shard(symbol)?;
        }
        let zeros = vec![0; symbol_len];
        for _ in source.len() / symbol_len..source_symbols {
            encoder.add_original_shard(&zeros)?;
        }
        let result = encoder.encode()?;
        for (out, symbol) in parity.chunks_exact_mut(symbol_len).zip(result.recovery_iter().skip(first)) {
            out.copy_from_slice(symbol);
        }
        Ok(())
    }

    pub(crate) fn decode(
        &self,
        block: &mut [u8],
        missing: &[usize],
        parity: &[ParitySymbol<'_>],
    ) -> Result<(), DecodeError> {
        let parity = self.shape.check_decode(block.len(), missing, parity)?;
        if !missing.is_empty() {
            self.run_decoder(block, missing, parity).expect(CHECKED);
        }
        Ok(())
    }

    fn run_decoder(
        &self,
        block: &mut [u8],
        missing: &[usize],
        parity: &[ParitySymbol<'_>],
    ) -> Result<(), Error> {
        let Shape { source_symbols, parity_symbols, symbol_len } = self.shape;
        let mut decoder = ReedSolomonDecoder::new(source_symbols, parity_symbols, symbol_len)?;
        for (index, symbol) in block.chunks_exact(symbol_len).enumerate() {
            if missing.binary_search(&index).is_err() {
                decoder.add_original_shard(index, symbol)?;
            }
        }
        let zeros = vec![0; symbol_len];
        for index in block.len() / symbol_len..source_symbols {
            decoder.add_original_shard(index, &zeros)?;
        }
        for symbol in parity {
            decoder.add_recovery_shard(symbol.index, symbol.bytes)?;
        }
        for (index, symbol) in decoder.decode()?.restored_original_iter() {
            block[index * symbol_len..][..symbol_len].copy_from_slice(symbol);
        }
        Ok(())
    }
}
