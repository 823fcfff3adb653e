//! Results of commands: exit codes, and failures in one sentence.

use farcast_net::NetError;
use farcast_transfer::send::SendOutcome;
use farcast_transfer::{Error, ErrorKind};

/// Result of a command. The number is the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// The command did its work.
    Done = 0,
    /// The command failed.
    Failed = 1,
    /// The command line or a file of the user's is wrong.
    Usage = 2,
    /// Some receivers are incomplete.
    Incomplete = 3,
    /// Everything was sent, but no receiver can tell whether it has it.
    Unknown = 4,
}

impl Exit {
    /// Returns the exit code for the outcome of a transfer.
    pub(crate) fn of(outcome: SendOutcome) -> Self {
        match outcome {
            SendOutcome::Done => Self::Done,
            SendOutcome::Unknown => Self::Unknown,
            SendOutcome::Incomplete => Self::Incomplete,
            SendOutcome::Failed => Self::Failed,
        }
    }
}

/// Failure of a command: one sentence, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) sentence: String,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), exit: Exit::Usage }
    }

    /// Returns the failure for an error in the caller's wish or in a file of the caller's.
    pub(crate) fn wrong(error: impl std::error::Error) -> Self {
        Self::usage(error.to_string())
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    /// An error of a transfer keeps its kind, and one of the network driver has the kind that a transfer gives it. Any
    /// other error is that of the machine.
    fn from(error: E) -> Self {
        let error: Box<dyn std::error::Error> = Box::new(error);
        let error = match error.downcast::<NetError>() {
            Ok(error) => Box::new(Error::from(*error)),
            Err(error) => error,
        };
        let exit = match error.downcast_ref::<Error>().map(|error| error.kind) {
            Some(ErrorKind::Usage) => Exit::Usage,
            Some(ErrorKind::Incomplete) => Exit::Incomplete,
            _ => Exit::Failed,
        };
        Self { sentence: error.to_string(), exit }
    }
}
