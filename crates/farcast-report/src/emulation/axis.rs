//! Vertical axes: units of values, and places on the drawing.

/// Quantity that a panel shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantity {
    /// bit/s.
    Rate,
    /// Seconds.
    Time,
    /// Octets.
    Octets,
    /// Packets.
    Packets,
}

impl Quantity {
    /// Returns the unit for values up to `top`: its name and its size.
    fn unit(self, top: f64) -> (&'static str, f64) {
        let units: &[(&str, f64)] = match self {
            Self::Rate => &[
                ("bit/s", 1.0),
                ("kbit/s", 1e3),
                ("Mbit/s", 1e6),
                ("Gbit/s", 1e9),
                ("Tbit/s", 1e12),
                ("Pbit/s", 1e15),
            ],
            Self::Octets => &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15)],
            Self::Time if top < 100.0 => &[("ms", 1e-3)],
            Self::Time => &[("s", 1.0)],
            Self::Packets => &[("packets", 1.0)],
        };
        units.iter().rev().find(|unit| top >= unit.1).copied().unwrap_or(units[0])
    }

    /// Returns a value in a form for people, with its unit.
    pub(super) fn words(self, value: f64) -> String {
        let (unit, size) = self.unit(value);
        format!("{} {unit}", digits(value / size))
    }
}

/// Returns a value to three significant digits: a whole number in full, and no zeros at the end of a fraction.
fn digits(value: f64) -> String {
    if value >= 100.0 || value == 0.0 {
        return format!("{value:.0}");
    }
    let places = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A vertical axis from 0 upward.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Place of 0.
    pub(super) foot: f64,
    /// Place of the highest value.
    pub(super) head: f64,
    /// The highest value.
    top: f64,
    /// Difference between neighbouring marks.
    step: f64,
    unit: (&'static str, f64),
}

impl Axis {
    /// Creates an axis from 0 at `foot` to a round value not below `most` at `head`, with at most `marks` marks, 2 at
    /// least. If `most` is not a positive number, it counts as the least value that can be drawn.
    pub(super) fn new(quantity: Quantity, most: f64, foot: f64, head: f64, marks: f64) -> Self {
        // Measured values lie within these bounds, and larger numbers have no room beside the axis.
        let (least, greatest) = if quantity == Quantity::Time { (1e-6, 5e5) } else { (1.0, 1e18) };
        let most = if most.is_nan() { least } else { most.clamp(least, greatest) };
        let mut step = 10f64.powf((most / marks).log10().floor());
        let fits = |factor: &f64| most / (step * factor) <= marks;
        step *= [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0);
        if quantity != Quantity::Time {
            step = step.max(1.0);
        }
        let top = step * (most / step * (1.0 - 1e-9)).ceil();
        Self { foot, head, top, step, unit: quantity.unit(top) }
    }

    /// Returns the place of a value; a value above the axis is at its head.
    pub(super) fn y(&self, value: f64) -> f64 {
        let share = (value / self.top).clamp(0.0, 1.0);
        self.foot + (self.head - self.foot) * if share.is_nan() { 0.0 } else { share }
    }

    /// Returns the name of the unit.
    pub(super) fn unit(&self) -> &'static str {
        self.unit.0
    }

    /// Returns the marked values, each with its label.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let in_unit = self.step / self.unit.1;
        let places = (-(in_unit.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
        let count = (self.top / self.step).round() as u32;
        (0..=count)
            .map(|n| (f64::from(n) * self.step, format!("{:.places$}", f64::from(n) * in_unit)))
            .collect()
    }
}
