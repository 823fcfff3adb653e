//! Errors as exceptions: the same sentence, in a class by its origin.

use std::fmt::Display;

use farcast_lab::points::PointError;
use farcast_lab::sweep::SweepError;
use farcast_lab::tune::TuneError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

create_exception!(farcast, FarcastError, PyException, "Whatever farcast says is wrong.");
create_exception!(
    farcast,
    ScenarioError,
    FarcastError,
    "A scenario, a setting or what was asked of them is wrong: file, line, key, what is wrong, what is allowed."
);
create_exception!(farcast, RunError, FarcastError, "What was right could not be run: memory, files, time.");

// The class that users see is a class of Python below this one.
create_exception!(
    farcast._native,
    TransferError,
    FarcastError,
    "A transfer could not be done, failed, or left receivers incomplete."
);

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("FarcastError", py.get_type::<FarcastError>())?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("RunError", py.get_type::<RunError>())?;
    module.add("TransferError", py.get_type::<TransferError>())
}

/// Returns the exception for an error in the caller's input.
pub(crate) fn wrong(error: impl Display) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// Returns the exception for a run that failed.
pub(crate) fn failed(error: impl Display) -> PyErr {
    RunError::new_err(error.to_string())
}

pub(crate) fn of_point(error: PointError) -> PyErr {
    match error {
        PointError::Interrupted => PyKeyboardInterrupt::new_err(()),
        PointError::Document(error) => wrong(error),
        error => failed(error),
    }
}

pub(crate) fn of_sweep(error: SweepError) -> PyErr {
    match error {
        SweepError::Point(error) => of_point(error),
        SweepError::Vary(error) => wrong(error),
        SweepError::Document(error) => wrong(error),
        error => failed(error),
    }
}

pub(crate) fn of_tuning(error: TuneError) -> PyErr {
    match error {
        TuneError::Sweep(error) => of_sweep(error),
        TuneError::Point(error) => of_point(error),
        TuneError::Objective(error) => wrong(error),
        error => failed(error),
    }
}
