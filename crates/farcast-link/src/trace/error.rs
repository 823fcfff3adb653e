//! Errors in a file that a link follows.

/// A rate trace that cannot be followed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line is no time.
    #[error(
        "line {line}: {text:?} is no time; a line is one whole number of milliseconds from 0 to 4294967295"
    )]
    NotANumber {
        /// Number of the line, from 1.
        line: usize,
        /// Text of the line, at most 40 characters of it.
        text: alloc::string::String,
    },
    /// Times go back.
    #[error("line {line}: {at} ms comes after {before} ms; times must not go back")]
    Backwards {
        /// Number of the line, from 1.
        line: usize,
        /// Its time in milliseconds.
        at: u32,
        /// The time of the line before.
        before: u32,
    },
    /// The trace has more lines than memory is given to.
    #[error("the trace has more than {most} lines; cut it into shorter ones")]
    TooLong {
        /// The most lines that a trace may have.
        most: usize,
    },
    /// There is no line.
    #[error("the trace is empty; it needs at least one line with a time above 0 ms")]
    Empty,
    /// The last time, after which a trace repeats, is 0.
    #[error("the trace ends at 0 ms; its last time is its period and must be above 0")]
    NoPeriod,
}

/// A timeline that cannot be followed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// The first line does not name the columns.
    #[error(
        "line 1: the header is {0:?}; it must be time_s and one or more of rate_bit_per_s, delay_s and per, \
         separated by commas"
    )]
    Header(alloc::string::String),
    /// A line has too few or too many fields.
    #[error("line {line}: {found} fields; it needs {needed}, as the header has")]
    Fields {
        /// Number of the line, from 1.
        line: usize,
        /// Number of fields of the line.
        found: usize,
        /// Number of columns of the header.
        needed: usize,
    },
    /// A field is no number in its range.
    #[error("line {line}: {column} is {text:?}; it must be a number, {range}")]
    Value {
        /// Number of the line, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// Text of the field, at most 40 characters of it.
        text: alloc::string::String,
        /// Allowed range.
        range: &'static str,
    },
    /// The first step begins late.
    #[error("line {line}: the first time must be 0; what holds before it is not said")]
    Start {
        /// Number of the line, from 1.
        line: usize,
    },
    /// Times do not ascend.
    #[error("line {line}: its time is not after that of the line before; times must ascend")]
    Order {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The timeline has more lines than memory is given to.
    #[error("the timeline has more than {most} lines; cut it into shorter ones")]
    TooLong {
        /// The most lines that a timeline may have, without the header.
        most: usize,
    },
    /// There is no line behind the header.
    #[error("the timeline has no line behind its header; it needs at least one, for time 0")]
    Empty,
    /// The timeline would repeat before its end.
    #[error("the period is {period:?}, the last line begins at {last:?}; the period must be longer")]
    Period {
        /// Period after which the timeline would repeat.
        period: farcast_core::Span,
        /// Start of the last step.
        last: farcast_core::Span,
    },
    /// Nothing is ever sent.
    #[error("the rate is 0 in every line; at least one must be above 0")]
    NeverOpen,
}

/// Returns as much of `text` as an error quotes.
pub(super) fn quoted(text: &str) -> alloc::string::String {
    text.chars().take(40).collect()
}
