//! Operations that an owner can submit to a client.

use alloc::string::String;

use crate::ftp::Command;
use crate::ftp::config::{MOST_LINE, is_one_line};
use crate::ftp::error::SubmitError;

/// Longest path in octets: a line also has a command and a space.
const MOST_PATH: usize = MOST_LINE - 5;

/// An operation that a client does for its owner. Paths have 1 to 507 octets and no CR, LF or NUL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Fetches a file (RETR).
    Retrieve {
        /// Path of the file.
        path: String,
        /// Octet at which the transfer begins (REST).
        offset: u64,
    },
    /// Stores a file (STOR).
    Store {
        /// Path of the file.
        path: String,
        /// Size of the file in octets.
        size: u64,
        /// Octet at which the transfer begins (REST); at most the size.
        offset: u64,
    },
    /// Fetches a human-readable list (LIST) of a directory, or of the working directory.
    List {
        /// The directory.
        path: Option<String>,
    },
    /// Fetches the names (NLST) in a directory, or in the working directory.
    Names {
        /// The directory.
        path: Option<String>,
    },
    /// Asks for a file's size (SIZE); [`Reply::number`](crate::ftp::Reply::number) reads it from the reply.
    Size {
        /// The file's path.
        path: String,
    },
    /// Deletes a file (DELE).
    Delete {
        /// Path of the file.
        path: String,
    },
    /// Makes another directory the working directory (CWD).
    Enter {
        /// Path of the directory.
        path: String,
    },
    /// Asks for the working directory (PWD); [`Reply::quoted`](crate::ftp::Reply::quoted) reads it from the reply.
    Directory,
    /// Does nothing (NOOP).
    Noop,
}

impl Operation {
    /// Checks the operation for values that the types allow and that cannot work.
    pub(super) fn check(&self) -> Result<(), SubmitError> {
        let path = match self {
            Self::Retrieve { path, .. }
            | Self::Store { path, .. }
            | Self::Size { path }
            | Self::Delete { path }
            | Self::Enter { path } => Some(path),
            Self::List { path } | Self::Names { path } => path.as_ref(),
            Self::Directory | Self::Noop => None,
        };
        if path.is_some_and(|path| path.is_empty() || path.len() > MOST_PATH || !is_one_line(path)) {
            return Err(SubmitError::Path(MOST_PATH));
        }
        match *self {
            Self::Store { size, offset, .. } if offset > size => Err(SubmitError::Offset { offset, size }),
            _ => Ok(()),
        }
    }

    /// Returns the command of the operation.
    pub(super) fn command(&self) -> Command {
        match self.clone() {
            Self::Retrieve { path, .. } => Command::Retr(path),
            Self::Store { path, .. } => Command::Stor(path),
            Self::List { path } => Command::List(path),
            Self::Names { path } => Command::Nlst(path),
            Self::Size { path } => Command::Size(path),
            Self::Delete { path } => Command::Dele(path),
            Self::Enter { path } => Command::Cwd(path),
            Self::Directory => Command::Pwd,
            Self::Noop => Command::Noop,
        }
    }

    /// Returns `true` if the operation needs a data connection.
    pub(super) const fn transfers(&self) -> bool {
        matches!(self, Self::Retrieve { .. } | Self::Store { .. } | Self::List { .. } | Self::Names { .. })
    }

    /// Returns `true` if the data connection carries a list.
    pub(super) const fn lists(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Names { .. })
    }

    /// Returns the octet at which the transfer begins.
    pub(super) const fn offset(&self) -> u64 {
        match self {
            Self::Retrieve { offset, .. } | Self::Store { offset, .. } => *offset,
            _ => 0,
        }
    }

    /// Returns the number of octets to send; `None` if data is received or none is transferred.
    pub(super) const fn sends(&self) -> Option<u64> {
        match self {
            Self::Store { size, offset, .. } => Some(*size - *offset),
            _ => None,
        }
    }
}
