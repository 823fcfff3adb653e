//! What `SciPy` and statsmodels say of the same samples: `vectors/scipy`, which `scripts/stats-vectors` wrote and which name
//! the versions. One file for each kind of question.

mod bootstrap;
mod common;
mod comparisons;
mod means;
mod steady;
