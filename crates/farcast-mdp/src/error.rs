//! Errors of configuration.

use farcast_delivery::GeometryError;
use farcast_delivery::nack::NodeId;

/// A setting that is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An object cannot be divided like this.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// There is no object to send, or more than there are object numbers.
    #[error("{0} objects to send: 1 to 2^20 can be")]
    Objects(usize),
    /// An object is longer than a 32-bit length.
    #[error("an object of {0} octets: MDP's offsets have 32 bits")]
    Size(u64),
    /// A block has more symbols than the code permits.
    #[error("blocks of {block} segments with {parity} parity symbols: together 1 to 255 can be")]
    Code {
        /// Segments of a block.
        block: u8,
        /// Parity symbols of a block.
        parity: u8,
    },
    /// An object has more parity symbols in all than can be numbered.
    #[error(
        "an object of {size} octets in blocks of {octets} octets with {parity} parity symbols each has too many parity \
         symbols, over 2^30: choose larger blocks or segments, or less parity"
    )]
    Symbols {
        /// Octets of the object.
        size: u64,
        /// Octets of a block.
        octets: u32,
        /// Parity symbols of a block.
        parity: u8,
    },
    /// More parity symbols are to be sent unasked than a block has.
    #[error("{auto} parity symbols unasked, of {parity}")]
    AutoParity {
        /// Symbols to be sent unasked.
        auto: u8,
        /// Parity symbols of a block.
        parity: u8,
    },
    /// INFO with the vouched data does not fit a segment.
    #[error("{0} octets of INFO do not fit a segment")]
    Info(usize),
    /// The list of receivers that are to acknowledge does not fit a segment.
    #[error("{0} named receivers do not fit a segment")]
    Ackers(usize),
    /// A node id is invalid, or two nodes have it.
    #[error("{0} cannot be a node's id, or is another's")]
    Node(NodeId),
    /// The setting named here is out of its range.
    #[error("{0} is out of range")]
    Range(&'static str),
}
