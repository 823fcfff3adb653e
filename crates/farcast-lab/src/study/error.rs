//! What can keep a study from its rows.

use std::error::Error;

/// Why a study has no result, by who is to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The caller's: there is no such study.
    #[error("{name} is no study that farcast repeats; it knows: {}", super::names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The caller's: so few replications say nothing.
    #[error("{0} replications of each setting: a mean has an interval from 2 on")]
    TooFew(u64),
    /// The caller's: the flag was set, so that it ended.
    #[error("{study}: interrupted; there is no result")]
    Interrupted {
        /// Which study.
        study: &'static str,
    },
    /// The machine's: it has not what the study needs, a program or a right, as the sentence says.
    #[error("{0}")]
    Missing(String),
    /// The machine's: it had too much else to do for runs in real time, as the sentence says.
    #[error("{0}")]
    Busy(String),
    /// The machine's: the system refused something.
    #[error(transparent)]
    System(Box<dyn Error + Send + Sync>),
    /// The transfer's: something that is simulated did not end before its time limit, as the sentence says.
    #[error("{0}")]
    Unfinished(String),
    /// The transfer's: a run in real time failed, as the sentence says.
    #[error("{0}")]
    Run(String),
    /// Ours: a study's own scenario, model or statistics are refused by what computes them.
    #[error(transparent)]
    Internal(Box<dyn Error + Send + Sync>),
}

/// Errors of other libraries, by who is to blame where a study meets them.
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
