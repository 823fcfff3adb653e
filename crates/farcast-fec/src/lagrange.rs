//! Systematic Reed-Solomon codes in Vandermonde form, over any field.
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
//! for encoding (known: the sources; `t`: a parity point) and decoding (known: the symbols that arrived; `t`: a lost
//! source's point) alike. One coefficient costs two additions of logarithms and a look-up.

use alloc::vec::Vec;
use core::ops::BitXor;

use crate::error::{DecodeError, EncodeError};
use crate::reed_solomon::PointSet;
use crate::shape::{ParitySymbol, Shape};

/// Symbols built together: they stay in the first-level cache while the known symbols stream past.
const GROUP: usize = 8;

/// Number of known symbols that one pass adds to a symbol being built; a pass reads and writes that symbol once.
pub(crate) const FUSED: usize = 4;

/// A field with 2^8 or 2^16 elements, and the form of its elements in symbols.
pub(crate) trait Field: Copy {
    /// An element; also a logarithm, reduced modulo [`ORDER`](Self::ORDER).
    type Element: Copy + Default + Eq + Into<i32> + BitXor<Output = Self::Element>;

    /// Elements other than 0; logarithms are modulo this.
    const ORDER: i32;

    /// Returns the element, or reduced logarithm, of this number.
    fn element(number: usize) -> Self::Element;

    /// Returns `α` to the power of `log`, which may be any number, negative too.
    fn exp(log: i32) -> Self::Element;

    /// Returns the logarithm of an element other than 0, in 0..[`ORDER`](Self::ORDER).
    fn log(x: Self::Element) -> i32;

    /// Adds to `dst` each source times its coefficient; all have one length, a whole number of elements.
    fn add_products(self, dst: &mut [u8], terms: &[(&[u8], Self::Element)]);
}

/// A point and its factor: `w` of a known point, `l` of a wanted one.
#[derive(Clone, Copy, Debug)]
struct Node<E> {
    point: E,
    /// Logarithm of the factor, reduced.
    log: E,
}

/// A code: its numbers, its points, and the weights of its source points.
#[derive(Clone, Debug)]
pub(crate) struct Lagrange<F: Field> {
    field: F,
    shape: Shape,
    points: PointSet,
    /// The source points and their weights `w_m` among all `k` of them.
    sources: Vec<Node<F::Element>>,
}

impl<F: Field> Lagrange<F> {
    /// Creates the code of a checked shape.
    pub(crate) fn new(field: F, points: PointSet, shape: Shape) -> Self {
        let all: Vec<F::Element> = (0..shape.source_symbols).map(|index| point::<F>(points, index)).collect();
        let sources = all.iter().map(|&x| node::<F>(x, -log_of_product::<F>(x, &all))).collect();
        Self { field, shape, points, sources }
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn points(&self) -> PointSet {
        self.points
    }

    pub(crate) fn encode(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), EncodeError> {
        self.shape.check_encode(source.len(), first, parity.len())?;
        let len = self.shape.symbol_len;
        let known = source.chunks_exact(len).zip(self.sources.iter().copied());
        let wanted = parity.chunks_exact_mut(len).zip(first..).map(|(out, index)| {
            let x = self.parity_point(index);
            (out, node::<F>(x, self.log_over_sources(x)))
        });
        self.find(&known, &mut wanted.collect::<Vec<_>>());
        Ok(())
    }

    /// Rebuilds the missing symbols. The known points are the sources without the lost ones, and the points of the
    /// parity symbols used instead. So every product over them is a product over the sources, which the code keeps,
    /// corrected by a few factors.
    pub(crate) fn decode(
        &self,
        block: &mut [u8],
        missing: &[usize],
        parity: &[ParitySymbol<'_>],
    ) -> Result<(), DecodeError> {
        let parity = self.shape.check_decode(block.len(), missing, parity)?;
        let lost: Vec<F::Element> = missing.iter().map(|&index| self.sources[index].point).collect();
        let spare: Vec<F::Element> = parity.iter().map(|symbol| self.parity_point(symbol.index)).collect();
        let correction = |x| log_of_product::<F>(x, &lost) - log_of_product::<F>(x, &spare);
        let (mut known, mut wanted) =
            (Vec::with_capacity(self.sources.len()), Vec::with_capacity(lost.len()));
        for (index, (symbol, source)) in
            block.chunks_exact_mut(self.shape.symbol_len).zip(&self.sources).enumerate()
        {
            let log = source.log.into() + correction(source.point);
            if missing.binary_search(&index).is_ok() {
                wanted.push((symbol, node::<F>(source.point, -log)));
            } else {
                known.push((&*symbol, node::<F>(source.point, log)));
            }
        }
        known.extend(
            parity
                .iter()
                .zip(&spare)
                .map(|(symbol, &x)| (symbol.bytes, node::<F>(x, correction(x) - self.log_over_sources(x)))),
        );
        self.find(&known.iter().copied(), &mut wanted);
        Ok(())
    }

    /// Writes the values at the points of `wanted`, computed from the known ones.
    fn find<'a>(
        &self,
        known: &(impl Iterator<Item = (&'a [u8], Node<F::Element>)> + Clone),
        wanted: &mut [(&mut [u8], Node<F::Element>)],
    ) {
        for group in wanted.chunks_mut(GROUP) {
            for (out, _) in &mut *group {
                out.fill(0);
            }
            let mut known = known.clone().fuse();
            loop {
                let mut some = [const { None }; FUSED];
                some.fill_with(|| known.next());
                let count = some.iter().flatten().count();
                if count == 0 {
                    break;
                }
                for (out, target) in &mut *group {
                    let mut terms = [(&[][..], F::Element::default()); FUSED];
                    for (term, (symbol, known)) in terms.iter_mut().zip(some.iter().flatten()) {
                        *term = (symbol, coefficient::<F>(*target, *known));
                    }
                    self.field.add_products(out, &terms[..count]);
                }
            }
        }
    }

    fn parity_point(&self, index: usize) -> F::Element {
        point::<F>(self.points, self.shape.source_symbols + index)
    }

    /// Returns the logarithm of the product of `x - x_n` over all source points, including the virtual zeros of a
    /// shortened block.
    fn log_over_sources(&self, x: F::Element) -> i32 {
        self.sources.iter().map(|source| F::log(x ^ source.point)).sum::<i32>() % F::ORDER
    }
}

fn node<F: Field>(point: F::Element, log: i32) -> Node<F::Element> {
    Node { point, log: F::element(log.rem_euclid(F::ORDER) as usize) }
}

/// Returns the coefficient of the value at `known` in the value at `target`.
fn coefficient<F: Field>(target: Node<F::Element>, known: Node<F::Element>) -> F::Element {
    F::exp(target.log.into() + known.log.into() - F::log(target.point ^ known.point))
}

/// Returns the point of symbol `index`, which is below the field's order.
fn point<F: Field>(points: PointSet, index: usize) -> F::Element {
    let number = F::element(index);
    match points {
        PointSet::Rizzo if index == 0 => number,
        PointSet::Rizzo => F::exp(number.into() - 1),
        PointSet::Rfc5510 => F::exp(number.into()),
        PointSet::Integers => number,
    }
}

/// Returns the logarithm of the product of `x - x_n` over all points other than `x` itself. The sum is of at most
/// 16,384 logarithms below 65,535.
fn log_of_product<F: Field>(x: F::Element, points: &[F::Element]) -> i32 {
    points.iter().filter(|&&point| point != x).map(|&point| F::log(x ^ point)).sum::<i32>() % F::ORDER
}
