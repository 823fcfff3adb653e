//! Tukey's honestly significant difference.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

use crate::error::StatsError;

/// What means of samples must differ by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TukeyHsd {
    /// The mean square within the samples, which all have one variance by assumption.
    pub mean_square: f64,
    /// The quantile of the studentised range.
    pub q: f64,
    /// Means that differ by more are significantly different.
    pub difference: f64,
}

/// The honestly significant difference of `samples`, of which there are 2 or more of one size, 2 at least, at `level`,
/// as 0.95: `q sqrt(MSe / n)`.
///
/// # Errors
/// There are too few samples or values; samples of different sizes; a level that is none.
pub fn tukey_hsd(samples: &[&[f64]], level: f64) -> Result<TukeyHsd, StatsError> {
    let n = samples.first().map_or(0, |sample| sample.len());
    for (given, needed) in [(samples.len(), 2), (n, 2)] {
        if given < needed {
            return Err(StatsError::TooFew { given: given as u64, needed: needed as u64 });
        }
    }
    if let Some(other) = samples.iter().find(|sample| sample.len() != n) {
        return Err(StatsError::Categories { counts: other.len(), probabilities: n });
    }
    if let Some(&value) = samples.iter().copied().flatten().find(|value| !value.is_finite()) {
        return Err(StatsError::Value { value });
    }
    let freedom = (samples.len() * (n - 1)) as u64;
    let squares = |sample: &&[f64]| {
        let mean = sample.iter().sum::<f64>() / n as f64;
        sample.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
    };
    let mean_square = samples.iter().map(squares).sum::<f64>() / freedom as f64;
    let q = studentized_range_quantile(level, samples.len() as u64, freedom)?;
    Ok(TukeyHsd { mean_square, q, difference: q * (mean_square / n as f64).sqrt() })
}

/// The quantile of the studentised range of `groups` means, 2 or more, with `freedom` degrees of freedom, 2 or more:
/// below it the range lies with the probability `level`. To about six digits.
///
/// # Errors
/// There are too few groups or degrees of freedom; a level that is none.
pub fn studentized_range_quantile(level: f64, groups: u64, freedom: u64) -> Result<f64, StatsError> {
    if !(level > 0.0 && level < 1.0) {
        return Err(StatsError::Level { value: level });
    }
    for given in [groups, freedom] {
        if given < 2 {
            return Err(StatsError::TooFew { given, needed: 2 });
        }
    }
    let Ok(normal) = Normal::new(0.0, 1.0) else { return Err(StatsError::Deviation { value: 1.0 }) };
    let (mut low, mut high) = (0.0, 1.0);
    while below(high, groups, freedom, &normal) < level && high < MOST {
        (low, high) = (high, high * 2.0);
    }
    while high - low > 1e-8 * high {
        let middle = f64::midpoint(low, high);
        if below(middle, groups, freedom, &normal) < level { low = middle } else { high = middle }
    }
    Ok(f64::midpoint(low, high))
}

/// No quantile is looked for beyond this.
const MOST: f64 = 1e6;

/// The probability that the studentised range is below `q`: over the standard deviation `s` of a sample in units of the
/// true one, which has a chi distribution, the probability that the range of normal values is below `q s`.
fn below(q: f64, groups: u64, freedom: u64, normal: &Normal) -> f64 {
    let nu = freedom as f64;
    // ln of 2 (nu / 2)^(nu / 2) / Gamma(nu / 2).
    let factor = 2f64.ln() + nu / 2.0 * (nu / 2.0).ln() - ln_gamma(nu / 2.0);
    let density = |s: f64| {
        if s <= 0.0 { 0.0 } else { (factor + (nu - 1.0) * s.ln() - nu * s * s / 2.0).exp() }
    };
    // Ten standard deviations of s, which has about 1 / sqrt(2 nu), on either side of 1.
    let wide = 10.0 / (2.0 * nu).sqrt();
    integral((1.0 - wide).max(0.0), 1.0 + wide, |s| density(s) * range_below(q * s, groups, normal))
}

/// The probability that `groups` standard normal values lie within `width`: the least of them is one of them.
fn range_below(width: f64, groups: u64, normal: &Normal) -> f64 {
    let power = (groups - 1).min(i32::MAX as u64) as i32;
    let density = |z: f64| (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let inside = |z: f64| (normal.cdf(z + width) - normal.cdf(z)).powi(power);
    groups as f64 * integral(-8.0, 8.0, |z| density(z) * inside(z))
}

/// By Simpson's rule.
fn integral(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 160;
    let step = (to - from) / f64::from(STEPS);
    let weight = |n: u32| match n {
        0 | STEPS => 1.0,
        n if n % 2 == 1 => 4.0,
        _ => 2.0,
    };
    (0..=STEPS).map(|n| weight(n) * of(from + f64::from(n) * step)).sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::t_quantile;

    #[test]
    fn quantiles_are_those_of_published_tables() {
        // Tables of the studentised range (E. S. Pearson and H. O. Hartley, Biometrika Tables for Statisticians):
        // level, groups, degrees of freedom.
        let table = [
            (0.95, 2, 10, 3.151),
            (0.95, 3, 10, 3.877),
            (0.95, 4, 10, 4.327),
            (0.95, 3, 20, 3.578),
            (0.95, 5, 20, 4.232),
            (0.95, 2, 30, 2.888),
            (0.95, 10, 30, 4.824),
            (0.95, 3, 60, 3.399),
            (0.95, 4, 120, 3.685),
            (0.99, 3, 10, 5.270),
            (0.99, 4, 20, 5.018),
            (0.99, 2, 30, 3.889),
        ];
        for (level, groups, freedom, q) in table {
            let ours = studentized_range_quantile(level, groups, freedom).expect("valid");
            assert!((ours - q).abs() < 0.0011, "{level} {groups} {freedom}: {ours} and {q}");
        }
    }

    #[test]
    fn of_two_means_it_is_students() {
        for freedom in [2, 3, 5, 15, 30, 200] {
            let q = studentized_range_quantile(0.95, 2, freedom).expect("valid");
            let t = t_quantile(freedom) * 2f64.sqrt();
            assert!((q / t - 1.0).abs() < 2e-5, "{freedom}: {q} and {t}");
        }
    }

    #[test]
    fn a_worked_example() {
        // Sums of squares 2, 2 and 8 with 6 degrees of freedom: a mean square of 2.
        let hsd = tukey_hsd(&[&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], &[2.0, 4.0, 6.0]], 0.95).expect("valid");
        assert!((hsd.mean_square - 2.0).abs() < 1e-12);
        assert!((hsd.difference - hsd.q * (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((hsd.q - 4.339).abs() < 0.001, "{}", hsd.q);
    }

    #[test]
    fn what_has_no_answer_is_refused() {
        assert!(tukey_hsd(&[&[1.0, 2.0]], 0.95).is_err());
        assert!(tukey_hsd(&[&[1.0], &[2.0]], 0.95).is_err());
        assert!(tukey_hsd(&[&[1.0, 2.0], &[1.0, 2.0, 3.0]], 0.95).is_err());
        assert!(tukey_hsd(&[&[1.0, f64::NAN], &[1.0, 2.0]], 0.95).is_err());
        for level in [0.0, 1.0, f64::NAN] {
            assert!(studentized_range_quantile(level, 2, 10).is_err());
        }
        assert!(studentized_range_quantile(0.95, 1, 10).is_err());
        assert!(studentized_range_quantile(0.95, 2, 1).is_err());
    }
}
