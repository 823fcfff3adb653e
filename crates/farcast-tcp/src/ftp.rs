//! FTP (RFC 959) on the TCP of this crate: a [`Client`] and a [`Server`] as engines without I/O.
//!
//! | RFC | what of it |
//! |---|---|
//! | 959 | USER, PASS, QUIT, CWD, CDUP, PWD, TYPE A and I, STRU F, MODE S, PORT, PASV, RETR, STOR, REST, ABOR, DELE, LIST, NLST, SYST, NOOP; replies of one line and of many |
//! | 1123 section 4.1 | what a server has to have; commands of Telnet in the control stream are passed over |
//! | 2389 | FEAT |
//! | 2428 | EPRT and EPSV, for IPv6 and through translators |
//! | 2577 | data connections only to and from the host at the other end of the control connection |
//! | 3659 sections 4 and 5 | SIZE, and REST in stream mode, which counts octets of the file |
//!
//! Accounts (ACCT), record and page structure, block and compressed mode, third-party transfers and changes of names
//! are not in it: a server answers 502 or 504.
//!
//! # Control apart from data
//!
//! Both engines own an [`Endpoint`](crate::endpoint::Endpoint) with a control connection, whose text they keep and read
//! themselves, and data connections, of which they know ranges. [`Contents`] says what the payload of a segment is that
//! leaves: octets that the engine has, or a range of a file that the owner has. What arrives goes to `handle_octets`
//! together with its octets; a file's come out again as an event that says where they belong. In a simulation only the
//! control connection needs octets: whoever delivers a segment asks the engine that sent it for its contents.
//!
//! In TYPE A the engines count what is on the wire, with CR LF at the end of each line: whoever has the file converts.
//!
//! # What clocks show
//!
//! A transfer is measured twice. The clock of a BSD or netkit client starts when the data connection is open and the
//! preliminary reply has come, and stops at the end of the data: when they have arrived (get), or when the last octet
//! is in the send buffer (put). What has been delivered when is another time: for a put it comes later by what the send
//! buffer holds. [`FileReport`] has all of them, [`SessionReport`] those of the session, and the control connection's
//! share.
//!
//! Without losses, and with nothing that takes time but a round trip of R, the first octet of a file arrives 8 R after
//! the client began to connect, 9 R where it asks SYST, and 3 R after it began to ask for each further file; in either
//! [`Mode`].

mod client;
mod command;
mod config;
mod error;
mod host;
mod lines;
mod reply;
mod report;
mod server;
mod sources;

use core::fmt;

pub use client::{Client, ClientEvent, Completion, Operation};
pub use command::{Command, CommandError, ExtendedPassive};
pub use config::{Access, ClientConfig, FtpConfigError, ServerConfig, User};
pub use error::{OperationError, SessionError, SubmitError, TransferError};
pub use lines::{LineError, Lines};
pub use reply::{Code, Reply, ReplyError, ReplyReader};
pub use report::{DataReport, FileReport, SessionReport, TransferReport};
pub use server::{Answer, AnswerError, Refusal, Request, Server, ServerEvent, SessionId};

/// Who opens the data connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// The server, to a port of the client's (PORT, EPRT).
    Active,
    /// The client, to a port of the server's (PASV, EPSV).
    #[default]
    Passive,
}

/// How a file is represented on the data connection (RFC 959 section 3.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Representation {
    /// Lines of text that end with CR LF (TYPE A).
    Ascii,
    /// Octets as they are (TYPE I).
    #[default]
    Image,
}

/// Names a file, or a list of files, that is transferred: an operation of a client's, a request of a server's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u64);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.0)
    }
}

/// What the payload of a segment is that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents<'a> {
    /// These octets, possibly none.
    Octets(&'a [u8]),
    /// A range of a file that the owner has.
    File {
        /// Which.
        file: FileId,
        /// The first octet.
        offset: u64,
        /// How many.
        len: u16,
    },
    /// It is no longer held: the peer has it, or the connection is gone. Such a segment may be dropped.
    Gone,
}
