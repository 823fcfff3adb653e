//! Mapping of numbers to places along an axis.

use super::Axis;

/// Approximate number of marks of an axis.
const TICKS: f64 = 6.0;
/// Distance in decades, on a logarithmic axis, between its least value and the values not above zero on its left.
const GAP: f64 = 0.5;
/// Most decades of a logarithmic axis that has room for more marks than the powers of ten.
const FEW: f64 = 2.5;

/// An axis with the values at its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along {
    is_logarithmic: bool,
    /// Values at both ends; their logarithms if the axis is logarithmic.
    values: (f64, f64),
    /// Places of both ends.
    places: (f64, f64),
    /// Place for values not above zero, as a logarithm, on a logarithmic axis with such values.
    zero: Option<f64>,
}

impl Along {
    /// Creates an axis for `values` between two places.
    pub(super) fn of(axis: &Axis, values: &(impl Iterator<Item = f64> + Clone), from: f64, to: f64) -> Self {
        let places = (from, to);
        let is_logarithmic = axis.is_logarithmic;
        let above = values.clone().filter(|value| !is_logarithmic || *value > 0.0);
        let scaled = above.map(|value| if is_logarithmic { value.log10() } else { value });
        let (mut least, mut most) = scaled
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        if !is_logarithmic {
            (least, most) = (least.min(0.0), most.max(0.0));
        }
        if !(least.is_finite() && most.is_finite()) {
            (least, most) = (0.0, 1.0);
        }
        if most <= least {
            most = least + 1.0;
        }
        let has_zero = is_logarithmic && values.clone().any(|value| value <= 0.0);
        let zero = has_zero.then_some(least - GAP);
        Self { is_logarithmic, values: (zero.unwrap_or(least), most), places, zero }
    }

    fn place(&self, scaled: f64) -> f64 {
        let share = ((scaled - self.values.0) / (self.values.1 - self.values.0)).clamp(0.0, 1.0);
        self.places.0 + share * (self.places.1 - self.places.0)
    }

    /// Returns the place of a value; a value beyond an end stands at that end.
    pub(super) fn at(&self, value: f64) -> f64 {
        if !self.is_logarithmic {
            return self.place(value);
        }
        let scaled = if value > 0.0 { value.log10() } else { self.zero.unwrap_or(self.values.0) };
        self.place(scaled)
    }

    /// Returns the marked places, each with its label.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        if !self.is_logarithmic {
            return self.round_numbers();
        }
        let mut ticks: Vec<_> =
            self.zero.map(|zero| (self.place(zero), "0".to_owned())).into_iter().collect();
        let first = self.zero.map_or(self.values.0, |zero| zero + GAP);
        // Few decades leave room for more marks than the powers of ten.
        let factors = if self.values.1 - first < FEW { &[1, 2, 5][..] } else { &[1] };
        let (least, most) = (first - 1e-9, self.values.1 + 1e-9);
        for power in least.floor() as i32..=most.floor() as i32 {
            for &factor in factors {
                let at = f64::from(power) + f64::from(factor).log10();
                if least <= at && at <= most {
                    ticks.push((self.place(at), written(factor, power)));
                }
            }
        }
        ticks
    }

    /// Returns marks at multiples of 1, 2 or 5 times a power of ten.
    fn round_numbers(&self) -> Vec<(f64, String)> {
        let range = self.values.1 - self.values.0;
        let unit = 10_f64.powf((range / TICKS).log10().floor());
        let fits = |factor: &f64| range / (unit * factor) <= TICKS;
        let step = unit * [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0);
        let digits = (-step.log10().floor()).max(0.0) as usize;
        let first = (self.values.0 / step - 1e-9).ceil() as i64;
        let last = (self.values.1 / step + 1e-9).floor() as i64;
        let numbers = (first..=last).map(|n| n as f64 * step);
        numbers.map(|value| (self.place(value), format!("{value:.digits$}"))).collect()
    }
}

/// Returns a multiple of a power of ten in a form for people.
fn written(factor: u32, power: i32) -> String {
    match power {
        0..=5 => (factor * 10_u32.pow(power as u32)).to_string(),
        -3..0 => format!("{:.*}", power.unsigned_abs() as usize, f64::from(factor) * 10_f64.powi(power)),
        _ => format!("{factor}e{power}"),
    }
}
