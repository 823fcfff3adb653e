//! Special functions of the intervals and tests.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::ln_gamma;

/// Above this many degrees of freedom the expansion is as exact as a double, and the library's inverse no longer is.
const EXPANSION_FROM: u64 = 1_000;

/// Returns the 97.5 % quantile of Student's t with `freedom` degrees of freedom; infinite for none.
///
/// Above 1,000 degrees of freedom it uses the expansion about the normal quantile (Abramowitz and Stegun 26.7.5),
/// whose first neglected term is below 1e-14 there.
pub(crate) fn t_quantile(freedom: u64) -> f64 {
    const P: f64 = 0.975;
    if freedom > EXPANSION_FROM {
        return Normal::new(0.0, 1.0).map_or(f64::INFINITY, |n| expand(n.inverse_cdf(P), freedom as f64));
    }
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(P))
}

/// Returns the probability that a standard normal value exceeds `z`, to 15 digits also far out; statrs has eleven.
pub(crate) fn normal_above(z: f64) -> f64 {
    libm::erfc(z * core::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Returns Student's t quantile from the normal quantile `z` (Abramowitz and Stegun 26.7.5).
fn expand(z: f64, freedom: f64) -> f64 {
    let s = z * z;
    let terms = [
        z * (s + 1.0) / 4.0,
        z * ((5.0 * s + 16.0) * s + 3.0) / 96.0,
        z * (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0,
        z * ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92_160.0,
    ];
    z + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom)
}

/// Returns the distance from 0 within which Student's t stays with the probability `level`, 0.5 to 0.9999.
///
/// `freedom` is the number of degrees of freedom, 1 or more and not necessarily whole. The relative error is below
/// 1e-9.
pub(crate) fn t_two_sided_quantile(level: f64, freedom: f64) -> f64 {
    let outside = 1.0 - level;
    if freedom > EXPANSION_FROM as f64 {
        return Normal::new(0.0, 1.0)
            .map_or(f64::INFINITY, |n| expand(-n.inverse_cdf(outside / 2.0), freedom));
    }
    // t^2 / (freedom + t^2) is Beta(1/2, freedom / 2). Near 1 the quantile of its distance to 1 keeps more digits.
    let share = beta_quantile(0.5, freedom / 2.0, outside, Tail::Upper);
    if share < 0.5 {
        return (freedom * share / (1.0 - share)).sqrt();
    }
    let rest = beta_quantile(freedom / 2.0, 0.5, outside, Tail::Lower);
    (freedom * (1.0 - rest) / rest).sqrt()
}

/// Returns the probability that Student's t with `freedom` degrees of freedom lies at least as far from 0 as `t`.
pub(crate) fn t_two_sided(t: f64, freedom: f64) -> f64 {
    f_survival(t * t, 1.0, freedom)
}

/// Returns the probability that Fisher's F exceeds `ratio`, which is 0 or more and may be infinite. `numerator` and
/// `denominator` are the degrees of freedom, at least 1 each.
pub(crate) fn f_survival(ratio: f64, numerator: f64, denominator: f64) -> f64 {
    let odds = ratio * (numerator / denominator);
    if odds.is_infinite() {
        return 0.0;
    }
    beta_tails_at(denominator / 2.0, numerator / 2.0, UnitPoint::of_odds(odds)).0
}

/// Tail of a beta distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tail {
    /// Below the quantile.
    Lower,
    /// Above the quantile.
    Upper,
}

/// Returns the point of the Beta(a, b) distribution that cuts off `mass` in `tail`; `a` and `b` are at least 1/2.
///
/// The bracket is halved until its ends are neighbouring doubles. This always ends, unlike a Newton iteration where
/// the density underflows. The relative error is below 1e-9 for `a + b` up to 1e7.
pub(crate) fn beta_quantile(a: f64, b: f64, mass: f64, tail: Tail) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        let (below, above) = beta_tails(a, b, middle);
        let left_of_quantile = if tail == Tail::Lower { below < mass } else { above > mass };
        if left_of_quantile { low = middle } else { high = middle }
    }
}

/// Returns the regularised incomplete beta function `I_x(a, b)` and its complement, for `x` in (0, 1).
fn beta_tails(a: f64, b: f64, x: f64) -> (f64, f64) {
    beta_tails_at(a, b, UnitPoint { x, rest: 1.0 - x, ln_x: x.ln(), ln_rest: (-x).ln_1p() })
}

/// A point of the unit interval and its distance to 1, each to full precision, however near the ends.
#[derive(Clone, Copy)]
struct UnitPoint {
    x: f64,
    rest: f64,
    ln_x: f64,
    ln_rest: f64,
}

impl UnitPoint {
    /// Returns the point `1 / (1 + odds)`; the odds are finite and not negative.
    fn of_odds(odds: f64) -> Self {
        let against = 1.0 / odds;
        Self {
            x: 1.0 / (1.0 + odds),
            rest: 1.0 / (1.0 + against),
            ln_x: -odds.ln_1p(),
            ln_rest: -against.ln_1p(),
        }
    }
}

/// Returns the tails as [`beta_tails`] does, at a point whose distance to 1 is known to the last digit.
fn beta_tails_at(a: f64, b: f64, point: UnitPoint) -> (f64, f64) {
    let UnitPoint { x, rest, ln_x, ln_rest } = point;
    let front = a * ln_x + b * ln_rest - ln_beta(a, b);
    // The continued fraction converges fast only on its side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        let below = front.exp() * beta_fraction(a, b, x) / a;
        (below, 1.0 - below)
    } else {
        let above = front.exp() * beta_fraction(b, a, rest) / b;
        (1.0 - above, above)
    }
}

/// Returns the logarithm of the beta function.
///
/// The logarithms of gamma functions of large arguments nearly cancel, and their difference would lose its digits. It
/// is therefore taken in Stirling's series, whose large parts cancel analytically.
fn ln_beta(a: f64, b: f64) -> f64 {
    let (less, more) = (a.min(b), a.max(b));
    if more < STIRLING_FROM {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    let sum = less + more;
    let rest = (more - 0.5) * (-less / sum).ln_1p() + stirling_rest(more) - stirling_rest(sum);
    if less < STIRLING_FROM {
        return ln_gamma(less) + less - less * sum.ln() + rest;
    }
    let scale = 0.5 * (core::f64::consts::TAU / sum).ln();
    (less - 0.5) * (less / sum).ln() + scale + stirling_rest(less) + rest
}

/// Least argument from which six terms of Stirling's series leave less than 1e-15.
pub(crate) const STIRLING_FROM: f64 = 10.0;

/// Returns `ln gamma(x)` less Stirling's formula `(x - 1/2) ln x - x + ln(2 pi) / 2` (DLMF 5.11.1).
pub(crate) fn stirling_rest(x: f64) -> f64 {
    const TERMS: [f64; 6] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    let inverse_square = 1.0 / (x * x);
    TERMS.iter().rev().fold(0.0, |sum, term| sum * inverse_square + term) / x
}

/// Returns the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
///
/// It takes about `sqrt(max(a, b))` steps at its worst point.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const STEPS: u32 = 100_000;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = denominator;
    for step in (1..STEPS).map(f64::from) {
        let twice = a + 2.0 * step;
        let even = step * (b - step) * x / ((twice - 1.0) * twice);
        let odd = -(a + step) * (a + b + step) * x / (twice * (twice + 1.0));
        let before = fraction;
        for coefficient in [even, odd] {
            denominator = 1.0 / nonzero(1.0 + coefficient * denominator);
            numerator = nonzero(1.0 + coefficient / numerator);
            fraction *= numerator * denominator;
        }
        if (fraction - before).abs() <= 4.0 * f64::EPSILON * fraction.abs() {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests;
