//! Summary of each point of a sweep, by figure.

use farcast_sim::outcome::Measure;
use farcast_stats::StatsError;
use serde::Serialize;

use super::{Point, Swept};

/// Summary of a figure of a point over its replications.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureSummary {
    /// Number of the point.
    pub point: usize,
    /// Name of the figure.
    pub figure: String,
    /// Number of replications of the point.
    pub replications: usize,
    /// Measure of the figure over these.
    #[serde(flatten)]
    pub measure: Measure,
}

/// Returns the measure of the figure `name` of a point. A replication without the figure is left out, unless the
/// figure is a completion time. In that case it counts as later than all others, and there is no mean.
///
/// # Errors
/// A value that cannot be summed up.
pub fn summary(point: &Point, name: &str) -> Result<Measure, StatsError> {
    measure(name, point.figures.column(name).unwrap_or_default())
}

/// Returns the same measure from `values`, which are not-a-number for a replication without the figure.
pub(crate) fn measure(name: &str, values: &[f64]) -> Result<Measure, StatsError> {
    let is_time = name.ends_with("completion_time_s");
    let values = values.iter().map(|&value| (!value.is_nan()).then_some(value));
    Measure::of(values.filter(|value| is_time || value.is_some()))
}

impl Swept {
    /// Returns the summary of every figure of every point.
    ///
    /// # Errors
    /// A value that cannot be summed up.
    pub fn summary(&self) -> Result<Vec<FigureSummary>, StatsError> {
        let mut lines = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            for (name, values) in point.figures.columns() {
                let measure = summary(point, name)?;
                lines.push(FigureSummary {
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
