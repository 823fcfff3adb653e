//! Errors in a configuration.

/// A setting that the protocols cannot work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Echo requests would have no time between them.
    #[error("the echo interval is 0; it must be at least 1 ns")]
    EchoInterval,
    /// A link would be dead before the first request.
    #[error("the number of echo failures is 0; it must be at least 1")]
    EchoFailures,
    /// A bound of reassembly is zero.
    #[error("{0} is 0; it must be above zero")]
    Zero(&'static str),
}
