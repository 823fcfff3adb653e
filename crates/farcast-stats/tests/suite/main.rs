//! What `SciPy` and statsmodels say of the same samples: `vectors/scipy`, which `scripts/stats-vectors` wrote and which name
//! the versions, one file for each kind of question; and what happens to numbers that nobody would give.

mod bootstrap;
mod common;
mod comparisons;
mod hostile;
mod means;
mod steady;
