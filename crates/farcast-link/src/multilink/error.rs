//! Errors in the settings of a bundle.

use farcast_core::Span;

/// A setting that a bundle cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MultilinkError {
    /// A setting of the protocol.
    #[error(transparent)]
    Protocol(#[from] farcast_ppp::ConfigError),
    /// The bundle has no links, or too many.
    #[error("links has {0} members; a bundle needs at least one link, and can have {1}")]
    Links(usize, usize),
    /// A setting is zero.
    #[error("{0} is 0; it must be above zero")]
    Zero(&'static str),
    /// An octet on the line has a number of bits that no line has.
    #[error("octet_bits is {0}; it must be 8 (no start and stop bits) to 12")]
    OctetBits(u8),
    /// The detection of a dropped call would give up a call that works.
    #[error("detection gives up after {gives_up}; it must be longer than {round_trip}, the time to a reply")]
    EchoTooSoon {
        /// The interval of requests times the failures.
        gives_up: Span,
        /// Twice the longest delay.
        round_trip: Span,
    },
    /// Echoes alone would fill a link.
    #[error("the echo interval is shorter than the {needed} that a request and a reply take on the line")]
    EchoLoad {
        /// The shortest interval that leaves room.
        needed: Span,
    },
}
