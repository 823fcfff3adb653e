//! Errors in the settings of a loss process or a stage.

/// A setting that a loss process or a stage cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A Gilbert-Elliott chain that never moves has no stationary state to start in.
    #[error("the transition probabilities p and r are both 0; at least one must be above 0")]
    NoTransitions,
    /// A mean duration is zero.
    #[error("the mean {0} is 0; it must be at least 1 ns")]
    ZeroMean(&'static str),
    /// An error vector holds something other than bits.
    #[error(
        "an error vector holds {0:?}; only 0 (kept) and 1 (lost) are allowed, and white space between them"
    )]
    VectorSymbol(char),
    /// Error vectors that repeat have no common length.
    #[error("error vectors that repeat must all have the same length, at least 1 frame")]
    VectorLength,
    /// An outage has no length.
    #[error("an outage has length 0; it must be at least 1 ns")]
    ZeroOutage,
    /// The windows of a schedule do not fit its period.
    #[error("the outages last longer than their period; the last must end before the first repeats")]
    Period,
    /// A queue that holds nothing lets nothing pass.
    #[error("the queue limit is 0; it must be at least 1 packet or 1 octet")]
    ZeroQueue,
    /// A frame would leave before it departs.
    #[error("the jitter exceeds the delay; its half width or limit must be at most the delay")]
    JitterBeyondDelay,
    /// Normal jitter is cut too close to be drawn.
    #[error("the limit of normal jitter is below its deviation; it must be at least the deviation")]
    JitterLimit,
}
