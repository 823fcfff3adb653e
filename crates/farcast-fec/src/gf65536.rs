//! Arithmetic in GF(2^16), the field of RFC 5510 §8.1 for `m` = 16.
//!
//! Elements are 16-bit words; addition and subtraction are exclusive or; `α` is the element 2. Tables are built at
//! compile time.

/// The field polynomial `x^16 + x^12 + x^3 + x + 1` (RFC 5510 §8.1).
pub(crate) const POLYNOMIAL: u32 = 0x1_100B;

/// Elements other than 0; logarithms are modulo this.
pub(crate) const ORDER: i64 = 65_535;

static EXP: [u16; 65_535] = exponentials();

/// The entry of 0, which has no logarithm, is never read.
static LOG: [u16; 65_536] = logarithms();

/// In which order the two octets of a word stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOrder {
    /// The high one first: what RFC 5510 implies.
    BigEndian,
    /// The low one first: what NRL NORM sends from the machines that it mostly runs on.
    LittleEndian,
}

/// `α` to the power of `log`, which may be any number, negative too.
pub(crate) fn exp(log: i64) -> u16 {
    EXP[log.rem_euclid(ORDER) as usize]
}

/// The logarithm of an element other than 0, in 0..65,535.
pub(crate) fn log(x: u16) -> i64 {
    debug_assert!(x != 0, "0 has no logarithm");
    i64::from(LOG[usize::from(x)])
}

/// The product of two elements.
pub(crate) fn mul(a: u16, b: u16) -> u16 {
    if a == 0 || b == 0 { 0 } else { exp(log(a) + log(b)) }
}

/// Adds `coefficient * src` to `dst`, word by word; both have the same even length.
///
/// A product is the sum of those of the four halves of a word's octets, of which there are 16 each.
pub(crate) fn mul_add(dst: &mut [u8], src: &[u8], coefficient: u16, order: WordOrder) {
    let products: [[u16; 16]; 4] = core::array::from_fn(|place| {
        core::array::from_fn(|half| mul(coefficient, (half as u16) << (4 * place)))
    });
    let times = |x: u16| {
        let half = |place: usize| products[place][usize::from(x >> (4 * place) & 15)];
        half(0) ^ half(1) ^ half(2) ^ half(3)
    };
    let (dst, _) = dst.as_chunks_mut::<2>();
    let (src, _) = src.as_chunks::<2>();
    for (d, s) in dst.iter_mut().zip(src) {
        *d = match order {
            WordOrder::BigEndian => (u16::from_be_bytes(*d) ^ times(u16::from_be_bytes(*s))).to_be_bytes(),
            WordOrder::LittleEndian => (u16::from_le_bytes(*d) ^ times(u16::from_le_bytes(*s))).to_le_bytes(),
        };
    }
}

#[expect(clippy::large_stack_arrays, reason = "the compiler runs it")]
const fn exponentials() -> [u16; 65_535] {
    let mut table = [0; 65_535];
    let mut x: u32 = 1;
    let mut i = 0;
    while i < table.len() {
        table[i] = x as u16;
        x <<= 1;
        if x > 0xFFFF {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
}

#[expect(clippy::large_stack_arrays, reason = "the compiler runs it")]
const fn logarithms() -> [u16; 65_536] {
    let mut table = [0; 65_536];
    let mut x: u32 = 1;
    let mut i = 0;
    while i < 65_535 {
        table[x as usize] = i as u16;
        x <<= 1;
        if x > 0xFFFF {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product by its definition: shift, add, reduce.
    fn slow(a: u16, b: u16) -> u16 {
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
    fn products_are_those_of_the_definition() {
        let mut x: u32 = 1;
        for _ in 0..50_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (a, b) = ((x >> 16) as u16, (x & 0xFFFF) as u16);
            assert_eq!(mul(a, b), slow(a, b), "{a} * {b}");
        }
        assert_eq!((mul(0, 7), mul(7, 0), mul(1, 0xFFFF)), (0, 0, 0xFFFF));
    }

    #[test]
    fn alpha_generates_every_element() {
        for x in 1..=u16::MAX {
            assert_eq!(exp(log(x)), x);
        }
        assert_eq!((exp(-1), mul(exp(-1), 2)), (exp(ORDER - 1), 1));
    }

    #[test]
    fn words_are_read_in_either_order() {
        for order in [WordOrder::BigEndian, WordOrder::LittleEndian] {
            let mut dst = [1, 2, 3, 4];
            mul_add(&mut dst, &[0x12, 0x34, 0xAB, 0xCD], 0x5678, order);
            let read = |octets: [u8; 2]| match order {
                WordOrder::BigEndian => u16::from_be_bytes(octets),
                WordOrder::LittleEndian => u16::from_le_bytes(octets),
            };
            assert_eq!(read([dst[0], dst[1]]), read([1, 2]) ^ slow(read([0x12, 0x34]), 0x5678));
            assert_eq!(read([dst[2], dst[3]]), read([3, 4]) ^ slow(read([0xAB, 0xCD]), 0x5678));
        }
    }
}
