//! Parts that the laboratory's commands share: a scenario, its replications, and progress for a user who waits.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use farcast_core::{Span, Time};
use farcast_lab::points::{PointError, Resources};
use farcast_lab::replications::Memory;
use farcast_lab::shipped;
use farcast_lab::sweep::{SweepError, SweepProgress};
use farcast_lab::traffic::send_over;
use farcast_lab::vary::Axis;
use farcast_report::page::Page;
use farcast_scenario::document::Document;

use crate::args::LabArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::simulate::{no_traffic, too_large};
use crate::{Exit, Failure};

/// Version that results carry.
pub(crate) const VERSION: &str = env!("FARCAST_VERSION");

/// Opens the scenario that the command line names, and applies the command line's settings and traffic.
pub(crate) fn document(args: &LabArgs) -> Result<Document, Failure> {
    let mut document = shipped::open(&args.scenario).map_err(Failure::wrong)?;
    for assignment in &args.set {
        document.set(assignment).map_err(Failure::wrong)?;
    }
    send_over(&mut document, &args.traffic).map_err(no_traffic)?;
    Ok(document)
}

/// Returns the memory that replications may take: the given limit, or that of the machine.
pub(crate) fn memory(args: &LabArgs) -> Memory {
    args.memory.map_or_else(Memory::of_machine, Memory::at_most)
}

/// Returns the settings by which points are run: seed, threads, memory and stop flag.
pub(crate) fn work<'a>(args: &LabArgs, memory: &'a Memory, stop: &'a AtomicBool) -> Resources<'a> {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    Resources { seed: args.seed, threads: args.threads.map_or_else(cores, usize::from), memory, stop }
}

/// Progress of a command that runs points.
pub(crate) struct Waiting<'a> {
    output: &'a Output,
    progress: Progress,
    what: &'static str,
}

impl<'a> Waiting<'a> {
    /// Begins the progress of `what`.
    pub(crate) fn new(output: &'a Output, what: &'static str) -> Self {
        Self { output, progress: Progress::new(output), what }
    }

    /// Shows the number of points that are done, and the time that is left.
    pub(crate) fn tell(&mut self, standing: SweepProgress) {
        let SweepProgress { elapsed, points, kept, total, replications } = standing;
        let done = points.saturating_sub(kept);
        let share = (total - points) as f64 / done as f64;
        let left = (done > 0).then(|| Span::from_secs_f64(elapsed.as_secs_f64() * share));
        let left = left.map_or_else(String::new, |left| format!(", {} left", rounded(left)));
        let message = format!("{points} of {total} points, {replications} replications{left}");
        let counts = (points as u64, total as u64);
        self.progress.update(self.output, Time::ZERO + elapsed, (self.what, &message), counts, &[]);
    }

    /// Removes the progress from the screen.
    pub(crate) fn clear(&mut self) {
        self.progress.clear();
    }
}

/// Returns a time as rounded as a person who waits wants it.
pub(crate) fn rounded(time: Span) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Returns the failure for a sweep that has no result.
pub(crate) fn failed(error: SweepError, resumable: bool) -> Failure {
    match error {
        SweepError::Vary(error) => Failure::usage(error.to_string()),
        SweepError::Document(error) => Failure::wrong(error),
        SweepError::Point(error) => point_failed(error, resumable),
        error @ SweepError::Foreign { .. } => Failure::usage(error.to_string()),
        error => error.into(),
    }
}

/// Blames `option` for a failure if it varies the key that is wrong: a point names the key as --set would.
pub(crate) fn said_by(option: &str, axes: &[Axis], failure: Failure) -> Failure {
    let Some(rest) = failure.sentence.strip_prefix("--set ") else { return failure };
    let key = rest.split_once('=').map(|(key, _)| key);
    if !axes.iter().any(|axis| Some(axis.key()) == key) {
        return failure;
    }
    Failure { sentence: format!("{option} {rest}"), ..failure }
}

/// Returns the failure for a point that could not be run.
pub(crate) fn point_failed(error: PointError, resumable: bool) -> Failure {
    match error {
        PointError::Document(error) => Failure::wrong(error),
        PointError::Memory(error) => too_large(error),
        PointError::Replication(error) => Failure::wrong(error),
        PointError::Interrupted => {
            let what = if resumable {
                "interrupted; the same command goes on with what is not done"
            } else {
                "interrupted; with --out DIR the same command could go on where it was"
            };
            Failure { sentence: what.to_owned(), exit: Exit::Failed }
        }
        error => error.into(),
    }
}

/// Writes a page, and prints its path.
pub(crate) fn write_page(path: &Path, page: &Page, output: &Output) -> Result<(), Failure> {
    farcast_lab::study::files::write_text(path, &page.html()).map_err(Failure::wrong)?;
    output.line(&format!("{} shows it", path.display()));
    Ok(())
}
