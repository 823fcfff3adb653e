//! Statistics of replications and series: summaries with intervals, quantiles, tests, and when to stop.
//!
//! Everything here is a pure function of its arguments: no clock, and no state beyond the accumulators that a caller
//! feeds. Functions that draw at random, such as [`bootstrap_interval`], take a seed, and every draw follows from
//! that seed. Results raise four questions:
//!
//! * *How well do we know our own number?* [`Summary`] with its confidence interval, [`t_interval`] at other levels,
//!   [`bootstrap_interval`] for statistics other than the mean, [`binomial_interval`], [`StoppingRule`].
//! * *Does a published number agree with ours?* [`prediction_half_width`] for a mean, [`binomial_range`] and
//!   [`predictive_binomial_range`] for a count, [`multinomial_p_value`] for a table of counts, [`ks_two_sample`] for
//!   two samples, [`chi_square_exponential`] for times between events of a Poisson process.
//! * *Does a varied setting make a difference?* [`paired`] and [`paired_bootstrap`] with common random numbers,
//!   [`welch`] without them. For several variants, [`one_way_anova`] tells whether any differ and [`tukey_pairs`]
//!   which ones do. [`holm`] and [`benjamini_hochberg`] adjust p-values for many such questions at once.
//!   [`tukey_hsd`] gives the least significant difference between means of samples of one size.
//! * *What does one long run say?* [`mser`] finds the point at which it settles, [`batch_means`] its mean.
#![forbid(unsafe_code)]

mod anova;
mod batch_means;
mod binomial;
mod bootstrap;
mod chi_square;
mod difference;
mod error;
mod ks;
mod mser;
mod multinomial;
mod multiple;
mod quantile;
mod special;
mod stopping;
mod student;
mod studentized_range;
mod summary;
mod tukey;

pub use anova::{Anova, one_way_anova};
pub use batch_means::{BatchMeans, batch_means};
pub use binomial::{COUNT_LIMIT, Interval, binomial_interval, binomial_range, predictive_binomial_range};
pub use bootstrap::{
    BootstrapInterval, Correction, RESAMPLE_LIMIT, Statistic, bootstrap_interval, paired_bootstrap,
};
pub use chi_square::{ChiSquareTest, chi_square_exponential};
pub use difference::{MeanDifference, paired, welch};
pub use error::StatsError;
pub use ks::{KsTest, ks_two_sample};
pub use mser::mser;
pub use multinomial::{CATEGORY_LIMIT, OUTCOME_LIMIT, multinomial_log_likelihood, multinomial_p_value};
pub use multiple::{benjamini_hochberg, holm};
pub use quantile::{Quantiles, quantile};
pub use stopping::{Precision, StoppingRule};
pub use student::{MeanInterval, t_interval};
pub use studentized_range::{studentized_range_quantile, studentized_range_survival};
pub use summary::{Accumulator, Summary, VALUE_LIMIT, prediction_half_width};
pub use tukey::{TukeyHsd, TukeyPair, tukey_hsd, tukey_pairs};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
