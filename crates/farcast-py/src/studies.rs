//! Published studies.

use std::num::NonZeroUsize;

use farcast_lab::Progress;
use farcast_lab::study::{Effort, Options, StudyError};
use pyo3::prelude::*;

use crate::errors::{failed, wrong};
use crate::points::{InterruptWatch, count, workers};

/// Returns all studies: name, and citation of the publication.
#[pyfunction]
pub(crate) fn studies() -> Vec<(&'static str, &'static str)> {
    farcast_lab::studies::all().iter().map(|study| (study.name(), study.citation())).collect()
}

/// Repeats a study. Returns its rows as JSON.
#[pyfunction]
pub(crate) fn reproduce(
    py: Python<'_>,
    name: &str,
    quick: bool,
    replications: Option<Bound<'_, PyAny>>,
    seed: Bound<'_, PyAny>,
    threads: Option<Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let replications = replications.map(|said| count("replications", &said)).transpose()?;
    let (seed, threads) = (count("seed", &seed)?, workers(threads.as_ref())?);
    let study = farcast_lab::studies::named(name).map_err(wrong)?;
    let watch = InterruptWatch::new(progress);
    let effort = match (replications, quick) {
        (Some(count), _) => Effort::Replications(count),
        (None, true) => Effort::Quick,
        (None, false) => Effort::Full,
    };
    let result = py.detach(|| {
        let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        let options = Options { seed, effort, threads, ..Options::new(&watch.stop) };
        study.needs(&options)?;
        study.run(&options, &mut |standing| {
            if let Progress::Replications { done, total, .. } | Progress::Runs { done, total, .. } = standing
            {
                watch.look(done, total, done);
            }
        })
    });
    let rows = watch.result(result.map_err(|error| match error {
        error @ StudyError::Unknown { .. } => wrong(error),
        error => failed(error),
    }))?;
    serde_json::to_string(&rows).map_err(failed)
}
