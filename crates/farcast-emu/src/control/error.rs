//! Errors of requests, and errors between a client and the emulation.

use std::io;

use farcast_core::units::UnitError;

/// Reason for which a line is not a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The line is not JSON.
    #[error("the line is no JSON: {reason}, at octet {octet}; a request is one object on one line")]
    Json {
        /// Error of the parser.
        reason: String,
        /// Position of the error in octets, from 1.
        octet: usize,
    },
    /// The line is JSON, but not one of the requests.
    #[error("{0}")]
    Invalid(String),
}

/// Reason for which the values of a request are invalid.
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

/// Reason for which a running emulation cannot be controlled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No emulation is running.
    #[error("no emulation of yours is running here: start one with `farcast emulate`")]
    NoneRunning,
    /// Several emulations are running.
    #[error("several emulations are running: give the process id of one of {}", list(.0))]
    Several(Vec<u32>),
    /// The process runs no emulation.
    #[error("process {pid} runs no emulation here{}", others(.running))]
    NotRunning {
        /// The process.
        pid: u32,
        /// Processes that run an emulation.
        running: Vec<u32>,
    },
    /// The emulation belongs to another user.
    #[error("the emulation of process {pid} belongs to another user: control it as that user, or as root")]
    OtherUser {
        /// The process.
        pid: u32,
    },
    /// Connections wait to be accepted and there is no room for another.
    #[error("the emulation of process {pid} takes no more connections: close another view of it")]
    Busy {
        /// The process.
        pid: u32,
    },
    /// The emulation refused the request.
    #[error("{0}")]
    Refused(String),
    /// The emulation has ended, or dropped this connection.
    #[error("the emulation has ended")]
    Ended,
    /// The emulation does not answer.
    #[error("the emulation has not answered within {seconds} s: it may be stopped or overloaded")]
    Silent {
        /// Length of the wait, in seconds.
        seconds: u64,
    },
    /// The answer does not follow the protocol.
    #[error("the emulation's answer makes no sense ({0}): it may be of another version of farcast")]
    Malformed(String),
    /// The system refused.
    #[error("cannot {action}: {source}")]
    System {
        /// Action that was tried.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl ControlError {
    /// Returns a function that makes an error of the system's error during `action`.
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
