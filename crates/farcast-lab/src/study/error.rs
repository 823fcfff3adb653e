//! Errors of studies.

use std::error::Error;

/// Error of a study, by the party to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// Caller: there is no such study.
    #[error("{name} is no study that farcast repeats; it knows: {}", known.join(", "))]
    Unknown {
        /// Name that was asked for.
        name: String,
        /// Names of all studies.
        known: Vec<&'static str>,
    },
    /// Caller: so few replications tell nothing.
    #[error("{0} replications of each setting: a mean has an interval from 2 on")]
    TooFew(u64),
    /// Caller: the flag was set, and the study ended.
    #[error("{study}: interrupted; there is no result")]
    Interrupted {
        /// Name of the study.
        study: &'static str,
    },
    /// Machine: it lacks a program or a right that the study needs, as the sentence says.
    #[error("{0}")]
    Missing(String),
    /// Machine: it was too busy for runs in real time, as the sentence says.
    #[error("{0}")]
    Busy(String),
    /// Machine: the system refused an operation.
    #[error(transparent)]
    System(Box<dyn Error + Send + Sync>),
    /// Transfer: a simulated transfer did not end before its time limit, as the sentence says.
    #[error("{0}")]
    Unfinished(String),
    /// Transfer: a run in real time failed, as the sentence says.
    #[error("{0}")]
    Run(String),
    /// Farcast: a study's own scenario, model or statistics are refused by the code that computes them.
    #[error(transparent)]
    Internal(Box<dyn Error + Send + Sync>),
}

/// Converts errors of other libraries into the kind of error that they are in a study.
macro_rules! blame {
    ($($(#[$when:meta])? $kind:ident: $error:ty;)*) => {
        $($(#[$when])? impl From<$error> for StudyError {
            fn from(error: $error) -> Self {
                Self::$kind(error.into())
            }
        })*
    };
}

blame! {
    System: std::io::Error;
    System: rustix::io::Errno;
    Internal: crate::shipped::OpenError;
    Internal: farcast_link::multilink::MultilinkError;
    Internal: farcast_model::ModelError;
    Internal: farcast_scenario::DocumentError;
    Internal: farcast_sim::replicate::ReplicationError;
    Internal: farcast_stats::StatsError;
    #[cfg(feature = "emulator")] System: farcast_emu::EmuError;
    #[cfg(feature = "emulator")] System: farcast_files::SourceError;
    #[cfg(feature = "emulator")] System: farcast_net::NetError;
    #[cfg(feature = "emulator")] Internal: farcast_tcp::ConfigError;
    #[cfg(feature = "emulator")] Internal: farcast_tcp::endpoint::EndpointError;
}
