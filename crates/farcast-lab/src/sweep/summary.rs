//! What each point of a sweep came to, figure by figure.

use farcast_sim::outcome::Measure;
use farcast_stats::StatsError;
use serde::Serialize;

use super::{Point, Swept};

/// A figure of a point over its replications.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// The number of the point.
    pub point: usize,
    /// What the figure is called.
    pub figure: String,
    /// Replications of the point.
    pub replications: usize,
    /// Over them.
    #[serde(flatten)]
    pub measure: Measure,
}

/// The figure `name` of a point. Where a replication has none it counts as later than all others if the figure is a
/// completion time, which then has no mean; else it is left out.
///
/// # Errors
/// A value that cannot be summed up.
pub fn summary(point: &Point, name: &str) -> Result<Measure, StatsError> {
    measure(name, point.figures.column(name).unwrap_or_default())
}

/// The same of values, which are not numbers where there is none.
pub(crate) fn measure(name: &str, values: &[f64]) -> Result<Measure, StatsError> {
    let is_time = name.ends_with("completion_time_s");
    let values = values.iter().map(|&value| (!value.is_nan()).then_some(value));
    Measure::of(values.filter(|value| is_time || value.is_some()))
}

impl Swept {
    /// Every figure of every point.
    ///
    /// # Errors
    /// A value that cannot be summed up.
    pub fn summary(&self) -> Result<Vec<Line>, StatsError> {
        let mut lines = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            for (name, values) in point.figures.columns() {
                let measure = summary(point, name)?;
                lines.push(Line {
                    point: number,
                    figure: name.to_owned(),
                    replications: values.len(),
                    measure,
                });
            }
        }
        Ok(lines)
    }
}
