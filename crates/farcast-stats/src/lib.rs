//! Statistics of replications: summaries with intervals, quantiles, tests.
#![forbid(unsafe_code)]
