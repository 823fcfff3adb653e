//! Reports of files and sessions: times and counters.

use farcast_core::{Span, Time};

use super::FileId;
use crate::Stats;

/// A file that a client has fetched or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// Octets that the data connection carried.
    pub octets: u64,
    /// Time at which the client began: the first command for this file left then.
    pub requested: Time,
    /// Time at which RETR, STOR, LIST or NLST left.
    pub commanded: Time,
    /// Start of the client's clock: the data connection was open and the preliminary reply had come.
    pub clock_started: Time,
    /// Stop of the client's clock: the data had ended (get), or the last octet was in the send buffer (put).
    pub clock_stopped: Time,
    /// Time at which the first octet arrived (get).
    pub first_arrived: Option<Time>,
    /// Time at which everything had arrived (get). For a put the server knows this time: [`TransferReport::delivered`].
    pub delivered: Option<Time>,
    /// Time at which the client knew the end: with the last reply, and at the end of the data.
    pub completed: Time,
}

impl FileReport {
    /// Returns the time that the client's clock shows.
    pub const fn client_time(&self) -> Span {
        self.clock_stopped.since(self.clock_started)
    }
}

/// A file that a server has sent or received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferReport {
    /// Identifier that the request gave to the file.
    pub file: FileId,
    /// Octets that the data connection carried.
    pub octets: u64,
    /// Time at which the data connection was open and the preliminary reply was sent.
    pub opened: Time,
    /// Time at which everything had arrived (put). For a get the client knows this time.
    pub delivered: Option<Time>,
    /// Time at which the last reply was sent.
    pub completed: Time,
}

/// Counters of all data connections on which an engine has sent files, added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataReport {
    /// Segments with data, retransmitted ones included.
    pub segments: u64,
    /// Segments with data that were sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl DataReport {
    /// Returns the counters with another connection's added.
    pub(super) const fn with(self, stats: &Stats) -> Self {
        Self {
            segments: self.segments + stats.data_segments_sent,
            retransmits: self.retransmits + stats.retransmits,
            timeouts: self.timeouts + stats.timeouts,
        }
    }
}

/// A client's session. Times that were not reached are absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionReport {
    /// Time at which the client began to connect.
    pub began: Time,
    /// Time at which the control connection was open.
    pub connected: Option<Time>,
    /// Time at which the server's greeting (220) had come.
    pub greeted: Option<Time>,
    /// Time at which the login (230) was complete.
    pub logged_in: Option<Time>,
    /// Time at which the session ended: with the reply to QUIT, or by a failure.
    pub ended: Option<Time>,
    /// Commands sent.
    pub commands: u64,
    /// Replies received.
    pub replies: u64,
    /// Octets of text sent on the control connection.
    pub octets_sent: u64,
    /// Octets of text received on the control connection.
    pub octets_received: u64,
    /// Counters of the client's end of the control connection.
    pub control: Stats,
}
