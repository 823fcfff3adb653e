//! Every kernel that this processor has, against multiplication without tables.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::{KERNELS, PRODUCTS};
use crate::gf256::tests::bitwise;

/// Longer than three steps of the widest kernel.
const LONGEST: usize = 200;

/// Runs every kernel on `all[from..]` and `src`, equal in length, and asserts that each equals the
/// definition.
fn check(all: &[u8], from: usize, src: &[u8], coefficient: u8) {
    let expected: Vec<u8> = all[from..].iter().zip(src).map(|(d, s)| d ^ bitwise(coefficient, *s)).collect();
    for (number, kernel) in KERNELS.iter().enumerate() {
        let mut actual = all.to_vec();
        if kernel(&mut actual[from..], src, &PRODUCTS[usize::from(coefficient)]) {
            assert_eq!(actual[from..], expected, "kernel {number}, coefficient {coefficient}");
        } else {
            assert_eq!(actual, all, "kernel {number} is not for this processor and must do nothing");
        }
    }
}

#[test]
fn all_pairs() {
    let src: Vec<u8> = (0..=255).collect();
    let dst: Vec<u8> = src.iter().map(|x| x.wrapping_mul(73) ^ 0x5A).collect();
    for coefficient in 0..=255 {
        check(&dst, 0, &src, coefficient);
    }
}

#[test]
fn all_lengths_and_alignments() {
    let src: Vec<u8> = (0..LONGEST + 64).map(|i| (i * 31 + 7) as u8).collect();
    let dst: Vec<u8> = (0..LONGEST + 64).map(|i| (i * 17 + 3) as u8).collect();
    for len in 0..LONGEST {
        for offset in [0, 1, 7, 15, 16, 31, 33] {
            check(&dst[..offset + len], offset, &src[(offset * 5) % 64..][..len], 0x8E);
        }
    }
}

#[test]
fn neighbours_are_untouched() {
    for kernel in KERNELS {
        for len in 0..LONGEST {
            let mut dst = [0xEE; LONGEST + 128];
            kernel(&mut dst[64..64 + len], &[1; LONGEST][..len], &PRODUCTS[3]);
            assert!(dst[..64].iter().chain(&dst[64 + len..]).all(|&byte| byte == 0xEE), "length {len}");
        }
    }
}

proptest! {
    #[test]
    fn random_slices(
        bytes in prop::collection::vec(any::<(u8, u8)>(), LONGEST + 64),
        offset in 0..64usize,
        len in 0..LONGEST,
        coefficient in any::<u8>(),
    ) {
        let (dst, src): (Vec<u8>, Vec<u8>) = bytes.into_iter().unzip();
        check(&dst[..63 - offset + len], 63 - offset, &src[offset..][..len], coefficient);
    }
}
