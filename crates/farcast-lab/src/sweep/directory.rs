//! Directory of a sweep.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use farcast_report::page::Page;

use super::{EarlierResults, FigureSummary, Journal, Sweep, SweepError, Swept, parquet};
use crate::study::files::staged;

/// Names of the files in a directory: every replication in columns, the summary of every point as CSV (RFC 4180), a
/// page, and the journal that makes a sweep resumable.
pub const NAMES: [&str; 4] = ["sweep.parquet", "summary.csv", "report.html", "journal"];

/// A directory into which a sweep is written.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Journal with the results of all finished points.
    pub journal: Journal,
}

impl Directory {
    /// Opens a directory, or creates it. Returns the results of earlier runs, and the number of octets that were not
    /// a complete record.
    ///
    /// # Errors
    /// The directory is in use, it holds other files of these names, or the system refused it.
    pub fn open(path: &Path) -> Result<(Self, EarlierResults, u64), SweepError> {
        std::fs::create_dir_all(path)
            .map_err(|source| SweepError::File { path: path.to_path_buf(), source })?;
        let (journal, found, lost) = Journal::open(&path.join(NAMES[3]))?;
        Ok((Self { path: path.to_path_buf(), journal }, found, lost))
    }

    /// Writes the results. Each file gets its name only when complete.
    ///
    /// # Errors
    /// The system refused it, or a value cannot be summed up.
    pub fn write(&self, sweep: &Sweep, swept: &Swept) -> Result<(), SweepError> {
        let path = self.path.join(NAMES[0]);
        staged(&path, |file| parquet::write(file, sweep, swept))
            .map_err(|source| SweepError::File { path, source })?;
        let lines = swept.summary().map_err(|error| SweepError::Point(error.into()))?;
        self.put(NAMES[1], &csv(swept, &lines))
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The system refused it.
    pub fn write_page(&self, page: &Page) -> Result<(), SweepError> {
        self.put(NAMES[2], &page.html())
    }

    fn put(&self, name: &str, text: &str) -> Result<(), SweepError> {
        let path = self.path.join(name);
        staged(&path, |file| io::Write::write_all(file, text.as_bytes()))
            .map_err(|source| SweepError::File { path, source })
    }
}

/// Returns the summary as CSV, with the values of each point's settings.
pub(crate) fn csv(swept: &Swept, lines: &[FigureSummary]) -> String {
    let axes = swept.grid.axes();
    let keys: String = axes.iter().map(|axis| crate::study::files::quoted(axis.key()) + ",").collect();
    let mut text = format!("point,{keys}figure,replications,n,mean,ci95_half_width,sd,p05,p50,p95\r\n");
    for line in lines {
        let values: String = swept
            .grid
            .values(line.point)
            .iter()
            .map(|value| crate::study::files::quoted(value) + ",")
            .collect();
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let measure = &line.measure;
        let numbers =
            [measure.mean, measure.ci95_half_width, measure.sd, measure.p05, measure.p50, measure.p95];
        let numbers = numbers.map(number).join(",");
        let figure = crate::study::files::quoted(&line.figure);
        // Writing to a String cannot fail.
        let _ =
            write!(text, "{},{values}{figure},{},{},{numbers}\r\n", line.point, line.replications, measure.n);
    }
    text
}
