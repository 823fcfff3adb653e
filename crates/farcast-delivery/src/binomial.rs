//! Binomial distribution of losses, with the same results on every machine.

/// Returns the number of `receivers` that lack something of a block of `segments` behind which `parity` symbols were
/// sent, if each loses the fraction `part` of all, which is below 1.
pub fn lacking(receivers: f64, segments: u32, part: f64, parity: u32) -> f64 {
    receivers * (1.0 - at_most(segments + parity, part, parity))
}

/// Returns the least number of parity symbols behind a block of `segments` with which at most about `left` of
/// `receivers` lack something of it, if each loses the fraction `part` of all, which is below 1; at most `most`.
pub fn enough_symbols(receivers: f64, segments: u32, part: f64, left: f64, most: u32) -> u32 {
    let (mut fewest, mut enough) = (0, most);
    while fewest < enough {
        let middle = fewest + (enough - fewest) / 2;
        if lacking(receivers, segments, part, middle) <= left { enough = middle } else { fewest = middle + 1 }
    }
    enough
}

/// Returns the probability that at most `lost` of `symbols` are lost, each with probability `part`, which is below 1.
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
    fn tails_are_those_of_another_program() {
        // R 4.3: pbinom(5, 200, 0.01, lower.tail = FALSE), and likewise.
        for (part, sent, most, expected) in [
            (0.01, 200, 5, 0.016_014),
            (0.01, 210, 10, 1.0e-5),
            (0.05, 220, 20, 0.002_8),
            (0.5, 10, 9, 0.000_976_562_5),
        ] {
            let found = lacking(1.0, sent - most, part, most);
            assert!(found / expected < 1.5 && expected / found < 1.5, "{part} {sent} {most}: {found}");
        }
    }

    #[test]
    fn one_symbol_fewer_is_not_enough() {
        for (receivers, segments, part) in [(1e4, 170, 0.01), (1e6, 64, 0.05), (100.0, 200, 0.2)] {
            let enough = enough_symbols(receivers, segments, part, 1.0, 255);
            assert!(lacking(receivers, segments, part, enough) <= 1.0);
            assert!(lacking(receivers, segments, part, enough - 1) > 1.0, "{enough}");
        }
        assert_eq!(enough_symbols(1e4, 170, 0.01, 1.0, 3), 3);
        assert_eq!(enough_symbols(0.5, 170, 0.01, 1.0, 9), 0);
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
