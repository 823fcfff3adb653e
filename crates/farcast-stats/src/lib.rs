//! Statistics of replications: summaries with intervals, quantiles, tests, and when to stop.
//!
//! Everything here is a pure function of its arguments: no random draw, no clock, no state beyond the accumulators
//! that a caller feeds. Two questions are asked of results:
//!
//! * *How well do we know our own number?* [`Summary`] with its confidence interval, [`binomial_interval`],
//!   [`StoppingRule`].
//! * *Does a published number agree with ours?* [`prediction_half_width`] for a mean, [`binomial_range`] and
//!   [`predictive_binomial_range`] for a count, [`multinomial_p_value`] for a table of counts, [`ks_two_sample`] for
//!   two samples, [`chi_square_exponential`] for times between events of a Poisson process. [`tukey_hsd`] says by what
//!   means of several samples have to differ.
#![forbid(unsafe_code)]

mod binomial;
mod chi_square;
mod error;
mod ks;
mod multinomial;
mod quantile;
mod special;
mod stopping;
mod summary;
mod tukey;

pub use binomial::{COUNT_LIMIT, Interval, binomial_interval, binomial_range, predictive_binomial_range};
pub use chi_square::{ChiSquareTest, chi_square_exponential};
pub use error::StatsError;
pub use ks::{KsTest, ks_two_sample};
pub use multinomial::{CATEGORY_LIMIT, OUTCOME_LIMIT, multinomial_log_likelihood, multinomial_p_value};
pub use quantile::{Quantiles, quantile};
pub use stopping::{Precision, StoppingRule};
pub use summary::{Accumulator, Summary, VALUE_LIMIT, prediction_half_width};
pub use tukey::{TukeyHsd, studentized_range_quantile, tukey_hsd};
