//! The inner loop of every GF(2^8) code: `dst += coefficient * src`.
//!
//! A product by a constant is the exclusive or of two products, of the low and of the high half of a byte,
//! and each half has only 16 values: two look-ups in tables of 16 bytes, which the byte shuffle of SSSE3 and
//! AVX2 does for 16 or 32 bytes at once (J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming fast Galois
//! field arithmetic using Intel SIMD instructions", FAST 2013). This is the only module of the crate with
//! `unsafe`.

use crate::gf256::mul;

/// Products of one constant with 0..16 and with 0, 16, 32, .. 240.
struct Products {
    low: [u8; 16],
    high: [u8; 16],
}

/// 8 KiB; a code uses the lines of its few coefficients.
static PRODUCTS: [Products; 256] = products();

/// A way to add `constant * src` to `dst`, equal in length. Returns false, having done nothing, if the
/// processor lacks the instructions.
type Kernel = fn(dst: &mut [u8], src: &[u8], constant: &Products) -> bool;

/// Best first; the last one always works.
const KERNELS: &[Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86_64::avx2,
    #[cfg(target_arch = "x86_64")]
    x86_64::ssse3,
    scalar,
];

/// Adds `coefficient * src` to `dst`; both are equal in length.
pub(crate) fn mul_add(dst: &mut [u8], src: &[u8], coefficient: u8) {
    let constant = &PRODUCTS[usize::from(coefficient)];
    let done = KERNELS.iter().any(|kernel| kernel(dst, src, constant));
    debug_assert!(done, "the scalar kernel always works");
}

fn scalar(dst: &mut [u8], src: &[u8], constant: &Products) -> bool {
    for (d, s) in dst.iter_mut().zip(src) {
        *d ^= constant.low[usize::from(s & 15)] ^ constant.high[usize::from(s >> 4)];
    }
    true
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::arch::x86_64::{
        __m128i, __m256i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_shuffle_epi8, _mm_srli_epi64,
        _mm_storeu_si128, _mm_xor_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
        _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
    };

    use super::Products;

    cpufeatures::new!(has_avx2, "avx2");
    cpufeatures::new!(has_ssse3, "ssse3");

    pub(super) fn avx2(dst: &mut [u8], src: &[u8], constant: &Products) -> bool {
        let available = has_avx2::get();
        if available {
            // SAFETY: the processor has AVX2.
            unsafe { mul_add_avx2(dst, src, constant) }
        }
        available
    }

    pub(super) fn ssse3(dst: &mut [u8], src: &[u8], constant: &Products) -> bool {
        let available = has_ssse3::get();
        if available {
            // SAFETY: the processor has SSSE3.
            unsafe { mul_add_ssse3(dst, src, constant) }
        }
        available
    }

    /// 64 bytes a step: two independent chains keep both shuffle ports busy.
    #[target_feature(enable = "avx2")]
    fn mul_add_avx2(dst: &mut [u8], src: &[u8], constant: &Products) {
        let low = _mm256_broadcastsi128_si256(load_16(&constant.low));
        let high = _mm256_broadcastsi128_si256(load_16(&constant.high));
        let (dst, dst_tail) = dst.as_chunks_mut::<64>();
        let (src, src_tail) = src.as_chunks::<64>();
        for (d, s) in dst.iter_mut().zip(src) {
            step_avx2(d, s, low, high);
        }
        // A padded step is cheaper than up to 63 single bytes: symbols are often 1,400 bytes.
        if !dst_tail.is_empty() {
            let (mut d, s) = (padded::<64>(dst_tail), padded::<64>(src_tail));
            step_avx2(&mut d, &s, low, high);
            dst_tail.copy_from_slice(&d[..dst_tail.len()]);
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn step_avx2(dst: &mut [u8; 64], src: &[u8; 64], low: __m256i, high: __m256i) {
        let (dst, _) = dst.as_chunks_mut::<32>();
        let (src, _) = src.as_chunks::<32>();
        let mask = _mm256_set1_epi8(15);
        for (d, s) in dst.iter_mut().zip(src) {
            let s = load_32(s);
            let product = _mm256_xor_si256(
                _mm256_shuffle_epi8(low, _mm256_and_si256(s, mask)),
                _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(s), mask)),
            );
            store_32(d, _mm256_xor_si256(load_32(d), product));
        }
    }

    #[target_feature(enable = "ssse3")]
    fn mul_add_ssse3(dst: &mut [u8], src: &[u8], constant: &Products) {
        let (low, high) = (load_16(&constant.low), load_16(&constant.high));
        let (dst, dst_tail) = dst.as_chunks_mut::<16>();
        let (src, src_tail) = src.as_chunks::<16>();
        for (d, s) in dst.iter_mut().zip(src) {
            step_ssse3(d, s, low, high);
        }
        if !dst_tail.is_empty() {
            let (mut d, s) = (padded::<16>(dst_tail), padded::<16>(src_tail));
            step_ssse3(&mut d, &s, low, high);
            dst_tail.copy_from_slice(&d[..dst_tail.len()]);
        }
    }

    #[target_feature(enable = "ssse3")]
    #[inline]
    fn step_ssse3(dst: &mut [u8; 16], src: &[u8; 16], low: __m128i, high: __m128i) {
        let mask = _mm_set1_epi8(15);
        let s = load_16(src);
        let product = _mm_xor_si128(
            _mm_shuffle_epi8(low, _mm_and_si128(s, mask)),
            _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(s), mask)),
        );
        store_16(dst, _mm_xor_si128(load_16(dst), product));
    }

    /// The slice, no longer than `N`, followed by zeros.
    fn padded<const N: usize>(tail: &[u8]) -> [u8; N] {
        let mut bytes = [0; N];
        bytes[..tail.len()].copy_from_slice(tail);
        bytes
    }

    #[inline]
    fn load_16(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: the reference is valid for 16 bytes, the load needs no alignment, and SSE2 is part of
        // x86-64.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline]
    fn store_16(bytes: &mut [u8; 16], value: __m128i) {
        // SAFETY: the reference is valid for 16 bytes, the store needs no alignment, and SSE2 is part of
        // x86-64.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_32(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: the reference is valid for 32 bytes and the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn store_32(bytes: &mut [u8; 32], value: __m256i) {
        // SAFETY: the reference is valid for 32 bytes and the store needs no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
    }
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

#[cfg(test)]
mod tests;
