//! Every kernel that this processor has, against multiplication without tables.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::{Kernels, Term, WIDE_KERNELS, add_products};
use crate::gf256::tests::bitwise;
use crate::gf65536::WordOrder;
use crate::gf65536::tests::bitwise as bitwise_wide;

/// Longer than three steps of the widest kernel.
const LONGEST: usize = 200;

const ORDERS: [WordOrder; 2] = [WordOrder::BigEndian, WordOrder::LittleEndian];

/// Runs every kernel on `all[from..]` and sources, equal in length, and asserts that each equals the definition.
fn check<const N: usize>(all: &[u8], from: usize, terms: &[Term<'_>; N]) {
    let product = |at: usize| terms.iter().fold(0, |sum, (src, constant)| sum ^ bitwise(*constant, src[at]));
    let expected: Vec<u8> = all[from..].iter().enumerate().map(|(at, d)| d ^ product(at)).collect();
    for (number, kernel) in Kernels::<N>::ALL.iter().enumerate() {
        let mut actual = all.to_vec();
        if kernel(&mut actual[from..], terms) {
            assert_eq!(
                actual[from..],
                expected,
                "kernel {number}, coefficients {:?}",
                terms.map(|term| term.1)
            );
        } else {
            assert_eq!(actual, all, "kernel {number} is not for this processor and must do nothing");
        }
    }
}

/// The same over GF(2^16), in both orders of octets.
fn check_wide(all: &[u8], from: usize, src: &[u8], coefficient: u16) {
    for order in ORDERS {
        // From a word in memory to the element, and back.
        let turn = |word: u16| match order {
            WordOrder::BigEndian => u16::from_be(word),
            WordOrder::LittleEndian => u16::from_le(word),
        };
        let product = |word| turn(bitwise_wide(coefficient, turn(u16::from_ne_bytes(word))));
        let words = all[from..].as_chunks::<2>().0.iter().zip(src.as_chunks::<2>().0);
        let expected: Vec<u8> =
            words.flat_map(|(d, s)| (u16::from_ne_bytes(*d) ^ product(*s)).to_ne_bytes()).collect();
        for (number, kernel) in WIDE_KERNELS.iter().enumerate() {
            let mut actual = all.to_vec();
            if kernel(&mut actual[from..], src, coefficient, order) {
                assert_eq!(actual[from..], expected, "kernel {number}, coefficient {coefficient}, {order:?}");
            } else {
                assert_eq!(actual, all, "kernel {number} is not for this processor and must do nothing");
            }
        }
    }
}

#[test]
fn all_pairs() {
    let src: Vec<u8> = (0..=255).collect();
    let dst: Vec<u8> = src.iter().map(|x| x.wrapping_mul(73) ^ 0x5A).collect();
    for coefficient in 0..=255 {
        check(&dst, 0, &[(&src, coefficient)]);
    }
}

/// A product is linear in both factors: all pairs of single bits are enough.
#[test]
fn all_wide_pairs_of_bits() {
    let src: Vec<u8> = (0..16).flat_map(|bit| (1u16 << bit).to_le_bytes()).collect();
    let dst: Vec<u8> = (0..32).map(|x: u8| x.wrapping_mul(73) ^ 0x5A).collect();
    for bit in 0..16 {
        check_wide(&dst, 0, &src, 1 << bit);
    }
    check_wide(&dst, 0, &src, 0);
    check_wide(&dst, 0, &src, 0xBEEF);
}

#[test]
fn all_lengths_and_alignments() {
    let src: Vec<u8> = (0..LONGEST + 128).map(|i| (i * 31 + 7) as u8).collect();
    let dst: Vec<u8> = (0..LONGEST + 64).map(|i| (i * 17 + 3) as u8).collect();
    for len in 0..LONGEST {
        for offset in [0, 1, 7, 15, 16, 31, 33] {
            let (all, at) = (&dst[..offset + len], (offset * 5) % 64);
            let from = |n: usize| &src[at + n..][..len];
            check(all, offset, &[(from(0), 0x8E)]);
            check(all, offset, &[(from(0), 0x8E), (from(3), 1), (from(16), 0xFF), (from(61), 0x1D)]);
            if len % 2 == 0 {
                check_wide(all, offset, from(0), 0x8E57);
            }
        }
    }
}

#[test]
fn neighbours_are_untouched() {
    for len in 0..LONGEST {
        let untouched = |run: &dyn Fn(&mut [u8])| {
            let mut dst = [0xEE; LONGEST + 128];
            run(&mut dst[64..64 + len]);
            assert!(dst[..64].iter().chain(&dst[64 + len..]).all(|&byte| byte == 0xEE), "length {len}");
        };
        let src = &[1; LONGEST][..len];
        for kernel in Kernels::<1>::ALL {
            untouched(&|dst| _ = kernel(dst, &[(src, 3)]));
        }
        for kernel in Kernels::<4>::ALL {
            untouched(&|dst| _ = kernel(dst, &[(src, 3); 4]));
        }
        for kernel in WIDE_KERNELS.iter().filter(|_| len % 2 == 0) {
            untouched(&|dst| _ = kernel(dst, src, 3, WordOrder::LittleEndian));
        }
    }
}

/// However many there are, whole sets and the rest.
#[test]
fn every_term_is_added_once() {
    let sources: Vec<[u8; 3]> = (1..12u8).map(|n| [n, n ^ 0x55, 255 - n]).collect();
    for count in 0..sources.len() {
        let terms: Vec<Term<'_>> = sources[..count].iter().zip(7..).map(|(src, c)| (&src[..], c)).collect();
        let mut sum = [0; 3];
        add_products(&mut sum, &terms);
        let mut expected = vec![0; 3];
        for (src, coefficient) in terms {
            expected.iter_mut().zip(src).for_each(|(d, s)| *d ^= bitwise(coefficient, *s));
        }
        assert_eq!(sum[..], expected);
    }
}

proptest! {
    #[test]
    fn random_slices(
        bytes in prop::collection::vec(any::<[u8; 5]>(), LONGEST + 64),
        offset in 0..64usize,
        len in 0..LONGEST,
        coefficients in any::<[u8; 4]>(),
        wide in any::<u16>(),
    ) {
        let row = |n: usize| -> Vec<u8> { bytes.iter().map(|bytes| bytes[n]).collect() };
        let rows: [Vec<u8>; 5] = core::array::from_fn(row);
        let terms: [Term<'_>; 4] =
            core::array::from_fn(|n| (&rows[n][(offset + n) % 64..][..len], coefficients[n]));
        let dst = &rows[4][..63 - offset + len];
        check(dst, 63 - offset, &terms);
        check(dst, 63 - offset, &[terms[0]]);
        let even = len & !1;
        check_wide(&rows[4][..63 - offset + even], 63 - offset, &rows[0][offset..][..even], wide);
    }
}
