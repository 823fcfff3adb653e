//! What can go wrong with a request, and between a client and the emulation.

use std::io;

use farcast_core::units::UnitError;

/// Why a line is no request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is no JSON.
    #[error("the line is no JSON: {reason}, at octet {octet}; a request is one object on one line")]
    Json {
        /// What the parser met.
        reason: String,
        /// Where, from 1.
        octet: usize,
    },
    /// It is JSON, but not one of the requests.
    #[error("{0}")]
    Invalid(String),
}

/// Why the values of a request make no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum ValueError {
    #[error("set needs one of rate, delay, queue, per and outage at least")]
    NothingToSet,
    #[error("{key}: {error}")]
    Quantity { key: &'static str, error: UnitError },
    #[error("queue: nothing could ever be sent; it must be 1 B at least")]
    ZeroQueue,
    #[error("every: it must lie within 100 ms to 1 h")]
    Pace,
}

/// Why a running emulation cannot be controlled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is none.
    #[error("no emulation of yours is running here: start one with `farcast emulate`")]
    NoneRunning,
    /// There are several.
    #[error("several emulations are running: give the process id of one of {}", list(.0))]
    Several(Vec<u32>),
    /// There is none of this process.
    #[error("process {pid} runs no emulation here{}", others(.running))]
    NotRunning {
        /// The process.
        pid: u32,
        /// The processes that do.
        running: Vec<u32>,
    },
    /// It is somebody else's.
    #[error("the emulation of process {pid} belongs to another user: control it as that user, or as root")]
    OtherUser {
        /// The process.
        pid: u32,
    },
    /// Connections wait to be taken and there is no room for another.
    #[error("the emulation of process {pid} takes no more connections: close another view of it")]
    Busy {
        /// The process.
        pid: u32,
    },
    /// It said no.
    #[error("{0}")]
    Refused(String),
    /// It has ended, or dropped this connection.
    #[error("the emulation has ended")]
    Ended,
    /// It does not answer.
    #[error("the emulation has not answered within {seconds} s: it may be stopped or overloaded")]
    Silent {
        /// How long it was waited for, in seconds.
        seconds: u64,
    },
    /// What came is not what the protocol says.
    #[error("the emulation's answer makes no sense ({0}): it may be of another version of farcast")]
    Malformed(String),
    /// The system refused.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl ControlError {
    /// Makes an error of what the system said when it was to do `action`.
    pub(super) fn when<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { action, source: error.into() }
    }
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn others(running: &[u32]) -> String {
    match running {
        [] => String::from(", and no other does"),
        pids => format!("; there are {}", list(pids)),
    }
}
