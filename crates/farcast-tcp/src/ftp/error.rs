//! What can go wrong, by who is to blame.

use super::reply::{Code, ReplyError};
use crate::Failure;
use crate::endpoint::EndpointError;

/// Why a client does not take an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// Too many wait.
    #[error("{0} operations wait already, as many as the settings allow")]
    Full(usize),
    /// A path cannot be written into a line.
    #[error("a path has 1 to {0} octets and no CR, LF or NUL")]
    Path(usize),
    /// A file is to be stored from behind its end on.
    #[error("a file cannot be sent from octet {offset} on if it has {size}")]
    Offset {
        /// Where it was to begin.
        offset: u64,
        /// The file's size.
        size: u64,
    },
    /// The session is over, or is to be.
    #[error("the session takes no more operations: it is over, or was told to quit")]
    Over,
}

/// Why an operation of a client's failed. The session goes on, unless it says otherwise itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The server does not do it.
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
    /// The owner ended it.
    #[error("it was aborted")]
    Aborted,
    /// The session was over before it was done.
    #[error("the session was over before it was done")]
    NoSession,
}

/// Why a session was over before it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The control connection could not be opened, or was lost.
    #[error("the control connection failed: {0}")]
    Connection(Failure),
    /// There is no port or connection left for it.
    #[error("no control connection can be had: {0}")]
    Endpoint(EndpointError),
    /// The server closed the control connection.
    #[error("the server closed the control connection")]
    Closed,
    /// The server does not serve now (421, or no 220).
    #[error("the server does not serve: it said {0}")]
    Unavailable(Code),
    /// The server does not know the user or the password, or wants an account besides.
    #[error("the server refused the login with {0}")]
    Login(Code),
    /// What the server says is no reply.
    #[error("the server does not speak FTP: {0}")]
    Reply(#[from] ReplyError),
    /// A reply that nothing asked for, or that no address can be found in.
    #[error("the server said {0} where that makes no sense")]
    Unexpected(Code),
    /// Nothing was heard for too long.
    #[error("the server was silent for too long")]
    Silent,
}

/// Why a transfer failed at the server.
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
    /// The client asked to end it (ABOR).
    #[error("the client aborted it")]
    Aborted,
    /// The owner could not keep what arrived.
    #[error("the owner did not keep what arrived")]
    NotKept,
    /// The session was over before it was.
    #[error("the session was over before it was done")]
    NoSession,
}
