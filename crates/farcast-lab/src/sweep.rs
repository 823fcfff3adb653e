//! Sweeps: every combination of some settings, each with replications of its own.
//!
//! A sweep is resumable. The result of a point is stored in a [`Store`] as soon as it is there, and the point is not
//! run again. The key of a result follows from everything on which its figures depend. After a value is added to an
//! axis, only the new points are run.

mod directory;
mod journal;
mod parquet;
mod summary;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use farcast_core::Span;
use farcast_scenario::document::{Document, DocumentError};
use farcast_sim::replicate::HowMany;

use crate::figures::Figures;
use crate::points::{self, PointError, PointRequest, PointResult, Resources};
use crate::table::{Column, Table};
use crate::vary::{Grid, VaryError};
use crate::world::World;
pub(crate) use directory::csv;
pub use directory::{Directory, NAMES};
pub use journal::{Journal, decode, encode};
pub(crate) use summary::measure;
pub use summary::{FigureSummary, summary};

/// A task for a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    document: Document,
    grid: Grid,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of replications of each point.
    pub how_many: HowMany,
    /// Version of the program: results of another version are not reused.
    pub version: String,
}

/// Key of a point's result: equal only for the same scenario, seed, number of replications and version.
pub type PointKey = [u8; 32];

/// Storage of results between runs.
pub trait Store {
    /// Stores the result of the point with this key.
    ///
    /// # Errors
    /// The result cannot be stored.
    fn keep(&mut self, key: &PointKey, done: &PointResult) -> io::Result<()>;
}

/// A store that stores nothing.
impl Store for () {
    fn keep(&mut self, _: &PointKey, _: &PointResult) -> io::Result<()> {
        Ok(())
    }
}

/// Result of a point.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Figures of its replications.
    pub figures: Figures,
    /// Time that cores spent on its replications, in seconds; for a point of an earlier run, the time spent then.
    pub cpu_s: f64,
}

/// All points of a sweep, in the order of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct Swept {
    /// The varied settings.
    pub grid: Grid,
    /// Result of each point.
    pub points: Vec<Point>,
    /// Number of points that were run earlier.
    pub kept: usize,
    /// Duration of the run, in real time.
    pub elapsed: Span,
}

/// Error of a sweep.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The description of the varied settings is wrong.
    #[error(transparent)]
    Vary(#[from] VaryError),
    /// The scenario of a point is wrong.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A point cannot be run.
    #[error(transparent)]
    Point(#[from] PointError),
    /// The directory is in use.
    #[error("{} is in use: another sweep writes into it", .0.display())]
    InUse(PathBuf),
    /// A file has an unexpected content.
    #[error("{}: {what}", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// Description of what is wrong.
        what: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A result cannot be stored.
    #[error("cannot keep what a point came to: {0}")]
    Store(#[from] io::Error),
}

/// Progress of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SweepProgress {
    /// Time since it was begun or resumed, in real time.
    pub elapsed: Span,
    /// Number of points that are done, including those of earlier runs.
    pub points: usize,
    /// Number of points of earlier runs.
    pub kept: usize,
    /// Number of all points.
    pub total: usize,
    /// Number of replications of this run.
    pub replications: u64,
}

impl Sweep {
    /// Creates a sweep of `grid` in the scenario of `document`.
    ///
    /// # Errors
    /// The scenario is wrong somewhere on an axis: each value is tried with the first value of all other axes.
    pub fn new(
        document: Document,
        grid: Grid,
        seed: u64,
        how_many: HowMany,
        version: &str,
    ) -> Result<Self, SweepError> {
        let sweep = Self { document, grid, seed, how_many, version: version.to_owned() };
        sweep.read(0)?;
        let axes = sweep.grid.axes();
        for (number, axis) in axes.iter().enumerate() {
            let after: usize = axes[number + 1..].iter().map(|axis| axis.values().len()).product();
            for value in 1..axis.values().len() {
                sweep.read(value * after)?;
            }
        }
        Ok(sweep)
    }

    /// Returns the varied settings.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns the scenario's document, without varied settings.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Reads the scenario at a point of the grid.
    ///
    /// # Errors
    /// The scenario is wrong there.
    pub fn read(&self, point: usize) -> Result<World, DocumentError> {
        World::read(&self.document_at(point)?)
    }

    /// Returns the scenario's document at a point of the grid.
    ///
    /// # Errors
    /// The settings of the point cannot be laid over it.
    pub fn document_at(&self, point: usize) -> Result<Document, DocumentError> {
        with(self.document.clone(), &self.grid.assignments(point))
    }

    /// Returns the key of a point's result.
    ///
    /// # Errors
    /// The scenario is wrong there.
    pub fn key(&self, point: usize) -> Result<PointKey, DocumentError> {
        let document = self.document_at(point)?;
        World::read(&document)?;
        let mut hash = blake3::Hasher::new();
        let mut part = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        part(&self.version);
        part(&format!("{} {:?}", self.seed, self.how_many));
        part(&document.in_effect());
        for (path, text) in document.files_read() {
            part(&path);
            part(&text);
        }
        Ok(*hash.finalize().as_bytes())
    }

    /// Returns the keys of all points.
    ///
    /// # Errors
    /// The scenario is wrong somewhere.
    pub fn keys(&self) -> Result<Vec<PointKey>, DocumentError> {
        (0..self.grid.points()).map(|point| self.key(point)).collect()
    }

    /// Runs the points that are not among `found`, and stores each in `store`. `progress` is called ten times a
    /// second.
    ///
    /// # Errors
    /// A point that cannot be run, or a result that cannot be stored; earlier results stay stored.
    pub fn run(
        &self,
        mut found: EarlierResults,
        store: &mut dyn Store,
        work: &Resources<'_>,
        progress: &mut dyn FnMut(SweepProgress),
    ) -> Result<Swept, SweepError> {
        let total = self.grid.points();
        let keys = self.keys()?;
        let mut places: Vec<Option<Point>> = keys.iter().map(|key| found.remove(key)).collect();
        let kept = places.iter().flatten().count();
        let missing: Vec<PointRequest> = (0..total)
            .filter(|&point| places[point].is_none())
            .map(|point| PointRequest { point, first: 0, how_many: self.how_many })
            .collect();
        let mut standing = SweepProgress { elapsed: Span::ZERO, points: kept, kept, total, replications: 0 };
        let mut done = |done: PointResult| -> Result<(), SweepError> {
            store.keep(&keys[done.point], &done)?;
            places[done.point] = Some(Point { figures: done.figures, cpu_s: done.cpu_s });
            Ok(())
        };
        // A document records its readers, so each thread has a copy of its own.
        let (document, grid) = (Mutex::new(self.document.clone()), &self.grid);
        let make = |point| {
            let own = document.lock().unwrap_or_else(PoisonError::into_inner).clone();
            World::read(&with(own, &grid.assignments(point))?)
        };
        points::run(&missing, work, &make, &mut done, &mut |now| {
            standing.elapsed = now.elapsed;
            standing.points = kept + now.points;
            standing.replications = now.replications;
            progress(standing);
        })?;
        let points = places.into_iter().flatten().collect();
        Ok(Swept { grid: self.grid.clone(), points, kept, elapsed: standing.elapsed })
    }
}

/// Returns the document with these assignments laid over it.
fn with(mut document: Document, assignments: &[String]) -> Result<Document, DocumentError> {
    for assignment in assignments {
        document.set(assignment)?;
    }
    Ok(document)
}

impl Point {
    /// Returns `true` if the scenario can be complete: it has a transfer, or a flow of a given size.
    pub fn has_end(&self) -> bool {
        self.figures.has_end()
    }

    /// Returns the number of replications that reached the time limit before that.
    pub fn unfinished(&self) -> usize {
        let times = self.figures.column("completion_time_s").unwrap_or_default();
        if self.has_end() { times.iter().filter(|time| time.is_nan()).count() } else { 0 }
    }
}

impl From<&Swept> for Table {
    /// Creates a table with a row for each replication of each point. Its columns are `point`, the varied keys as
    /// numbers in their base unit or as texts, `replication`, and the figures.
    fn from(swept: &Swept) -> Self {
        let rows = |point: &Point| point.figures.len();
        let numbers = |values: Vec<f64>| Column::Numbers(values);
        let of_each = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let repeated = |(number, point)| std::iter::repeat_n(value(number), rows(point));
            swept.points.iter().enumerate().flat_map(repeated).collect()
        };
        let mut columns = vec![("point".to_owned(), numbers(of_each(&|point| point as f64)))];
        for (place, axis) in swept.grid.axes().iter().enumerate() {
            let index = |point: usize| swept.grid.indices(point)[place];
            let column = match axis.numbers() {
                Some(all) => numbers(of_each(&|point| all.values[index(point)])),
                None => Column::Texts(
                    of_each(&|point| index(point) as f64)
                        .into_iter()
                        .map(|index| axis.values()[index as usize].clone())
                        .collect(),
                ),
            };
            columns.push((axis.key().to_owned(), column));
        }
        let replication = swept.points.iter().flat_map(|point| 0..rows(point)).map(|index| index as f64);
        columns.push(("replication".to_owned(), numbers(replication.collect())));
        for name in swept.columns() {
            let values = swept.points.iter().flat_map(|point| match point.figures.column(name) {
                Some(values) => values.to_vec(),
                None => vec![f64::NAN; rows(point)],
            });
            columns.push((name.to_owned(), numbers(values.collect())));
        }
        Self::of_columns(columns)
    }
}

impl Swept {
    /// Returns every column that any point has, the completion time first.
    pub fn columns(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.points.iter().flat_map(|point| point.figures.columns().map(|(name, _)| name)).collect();
        names.sort_unstable_by_key(|name| crate::figures::order(name));
        names.dedup();
        names
    }

    /// Returns the column for which `name` stands: its name, or its former name.
    pub fn find(&self, name: &str) -> Option<&str> {
        crate::figures::find(name, self.columns())
    }

    /// Returns the time that cores spent on replications, in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.points.iter().map(|point| point.cpu_s).sum()
    }

    /// Returns the number of replications of all points.
    pub fn replications(&self) -> usize {
        self.points.iter().map(|point| point.figures.len()).sum()
    }
}

/// Results of points in earlier runs, by their keys.
pub type EarlierResults = HashMap<PointKey, Point>;
