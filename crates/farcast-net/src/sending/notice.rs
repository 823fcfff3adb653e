//! Options, notices and the report of a sender.

use std::net::SocketAddr;

use farcast_core::Span;
use farcast_delivery::SenderEngine;
use farcast_files::ChangedFile;

use crate::batch::SentCounts;
use crate::changing::Changing;
use crate::error::NetError;
use crate::path_watch::PathNotice;
use crate::seal::SealCounts;
use crate::socket::SocketOptions;

/// Options of a sender: destination, sockets and the handling of changed files.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Group, or the one receiver, and the port that data is sent to.
    pub to: SocketAddr,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Time by which datagrams may leave ahead of the clock, together as one burst.
    pub burst: Span,
    /// Choice of what becomes of the transmission if a file changes meanwhile.
    pub changing: Changing,
    /// Look at the files once more at the end. This serves protocols whose receivers do not confirm that their content
    /// is right.
    pub look_again: bool,
}

/// Event of a transmission; `E` is the engine's type of event.
#[derive(Debug)]
pub enum SendNotice<'a, E> {
    /// Event of the engine.
    Event(&'a E),
    /// A tenth of a second has passed. Holds the traffic so far.
    Tick(Traffic),
    /// Notice about the path and the sockets.
    Path(PathNotice<'a>),
    /// A file has changed, so nothing of it is sent any more.
    Changed {
        /// The file and its change.
        file: &'a ChangedFile,
        /// Name of the file at receivers.
        name: &'a str,
    },
    /// A receiver is no longer trusted: it can open nothing that leaves from now on, and its answers are ignored.
    Revoked {
        /// Name of the receiver in the list.
        name: &'a str,
    },
}

/// Traffic of a sender so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Datagrams and octets that have left.
    pub sent: SentCounts,
    /// Octets of all answers that arrived, without headers of UDP and IP.
    pub heard: u64,
    /// Requests for repair that arrived and were accepted.
    pub requests: u64,
    /// Extent of these requests, as their protocol counts it: segments, or blocks if it requests whole ones.
    pub asked: u64,
}

/// Report on a transmission.
#[derive(Debug)]
pub struct SendReport<S: SenderEngine> {
    /// Counts of datagrams that did not pass the seal, if there is one.
    pub seal: Option<SealCounts>,
    /// Last event of the engine.
    pub end: S::Event,
    /// Engine, for its members and counts.
    pub sender: S,
    /// Error for which it had to stop, if files or the network were the reason.
    pub error: Option<NetError>,
    /// Time from the first announcement to the last receiver's end.
    pub duration: Span,
    /// Time from the first datagram of data to the last.
    pub data_duration: Span,
    /// Datagrams that are not of the protocol.
    pub malformed: u64,
    /// Traffic of the whole transmission.
    pub traffic: Traffic,
    /// Files that have changed.
    pub changed: Vec<ChangedFile>,
}
