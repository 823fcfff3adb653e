//! The kernels of x86-64, each for processors that have its instructions.

use super::matrices::{MATRICES, matrices_of};
use super::{PRODUCTS, Term, WordOrder, products_of};

cpufeatures::new!(has_gfni, "avx2", "gfni");
cpufeatures::new!(has_avx2, "avx2");
cpufeatures::new!(has_ssse3, "ssse3");

/// Defines the two kernels of a set of instructions, in the form that `super` needs.
macro_rules! detected {
    ($has:ident, $with:literal, $narrow:ident, $wide:ident, $module:ident) => {
        #[doc = concat!("With ", $with, ".")]
        pub(super) fn $narrow<const N: usize>(dst: &mut [u8], terms: &[Term<'_>; N]) -> bool {
            let available = $has::get();
            if available {
                // SAFETY: the processor has these instructions.
                unsafe { $module::add_products(dst, terms) }
            }
            available
        }

        #[doc = concat!("With ", $with, ".")]
        pub(super) fn $wide(dst: &mut [u8], src: &[u8], coefficient: u16, order: WordOrder) -> bool {
            let available = $has::get();
            if available {
                // SAFETY: the processor has these instructions.
                unsafe { $module::add_wide_product(dst, src, coefficient, order) }
            }
            available
        }
    };
}

detected!(has_gfni, "AVX2 and GFNI", gfni, gfni_wide, affine);
detected!(has_avx2, "AVX2", avx2, avx2_wide, shuffle_32);
detected!(has_ssse3, "SSSE3", ssse3, ssse3_wide, shuffle_16);

/// Defines loads and stores of vectors of [`WIDTH`] octets, and the kernels' loops over symbols. The module around it
/// provides `Vector`, `WIDTH`, `load_unaligned` and `store_unaligned`, and the steps.
macro_rules! walks {
    ($features:literal) => {
        #[target_feature(enable = $features)]
        #[inline]
        fn load(octets: &[u8; WIDTH]) -> Vector {
            // SAFETY: the reference is valid for as many octets as are read, and the load needs no alignment.
            unsafe { load_unaligned(octets.as_ptr().cast()) }
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn store(octets: &mut [u8; WIDTH], value: Vector) {
            // SAFETY: the reference is valid for as many octets as are written, and the store needs no alignment.
            unsafe { store_unaligned(octets.as_mut_ptr().cast(), value) }
        }

        #[target_feature(enable = $features)]
        pub(super) fn add_products<const N: usize>(dst: &mut [u8], terms: &[Term<'_>; N]) {
            let constants: [Constant; N] = core::array::from_fn(|n| constant(terms[n].1));
            let sources: [&[u8]; N] = core::array::from_fn(|n| &terms[n].0[..dst.len()]);
            let (whole, tail) = dst.as_chunks_mut::<WIDTH>();
            let tail = tail.len();
            let chunks: [&[[u8; WIDTH]]; N] =
                core::array::from_fn(|n| &sources[n].as_chunks().0[..whole.len()]);
            for (at, octets) in whole.iter_mut().enumerate() {
                let mut sum = load(octets);
                for (chunks, constant) in chunks.iter().zip(&constants) {
                    sum = xor(sum, product(load(&chunks[at]), constant));
                }
                store(octets, sum);
            }
            if tail > 0 {
                let mut sum = set1(0);
                for (source, constant) in sources.iter().zip(&constants) {
                    sum = xor(sum, product(load(&last_octets(source, tail)), constant));
                }
                add_last(dst, tail, sum);
            }
        }

        #[target_feature(enable = $features)]
        fn add_last(dst: &mut [u8], tail: usize, sum: Vector) {
            if let Some(octets) = dst.last_chunk_mut::<WIDTH>() {
                let sum = xor(load(octets), sum);
                store(octets, sum);
            } else {
                let mut sums = [0; WIDTH];
                store(&mut sums, sum);
                dst.iter_mut().zip(&sums[WIDTH - tail..]).for_each(|(d, sum)| *d ^= sum);
            }
        }

        #[target_feature(enable = $features)]
        pub(super) fn add_wide_product(dst: &mut [u8], src: &[u8], coefficient: u16, order: WordOrder) {
            let constant = wide_constant(coefficient, order);
            let (whole, tail) = dst.as_chunks_mut::<WIDE_STEP>();
            let tail = tail.len();
            let (source, _) = src.as_chunks::<WIDE_STEP>();
            for (octets, source) in whole.iter_mut().zip(source) {
                wide_step(octets, source, &constant);
            }
            if tail == 0 {
                return;
            }
            let source = last_octets(src, tail);
            if let Some(octets) = dst.last_chunk_mut::<WIDE_STEP>() {
                wide_step(octets, &source, &constant);
            } else {
                let mut sums = [0; WIDE_STEP];
                wide_step(&mut sums, &source, &constant);
                dst.iter_mut().zip(&sums[WIDE_STEP - tail..]).for_each(|(d, sum)| *d ^= sum);
            }
        }
    };
}

/// Defines the steps by tables of 16 octets. The module around it provides the intrinsics by their short names.
macro_rules! shuffles {
    ($features:literal) => {
        /// Octets of two vectors: the first octets of their words fill one vector, and the second octets another.
        const WIDE_STEP: usize = 2 * WIDTH;

        /// Tables of products with the low and with the high halves of octets.
        type Constant = [Vector; 2];

        /// Tables of products, by the half's place in a word, and by the octet of the product.
        type WideConstant = [[Vector; 2]; 4];

        #[target_feature(enable = $features)]
        fn constant(coefficient: u8) -> Constant {
            let products = &PRODUCTS[usize::from(coefficient)];
            [table(&products.low), table(&products.high)]
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn product(octets: Vector, [low, high]: &Constant) -> Vector {
            let mask = set1(15);
            xor(shuffle(*low, and(octets, mask)), shuffle(*high, and(shift::<4>(octets), mask)))
        }

        #[target_feature(enable = $features)]
        fn wide_constant(coefficient: u16, order: WordOrder) -> WideConstant {
            let octets = products_of(coefficient, order);
            let mut constant = [[set1(0); 2]; 4];
            for (tables, octets) in constant.as_flattened_mut().iter_mut().zip(octets.as_flattened()) {
                *tables = table(octets);
            }
            constant
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn wide_step(dst: &mut [u8; WIDE_STEP], src: &[u8; WIDE_STEP], constant: &WideConstant) {
            let (src, _) = src.as_chunks::<WIDTH>();
            let (a, b) = (load(&src[0]), load(&src[1]));
            let (mask, octet) = (set1(15), set1_16(0xFF));
            // Packing and unpacking undo each other, half by half of a vector.
            let first = pack(and(a, octet), and(b, octet));
            let second = pack(shift_16::<8>(a), shift_16::<8>(b));
            let halves = [
                and(first, mask),
                and(shift::<4>(first), mask),
                and(second, mask),
                and(shift::<4>(second), mask),
            ];
            let mut products = [set1(0); 2];
            for (half, tables) in halves.into_iter().zip(constant) {
                products[0] = xor(products[0], shuffle(tables[0], half));
                products[1] = xor(products[1], shuffle(tables[1], half));
            }
            let (dst, _) = dst.as_chunks_mut::<WIDTH>();
            let low = unpack_low(products[0], products[1]);
            let high = unpack_high(products[0], products[1]);
            let (a, b) = (load(&dst[0]), load(&dst[1]));
            store(&mut dst[0], xor(a, low));
            store(&mut dst[1], xor(b, high));
        }
    };
}

/// Table look-ups for 32 octets at once.
mod shuffle_32 {
    use core::arch::x86_64::{
        __m256i as Vector, _mm_loadu_si128, _mm256_and_si256 as and, _mm256_broadcastsi128_si256,
        _mm256_loadu_si256 as load_unaligned, _mm256_packus_epi16 as pack, _mm256_set1_epi8 as set1,
        _mm256_set1_epi16 as set1_16, _mm256_shuffle_epi8 as shuffle, _mm256_srli_epi16 as shift_16,
        _mm256_srli_epi64 as shift, _mm256_storeu_si256 as store_unaligned,
        _mm256_unpackhi_epi8 as unpack_high, _mm256_unpacklo_epi8 as unpack_low, _mm256_xor_si256 as xor,
    };

    use super::{PRODUCTS, Term, WordOrder, last_octets, products_of};

    const WIDTH: usize = 32;

    #[target_feature(enable = "avx2")]
    #[inline]
    fn table(octets: &[u8; 16]) -> Vector {
        // SAFETY: the reference is valid for 16 octets and the load needs no alignment.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(octets.as_ptr().cast()) })
    }

    walks!("avx2");
    shuffles!("avx2");
}

/// Table look-ups for 16 octets at once.
mod shuffle_16 {
    use core::arch::x86_64::{
        __m128i as Vector, _mm_and_si128 as and, _mm_loadu_si128 as load_unaligned, _mm_packus_epi16 as pack,
        _mm_set1_epi8 as set1, _mm_set1_epi16 as set1_16, _mm_shuffle_epi8 as shuffle,
        _mm_srli_epi16 as shift_16, _mm_srli_epi64 as shift, _mm_storeu_si128 as store_unaligned,
        _mm_unpackhi_epi8 as unpack_high, _mm_unpacklo_epi8 as unpack_low, _mm_xor_si128 as xor,
    };

    use super::{PRODUCTS, Term, WordOrder, last_octets, products_of};

    const WIDTH: usize = 16;

    #[target_feature(enable = "ssse3")]
    #[inline]
    fn table(octets: &[u8; 16]) -> Vector {
        load(octets)
    }

    walks!("ssse3");
    shuffles!("ssse3");
}

/// Products with matrices of bits, for 32 octets at once.
mod affine {
    use core::arch::x86_64::{
        __m256i as Vector, _mm256_gf2p8affine_epi64_epi8 as affine, _mm256_loadu_si256 as load_unaligned,
        _mm256_set_epi64x, _mm256_set1_epi8 as set1, _mm256_set1_epi64x, _mm256_shuffle_epi8 as shuffle,
        _mm256_storeu_si256 as store_unaligned, _mm256_xor_si256 as xor,
    };

    use super::{MATRICES, Term, WordOrder, last_octets, matrices_of};

    const WIDTH: usize = 32;
    const WIDE_STEP: usize = WIDTH;

    type Constant = Vector;

    #[target_feature(enable = "avx2,gfni")]
    fn constant(coefficient: u8) -> Constant {
        _mm256_set1_epi64x(MATRICES[usize::from(coefficient)].cast_signed())
    }

    #[target_feature(enable = "avx2,gfni")]
    #[inline]
    fn product(octets: Vector, matrix: &Constant) -> Vector {
        affine::<0>(octets, *matrix)
    }

    /// Matrices for the first and the second octets of eight words: to the same octet of the product, and to the other.
    struct WideConstant {
        straight: Vector,
        crossed: Vector,
    }

    #[target_feature(enable = "avx2,gfni")]
    fn wide_constant(coefficient: u16, order: WordOrder) -> WideConstant {
        let [first, second, to_first, to_second] = matrices_of(coefficient, order).map(u64::cast_signed);
        WideConstant {
            straight: _mm256_set_epi64x(second, first, second, first),
            crossed: _mm256_set_epi64x(to_second, to_first, to_second, to_first),
        }
    }

    #[target_feature(enable = "avx2,gfni")]
    #[inline]
    fn wide_step(dst: &mut [u8; WIDTH], src: &[u8; WIDTH], constant: &WideConstant) {
        // Shuffles: eight first octets and then eight second ones; the other way round; and back.
        let apart = _mm256_set_epi64x(SECOND, FIRST, SECOND, FIRST);
        let swapped = _mm256_set_epi64x(FIRST, SECOND, FIRST, SECOND);
        let together = _mm256_set_epi64x(UPPER, LOWER, UPPER, LOWER);
        let src = load(src);
        let straight = affine::<0>(shuffle(src, apart), constant.straight);
        let crossed = affine::<0>(shuffle(src, swapped), constant.crossed);
        let sum = xor(load(dst), shuffle(xor(straight, crossed), together));
        store(dst, sum);
    }

    /// Positions of the first, and the second, octets of eight words.
    const FIRST: i64 = i64::from_le_bytes([0, 2, 4, 6, 8, 10, 12, 14]);
    const SECOND: i64 = i64::from_le_bytes([1, 3, 5, 7, 9, 11, 13, 15]);
    /// Positions of the octets of words 0 to 3, and 4 to 7, after that shuffle.
    const LOWER: i64 = i64::from_le_bytes([0, 8, 1, 9, 2, 10, 3, 11]);
    const UPPER: i64 = i64::from_le_bytes([4, 12, 5, 13, 6, 14, 7, 15]);

    walks!("avx2,gfni");
}

/// Masks: zeros, followed by as many octets with all bits set.
static MASK: [[u8; LONGEST_STEP]; 2] = [[0; LONGEST_STEP], [0xFF; LONGEST_STEP]];

/// Most octets that a step takes.
const LONGEST_STEP: usize = 64;

/// Returns the last `tail` octets of a source, fewer than `N`, as the last ones of a step. The others are 0, which adds
/// nothing to the results of whole steps. This is much cheaper than single octets: symbols are often 1,400 octets.
#[inline]
fn last_octets<const N: usize>(source: &[u8], tail: usize) -> [u8; N] {
    let Some(last) = source.last_chunk::<N>() else {
        let mut last = [0; N];
        last[N - tail..].copy_from_slice(source);
        return last;
    };
    let mask = &MASK.as_flattened()[LONGEST_STEP - N + tail..][..N];
    core::array::from_fn(|at| last[at] & mask[at])
}
