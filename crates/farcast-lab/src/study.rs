//! Repetition of a published study: its numbers beside ours. The studies are in [`studies`](crate::studies).

mod error;
pub mod files;
mod row;
pub mod rules;
pub(crate) mod runner;
pub mod tables;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

pub use error::StudyError;
pub(crate) use row::RowPlace;
pub use row::{Judged, Row, Rule, Verdict};
pub(crate) use runner::Runner;

use crate::Progress;

/// A study that can be repeated.
#[derive(Clone, Copy)]
pub struct Study {
    /// Name for users.
    pub(crate) name: &'static str,
    /// Authors, title and place of publication.
    pub(crate) citation: &'static str,
    /// Number of simulated settings; 0 if the study has only a closed form.
    pub(crate) settings: u64,
    /// Replications of each setting, and those for quick effort.
    pub(crate) replications: (u64, u64),
    /// Headings of the two columns of numbers: the reference, and the number that is compared with it.
    pub(crate) columns: [&'static str; 2],
    /// Checks that this machine has what the study needs.
    pub(crate) needs: fn(&Options<'_>) -> Result<(), StudyError>,
    /// Repeats the study, and compares.
    pub(crate) reproduce: fn(&Runner<'_>) -> Result<Vec<Row>, StudyError>,
    /// Draws the plots of its rows.
    pub(crate) plots: fn(&[Row]) -> Vec<StudyPlot>,
}

/// Plot of a study's rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StudyPlot {
    /// Name of its file.
    pub name: String,
    /// Text of the SVG.
    pub svg: String,
}

/// Number of replications of each setting. A run in real time stands for 20 of them; each case has at least two runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Full number: as many as the study's verdicts need.
    Full,
    /// Small number for a first look, with wider intervals.
    Quick,
    /// This number, 2 at least.
    Replications(u64),
}

/// Options for running a study.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Seed of all random numbers: results follow from it and from the effort.
    pub seed: u64,
    /// Number of replications.
    pub effort: Effort,
    /// Number of threads; results do not depend on it.
    pub threads: NonZeroUsize,
    /// The program `farcast`, which studies in real time run; without it they are refused.
    pub executable: Option<&'a Path>,
    /// Flag by which the caller ends the study.
    pub stop: &'a AtomicBool,
}

impl<'a> Options<'a> {
    /// Creates options with seed 1, full effort, a thread for each core, and no program for studies in real time.
    pub fn new(stop: &'a AtomicBool) -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { seed: 1, effort: Effort::Full, threads, executable: None, stop }
    }
}

impl Study {
    /// Returns the name for users.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns authors, title and place of publication of the repeated study.
    pub const fn citation(&self) -> &'static str {
        self.citation
    }

    /// Returns the headings of [`Row::published`] and [`Row::farcast`] in its tables.
    pub const fn columns(&self) -> [&'static str; 2] {
        self.columns
    }

    /// Returns the number of simulated settings; 0 if the study has only a closed form.
    pub const fn settings(&self) -> u64 {
        self.settings
    }

    /// Returns the number of replications of each setting for this effort.
    pub const fn replications(&self, effort: Effort) -> u64 {
        match effort {
            Effort::Full => self.replications.0,
            Effort::Quick => self.replications.1,
            Effort::Replications(count) => count,
        }
    }

    /// Checks that this machine has what the study needs.
    ///
    /// # Errors
    /// [`StudyError::Missing`], or [`StudyError::System`] if the system did not answer.
    pub fn needs(&self, options: &Options<'_>) -> Result<(), StudyError> {
        (self.needs)(options)
    }

    /// Repeats the study, and compares. `progress` is called ten times a second ([`Progress::Replications`] and
    /// [`Progress::Runs`]).
    ///
    /// # Errors
    /// The reason for which there are no rows; an incomplete study returns none.
    pub fn run(
        &self,
        options: &Options<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Row>, StudyError> {
        let replications = self.replications(options.effort);
        if replications < 2 {
            return Err(StudyError::TooFew(replications));
        }
        (self.reproduce)(&Runner::new(self, options, progress))
    }
}

impl fmt::Debug for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Study").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Results of a study, for its files and tables.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// Name of the study.
    pub name: &'static str,
    /// Authors, title and place of publication of the repeated study.
    pub citation: &'static str,
    /// Headings of the two columns of numbers.
    pub columns: [&'static str; 2],
    /// Seed of all random numbers.
    pub seed: u64,
    /// Replications of each setting; `None` if the numbers do not depend on chance.
    pub replications: Option<u64>,
    /// All rows.
    pub rows: Vec<Row>,
    /// Plots of the rows.
    pub plots: Vec<StudyPlot>,
}

impl Results {
    /// Creates the results of a study that was run with these options.
    pub fn new(study: &Study, options: &Options<'_>, rows: Vec<Row>) -> Self {
        let replications = (study.settings > 0).then(|| study.replications(options.effort));
        let Study { name, citation, columns, plots, .. } = *study;
        let plots = plots(&rows);
        Self { name, citation, columns, seed: options.seed, replications, rows, plots }
    }
}
