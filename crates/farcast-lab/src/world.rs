//! Scenarios of either kind, star or tree, in a form that can be run.

use farcast_core::Time;
use farcast_scenario::document::{Document, DocumentError};
use farcast_sim::outcome::{Replication, TreeReplication};
use farcast_sim::replicate::{Replicable, ReplicationError};
use farcast_sim::scenario::{Scenario, TreeScenario};
use farcast_sim::star::Pulse;
use serde::Serialize;

/// A scenario: of a star, or of a tree.
#[derive(Clone, Debug)]
pub enum World {
    /// A hub with receivers and terminals around it.
    Star(Box<Scenario>),
    /// Nodes connected by edges.
    Tree(Box<TreeScenario>),
}

/// Outcome of a replication of either kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Outcome of a star.
    Star(Replication),
    /// Outcome of a tree.
    Tree(TreeReplication),
}

impl AsRef<Replication> for Outcome {
    fn as_ref(&self) -> &Replication {
        match self {
            Self::Star(replication) => replication,
            Self::Tree(replication) => replication.as_ref(),
        }
    }
}

impl World {
    /// Reads a scenario of either kind.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(document: &Document) -> Result<Self, DocumentError> {
        if TreeScenario::is_one(document) {
            return Ok(Self::Tree(Box::new(TreeScenario::read(document)?)));
        }
        Ok(Self::Star(Box::new(Scenario::read(document)?)))
    }

    /// Returns the name of the scenario; empty if its file gives none.
    pub fn name(&self) -> &str {
        match self {
            Self::Star(scenario) => scenario.name(),
            Self::Tree(scenario) => scenario.name(),
        }
    }
}

impl Replicable for World {
    type Outcome = Outcome;

    fn replicate(
        &self,
        seed: u64,
        index: u64,
        per_receiver: bool,
        pulse: &Pulse,
    ) -> Result<Option<Outcome>, ReplicationError> {
        Ok(match self {
            Self::Star(scenario) => scenario.replicate(seed, index, per_receiver, pulse)?.map(Outcome::Star),
            Self::Tree(scenario) => scenario.replicate(seed, index, per_receiver, pulse)?.map(Outcome::Tree),
        })
    }

    fn time_limit(&self) -> Time {
        match self {
            Self::Star(scenario) => scenario.time_limit(),
            Self::Tree(scenario) => scenario.time_limit(),
        }
    }

    fn memory(&self) -> u64 {
        match self {
            Self::Star(scenario) => Replicable::memory(&**scenario),
            Self::Tree(scenario) => Replicable::memory(&**scenario),
        }
    }
}
