//! Erasure codes: one interface to several codecs.
//!
//! A *block* is `k` source symbols of equal length; a code adds `p` parity symbols, and any `k` of the
//! `k + p` symbols give the block back. All codes here are systematic (source symbols travel as they are) and
//! optimal (no symbol more than `k` is ever needed). The crate owns no file and no packet: the caller lends a
//! block as one contiguous slice and gets parity, or the lost symbols, written into memory of its own.
//!
//! # Choice of the code
//!
//! [`BlockCode`] chooses, and the choice is a function of `(k, p)` alone, so that a sender and a receiver
//! that agree on those two numbers need to agree on nothing else:
//!
//! | `k + p` | field | construction | one parity symbol costs |
//! |---|---|---|---|
//! | at most 255 | GF(2^8), [`ReedSolomon`] | Vandermonde, [`PointSet::Rizzo`] | `k` multiplications |
//! | more; `k`, `p` up to 32,768 each | GF(2^16) | FFT ("Leopard") of `reed-solomon-simd` | as much as all |
//!
//! [`ReedSolomon`] can also be used directly, by protocols that prescribe a code (NORM, PGM). So can
//! [`WideReedSolomon`], the same code over GF(2^16) (NORM's FEC Encoding ID 2 with `m` = 16).
//!
//! # Evaluation points
//!
//! A Vandermonde code is fixed by its field polynomial (here [`gf256::POLYNOMIAL`]) *and* by the points at
//! which the message polynomial is evaluated. Two codes with other points have other parity bytes and cannot
//! repair each other's blocks. RFC 5510 §8.2 writes `V[i][j] = α^(i j)`, hence the points `α^0, α^1, α^2, …`
//! ([`PointSet::Rfc5510`]). The programs in the field descend from L. Rizzo's `fec.c`, which puts the point 0
//! first: `0, α^0, α^1, …`. NRL NORM (FEC Encoding IDs 5 and 129) and `OpenPGM` do so although they cite the
//! RFC's formula. [`PointSet::Rizzo`] is what repairs their blocks, and what farcast uses among its own.
//!
//! # Shortened blocks
//!
//! Every call takes a block of `1..=k` symbols; the absent last ones count as zeros that both sides know.
//! This is how NRL NORM codes the short blocks of an object. (RFC 5510 §8.2 instead has a code per block
//! length: for that, make a code with the block's own `k`.)
//!
//! # Limits
//!
//! Symbols are 1 to [`MAX_SYMBOL_LEN`] bytes, an even number in GF(2^16). Over GF(2^16) a call allocates
//! [`BlockCode::working_memory`] bytes and 128 KiB of stack; over GF(2^8) it works in place.
//!
//! Left out: rateless codes (`RaptorQ`, RFC 6330), the polynomial code of MDP, and error correction: a symbol is
//! either right or absent, so a damaged packet must have been dropped before.
//!
//! The crate is `no_std` with `alloc`: it cannot reach a clock, a file or a socket.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod block;
mod error;
pub mod gf256;
mod gf65536;
mod lagrange;
mod large;
mod reed_solomon;
mod shape;
#[allow(unsafe_code, reason = "vector loads and stores, and calls of kernels after run-time detection")]
mod simd;
mod wide;

pub use block::{BlockCode, Field};
pub use error::{CodeError, DecodeError, EncodeError};
pub use gf65536::WordOrder;
pub use reed_solomon::{PointSet, ReedSolomon};
pub use shape::{MAX_LARGE_SYMBOLS, MAX_SMALL_BLOCK, MAX_SYMBOL_LEN, MAX_WIDE_SYMBOLS, ParitySymbol};
pub use wide::WideReedSolomon;
