//! The studentised range: the range of several means, in units of a standard deviation that is estimated.

use core::f64::consts::{FRAC_1_SQRT_2, LN_2, TAU};

use statrs::function::gamma::ln_gamma;

use crate::StatsError;
use crate::special::{STIRLING_FROM, normal_above, stirling_rest};

/// Returns the probability that the studentised range of `groups` means, 2 or more, with `freedom` degrees of
/// freedom, 2 or more, exceeds `q`, 0 or more. The relative error is below 1e-9 up to 1e12 degrees of freedom, also
/// far out in the tail.
///
/// # Errors
/// Too few groups or degrees of freedom; a `q` that is negative or not a number.
pub fn studentized_range_survival(q: f64, groups: u64, freedom: u64) -> Result<f64, StatsError> {
    let range = StudentizedRange::new(groups, freedom)?;
    if q >= 0.0 { Ok(range.survival(q)) } else { Err(StatsError::Range { value: q }) }
}

/// Returns the quantile of the studentised range of `groups` means, 2 or more, with `freedom` degrees of freedom, 2
/// or more: the range lies below the quantile with the probability `level`. The relative error is below 1e-9 for
/// levels up to 0.9999.
///
/// # Errors
/// Too few groups or degrees of freedom; a level outside 0 to 1, exclusive.
pub fn studentized_range_quantile(level: f64, groups: u64, freedom: u64) -> Result<f64, StatsError> {
    if !(level > 0.0 && level < 1.0) {
        return Err(StatsError::Level { value: level });
    }
    Ok(StudentizedRange::new(groups, freedom)?.quantile(level))
}

/// Distribution of the studentised range for one number of means and of degrees of freedom.
///
/// Both integrals are taken by the trapezoidal rule over the whole line. For such smooth functions the rule is as
/// exact as a double, with steps of a fraction of their width (Trefethen and Weideman, SIAM Review 56, 2014).
pub(crate) struct StudentizedRange {
    groups: f64,
    freedom: f64,
    /// Nodes of the integral over the least of the means, ascending.
    least: Vec<QuadratureNode>,
}

/// Node of the integral over the least of several normal values.
struct QuadratureNode {
    z: f64,
    /// Probability that a value lies above `z`.
    above: f64,
    /// Probability that the least value lies at this node.
    weight: f64,
}

/// Greatest range of normal values that is considered; greater ones have a probability below the least double.
const WIDEST: f64 = 55.0;
/// Greatest distance from the middle that is summed; farther terms add less than a double's last digit.
const FAR: f64 = 8.5;
/// Upper end of the search for a quantile.
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
            QuadratureNode { z, above, weight: step * groups * density * above.powf(groups - 1.0) }
        };
        let least = (steps(-WIDEST / 2.0 - FAR - spread)..=steps(FAR)).map(node).collect();
        Ok(Self { groups, freedom: freedom as f64, least })
    }

    /// Returns the probability that the range exceeds `q`, 0 or more.
    ///
    /// It integrates over the deviation `s = exp(u)` of a sample in units of the true one: the probability that the
    /// range of normal values exceeds `q s`.
    pub(crate) fn survival(&self, q: f64) -> f64 {
        if q.is_infinite() {
            return 0.0;
        }
        // The density of u has about this width, and the probability falls within a few units of u.
        let step = f64::min(0.125, 0.6 / (2.0 * self.freedom).sqrt());
        let density = self.deviation();
        let at = |u: f64| step * density(u) * self.range_above(q * u.exp());
        // The sum starts near the one maximum of the product, because the range exceeds w with about exp(-w^2 / 4).
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

    /// Returns the point that the range exceeds with the probability `1 - level`.
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

    /// Returns the density of u, the logarithm of a sample's deviation in units of the true one. With a for half the
    /// degrees of freedom it is `2 a^a / gamma(a) exp(a (2 u - exp(2 u)))`.
    fn deviation(&self) -> impl Fn(f64) -> f64 {
        let half = self.freedom / 2.0;
        // ln(2 a^a exp(-a) / gamma(a)); for many degrees of freedom its large parts cancel analytically.
        let factor = if half < STIRLING_FROM {
            LN_2 + half * half.ln() - half - ln_gamma(half)
        } else {
            LN_2 + (half / TAU).ln() / 2.0 - stirling_rest(half)
        };
        move |u| (factor + half * (2.0 * u - (2.0 * u).exp_m1())).exp()
    }

    /// Returns the probability that the range of `groups` normal values exceeds `width`: the sum over the places of
    /// the least value of the probability that not all others lie within `width` above it.
    fn range_above(&self, width: f64) -> f64 {
        if width > WIDEST {
            return 0.0;
        }
        let from =
            self.least.partition_point(|node| node.z < -width / 2.0 - FAR - (2.0 * self.groups.ln()).sqrt());
        let beyond = |node: &QuadratureNode| {
            let share = normal_above(node.z + width) / node.above;
            -node.weight * ((self.groups - 1.0) * (-share).ln_1p()).exp_m1()
        };
        self.least[from..].iter().map(beyond).sum()
    }
}

/// Limit of the steps of a sum in either direction; the sums end long before.
const MOST_STEPS: u32 = 1_000_000;

#[cfg(test)]
mod tests;
