//! Systematic Reed-Solomon codes over GF(2^16) in Vandermonde form.
//!
//! The same as [`ReedSolomon`](crate::ReedSolomon), whose module says how, over a larger field: for protocols that
//! prescribe it (NORM's FEC Encoding ID 2 with `m` = 16). Blocks of our own that are too large for GF(2^8) have a
//! faster code ([`BlockCode`](crate::BlockCode)).

use alloc::vec::Vec;

use crate::error::{CodeError, DecodeError, EncodeError};
use crate::gf65536::{self, ORDER, WordOrder};
use crate::reed_solomon::PointSet;
use crate::shape::{ParitySymbol, Shape};

/// A systematic Reed-Solomon code over GF(2^16).
///
/// Words of two bytes at the same place of all symbols form one code word.
#[derive(Clone, Debug)]
pub struct WideReedSolomon {
    shape: Shape,
    points: PointSet,
    order: WordOrder,
    /// The source points, and the logarithms of their weights among all of them.
    sources: Vec<Node>,
}

/// A point, and the logarithm of a factor that belongs to it.
#[derive(Clone, Copy, Debug)]
struct Node {
    point: u16,
    log: i64,
}

impl Node {
    /// By what to multiply the value at `known` for its share in the value at this point.
    fn coefficient(self, known: Self) -> u16 {
        gf65536::exp(self.log + known.log - gf65536::log(self.point ^ known.point))
    }
}

impl WideReedSolomon {
    /// A code of `source_symbols` (1 to 8,192) and `parity_symbols` (1 to 8,192) of `symbol_len` bytes (2 to 65,534,
    /// even). Takes `source_symbols`² table look-ups, so keep it for many blocks.
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
        let all: Vec<u16> = (0..source_symbols).map(|index| point(points, index)).collect();
        let node = |&point| Node { point, log: -log_of_product(point, &all) % ORDER };
        Ok(Self { shape, points, order, sources: all.iter().map(node).collect() })
    }

    /// Source symbols in a full block.
    pub fn source_symbols(&self) -> usize {
        self.shape.source_symbols
    }

    /// Parity symbols of a block.
    pub fn parity_symbols(&self) -> usize {
        self.shape.parity_symbols
    }

    /// Length of every symbol, in bytes.
    pub fn symbol_len(&self) -> usize {
        self.shape.symbol_len
    }

    /// Computes parity symbols `first`, `first + 1`, … of a block, as many as `parity` has room for
    /// ([`ReedSolomon::encode`](crate::ReedSolomon::encode)).
    pub fn encode(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), EncodeError> {
        self.shape.check_encode(source.len(), first, parity.len())?;
        let len = self.shape.symbol_len;
        parity.fill(0);
        for (index, out) in (first..).zip(parity.chunks_exact_mut(len)) {
            let target = self.parity_point(index);
            let target = Node { point: target, log: self.log_over_sources(target) };
            for (symbol, &known) in source.chunks_exact(len).zip(&self.sources) {
                gf65536::mul_add(out, symbol, target.coefficient(known), self.order);
            }
        }
        Ok(())
    }

    /// Rebuilds the `missing` source symbols of a block, in place
    /// ([`ReedSolomon::decode`](crate::ReedSolomon::decode)).
    pub fn decode(
        &self,
        block: &mut [u8],
        missing: &[usize],
        parity: &[ParitySymbol<'_>],
    ) -> Result<(), DecodeError> {
        let parity = self.shape.check_decode(block.len(), missing, parity)?;
        let len = self.shape.symbol_len;
        let lost: Vec<u16> = missing.iter().map(|&index| self.sources[index].point).collect();
        let spare: Vec<u16> = parity.iter().map(|symbol| self.parity_point(symbol.index)).collect();
        // Every product over what is known is one over the sources, without what was lost and with what came instead.
        let corrected = |point: u16| log_of_product(point, &lost) - log_of_product(point, &spare);
        let present: Vec<(usize, Node)> = (0..block.len() / len)
            .filter(|index| missing.binary_search(index).is_err())
            .map(|index| (index, self.sources[index]))
            .map(|(index, Node { point, log })| (index, Node { point, log: log + corrected(point) }))
            .collect();
        let known = spare.iter().map(|&point| {
            let log = self.log_over_sources(point) - corrected(point);
            Node { point, log: -log }
        });
        let known: Vec<Node> = known.collect();
        let mut rebuilt = alloc::vec![0; missing.len() * len];
        for (out, &index) in rebuilt.chunks_exact_mut(len).zip(missing) {
            let Node { point, log } = self.sources[index];
            let target = Node { point, log: -log - corrected(point) };
            for &(source, known) in &present {
                let symbol = &block[source * len..][..len];
                gf65536::mul_add(out, symbol, target.coefficient(known), self.order);
            }
            for (symbol, &known) in parity.iter().zip(&known) {
                gf65536::mul_add(out, symbol.bytes, target.coefficient(known), self.order);
            }
        }
        for (symbol, &index) in rebuilt.chunks_exact(len).zip(missing) {
            block[index * len..][..len].copy_from_slice(symbol);
        }
        Ok(())
    }

    fn parity_point(&self, index: usize) -> u16 {
        point(self.points, self.shape.source_symbols + index)
    }

    /// Logarithm of the product of `x - x_n` over all source points.
    fn log_over_sources(&self, x: u16) -> i64 {
        self.sources.iter().map(|source| gf65536::log(x ^ source.point)).sum()
    }
}

/// The point of symbol `index`, which is below 65,535.
fn point(points: PointSet, index: usize) -> u16 {
    let index = index as u16;
    match points {
        PointSet::Rizzo if index == 0 => 0,
        PointSet::Rizzo => gf65536::exp(i64::from(index) - 1),
        PointSet::Rfc5510 => gf65536::exp(i64::from(index)),
        PointSet::Integers => index,
    }
}

/// Logarithm (not reduced) of the product of `x - x_n` over all points other than `x` itself.
fn log_of_product(x: u16, points: &[u16]) -> i64 {
    points.iter().filter(|&&point| point != x).map(|&point| gf65536::log(x ^ point)).sum()
}
