//! Multiplication by a constant as matrices of bits, in the form of GFNI.

use super::products_by_bits;
use crate::gf256::mul;
use crate::gf65536::WordOrder;

/// Matrices that multiply by each constant of GF(2^8).
pub(super) static MATRICES: [u64; 256] = matrices();

/// Matrices that multiply by one constant of GF(2^16), from an octet of a word to one of the product: first to first,
/// second to second, second to first, first to second.
pub(super) type WideMatrices = [u64; 4];

/// Matrices of the constants with only one half of an octet other than 0, for words with the low octet first.
static WIDE_MATRICES: [[WideMatrices; 16]; 4] = wide_matrices();

/// Returns the matrices of a constant: the sum of those of its halves of octets.
pub(super) fn matrices_of(coefficient: u16, order: WordOrder) -> WideMatrices {
    let part = |place: usize| &WIDE_MATRICES[place][usize::from(coefficient >> (4 * place) & 15)];
    let sum = |which: usize| part(0)[which] ^ part(1)[which] ^ part(2)[which] ^ part(3)[which];
    match order {
        WordOrder::LittleEndian => [sum(0), sum(1), sum(2), sum(3)],
        WordOrder::BigEndian => [sum(1), sum(0), sum(3), sum(2)],
    }
}

const fn matrices() -> [u64; 256] {
    let mut table = [0; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[constant] |= column(mul(constant as u8, 1 << bit), bit);
            bit += 1;
        }
        constant += 1;
    }
    table
}

/// Returns the bits of a matrix that map bit `number` of an octet to `product`. GFNI has the row of the product's bit 7
/// in the lowest octet.
const fn column(product: u8, number: usize) -> u64 {
    let mut bits = 0;
    let mut row = 0;
    while row < 8 {
        if product >> row & 1 == 1 {
            bits |= 1 << (8 * (7 - row) + number);
        }
        row += 1;
    }
    bits
}

const fn wide_matrices() -> [[WideMatrices; 16]; 4] {
    let mut table = [[[0; 4]; 16]; 4];
    let mut entry = 0;
    while entry < 64 {
        let by_bits = products_by_bits(entry as u16 % 16, entry / 16);
        let matrices = &mut table[entry / 16][entry % 16];
        let mut bit = 0;
        while bit < 8 {
            let ([low, high], [low_of_second, high_of_second]) =
                (by_bits[bit].to_le_bytes(), by_bits[8 + bit].to_le_bytes());
            matrices[0] |= column(low, bit);
            matrices[1] |= column(high_of_second, bit);
            matrices[2] |= column(low_of_second, bit);
            matrices[3] |= column(high, bit);
            bit += 1;
        }
        entry += 1;
    }
    table
}
