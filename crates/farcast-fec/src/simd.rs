//! The inner loops of the codes: `dst += coefficient * src`, over GF(2^8) and GF(2^16).
//!
//! A product by a constant is linear, so it is the exclusive or of the products of a symbol's halves of octets, of
//! which there are 16 each: look-ups in tables of 16 bytes, which the byte shuffle of SSSE3 and AVX2 does for 16 or 32
//! bytes at once (J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming fast Galois field arithmetic using Intel SIMD
//! instructions", FAST 2013). It is also a matrix of bits, and GFNI multiplies every octet of a vector by one of 8×8
//! bits, whatever the field's polynomial. Over GF(2^16) there are four of those, one for each pair of an octet of the
//! source and one of the product. This module and its child are the only ones of the crate with `unsafe`.

use crate::gf256::mul;
use crate::gf65536::{WordOrder, times_alpha};
use crate::lagrange::FUSED;

#[cfg(target_arch = "x86_64")]
mod matrices;
#[cfg(target_arch = "x86_64")]
mod x86_64;

/// Products of one constant of GF(2^8).
struct Products {
    /// With 0..16.
    low: [u8; 16],
    /// With 0, 16, 32, .. 240.
    high: [u8; 16],
}

/// 8 KiB; a code uses the lines of its few coefficients.
static PRODUCTS: [Products; 256] = products();

/// Octets of the products of one constant of GF(2^16) by each of the four halves of octets of a word: first by the
/// half's place, from the word's first octet's low one; then by the octet of the product; then by the half itself.
type WideProducts = [[[u8; 16]; 2]; 4];

/// Those of the constants that have one half of an octet other than 0, for words of which the low octet is the first:
/// products are linear in the constant as well.
static WIDE_PRODUCTS: [[WideProducts; 16]; 4] = wide_products();

/// A symbol, and by what to multiply it over GF(2^8).
type Term<'a> = (&'a [u8], u8);

/// A way to add products over GF(2^8) to `dst`; all have one length. Returns false, having done nothing, if the
/// processor lacks the instructions.
type Kernel<const N: usize> = fn(dst: &mut [u8], terms: &[Term<'_>; N]) -> bool;

/// The same of one product over GF(2^16); both have the same even length.
type WideKernel = fn(dst: &mut [u8], src: &[u8], coefficient: u16, order: WordOrder) -> bool;

/// The kernels that add `N` products at once.
struct Kernels<const N: usize>;

impl<const N: usize> Kernels<N> {
    /// Best first; the last one always works.
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

/// Best first; the last one always works.
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

/// The tables of a constant: the sum of those of its halves of octets.
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
        // What is the first octet there is the second here, of the source and of the product.
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

/// The products of `constant`, which is below 16, moved up by `place` halves of octets, by the 16 bits of a word.
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
