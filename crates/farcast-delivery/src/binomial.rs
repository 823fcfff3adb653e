//! Binomial distribution of losses, with the same results on every machine.

/// Returns the probability that at most `lost` of `symbols` are lost, each with probability `part`.
pub fn at_most(symbols: u32, part: f64, lost: u32) -> f64 {
    let (mut probability, odds) = (power(1.0 - part, symbols), part / (1.0 - part));
    if probability < f64::MIN_POSITIVE && part < 1.0 {
        return at_most_of_many(symbols, part, lost.min(symbols));
    }
    let mut sum = probability;
    for n in 0..lost.min(symbols) {
        probability *= odds * f64::from(symbols - n) / f64::from(n + 1);
        sum += probability;
    }
    sum.min(1.0)
}

/// Returns the same probability where the probability of no loss is too small for a number. It sums from the likeliest
/// of these losses down.
fn at_most_of_many(symbols: u32, part: f64, lost: u32) -> f64 {
    let mode = (f64::from(symbols + 1) * part) as u32;
    let factorial = |n: u32| libm::lgamma(f64::from(n) + 1.0);
    let likely = |n: u32| {
        let ways = factorial(symbols) - factorial(n) - factorial(symbols - n);
        libm::exp(ways + f64::from(n) * libm::log(part) + f64::from(symbols - n) * libm::log1p(-part))
    };
    let odds = part / (1.0 - part);
    let from = lost.min(mode);
    let (mut sum, mut term) = (0.0, likely(from));
    for n in (0..=from).rev() {
        sum += term;
        term *= f64::from(n) / (f64::from(symbols - n + 1) * odds);
    }
    term = likely(from);
    for n in from..lost {
        term *= odds * f64::from(symbols - n) / f64::from(n + 1);
        sum += term;
    }
    sum.min(1.0)
}

/// Returns `base` to the power of `exponent`, with the same result on every machine.
pub fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, base);
    for bit in 0..u32::BITS - exponent.leading_zeros() {
        if exponent >> bit & 1 == 1 {
            result *= square;
        }
        square *= square;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums the binomial distribution from its definition, with exact coefficients.
    fn reference(symbols: u32, part: f64, lost: u32) -> f64 {
        let choose = |n: u32, k: u32| (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product::<f64>();
        let term = |k: u32| {
            choose(symbols, k) * part.powi(k.cast_signed()) * (1.0 - part).powi((symbols - k).cast_signed())
        };
        (0..=lost).map(term).sum()
    }

    #[test]
    fn what_is_lost_of_a_block_is_binomial() {
        for (symbols, part, lost) in [(10, 0.1, 2), (64, 0.05, 3), (255, 0.2, 60), (255, 0.3, 0)] {
            let (ours, theirs) = (at_most(symbols, part, lost), reference(symbols, part, lost));
            assert!((ours - theirs).abs() < 1e-12, "{symbols} {part} {lost}: {ours} {theirs}");
        }
        assert!((power(0.9, 13) - 0.9_f64.powi(13)).abs() < 1e-15);
        assert!((power(0.5, 0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn of_long_blocks_it_is_so_too() {
        for (symbols, part, lost) in [(255, 0.2, 60), (255, 0.05, 3), (900, 0.2, 180), (900, 0.3, 300)] {
            let (ours, other) = (at_most_of_many(symbols, part, lost), at_most(symbols, part, lost));
            assert!((ours - other).abs() < 1e-9, "{symbols} {part} {lost}: {ours} {other}");
        }
        // These numbers are far beyond a product's range; with so many symbols the mean is the median.
        let half = at_most(60_000, 0.2, 12_000);
        assert!((half - 0.5).abs() < 0.01 && at_most(60_000, 0.2, 12_500) > 0.999_99, "{half}");
    }
}
