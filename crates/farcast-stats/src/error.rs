//! Errors of the statistics functions.

use thiserror::Error;

/// Reason for which a statistic cannot be computed from the given arguments.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum StatsError {
    /// The input is empty.
    #[error("no values were given; at least one is needed")]
    Empty,
    /// A value that cannot be averaged: not finite, or beyond ±1e140.
    #[error("{value} cannot be averaged; a value must be finite and lie within -1e140 to 1e140")]
    Value {
        /// The value.
        value: f64,
    },
    /// A value that cannot be ordered: not a number, or minus infinity.
    #[error("{value} cannot be ordered; a value must be a number above minus infinity")]
    Unordered {
        /// The value.
        value: f64,
    },
    /// The values do not ascend.
    #[error("the values are not sorted; they must ascend")]
    Unsorted,
    /// A number that is not a probability.
    #[error("{value} is not a probability; it must lie within 0 to 1")]
    Probability {
        /// The number.
        value: f64,
    },
    /// A level outside 0 to 1, exclusive.
    #[error("{value} is not a level; it must lie between 0 and 1 and be neither")]
    Level {
        /// The number.
        value: f64,
    },
    /// A confidence level outside 0.5 to 0.9999.
    #[error("{value} is not a level of confidence; it must lie within 0.5 to 0.9999")]
    Confidence {
        /// The number.
        value: f64,
    },
    /// More successes than trials.
    #[error(
        "{successes} successes were given for {trials} trials; there cannot be more successes than trials"
    )]
    Successes {
        /// The successes.
        successes: u64,
        /// The trials.
        trials: u64,
    },
    /// Too many trials: the computation would take too long.
    #[error("{count} trials are too many; at most {limit} are allowed")]
    TooManyTrials {
        /// The trials asked for.
        count: u64,
        /// The most that are allowed.
        limit: u64,
    },
    /// Too few trials or values for the statistic.
    #[error("there are too few values: {given}, and at least {needed} are needed")]
    TooFew {
        /// Number of trials or values that were given.
        given: u64,
        /// Number of trials or values that are needed.
        needed: u64,
    },
    /// More values than the statistic takes.
    #[error("there are too many values: {given}, and at most {limit} are allowed")]
    TooMany {
        /// Number of values that were given.
        given: u64,
        /// The most that are allowed.
        limit: u64,
    },
    /// A series that has not settled.
    #[error(
        "{truncation} of {values} values come before the series settles, more than half; it must be longer"
    )]
    Unsettled {
        /// Number of values before the series settles.
        truncation: u64,
        /// Number of values in the series.
        values: u64,
    },
    /// The number of counts differs from the number of probabilities.
    #[error("{counts} counts were given for {probabilities} probabilities; there must be as many of each")]
    Categories {
        /// Number of counts.
        counts: usize,
        /// Number of probabilities.
        probabilities: usize,
    },
    /// Paired samples of different sizes.
    #[error("{first} values were given for {second} others; there must be as many of each")]
    Pairs {
        /// Number of values of the first sample.
        first: usize,
        /// Number of values of the second sample.
        second: usize,
    },
    /// More categories than the exact test enumerates.
    #[error("{categories} categories are too many for an exact test; at most {limit} are allowed")]
    TooManyCategories {
        /// Number of categories.
        categories: usize,
        /// The most that are allowed.
        limit: usize,
    },
    /// Probabilities of all categories that do not add up to 1.
    #[error("the probabilities add up to {sum}; they must add up to 1")]
    ProbabilitySum {
        /// Sum of the probabilities.
        sum: f64,
    },
    /// More outcomes than the exact test enumerates.
    #[error("these counts have too many outcomes for an exact test; at most {limit} are allowed")]
    TooManyOutcomes {
        /// The most that are allowed.
        limit: u64,
    },
    /// A standard deviation outside 0 to 1e140.
    #[error("{value} is not a standard deviation; it must lie within 0 to 1e140")]
    Deviation {
        /// The number.
        value: f64,
    },
    /// A relative precision that is not finite, or not above 0.
    #[error("{value} is not a relative precision; it must be finite and above 0")]
    Precision {
        /// The number.
        value: f64,
    },
    /// A studentised range that is negative or not a number.
    #[error("{value} is not a studentised range; it must be 0 or more")]
    Range {
        /// The number.
        value: f64,
    },
    /// A result of a replication that is not the next one.
    #[error("the result of replication {given} was given where that of {expected} is next")]
    Order {
        /// The index that is next.
        expected: u64,
        /// The index that was given.
        given: u64,
    },
}
