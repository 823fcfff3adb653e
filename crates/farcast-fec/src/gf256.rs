//! Arithmetic in GF(2^8), the field of RFC 5510 §8.1 for `m` = 8.
//!
//! Elements are bytes; addition and subtraction are exclusive or; `α` is the element 2, which generates all
//! 255 elements other than 0. Tables are built at compile time.

use crate::lagrange::Field;
use crate::simd;

/// The field polynomial `x^8 + x^4 + x^3 + x^2 + 1`, bit `i` being the coefficient of `x^i` (RFC 5510 §8.1).
pub const POLYNOMIAL: u16 = 0x11D;

/// Elements other than 0; logarithms are modulo this.
const ORDER: i32 = 255;

/// `EXP[i]` is `α^i`, and twice around so that a sum of two logarithms needs no reduction.
const EXP: [u8; 510] = exponentials();

/// `LOG[x]` is the `i` in 0..255 with `α^i = x`; the entry of 0, which has none, is never read.
const LOG: [u8; 256] = logarithms();

/// Returns the product of two elements.
#[inline]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// Adds `coefficient * src` to `dst`, element by element.
///
/// Runs on the widest vectors that the processor is found to have (with GFNI, AVX2, SSSE3, else a table), at several
/// gigabytes a second from the cache.
///
/// # Panics
///
/// If the slices differ in length.
#[inline]
pub fn mul_add(dst: &mut [u8], src: &[u8], coefficient: u8) {
    assert_eq!(dst.len(), src.len(), "both operands have one length");
    simd::add_products(dst, &[(src, coefficient)]);
}

/// The field, for codes over any field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gf256;

impl Field for Gf256 {
    type Element = u8;

    const ORDER: i32 = ORDER;

    fn element(number: usize) -> u8 {
        number as u8
    }

    fn exp(log: i32) -> u8 {
        exp(log)
    }

    fn log(x: u8) -> i32 {
        log(x)
    }

    fn add_products(self, dst: &mut [u8], terms: &[(&[u8], u8)]) {
        simd::add_products(dst, terms);
    }
}

/// Returns `α` to the power of `log`, which may be any number, negative too.
pub(crate) const fn exp(log: i32) -> u8 {
    EXP[log.rem_euclid(ORDER) as usize]
}

/// Returns the logarithm of an element other than 0, in 0..255.
pub(crate) const fn log(x: u8) -> i32 {
    debug_assert!(x != 0, "0 has no logarithm");
    LOG[x as usize] as i32
}

const fn exponentials() -> [u8; 510] {
    let mut table = [0; 510];
    let mut x: u16 = 1;
    let mut i = 0;
    while i < 255 {
        table[i] = x as u8;
        table[i + 255] = x as u8;
        x <<= 1;
        if x > 0xFF {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[EXP[i] as usize] = i as u8;
        i += 1;
    }
    table
}

#[cfg(test)]
pub(crate) mod tests;
