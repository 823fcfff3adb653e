//! What can be wrong with a configuration.

use crate::message::NodeId;

/// A setting that the engines cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The object cannot be cut like this.
    #[error(transparent)]
    Geometry(#[from] farcast_delivery::GeometryError),
    /// An object's size has 48 bits.
    #[error("an object of {0} octets: NORM's have less than 2^48")]
    Size(u64),
    /// The code has no room for so many symbols in a block.
    #[error(
        "blocks of {block} segments and {parity} parity symbols: FEC Encoding ID {fec} has up to {most} in all"
    )]
    Code {
        /// Source symbols of a block, at most.
        block: u16,
        /// Parity symbols.
        parity: u16,
        /// The code.
        fec: u8,
        /// The most symbols of a block.
        most: u32,
    },
    /// There are more blocks, or parity symbols, than can be numbered.
    #[error("{0} blocks are too many: choose larger ones")]
    Blocks(u32),
    /// There is nothing to be sent, or more than can be numbered.
    #[error("{0} objects: there must be 1 to 32768")]
    Objects(usize),
    /// More parity is to be sent unasked than there is.
    #[error("{auto} parity symbols of each block are to be sent at once, and there are {parity}")]
    AutoParity {
        /// What is to be sent.
        auto: u16,
        /// What there is.
        parity: u16,
    },
    /// What is said of the object does not fit a segment.
    #[error("{0} octets of information on the object: they must fit a segment")]
    Info(usize),
    /// A node id that nobody may have, or two have.
    #[error("{0} cannot take part: an id is 1 to 4294967294, and nobody else's")]
    Node(NodeId),
    /// A list of nodes must fit a segment.
    #[error("{0} receivers are to acknowledge: their list does not fit a segment")]
    Ackers(usize),
    /// A number is out of its range.
    #[error("{0} is out of range")]
    Range(&'static str),
}
