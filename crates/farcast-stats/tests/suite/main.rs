//! Comparison with results of `SciPy` and statsmodels for the same samples, and unreasonable numbers. The results are
//! in `vectors/scipy`, one file for each kind of question; `scripts/stats-vectors` wrote these files, which name the
//! versions.

mod bootstrap;
mod common;
mod comparisons;
mod hostile;
mod means;
mod steady;
