//! What a client can be asked for.

use alloc::string::String;

use crate::ftp::Command;
use crate::ftp::config::{MOST_LINE, is_one_line};
use crate::ftp::error::SubmitError;

/// The longest path in octets: a line has a command and a space besides.
const MOST_PATH: usize = MOST_LINE - 5;

/// Something that a client does for its owner. Paths have 1 to 507 octets and no CR, LF or NUL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Fetches a file (RETR).
    Retrieve {
        /// Its path.
        path: String,
        /// From which octet on (REST).
        offset: u64,
    },
    /// Stores a file (STOR).
    Store {
        /// Its path.
        path: String,
        /// Its size in octets.
        size: u64,
        /// From which octet on (REST); at most the size.
        offset: u64,
    },
    /// Fetches a list for people (LIST) of a directory, or of the working directory.
    List {
        /// The directory.
        path: Option<String>,
    },
    /// Fetches the names (NLST) in a directory, or in the working directory.
    Names {
        /// The directory.
        path: Option<String>,
    },
    /// Asks for a file's size (SIZE); [`Reply::number`](crate::ftp::Reply::number) finds it in the reply.
    Size {
        /// The file's path.
        path: String,
    },
    /// Deletes a file (DELE).
    Delete {
        /// Its path.
        path: String,
    },
    /// Makes another directory the working directory (CWD).
    Enter {
        /// Its path.
        path: String,
    },
    /// Asks for the working directory (PWD); [`Reply::quoted`](crate::ftp::Reply::quoted) finds it in the reply.
    Directory,
    /// Nothing (NOOP).
    Noop,
}

impl Operation {
    /// Checks what the types do not.
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

    /// The command that does it.
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

    /// Whether it needs a data connection.
    pub(super) const fn transfers(&self) -> bool {
        matches!(self, Self::Retrieve { .. } | Self::Store { .. } | Self::List { .. } | Self::Names { .. })
    }

    /// Whether the data connection carries a list.
    pub(super) const fn lists(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Names { .. })
    }

    /// The octet with which the transfer begins.
    pub(super) const fn offset(&self) -> u64 {
        match self {
            Self::Retrieve { offset, .. } | Self::Store { offset, .. } => *offset,
            _ => 0,
        }
    }

    /// How many octets are sent; `None` where data is received.
    pub(super) const fn sends(&self) -> Option<u64> {
        match self {
            Self::Store { size, offset, .. } => Some(*size - *offset),
            _ => None,
        }
    }
}
