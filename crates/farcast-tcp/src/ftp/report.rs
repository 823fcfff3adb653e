//! When things happened.

use farcast_core::{Span, Time};

use super::FileId;
use crate::Stats;

/// A file that a client has fetched or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// Octets that the data connection carried.
    pub octets: u64,
    /// When the client began: the first command for this file left then.
    pub requested: Time,
    /// When RETR, STOR, LIST or NLST left.
    pub commanded: Time,
    /// When the client's clock started: the data connection was open and the preliminary reply had come.
    pub clock_started: Time,
    /// When its clock stopped: the data had ended (get), or the last octet was in the send buffer (put).
    pub clock_stopped: Time,
    /// When the first octet arrived (get).
    pub first_arrived: Option<Time>,
    /// When everything had arrived (get). When it had where the client sends, the server knows:
    /// [`TransferReport::delivered`].
    pub delivered: Option<Time>,
    /// When the client knew that it was done: with the last reply, and at the end of the data.
    pub completed: Time,
}

impl FileReport {
    /// What the client's clock shows.
    pub const fn client_time(&self) -> Span {
        self.clock_stopped.since(self.clock_started)
    }
}

/// A file that a server has sent or received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferReport {
    /// What it was called when it was asked for.
    pub file: FileId,
    /// Octets that the data connection carried.
    pub octets: u64,
    /// When the data connection was open and the preliminary reply was sent.
    pub opened: Time,
    /// When everything had arrived (put). When it had where the server sends, the client knows.
    pub delivered: Option<Time>,
    /// When the last reply was sent.
    pub completed: Time,
}

/// What the data connections on which an engine has sent files have counted, all together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataReport {
    /// Segments with data, repeated ones among them.
    pub segments: u64,
    /// Segments with data that were sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl DataReport {
    /// The same with another connection's share.
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
    /// When it began to connect.
    pub began: Time,
    /// When the control connection was open.
    pub connected: Option<Time>,
    /// When the server's greeting (220) had come.
    pub greeted: Option<Time>,
    /// When the login (230) was through.
    pub logged_in: Option<Time>,
    /// When the session was over: with the reply to QUIT, or when it failed.
    pub ended: Option<Time>,
    /// Commands sent.
    pub commands: u64,
    /// Replies received.
    pub replies: u64,
    /// Octets of text sent on the control connection.
    pub octets_sent: u64,
    /// Octets of text received on it.
    pub octets_received: u64,
    /// What the client's end of the control connection has counted.
    pub control: Stats,
}
