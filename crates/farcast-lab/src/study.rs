//! Published studies again: their numbers beside ours.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use farcast_lab::study::{self, Effort, Options};
//!
//! # fn main() -> Result<(), study::StudyError> {
//! let study = study::named("mdp-ftp")?;
//! let stop = AtomicBool::new(false);
//! let options = Options { effort: Effort::Replications(2), ..Options::new(&stop) };
//! let rows = study.run(&options, &mut |_| {})?;
//! assert!(rows.iter().any(|row| row.item == "segments sent again" && row.row == "a file of 1 MB"));
//! # Ok(())
//! # }
//! ```

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
pub use row::{Judged, Row, Rule, Verdict};
pub(crate) use runner::Runner;

use crate::Progress;
use crate::studies::STUDIES;

/// A study that can be repeated.
#[derive(Clone, Copy)]
pub struct Study {
    /// What users call it.
    pub(crate) name: &'static str,
    /// Authors, title, where it appeared.
    pub(crate) citation: &'static str,
    /// Settings that are simulated; none where a closed form is all there is.
    pub(crate) settings: u64,
    /// Replications of each, and at a first look.
    pub(crate) replications: (u64, u64),
    /// What the two columns of numbers are: the reference, and what is compared with it.
    pub(crate) columns: [&'static str; 2],
    /// Whether this machine has what it takes.
    pub(crate) needs: fn(&Options<'_>) -> Result<(), StudyError>,
    /// Does what the paper did, and compares.
    pub(crate) reproduce: fn(&Runner<'_>) -> Result<Vec<Row>, StudyError>,
}

/// How many replications of each setting there are. A run in real time stands for 20 of them, and there are two of each
/// at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// As many as the study's verdicts are meant to have.
    Full,
    /// A first look, with wider intervals.
    Quick,
    /// So many: 2 at least.
    Replications(u64),
}

/// How a study is run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The seed of all random numbers: results follow from it and from the effort.
    pub seed: u64,
    /// How many replications there are.
    pub effort: Effort,
    /// Threads; results do not depend on how many.
    pub threads: NonZeroUsize,
    /// The program `farcast`, which studies in real time run; they are refused where it is not given.
    pub executable: Option<&'a Path>,
    /// Set by whoever wants it all to end.
    pub stop: &'a AtomicBool,
}

impl<'a> Options<'a> {
    /// Seed 1, the full effort, a thread for each core, and no program for studies in real time.
    pub fn new(stop: &'a AtomicBool) -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { seed: 1, effort: Effort::Full, threads, executable: None, stop }
    }
}

/// Every study that is known, in the order in which all are run.
pub const fn all() -> &'static [Study] {
    STUDIES
}

/// The study of this name.
///
/// # Errors
/// [`StudyError::Unknown`].
pub fn named(name: &str) -> Result<&'static Study, StudyError> {
    let found = STUDIES.iter().find(|study| study.name == name);
    found.ok_or_else(|| StudyError::Unknown { name: name.to_owned() })
}

fn names() -> Vec<&'static str> {
    STUDIES.iter().map(|study| study.name).collect()
}

impl Study {
    /// What users call it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Authors, title, where it appeared: what it repeats.
    pub const fn citation(&self) -> &'static str {
        self.citation
    }

    /// What [`Row::published`] and [`Row::farcast`] are in its tables.
    pub const fn columns(&self) -> [&'static str; 2] {
        self.columns
    }

    /// Settings that are simulated; none where a closed form is all there is.
    pub const fn settings(&self) -> u64 {
        self.settings
    }

    /// How many replications of each setting this effort takes.
    pub const fn replications(&self, effort: Effort) -> u64 {
        match effort {
            Effort::Full => self.replications.0,
            Effort::Quick => self.replications.1,
            Effort::Replications(count) => count,
        }
    }

    /// Whether this machine has what the study needs.
    ///
    /// # Errors
    /// [`StudyError::Missing`], or [`StudyError::System`] where the system refused to say.
    pub fn needs(&self, options: &Options<'_>) -> Result<(), StudyError> {
        (self.needs)(options)
    }

    /// Does what the paper did, and compares. `progress` is told ten times a second how it stands
    /// ([`Progress::Replications`] and [`Progress::Runs`]).
    ///
    /// # Errors
    /// Why there are no rows; nothing is given back of a study that did not come to its end.
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

/// What a study came to, for its files and tables.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// Its name.
    pub name: &'static str,
    /// What it repeats.
    pub citation: &'static str,
    /// What the two columns of numbers are.
    pub columns: [&'static str; 2],
    /// The seed of all random numbers.
    pub seed: u64,
    /// Replications of each setting; `None` where no chance is in the numbers.
    pub replications: Option<u64>,
    /// All numbers.
    pub rows: Vec<Row>,
}

impl Results {
    /// These rows of a study that was run so.
    pub fn new(study: &Study, options: &Options<'_>, rows: Vec<Row>) -> Self {
        let replications = (study.settings > 0).then(|| study.replications(options.effort));
        let Study { name, citation, columns, .. } = *study;
        Self { name, citation, columns, seed: options.seed, replications, rows }
    }
}
