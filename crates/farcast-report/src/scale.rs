//! Mapping of seconds to places on the page.

use crate::timeline::EventPoint;

/// The axis of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Place of time zero.
    pub(super) left: f64,
    /// Place of the end.
    pub(super) right: f64,
    duration: f64,
}

/// Points that lie in one column of the drawing, counted together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Column {
    pub(super) count: u64,
    pub(super) first_s: f64,
    pub(super) last_s: f64,
}

impl Scale {
    /// Creates an axis of `duration_s` seconds, or of one second if that is not a positive length.
    pub(super) fn new(left: f64, right: f64, duration_s: f64) -> Self {
        let valid = duration_s.is_finite() && duration_s > 0.0;
        Self { left, right, duration: if valid { duration_s } else { 1.0 } }
    }

    /// Clamps a time to the axis; not-a-number becomes its beginning.
    fn within(&self, seconds: f64) -> f64 {
        seconds.max(0.0).min(self.duration)
    }

    /// Returns the place of a time.
    pub(super) fn x(&self, seconds: f64) -> f64 {
        self.left + (self.right - self.left) * (self.within(seconds) / self.duration)
    }

    /// Returns the length of the axis in seconds.
    pub(super) fn duration(&self) -> f64 {
        self.duration
    }

    /// Returns the marked times with their labels: a dozen round numbers or fewer.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let (step, places) = self.step();
        let count = (self.duration / step * (1.0 + 1e-9)) as u32;
        (0..=count).map(|n| f64::from(n) * step).map(|at| (at, format!("{at:.places$} s"))).collect()
    }

    /// Returns the distance between marks, 1, 2 or 5 times a power of ten, and the number of its decimals.
    fn step(&self) -> (f64, usize) {
        let (mut unit, mut places) = (1.0, 0);
        while self.duration > 60.0 * unit {
            unit *= 10.0;
        }
        while self.duration < 6.0 * unit && places < 9 {
            unit /= 10.0;
            places += 1;
        }
        let fits = |factor: &f64| self.duration / (unit * factor) <= 12.0;
        (unit * [1.0, 2.0].into_iter().find(fits).unwrap_or(5.0), places)
    }

    /// Returns the points of each column of `width`, in the order of time; empty columns are left out.
    pub(super) fn columns(&self, points: &[EventPoint], width: f64) -> Vec<Column> {
        let number = ((self.right - self.left) / width) as usize + 1;
        let mut columns: Vec<Option<Column>> = vec![None; number];
        for point in points.iter().filter(|point| point.count > 0) {
            let at = self.within(point.at_s);
            let index = ((self.x(at) - self.left) / width) as usize;
            let column =
                columns[index.min(number - 1)].get_or_insert(Column { count: 0, first_s: at, last_s: at });
            column.count = column.count.saturating_add(point.count);
            (column.first_s, column.last_s) = (column.first_s.min(at), column.last_s.max(at));
        }
        columns.into_iter().flatten().collect()
    }
}
