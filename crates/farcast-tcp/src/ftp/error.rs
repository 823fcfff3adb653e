//! Errors of operations, sessions and transfers, by origin.

use super::reply::{Code, ReplyError};
use crate::Failure;
use crate::endpoint::EndpointError;

/// Reason for which a client does not accept an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// Too many operations wait.
    #[error("{0} operations wait already, as many as the settings allow")]
    Full(usize),
    /// A path cannot be written into a line.
    #[error("a path has 1 to {0} octets and no CR, LF or NUL")]
    Path(usize),
    /// The transfer would begin behind the end of the file.
    #[error("a file cannot be sent from octet {offset} on if it has {size}")]
    Offset {
        /// Octet at which the transfer was to begin.
        offset: u64,
        /// The file's size.
        size: u64,
    },
    /// The session is over, or was told to quit.
    #[error("the session takes no more operations: it is over, or was told to quit")]
    Over,
}

/// Reason for which an operation of a client failed. The session continues, unless its own event says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The server refused the operation.
    #[error("the server refused with {0}")]
    Refused(Code),
    /// The data connection could not be opened, or was lost.
    #[error("the data connection failed: {0}")]
    DataConnection(Failure),
    /// The server closed the data connection before all was sent.
    #[error("the server closed the data connection before all was sent")]
    CutShort,
    /// There is no port or connection left for the data.
    #[error("no data connection can be had: {0}")]
    Endpoint(EndpointError),
    /// The owner aborted the operation.
    #[error("it was aborted")]
    Aborted,
    /// The session ended before the operation was done.
    #[error("the session was over before it was done")]
    NoSession,
}

/// Reason for which a session ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The control connection could not be opened, or was lost.
    #[error("the control connection failed: {0}")]
    Connection(Failure),
    /// No port or connection is left for the control connection.
    #[error("no control connection can be had: {0}")]
    Endpoint(EndpointError),
    /// The server closed the control connection.
    #[error("the server closed the control connection")]
    Closed,
    /// The server refuses service now (421, or no 220).
    #[error("the server does not serve: it said {0}")]
    Unavailable(Code),
    /// The server rejects the user or the password, or also wants an account.
    #[error("the server refused the login with {0}")]
    Login(Code),
    /// The server's text is not a reply.
    #[error("the server does not speak FTP: {0}")]
    Reply(#[from] ReplyError),
    /// A reply that no command asked for, or that lacks the address that was asked for.
    #[error("the server said {0} where that makes no sense")]
    Unexpected(Code),
    /// The server was silent for too long.
    #[error("the server was silent for too long")]
    Silent,
}

/// Reason for which a transfer failed at the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The data connection could not be opened (425).
    #[error("the data connection could not be opened")]
    NotOpened,
    /// The data connection was lost (426).
    #[error("the data connection failed: {0}")]
    DataConnection(Failure),
    /// The client closed the data connection before all was sent (426).
    #[error("the client closed the data connection before all was sent")]
    CutShort,
    /// The client aborted the transfer (ABOR).
    #[error("the client aborted it")]
    Aborted,
    /// The owner could not keep the file.
    #[error("the owner did not keep what arrived")]
    NotKept,
    /// The session ended before the transfer was done.
    #[error("the session was over before it was done")]
    NoSession,
}
