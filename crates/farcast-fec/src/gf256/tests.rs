//! The tables against multiplication without tables.

use alloc::vec;

use proptest::prelude::*;

use super::{POLYNOMIAL, exp, log, mul, mul_add};

/// Multiplication by its definition: shift and add, reduce by the field polynomial.
pub(crate) fn bitwise(a: u8, b: u8) -> u8 {
    let mut shifted = u16::from(a);
    let mut sum = 0;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= shifted;
        }
        shifted <<= 1;
        if shifted & 0x100 != 0 {
            shifted ^= POLYNOMIAL;
        }
    }
    sum as u8
}

#[test]
fn tables_equal_the_definition_for_all_pairs() {
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(mul(a, b), bitwise(a, b), "{a} * {b}");
        }
    }
}

#[test]
fn logarithms_and_powers_undo_each_other() {
    for x in 1..=255 {
        assert_eq!(exp(log(x)), x);
        assert_eq!(mul(x, exp(-log(x))), 1, "inverse of {x}");
        assert_eq!(exp(log(x) + 7 * 255), x);
    }
}

#[test]
#[should_panic(expected = "one length")]
fn operands_of_different_lengths_are_refused() {
    mul_add(&mut [0; 3], &[0; 4], 1);
}

proptest! {
    #[test]
    fn multiply_and_add_is_linear(
        src in prop::collection::vec(any::<u8>(), 0..300),
        a in any::<u8>(),
        b in any::<u8>(),
    ) {
        let mut twice = vec![0; src.len()];
        mul_add(&mut twice, &src, a);
        mul_add(&mut twice, &src, b);
        let mut once = vec![0; src.len()];
        mul_add(&mut once, &src, a ^ b);
        prop_assert_eq!(twice, once);
    }
}
