//! FTP (RFC 959) on the TCP of this crate: a [`Client`] and a [`Server`] as engines without I/O.
//!
//! | RFC | supported part |
//! |---|---|
//! | 959 | USER, PASS, QUIT, CWD, CDUP, PWD, TYPE A and I, STRU F, MODE S, PORT, PASV, RETR, STOR, REST, ABOR, DELE, LIST, NLST, SYST, NOOP; replies of one line and of many |
//! | 1123 section 4.1 | the minimum for a server; commands of Telnet in the control stream are ignored |
//! | 2389 | FEAT |
//! | 2428 | EPRT and EPSV, for IPv6 and through translators |
//! | 2577 | data connections only to and from the host at the other end of the control connection |
//! | 3659 sections 4 and 5 | SIZE, and REST in stream mode, which counts octets of the file |
//!
//! Accounts (ACCT), record and page structure, block and compressed mode, third-party transfers and changes of names
//! are not supported: a server answers 502 or 504.
//!
//! # Separation of control and data
//!
//! Both engines own an [`Endpoint`](crate::endpoint::Endpoint). They keep and read the text of its control connection
//! themselves, and know ranges of its data connections. [`Contents`] tells the payload of a segment that leaves: octets
//! that the engine has, or a range of a file that the owner has. Arriving segments go to `handle_octets` together with
//! their octets. A file's octets come out again as an event that says where they belong. In a simulation only the
//! control connection needs octets: the driver that delivers a segment asks the engine that sent it for its contents.
//!
//! In TYPE A the engines count octets on the wire, with CR LF at the end of each line. The owner of the file converts.
//!
//! # Transfer times
//!
//! A transfer is measured twice. The clock of a BSD or netkit client starts when the data connection is open and the
//! preliminary reply has come. It stops at the end of the data: when the data has arrived (get), or when the last octet
//! is in the send buffer (put). The time of delivery differs: for a put it is later by the contents of the send buffer.
//! [`FileReport`] has all of these times. [`SessionReport`] has the times of the session, and the control connection's
//! share.
//!
//! Without losses and processing times, with a round trip of R, the first octet of a file arrives 8 R after the client
//! began to connect, or 9 R if it asks SYST. For each further file, it arrives 3 R after the client began to ask for
//! the file. Both hold in either [`Mode`].

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

/// Side that opens the data connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// The server, to a port of the client's (PORT, EPRT).
    Active,
    /// The client, to a port of the server's (PASV, EPSV).
    #[default]
    Passive,
}

/// Representation of a file on the data connection (RFC 959 section 3.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Representation {
    /// Lines of text that end with CR LF (TYPE A).
    Ascii,
    /// Octets as they are (TYPE I).
    #[default]
    Image,
}

/// Identifier of a file, or a list of files, that is transferred: an operation of a client, or a request of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u64);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.0)
    }
}

/// Payload of a segment that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents<'a> {
    /// These octets, possibly none.
    Octets(&'a [u8]),
    /// A range of a file that the owner has.
    File {
        /// File that has the range.
        file: FileId,
        /// Offset of the first octet.
        offset: u64,
        /// Number of octets.
        len: u16,
    },
    /// The payload is no longer held: the peer has it, or the connection is gone. Such a segment may be dropped.
    Gone,
}
