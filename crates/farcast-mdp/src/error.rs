//! What can be wrong with a configuration.

use farcast_delivery::GeometryError;
use farcast_norm::NodeId;

/// A setting that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An object cannot be cut so.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// There is nothing to send, or more than object ids say.
    #[error("{0} objects to send: 1 to 2^20 can be")]
    Objects(usize),
    /// An object is longer than its length can be said.
    #[error("an object of {0} octets: MDP's offsets have 32 bits")]
    Size(u64),
    /// A block has more symbols than the code.
    #[error("blocks of {block} segments with {parity} parity symbols: together 1 to 255 can be")]
    Code {
        /// Segments.
        block: u8,
        /// Parity symbols.
        parity: u8,
    },
    /// More parity goes unasked than there is.
    #[error("{auto} parity symbols unasked, of {parity}")]
    AutoParity {
        /// Unasked.
        auto: u8,
        /// In all.
        parity: u8,
    },
    /// What is said of an object, and vouched for, does not fit a segment.
    #[error("{0} octets of INFO do not fit a segment")]
    Info(usize),
    /// Those who are to acknowledge do not fit a segment.
    #[error("{0} named receivers do not fit a segment")]
    Ackers(usize),
    /// An id that no node may have, or that two have.
    #[error("{0} cannot be a node's id, or is another's")]
    Node(NodeId),
    /// Something lies outside its range.
    #[error("{0} is out of range")]
    Range(&'static str),
}
