//! Distribution of delays, in memory that does not grow with their number.

use std::collections::BTreeMap;

use farcast_core::Span;

/// Delays by class; each class is less than a thousandth of its lower end wide.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    /// Number of delays in each class, and their sum in nanoseconds.
    classes: BTreeMap<u32, (u64, u128)>,
    count: u64,
    sum: u128,
}

/// Number of bits behind the highest bit that distinguish classes.
const BITS: u32 = 10;

impl Delays {
    pub(super) fn add(&mut self, delay: Span) {
        let nanoseconds = u128::from(delay.as_nanos());
        let class = self.classes.entry(class(delay.as_nanos())).or_default();
        (class.0, class.1) = (class.0 + 1, class.1 + nanoseconds);
        (self.count, self.sum) = (self.count + 1, self.sum + nanoseconds);
    }

    /// Returns the mean in seconds.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e9)
    }

    /// Returns the `p` quantile in seconds: the smallest delay that at least the share `p` of all delays does not
    /// exceed. The value is the mean of its class, so it is less than a thousandth off, and exact where the class holds
    /// one value.
    pub(super) fn quantile(&self, p: f64) -> Option<f64> {
        let rank = (p * self.count as f64).ceil() as u64;
        let mut below = 0;
        let class = self.classes.values().find(|(count, _)| {
            below += count;
            below >= rank
        });
        class.map(|&(count, sum)| sum as f64 / count as f64 / 1e9)
    }
}

/// Returns the class of a number: its highest bits, and the number of bits that follow them.
const fn class(nanoseconds: u64) -> u32 {
    let behind = (u64::BITS - nanoseconds.leading_zeros()).saturating_sub(BITS + 1);
    (behind << (BITS + 1)) + (nanoseconds >> behind) as u32
}

#[cfg(test)]
mod tests {
    use farcast_core::random::RandomStream;

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut random = RandomStream::derive(3, &[]);
        for most in [1u64, 5, 5000, 1 << 33, u64::MAX] {
            let mut delays = Delays::default();
            let mut values: Vec<u64> = (0..1001).map(|_| random.below(most)).collect();
            for &value in &values {
                delays.add(Span::from_nanos(value));
            }
            values.sort_unstable();
            let mean = values.iter().map(|&value| value as f64).sum::<f64>() / 1001.0 / 1e9;
            assert!((delays.mean().unwrap() - mean).abs() <= 1e-12 * mean);
            for (p, rank) in [(0.0, 0), (0.5, 500), (0.95, 950), (1.0, 1000)] {
                let exact = values[rank] as f64 / 1e9;
                let told = delays.quantile(p).unwrap();
                assert!(
                    (told - exact).abs() <= 1e-3 * exact,
                    "{p} of values below {most}: {told} for {exact}"
                );
            }
        }
    }

    #[test]
    fn what_is_always_the_same_is_told_exactly() {
        let mut delays = Delays::default();
        assert_eq!((delays.mean(), delays.quantile(0.95)), (None, None));
        for _ in 0..7 {
            delays.add(Span::from_nanos(280_123_457));
        }
        assert_eq!((delays.mean(), delays.quantile(0.95)), (Some(0.280_123_457), Some(0.280_123_457)));
    }

    #[test]
    fn classes_ascend_and_are_narrow() {
        let mut last = (0, 0);
        for shift in 0..64 {
            for mantissa in 0..2048u64 {
                let value = (1 << shift) + (mantissa << shift) / 2048;
                let (value, class) = (value, class(value));
                assert!(value < last.0 || class >= last.1, "{value}");
                // All values of a class share their highest bits.
                last = (value, class);
            }
        }
        assert!(class(u64::MAX) > class(u64::MAX / 2));
    }
}
