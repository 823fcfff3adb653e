//! What stages report of themselves.

use farcast_core::stage::Figure;
use farcast_stats::StatsError;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Measure, Replication};

/// One stage in one replication: its name, then its figures by name.
#[derive(Clone, PartialEq, Debug)]
pub struct StageOutcome {
    /// What the scenario calls it.
    pub name: String,
    /// What it reports.
    pub figures: Vec<Figure>,
}

impl StageOutcome {
    pub(super) fn of(name: &str, figures: Vec<Figure>) -> Self {
        Self { name: name.to_owned(), figures }
    }

    /// The figure of that name, if the stage reports it and it could be told.
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

/// One stage over all replications.
#[derive(Clone, PartialEq, Debug)]
pub struct StageTogether {
    /// What the scenario calls it.
    pub name: String,
    /// Its figures, each over the replications in which it could be told.
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

/// The stages of `replications`, which all have the same.
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
