//! The studentised range: the range of several means, in units of a standard deviation that is estimated.

use core::f64::consts::{FRAC_1_SQRT_2, LN_2, TAU};

use statrs::function::gamma::ln_gamma;

use crate::StatsError;
use crate::special::{STIRLING_FROM, normal_above, stirling_rest};

/// The probability that the studentised range of `groups` means, 2 or more, with `freedom` degrees of freedom, 2 or more,
/// exceeds `q`, 0 or more. Relative error below 1e-9 up to 1e12 degrees of freedom, also far out in the tail.
///
/// # Errors
/// There are too few groups or degrees of freedom; a `q` that is negative or no number.
pub fn studentized_range_survival(q: f64, groups: u64, freedom: u64) -> Result<f64, StatsError> {
    let range = StudentizedRange::new(groups, freedom)?;
    if q >= 0.0 { Ok(range.survival(q)) } else { Err(StatsError::Range { value: q }) }
}

/// The quantile of the studentised range of `groups` means, 2 or more, with `freedom` degrees of freedom, 2 or more:
/// below it the range lies with the probability `level`. Relative error below 1e-9 for levels up to 0.9999.
///
/// # Errors
/// There are too few groups or degrees of freedom; a level that is none.
pub fn studentized_range_quantile(level: f64, groups: u64, freedom: u64) -> Result<f64, StatsError> {
    if !(level > 0.0 && level < 1.0) {
        return Err(StatsError::Level { value: level });
    }
    Ok(StudentizedRange::new(groups, freedom)?.quantile(level))
}

/// The distribution for one number of means and of degrees of freedom.
///
/// Both integrals are taken by the trapezoidal rule over the whole line, which for such smooth functions is as exact as
/// a double with steps of a fraction of their width (Trefethen and Weideman, SIAM Review 56, 2014).
pub(crate) struct StudentizedRange {
    groups: f64,
    freedom: f64,
    /// Where the least of the means may lie, ascending.
    least: Vec<Node>,
}

/// A place for the least of normal values.
struct Node {
    z: f64,
    /// The probability that a value lies above.
    above: f64,
    /// The probability that the least value lies here.
    weight: f64,
}

/// Of normal values, ranges beyond this are as good as impossible: less than the least double.
const WIDEST: f64 = 55.0;
/// What lies farther from the middle adds less than a double's last digit.
const FAR: f64 = 8.5;
/// No quantile is looked for beyond this.
const MOST: f64 = 1e6;

impl StudentizedRange {
    pub(crate) fn new(groups: u64, freedom: u64) -> Result<Self, StatsError> {
        for given in [groups, freedom] {
            if given < 2 {
                return Err(StatsError::TooFew { given, needed: 2 });
            }
        }
        let groups = groups as f64;
        // The least of very many values lies farther out, and more narrowly.
        let spread = (2.0 * groups.ln()).sqrt();
        let step = f64::min(0.125, 0.3 / spread);
        let steps = |z: f64| (z / step).ceil() as i32;
        let node = |n: i32| {
            let z = f64::from(n) * step;
            let above = normal_above(z);
            let density = (-z * z / 2.0).exp() / TAU.sqrt();
            Node { z, above, weight: step * groups * density * above.powf(groups - 1.0) }
        };
        let least = (steps(-WIDEST / 2.0 - FAR - spread)..=steps(FAR)).map(node).collect();
        Ok(Self { groups, freedom: freedom as f64, least })
    }

    /// The probability that the range exceeds `q`, 0 or more: over the deviation `s = exp(u)` of a sample in units of the
    /// true one, the probability that the range of normal values exceeds `q s`.
    pub(crate) fn survival(&self, q: f64) -> f64 {
        if q.is_infinite() {
            return 0.0;
        }
        // The density of u has about this width, and the probability falls within a few units of u.
        let step = f64::min(0.125, 0.6 / (2.0 * self.freedom).sqrt());
        let density = self.deviation();
        let at = |u: f64| step * density(u) * self.range_above(q * u.exp());
        // Near the one maximum of the product, because the range exceeds w with about exp(-w^2 / 4).
        let from = self.freedom.sqrt().ln() - self.freedom.sqrt().hypot(q * FRAC_1_SQRT_2).ln();
        let mut sum = at(from);
        for direction in [-step, step] {
            for n in 1..MOST_STEPS {
                let term = at(from + direction * f64::from(n));
                sum += term;
                if term <= sum * f64::EPSILON / 16.0 {
                    break;
                }
            }
        }
        sum.min(1.0)
    }

    /// The point that is exceeded with the probability `1 - level`.
    pub(crate) fn quantile(&self, level: f64) -> f64 {
        let outside = 1.0 - level;
        let (mut low, mut high) = (0.0, 1.0);
        while self.survival(high) > outside && high < MOST {
            (low, high) = (high, high * 2.0);
        }
        while high - low > 1e-11 * high {
            let middle = f64::midpoint(low, high);
            if self.survival(middle) > outside { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }

    /// The density of u, the logarithm of a sample's deviation in units of the true one: with half the degrees of freedom
    /// a, `2 a^a / gamma(a) exp(a (2 u - exp(2 u)))`.
    fn deviation(&self) -> impl Fn(f64) -> f64 {
        let half = self.freedom / 2.0;
        // ln(2 a^a exp(-a) / gamma(a)): of many degrees of freedom the large parts cancel on paper.
        let factor = if half < STIRLING_FROM {
            LN_2 + half * half.ln() - half - ln_gamma(half)
        } else {
            LN_2 + (half / TAU).ln() / 2.0 - stirling_rest(half)
        };
        move |u| (factor + half * (2.0 * u - (2.0 * u).exp_m1())).exp()
    }

    /// The probability that the range of as many normal values exceeds `width`: the least of them is somewhere, and not
    /// all others lie between it and `width` above it.
    fn range_above(&self, width: f64) -> f64 {
        if width > WIDEST {
            return 0.0;
        }
        let from =
            self.least.partition_point(|node| node.z < -width / 2.0 - FAR - (2.0 * self.groups.ln()).sqrt());
        let beyond = |node: &Node| {
            let share = normal_above(node.z + width) / node.above;
            -node.weight * ((self.groups - 1.0) * (-share).ln_1p()).exp_m1()
        };
        self.least[from..].iter().map(beyond).sum()
    }
}

/// The sums end long before this.
const MOST_STEPS: u32 = 1_000_000;

#[cfg(test)]
mod tests;
