//! Sessions of the report's MDP: files in sequence over the simulated line, and the time of each.

use farcast_core::Time;
use farcast_sim::scenario::Scenario;
use farcast_sim::scenario::mdp::{Mdp, SenderEvent};
use farcast_sim::star::{Kind, Observer, Pulse, Star};

use crate::shipped;
use crate::study::{Runner, StudyError};

/// Reading of the report's MDP: a preset of the scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MdpReading {
    /// Only payload counts; packets have 1,500 octets, and 1 MB is 2^20.
    A,
    /// Whole messages count; segments have 1,024 octets, and 1 MB is 1,024,000.
    B,
}

impl MdpReading {
    const fn preset(self) -> &'static str {
        match self {
            Self::A => "space_link_a",
            Self::B => "space_link_b",
        }
    }

    /// Returns the octets of a file by the report's name for its size; 0 for other names.
    pub(super) fn octets(self, name: &str) -> u64 {
        match (name, self) {
            ("10K", _) => 10 << 10,
            ("100K", _) => 100 << 10,
            ("1M", Self::A) => 1 << 20,
            ("10M", Self::A) => 10 << 20,
            ("1M", Self::B) => 1_024_000,
            ("10M", Self::B) => 10_240_000,
            _ => 0,
        }
    }
}

/// A session: its files, and the settings of its line.
pub(super) struct Session<'a> {
    pub(super) reading: MdpReading,
    /// The files, by the names of their sizes.
    pub(super) files: &'a [&'a str],
    /// Errors in the vector.
    pub(super) errors: u32,
    /// Further settings of the scenario.
    pub(super) settings: &'a [&'a str],
}

impl Session<'_> {
    /// Returns the seconds of each file in each of at most `most` replications. They run from the sender's beginning
    /// with the file until the receiver had it; `None` for a file that it never had.
    pub(super) fn times(&self, runner: &Runner<'_>, most: u64) -> Result<Vec<Vec<Option<f64>>>, StudyError> {
        let scenario = self.scenario()?;
        let (seed, files) = (runner.seed(), self.files.len());
        runner.map(most, |index, pulse| one(&scenario, seed, index, files, pulse))
    }

    /// Returns the shipped scenario with these files and settings.
    fn scenario(&self) -> Result<Scenario, StudyError> {
        let mut document = shipped::document("sgls-mdp")?;
        let sizes: Vec<String> =
            self.files.iter().map(|name| format!("\"{} B\"", self.reading.octets(name))).collect();
        document.set(&format!("protocol.preset=\"{}\"", self.reading.preset()))?;
        document.set(&format!("protocol.files=[{}]", sizes.join(", ")))?;
        document.set(&format!("link.stages.serial.forward.vector_errors={}", self.errors))?;
        for setting in self.settings {
            document.set(setting)?;
        }
        Ok(Scenario::read(&document)?)
    }
}

/// Observer that records when the sender began with each file.
#[derive(Default)]
struct Begins(Vec<Time>);

impl Observer<Mdp> for Begins {
    fn told(&mut self, at: Time, event: &SenderEvent) {
        if matches!(event, SenderEvent::Own(_)) {
            self.0.push(at);
        }
    }
}

/// Runs one replication; `None` if it was stopped.
fn one(
    scenario: &Scenario,
    seed: u64,
    index: u64,
    files: usize,
    pulse: &Pulse,
) -> Result<Option<Vec<Option<f64>>>, StudyError> {
    let Some(world) = scenario.mdp(seed, index) else {
        return Err(StudyError::Internal("the scenario's transfer does not go by MDP".into()));
    };
    let mut begins = Begins::default();
    let mut star = Star::new(world.map_err(internal)?, Some(&mut begins)).map_err(internal)?;
    if !star.run_while(pulse) {
        return Ok(None);
    }
    let mut completed = vec![None; files];
    if let Some(Kind::Engines(stations)) = star.groups().first().map(|group| &group.kind)
        && let Some(station) = stations.first()
    {
        for (object, at) in station.engine.objects() {
            if let Some(place) = completed.get_mut(object as usize) {
                *place = at;
            }
        }
    }
    drop(star);
    let took = |(begin, end): (&Time, Option<Time>)| end.map(|end| end.since(*begin).as_secs_f64());
    Ok(Some(begins.0.iter().zip(completed).map(took).collect()))
}

fn internal(error: farcast_sim::star::StarError) -> StudyError {
    StudyError::Internal(error.into())
}
