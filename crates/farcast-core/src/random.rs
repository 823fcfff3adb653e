//! Random streams: reproducible, independent by purpose, the same on every platform.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers derived from a seed and a path of labels.
///
/// Every draw in farcast comes from a stream that is named by (seed, replication, entity, purpose): adding a
/// receiver or a log changes no other draw. The generator is xoshiro256++; its state is the path hashed with
/// the finaliser of `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014), so streams whose paths differ in one bit are
/// unrelated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// Derives the stream at `path` below `seed`. The order of the labels matters.
    pub fn derive(seed: u64, path: &[u64]) -> Self {
        let state = path.iter().fold(mix(seed), |state, &label| mix(state ^ mix(label)));
        Self(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// Draws 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a uniform number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws a uniform integer in `0..bound`, without bias (Lemire, ACM TOMACS 2019). Zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        let threshold = bound.wrapping_neg() % bound.max(1);
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Draws an event of probability `p`. Returns `true` if it happens; with 0 never, with 1 always.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Draws the number of trials of probability `p` that fail before the first success: geometric, from 0.
    ///
    /// Saturates at `u64::MAX`, which is also the answer for `p` = 0. The logarithm is libm's: the same digits
    /// on every platform.
    pub fn failures_before_success(&mut self, p: f64) -> u64 {
        if p >= 1.0 {
            return 0;
        }
        // 1 - unit() lies in (0, 1], so its logarithm is finite; a cast from infinity saturates.
        (libm::log(1.0 - self.unit()) / libm::log1p(-p)) as u64
    }
}

fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_splitmix64() {
        // The first outputs of SplitMix64 seeded with 1234567, from its published reference values.
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
        assert_eq!(mix(1_234_567u64.wrapping_add(0x9E37_79B9_7F4A_7C15)), 3_203_168_211_198_807_973);
    }

    #[test]
    fn streams_depend_on_every_label() {
        let mut a = RandomStream::derive(1, &[0, 7]);
        let mut b = RandomStream::derive(1, &[7, 0]);
        assert_ne!(a.bits(), b.bits());
        assert_eq!(RandomStream::derive(1, &[0, 7]), RandomStream::derive(1, &[0, 7]));
    }

    #[test]
    fn geometric_has_its_mean_and_its_edges() {
        let mut stream = RandomStream::derive(3, &[]);
        let n = 100_000;
        let mean = (0..n).map(|_| stream.failures_before_success(0.02) as f64).sum::<f64>() / f64::from(n);
        // Mean (1-p)/p = 49; standard deviation of the mean is 49.5/sqrt(n) = 0.157.
        assert!((mean - 49.0).abs() < 0.7, "mean {mean}");
        assert_eq!(stream.failures_before_success(0.0), u64::MAX);
        assert_eq!(stream.failures_before_success(1.0), 0);
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut stream = RandomStream::derive(4, &[]);
        let mut seen = [0u32; 6];
        for _ in 0..6000 {
            seen[stream.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert_eq!(stream.below(0), 0);
    }
}
