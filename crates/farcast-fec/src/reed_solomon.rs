//! Systematic Reed-Solomon codes over GF(2^8) in Vandermonde form.
//!
//! The generator matrix of RFC 5510 §8.2 is `V[k×k]^-1 · V[k×n]`, where column `j` of `V` holds the powers of
//! the point `x_j`. In other words: the source symbols are the values at `x_0..x_(k-1)` of the one polynomial
//! of degree below `k` that passes through them, and parity symbol `j` is its value at `x_(k+j)`. So no
//! matrix is ever inverted: a value at `t` follows from any `k` known values `y_m` at `x_m` by Lagrange's
//! formula,
//!
//! ```text
//! P(t) = Σ_m y_m · l(t) · w_m / (t - x_m)     l(t) = Π_m (t - x_m)     w_m = 1 / Π_(n≠m) (x_m - x_n)
//! ```
//!
//! for encoding (known: the sources; `t`: a parity point) and decoding (known: what arrived; `t`: a lost
//! source's point) alike. One coefficient costs two additions of logarithms and a look-up.

use alloc::vec::Vec;

use crate::error::{CodeError, DecodeError, EncodeError};
use crate::gf256::{self, ORDER};
use crate::shape::{ParitySymbol, Shape};

/// Symbols built together: they stay in the first-level cache while the known symbols stream past.
const GROUP: usize = 8;

/// Where the message polynomial is evaluated: symbol `j` of a block is its value at point `j`.
///
/// Codes with different points are different codes; the crate's documentation says who uses which.
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

impl PointSet {
    /// The point of symbol `index`, which is below 255.
    fn point(self, index: usize) -> u8 {
        let index = index as u8;
        match self {
            Self::Rizzo if index == 0 => 0,
            Self::Rizzo => gf256::exp(i32::from(index) - 1),
            Self::Rfc5510 => gf256::exp(i32::from(index)),
            Self::Integers => index,
        }
    }
}

/// A systematic Reed-Solomon code over GF(2^8) for blocks of at most 255 symbols.
///
/// Bytes at the same place of all symbols form one code word; symbols may have any length.
#[derive(Clone, Debug)]
pub struct ReedSolomon {
    shape: Shape,
    points: PointSet,
    /// The source points and their weights `w_m` among all `k` of them.
    sources: Vec<Node>,
}

/// A point and a factor that belongs to it: `w` of a known point, `l` of one to be found.
#[derive(Clone, Copy, Debug)]
struct Node {
    point: u8,
    /// Logarithm of the factor, in 0..255.
    log: u8,
}

impl Node {
    fn new(point: u8, log: i32) -> Self {
        Self { point, log: log.rem_euclid(ORDER) as u8 }
    }

    /// By what to multiply the value at `known` for its share in the value at this point.
    fn coefficient(self, known: Node) -> u8 {
        gf256::exp(i32::from(self.log) + i32::from(known.log) - gf256::log(self.point ^ known.point))
    }
}

impl ReedSolomon {
    /// A code of `source_symbols` (1 to 254) and `parity_symbols` (at least 1, both together at most 255),
    /// each of `symbol_len` bytes (1 to 65,535). Takes `source_symbols`² table look-ups, so keep it for many
    /// blocks.
    ///
    /// `source_symbols` is the nominal length of a block: it fixes the matrix. Blocks may be shorter.
    pub fn new(
        points: PointSet,
        source_symbols: usize,
        parity_symbols: usize,
        symbol_len: usize,
    ) -> Result<Self, CodeError> {
        let shape = Shape::small(source_symbols, parity_symbols, symbol_len)?;
        let all: Vec<u8> = (0..source_symbols).map(|index| points.point(index)).collect();
        let sources = all.iter().map(|&x| Node::new(x, -log_of_product(x, &all))).collect();
        Ok(Self { shape, points, sources })
    }

    /// The evaluation points.
    pub fn points(&self) -> PointSet {
        self.points
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

    /// Computes parity symbols `first`, `first + 1`, … of a block, as many as `parity` has room for.
    ///
    /// `source` holds the block's symbols one after the other, each padded to the symbol length; fewer than
    /// [`source_symbols`](Self::source_symbols) make a shortened block. Each parity symbol costs one pass
    /// over the source, so one that is asked for alone costs no more than its share.
    pub fn encode(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), EncodeError> {
        self.shape.check_encode(source.len(), first, parity.len())?;
        let len = self.shape.symbol_len;
        parity.fill(0);
        for (number, group) in parity.chunks_mut(GROUP * len).enumerate() {
            let start = first + number * GROUP;
            let wanted: Vec<Node> =
                (start..start + group.len() / len).map(|index| self.parity_target(index)).collect();
            for (symbol, &known) in source.chunks_exact(len).zip(&self.sources) {
                for (out, target) in group.chunks_exact_mut(len).zip(&wanted) {
                    gf256::mul_add(out, symbol, target.coefficient(known));
                }
            }
        }
        Ok(())
    }

    /// Rebuilds the `missing` source symbols of a block, in place.
    ///
    /// `block` holds the block's symbols one after the other (a shortened block: fewer than
    /// [`source_symbols`](Self::source_symbols)); what it holds in the places of the missing ones is
    /// overwritten. `missing` lists their indices, from 0, strictly increasing. Of `parity`, in any order,
    /// the first `missing.len()` are used. On an error the block is untouched.
    pub fn decode(
        &self,
        block: &mut [u8],
        missing: &[usize],
        parity: &[ParitySymbol<'_>],
    ) -> Result<(), DecodeError> {
        let parity = self.shape.check_decode(block.len(), missing, parity)?;
        let len = self.shape.symbol_len;
        let plan = Plan::new(self, missing, parity, block.len() / len);
        for &index in missing {
            block[index * len..][..len].fill(0);
        }
        for group in plan.wanted.chunks(GROUP) {
            for &(source, known) in &plan.present {
                for &(index, target) in group {
                    let (out, symbol) = pair_mut(block, len, index, source);
                    gf256::mul_add(out, symbol, target.coefficient(known));
                }
            }
            for (symbol, &known) in parity.iter().zip(&plan.parity) {
                for &(index, target) in group {
                    gf256::mul_add(&mut block[index * len..][..len], symbol.bytes, target.coefficient(known));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Parity symbol `index` as a point to be found from the source points.
    fn parity_target(&self, index: usize) -> Node {
        let x = self.parity_point(index);
        Node::new(x, self.log_over_sources(x))
    }

    fn parity_point(&self, index: usize) -> u8 {
        self.points.point(self.shape.source_symbols + index)
    }

    /// Logarithm of the product of `x - x_n` over all source points, the virtual zeros of a shortened block
    /// too.
    fn log_over_sources(&self, x: u8) -> i32 {
        self.sources.iter().map(|source| gf256::log(x ^ source.point)).sum()
    }
}

/// The factors of one decoding.
///
/// The known points are the sources without the lost ones and with the parity symbols used instead, so every
/// product over them is a product over the sources, which the code keeps, corrected by a few factors.
struct Plan {
    /// Index and factor of each source symbol that is there.
    present: Vec<(usize, Node)>,
    /// Factor of each parity symbol, in their order.
    parity: Vec<Node>,
    /// Index and factor of each symbol to be found.
    wanted: Vec<(usize, Node)>,
}

impl Plan {
    /// Arguments are checked: `missing` increases and is below `symbols`, `parity` has as many entries.
    fn new(code: &ReedSolomon, missing: &[usize], parity: &[ParitySymbol<'_>], symbols: usize) -> Self {
        let lost: Vec<u8> = missing.iter().map(|&index| code.sources[index].point).collect();
        let spare: Vec<u8> = parity.iter().map(|symbol| code.parity_point(symbol.index)).collect();
        let corrected = |Node { point, log }| {
            i32::from(log) + log_of_product(point, &lost) - log_of_product(point, &spare)
        };
        let present = (0..symbols)
            .filter(|index| missing.binary_search(index).is_err())
            .map(|index| (index, code.sources[index]))
            .map(|(index, source)| (index, Node::new(source.point, corrected(source))))
            .collect();
        let parity = spare
            .iter()
            .map(|&x| (x, code.log_over_sources(x) - log_of_product(x, &lost) + log_of_product(x, &spare)))
            .map(|(x, log)| Node::new(x, -log))
            .collect();
        let wanted = missing
            .iter()
            .map(|&index| (index, code.sources[index]))
            .map(|(index, source)| (index, Node::new(source.point, -corrected(source))))
            .collect();
        Self { present, parity, wanted }
    }
}

/// Logarithm (not reduced) of the product of `x - x_n` over all points other than `x` itself.
fn log_of_product(x: u8, points: &[u8]) -> i32 {
    points.iter().filter(|&&point| point != x).map(|&point| gf256::log(x ^ point)).sum()
}

/// Symbol `first`, to be written, and symbol `second`, to be read, which are not the same.
fn pair_mut(block: &mut [u8], len: usize, first: usize, second: usize) -> (&mut [u8], &[u8]) {
    let (head, tail) = block.split_at_mut(first.max(second) * len);
    if first < second {
        (&mut head[first * len..][..len], &tail[..len])
    } else {
        (&mut tail[..len], &head[second * len..][..len])
    }
}
