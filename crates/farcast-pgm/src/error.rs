//! Errors of configuration and of sending.

/// A setting that the engines cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The object cannot be cut like this.
    #[error(transparent)]
    Geometry(#[from] farcast_delivery::GeometryError),
    /// A name is too long.
    #[error("a name of {0} octets: it must fit a TSDU, and have 1024 at most")]
    Name(usize),
    /// All objects together have more numbers than a window.
    #[error("{0} TPDUs: a window has 2^31 - 1 at most")]
    Window(u64),
    /// A receiver is named twice.
    #[error("receiver {0} is named twice")]
    Node(u32),
    /// Parity was asked for with messages or with PGMCC, named here.
    #[error("parity is for files at a fixed rate: not with {0}")]
    Parity(&'static str),
    /// The setting named here is out of its range.
    #[error("{0} is out of range")]
    Range(&'static str),
}

/// Reason for which a message is not accepted for sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The backlog is full.
    #[error("too much waits to be sent")]
    Full,
    /// The message is empty, or its fragments need more sequence numbers than there are.
    #[error("a message of {0} octets")]
    Size(u32),
    /// This source sends files, or has ended.
    #[error("no message can be sent now")]
    Closed,
}
