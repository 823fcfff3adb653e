//! Errors in a configuration.

use crate::message::NodeId;

/// Setting that the engines cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The object cannot be cut with these sizes.
    #[error(transparent)]
    Geometry(#[from] farcast_delivery::GeometryError),
    /// An object's size does not fit 48 bits.
    #[error("an object of {0} octets: NORM's have less than 2^48")]
    Size(u64),
    /// The code has no room for this many symbols in a block.
    #[error(
        "blocks of {block} segments and {parity} parity symbols: FEC Encoding ID {fec} has up to {most} in all"
    )]
    Code {
        /// Maximum number of source symbols of a block.
        block: u16,
        /// Number of parity symbols.
        parity: u16,
        /// FEC Encoding ID.
        fec: u8,
        /// Maximum number of symbols of a block.
        most: u32,
    },
    /// The object has more blocks or parity symbols than can be numbered.
    #[error("{0} blocks are too many: choose larger ones")]
    Blocks(u32),
    /// There are no objects to send, or more than can be numbered.
    #[error("{0} objects: there must be 1 to 32768")]
    Objects(usize),
    /// More parity is to be sent unasked than there is.
    #[error("{auto} parity symbols of each block are to be sent at once, and there are {parity}")]
    AutoParity {
        /// Parity symbols to send unasked.
        auto: u16,
        /// Parity symbols of a block.
        parity: u16,
    },
    /// The content of INFO does not fit a segment.
    #[error("{0} octets of information on the object: they must fit a segment")]
    Info(usize),
    /// A node id is one that no node may have, or one that two nodes have.
    #[error("{0} cannot take part: an id is 1 to 4294967294, and nobody else's")]
    Node(NodeId),
    /// The list of receivers that are to acknowledge a stream does not fit a segment.
    #[error(
        "{0} receivers are to acknowledge a stream, and their list does not fit a segment: name fewer, or choose larger \
         segments"
    )]
    Ackers(usize),
    /// A number is out of its range.
    #[error("{0} is out of range")]
    Range(&'static str),
}
