//! Errors of a transfer.

use std::fmt;

use farcast_net::NetError;

/// Kind of an [`Error`]: who has to act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option, a key or a file of the caller's is wrong.
    Usage,
    /// The transfer, the network or the machine failed, or the transfer was stopped.
    Failed,
    /// Some receivers are incomplete, or some files are.
    Incomplete,
}

/// Error of a transfer: a sentence that says what is wrong, where, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Sentence for people, without a full stop.
    pub sentence: String,
}

impl Error {
    /// Returns the error for a wrong option or a wrong file of the caller's.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, sentence: sentence.into() }
    }

    /// Returns the error for a transfer that failed.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Failed, sentence: sentence.into() }
    }

    /// Returns the error for something of the caller's that `error` finds wrong.
    pub(crate) fn wrong(error: impl std::error::Error) -> Self {
        Self::usage(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<crate::host::HostError> for Error {
    fn from(error: crate::host::HostError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<NetError> for Error {
    /// Settings that contradict each other are wrong usage. Other errors are those of the network or the machine.
    fn from(error: NetError) -> Self {
        match error {
            NetError::Config(_)
            | NetError::Parity { .. }
            | NetError::SourceWithoutGroup(_)
            | NetError::NotADirectory(_)
            | NetError::DanglingDirectory { .. }
            | NetError::GroupWithoutSource(_) => Self::usage(error.to_string()),
            other => Self::failed(other.to_string()),
        }
    }
}
