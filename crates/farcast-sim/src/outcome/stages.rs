//! Figures that stages report.

use farcast_core::stage::Figure;
use farcast_stats::StatsError;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Measure, Replication};

/// Figures of one stage in one replication. It is serialized as its name, then its figures by name.
#[derive(Clone, PartialEq, Debug)]
pub struct StageOutcome {
    /// Name of the stage in the scenario.
    pub name: String,
    /// Figures that the stage reports.
    pub figures: Vec<Figure>,
}

impl StageOutcome {
    pub(super) fn of(name: &str, figures: Vec<Figure>) -> Self {
        Self { name: name.to_owned(), figures }
    }

    /// Returns the figure of that name, if the stage reports it and it has a value.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name)?.value
    }
}

impl Serialize for StageOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.figures.len()))?;
        map.serialize_entry("name", &self.name)?;
        for figure in &self.figures {
            map.serialize_entry(figure.name, &figure.value)?;
        }
        map.end()
    }
}

/// Summary of one stage over all replications.
#[derive(Clone, PartialEq, Debug)]
pub struct StageTogether {
    /// Name of the stage in the scenario.
    pub name: String,
    /// Figures of the stage, each over the replications in which it has a value.
    pub figures: Vec<(&'static str, Measure)>,
}

impl Serialize for StageTogether {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.figures.len()))?;
        map.serialize_entry("name", &self.name)?;
        for (name, measure) in &self.figures {
            map.serialize_entry(name, measure)?;
        }
        map.end()
    }
}

/// Returns the summaries of the stages of `replications`, which all have the same stages.
pub(super) fn together(replications: &[Replication]) -> Result<Vec<StageTogether>, StatsError> {
    let stages = replications.first().map_or(&[][..], |first| &first.stages);
    let one = |(number, stage): (usize, &StageOutcome)| {
        let measure = |(at, figure): (usize, &Figure)| {
            let values = replications.iter().filter_map(|one| one.stages.get(number)?.figures.get(at)?.value);
            Ok((figure.name, Measure::of(values.map(Some))?))
        };
        let figures = stage.figures.iter().enumerate().map(measure).collect::<Result<_, StatsError>>()?;
        Ok(StageTogether { name: stage.name.clone(), figures })
    };
    stages.iter().enumerate().map(one).collect()
}
