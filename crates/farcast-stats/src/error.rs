//! What a caller can get wrong.

use thiserror::Error;

/// Why a statistic cannot be computed from what was given.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum StatsError {
    /// There is nothing to compute from.
    #[error("no values were given; at least one is needed")]
    Empty,
    /// A value that has no place in a mean.
    #[error("{value} cannot be averaged; a value must be finite and lie within -1e140 to 1e140")]
    Value {
        /// The value.
        value: f64,
    },
    /// A value that has no place in an order.
    #[error("{value} cannot be ordered; a value must be a number above minus infinity")]
    Unordered {
        /// The value.
        value: f64,
    },
    /// Values that must ascend do not.
    #[error("the values are not sorted; they must ascend")]
    Unsorted,
    /// A number that is no probability.
    #[error("{value} is not a probability; it must lie within 0 to 1")]
    Probability {
        /// The number.
        value: f64,
    },
    /// A number that is no level of confidence.
    #[error("{value} is not a level; it must lie between 0 and 1 and be neither")]
    Level {
        /// The number.
        value: f64,
    },
    /// A number that is no level of an interval.
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
    /// A count of trials that would take too long.
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
        /// How many were given.
        given: u64,
        /// How many are needed.
        needed: u64,
    },
    /// More than the statistic takes.
    #[error("there are too many values: {given}, and at most {limit} are allowed")]
    TooMany {
        /// How many were given.
        given: u64,
        /// The most that are allowed.
        limit: u64,
    },
    /// A series that has not settled.
    #[error(
        "{truncation} of {values} values come before the series settles, more than half; it must be longer"
    )]
    Unsettled {
        /// How many values come before.
        truncation: u64,
        /// How many there are.
        values: u64,
    },
    /// Counts and probabilities that do not belong together.
    #[error("{counts} counts were given for {probabilities} probabilities; there must be as many of each")]
    Categories {
        /// How many counts.
        counts: usize,
        /// How many probabilities.
        probabilities: usize,
    },
    /// Samples that should stand in pairs and do not.
    #[error("{first} values were given for {second} others; there must be as many of each")]
    Pairs {
        /// How many values of the first sample.
        first: usize,
        /// How many of the second.
        second: usize,
    },
    /// More categories than the exact test enumerates.
    #[error("{categories} categories are too many for an exact test; at most {limit} are allowed")]
    TooManyCategories {
        /// How many categories.
        categories: usize,
        /// The most that are allowed.
        limit: usize,
    },
    /// Probabilities of all categories that are not those of something.
    #[error("the probabilities add up to {sum}; they must add up to 1")]
    ProbabilitySum {
        /// Their sum.
        sum: f64,
    },
    /// More outcomes than the exact test enumerates.
    #[error("these counts have too many outcomes for an exact test; at most {limit} are allowed")]
    TooManyOutcomes {
        /// The most that are allowed.
        limit: u64,
    },
    /// A number that is no standard deviation.
    #[error("{value} is not a standard deviation; it must lie within 0 to 1e140")]
    Deviation {
        /// The number.
        value: f64,
    },
    /// A number that is no relative precision.
    #[error("{value} is not a relative precision; it must be finite and above 0")]
    Precision {
        /// The number.
        value: f64,
    },
    /// A number that is no studentised range.
    #[error("{value} is not a studentised range; it must be 0 or more")]
    Range {
        /// The number.
        value: f64,
    },
    /// A result was fed out of its order.
    #[error("the result of replication {given} was given where that of {expected} is next")]
    Order {
        /// The index that is next.
        expected: u64,
        /// The index that was given.
        given: u64,
    },
}
