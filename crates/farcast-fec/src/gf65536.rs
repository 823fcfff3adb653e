//! Arithmetic in GF(2^16), the field of RFC 5510 §8.1 for `m` = 16.
//!
//! Elements are 16-bit words; addition and subtraction are exclusive or; `α` is the element 2. Tables are built at
//! compile time.

use crate::lagrange::Field;
use crate::simd;

/// The field polynomial `x^16 + x^12 + x^3 + x + 1` (RFC 5510 §8.1).
const POLYNOMIAL: u32 = 0x1_100B;

static EXP: [u16; 65_535] = exponentials();

/// Logarithms; the entry of 0, which has no logarithm, is never read.
static LOG: [u16; 65_536] = logarithms();

/// Order of the two octets of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOrder {
    /// The high octet first, as RFC 5510 implies.
    BigEndian,
    /// The low octet first, as NRL NORM sends from the machines on which it mostly runs.
    LittleEndian,
}

/// The field, for codes over any field, with the order of octets in symbols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gf65536(pub(crate) WordOrder);

impl Field for Gf65536 {
    type Element = u16;

    const ORDER: i32 = 65_535;

    fn element(number: usize) -> u16 {
        number as u16
    }

    fn exp(log: i32) -> u16 {
        EXP[log.rem_euclid(Self::ORDER) as usize]
    }

    fn log(x: u16) -> i32 {
        debug_assert!(x != 0, "0 has no logarithm");
        i32::from(LOG[usize::from(x)])
    }

    fn add_products(self, dst: &mut [u8], terms: &[(&[u8], u16)]) {
        for &(src, coefficient) in terms {
            simd::add_wide_product(dst, src, coefficient, self.0);
        }
    }
}

/// Returns `α` times an element.
pub(crate) const fn times_alpha(x: u16) -> u16 {
    let doubled = (x as u32) << 1;
    (if doubled > 0xFFFF { doubled ^ POLYNOMIAL } else { doubled }) as u16
}

#[expect(clippy::large_stack_arrays, reason = "the compiler runs it")]
const fn exponentials() -> [u16; 65_535] {
    let mut table = [0; 65_535];
    let mut x = 1;
    let mut i = 0;
    while i < table.len() {
        table[i] = x;
        x = times_alpha(x);
        i += 1;
    }
    table
}

#[expect(clippy::large_stack_arrays, reason = "the compiler runs it")]
const fn logarithms() -> [u16; 65_536] {
    let mut table = [0; 65_536];
    let mut x = 1;
    let mut i = 0;
    while i < 65_535 {
        table[x as usize] = i as u16;
        x = times_alpha(x);
        i += 1;
    }
    table
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the product by its definition: shift, add, reduce.
    pub(crate) fn bitwise(a: u16, b: u16) -> u16 {
        let mut sum = 0u32;
        for bit in 0..16 {
            if b >> bit & 1 == 1 {
                sum ^= u32::from(a) << bit;
            }
        }
        for bit in (16..32).rev() {
            if sum >> bit & 1 == 1 {
                sum ^= POLYNOMIAL << (bit - 16);
            }
        }
        sum as u16
    }

    #[test]
    fn alpha_generates_every_element() {
        for x in 1..=u16::MAX {
            assert_eq!(Gf65536::exp(Gf65536::log(x)), x);
            assert_eq!(times_alpha(x), bitwise(x, 2));
        }
        assert_eq!((times_alpha(0), bitwise(Gf65536::exp(-1), 2)), (0, 1));
        assert_eq!(Gf65536::exp(-1), Gf65536::exp(65_534));
    }

    #[test]
    fn logarithms_make_products_of_sums() {
        let mut x: u32 = 1;
        for _ in 0..50_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (a, b) = ((x >> 16) as u16 | 1, (x & 0xFFFF) as u16 | 1);
            assert_eq!(Gf65536::exp(Gf65536::log(a) + Gf65536::log(b)), bitwise(a, b), "{a} * {b}");
        }
    }
}
