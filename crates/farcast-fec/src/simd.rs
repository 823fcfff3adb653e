//! The inner loops of the codes: `dst += coefficient * src`, over GF(2^8) and GF(2^16).
//!
//! A product by a constant is linear in the octets of a symbol. So it is the exclusive or of the products of the two
//! 4-bit halves of each octet. A half has 16 values, so its products fit a table of 16 bytes. The byte shuffle of SSSE3
//! and AVX2 looks up 16 or 32 bytes at once (J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming fast Galois field
//! arithmetic using Intel SIMD instructions", FAST 2013). A product by a constant is also a matrix of bits: GFNI
//! multiplies every octet of a vector by a matrix of 8×8 bits, for any field polynomial. Over GF(2^16) there are four
//! such matrices, one for each pair of an octet of the source and one of the product. This module and its child are the
//! only ones of the crate with `unsafe`.

use crate::gf256::mul;
use crate::gf65536::{WordOrder, times_alpha};
use crate::lagrange::FUSED;

#[cfg(target_arch = "x86_64")]
mod matrices;
#[cfg(target_arch = "x86_64")]
mod x86_64;

/// Products of one constant of GF(2^8) with the halves of octets.
struct Products {
    /// Products with 0..16.
    low: [u8; 16],
    /// Products with 0, 16, 32, .. 240.
    high: [u8; 16],
}

/// Products of all constants, 8 KiB; a code uses the lines of its few coefficients.
static PRODUCTS: [Products; 256] = products();

/// Octets of the products of one constant of GF(2^16) by each of the four halves of octets of a word. Indices: first
/// the half's place, from the low half of the word's first octet; then the octet of the product; then the value of the
/// half.
type WideProducts = [[[u8; 16]; 2]; 4];

/// Products of the constants with only one half of an octet other than 0, for words with the low octet first. Products
/// are linear in the constant as well, so these suffice for all constants.
static WIDE_PRODUCTS: [[WideProducts; 16]; 4] = wide_products();

/// A symbol, and its coefficient over GF(2^8).
type Term<'a> = (&'a [u8], u8);

/// Function that adds products over GF(2^8) to `dst`; all have one length. Returns `false`, having done nothing, if the
/// processor lacks the instructions.
type Kernel<const N: usize> = fn(dst: &mut [u8], terms: &[Term<'_>; N]) -> bool;

/// Function that adds one product over GF(2^16); both slices have the same even length.
type WideKernel = fn(dst: &mut [u8], src: &[u8], coefficient: u16, order: WordOrder) -> bool;

/// The kernels that add `N` products at once.
struct Kernels<const N: usize>;

impl<const N: usize> Kernels<N> {
    /// All kernels, best first; the last one always works.
    const ALL: &[Kernel<N>] = &[
        #[cfg(target_arch = "x86_64")]
        x86_64::gfni::<N>,
        #[cfg(target_arch = "x86_64")]
        x86_64::avx2::<N>,
        #[cfg(target_arch = "x86_64")]
        x86_64::ssse3::<N>,
        scalar::<N>,
    ];
}

/// All kernels, best first; the last one always works.
const WIDE_KERNELS: &[WideKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86_64::gfni_wide,
    #[cfg(target_arch = "x86_64")]
    x86_64::avx2_wide,
    #[cfg(target_arch = "x86_64")]
    x86_64::ssse3_wide,
    scalar_wide,
];

/// Adds every product over GF(2^8) to `dst`; all have one length.
pub(crate) fn add_products(dst: &mut [u8], terms: &[Term<'_>]) {
    let (fused, rest) = terms.as_chunks::<FUSED>();
    for terms in fused {
        add(dst, terms);
    }
    for term in rest {
        add(dst, &[*term]);
    }
}

fn add<const N: usize>(dst: &mut [u8], terms: &[Term<'_>; N]) {
    let done = Kernels::ALL.iter().any(|kernel| kernel(dst, terms));
    debug_assert!(done, "the scalar kernel always works");
}

/// Adds `coefficient * src` over GF(2^16) to `dst`; both have the same even length.
pub(crate) fn add_wide_product(dst: &mut [u8], src: &[u8], coefficient: u16, order: WordOrder) {
    let done = WIDE_KERNELS.iter().any(|kernel| kernel(dst, src, coefficient, order));
    debug_assert!(done, "the scalar kernel always works");
}

fn scalar<const N: usize>(dst: &mut [u8], terms: &[Term<'_>; N]) -> bool {
    for (src, coefficient) in terms {
        let constant = &PRODUCTS[usize::from(*coefficient)];
        for (d, s) in dst.iter_mut().zip(*src) {
            *d ^= constant.low[usize::from(s & 15)] ^ constant.high[usize::from(s >> 4)];
        }
    }
    true
}

fn scalar_wide(dst: &mut [u8], src: &[u8], coefficient: u16, order: WordOrder) -> bool {
    let octets = products_of(coefficient, order);
    let products: [[u16; 16]; 4] = core::array::from_fn(|place| {
        core::array::from_fn(|half| u16::from_le_bytes([octets[place][0][half], octets[place][1][half]]))
    });
    let (dst, _) = dst.as_chunks_mut::<2>();
    let (src, _) = src.as_chunks::<2>();
    for (d, s) in dst.iter_mut().zip(src) {
        let s = u16::from_le_bytes(*s);
        let half = |place: usize| products[place][usize::from(s >> (4 * place) & 15)];
        *d = (u16::from_le_bytes(*d) ^ half(0) ^ half(1) ^ half(2) ^ half(3)).to_le_bytes();
    }
    true
}

/// Returns the tables of a constant: the sum of those of its halves of octets.
fn products_of(coefficient: u16, order: WordOrder) -> WideProducts {
    let mut sum = [[[0; 16]; 2]; 4];
    for (place, products) in WIDE_PRODUCTS.iter().enumerate() {
        let products = &products[usize::from(coefficient >> (4 * place) & 15)];
        for (sum, octets) in sum.as_flattened_mut().as_flattened_mut().iter_mut().zip(octets_of(products)) {
            *sum ^= octets;
        }
    }
    match order {
        WordOrder::LittleEndian => sum,
        // In the other order, the first and the second octet are exchanged, in the source and in the product.
        WordOrder::BigEndian => [2, 3, 0, 1].map(|place: usize| [sum[place][1], sum[place][0]]),
    }
}

fn octets_of(products: &WideProducts) -> impl Iterator<Item = &u8> {
    products.as_flattened().as_flattened().iter()
}

const fn products() -> [Products; 256] {
    let mut table = [const { Products { low: [0; 16], high: [0; 16] } }; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut half = 0;
        while half < 16 {
            table[constant].low[half] = mul(constant as u8, half as u8);
            table[constant].high[half] = mul(constant as u8, (half << 4) as u8);
            half += 1;
        }
        constant += 1;
    }
    table
}

/// Returns the products of `constant`, which is below 16, shifted by `place` halves of octets, by the 16 bits of a
/// word.
const fn products_by_bits(constant: u16, place: usize) -> [u16; 16] {
    let mut product = constant << (4 * place);
    let mut products = [0; 16];
    let mut bit = 0;
    while bit < 16 {
        products[bit] = product;
        product = times_alpha(product);
        bit += 1;
    }
    products
}

const fn wide_products() -> [[WideProducts; 16]; 4] {
    let mut table = [[[[[0; 16]; 2]; 4]; 16]; 4];
    let mut entry = 0;
    while entry < 64 {
        let by_bits = products_by_bits(entry as u16 % 16, entry / 16);
        let mut half = 0;
        while half < 64 {
            let (place, value) = (half / 16, half % 16);
            let mut product = 0;
            let mut bit = 0;
            while bit < 4 {
                if value >> bit & 1 == 1 {
                    product ^= by_bits[4 * place + bit];
                }
                bit += 1;
            }
            let [low, high] = product.to_le_bytes();
            table[entry / 16][entry % 16][place][0][value] = low;
            table[entry / 16][entry % 16][place][1][value] = high;
            half += 1;
        }
        entry += 1;
    }
    table
}

#[cfg(test)]
mod tests;
