//! Errors in the settings of a PPP line.

/// A setting that a PPP line cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PppError {
    /// A setting of the protocol.
    #[error(transparent)]
    Protocol(#[from] farcast_ppp::ConfigError),
    /// An octet has a number of bits that no line has.
    #[error("an octet takes {0} bits on the line; it must be 8 (synchronous) to 12, as 10 for 8N1")]
    OctetBits(u8),
    /// A queue that holds nothing lets nothing pass.
    #[error("the queue limit is 0; it must be at least 1 packet or 1 octet")]
    ZeroQueue,
    /// A vector without bits cannot be repeated.
    #[error("the error vector has no bits; it must have at least 1")]
    EmptyVector,
    /// An error lies outside its vector.
    #[error("the error vector has an error at bit {position}; with {bits} bits positions are below {bits}")]
    VectorPosition {
        /// Position of the error.
        position: u64,
        /// Number of bits of the vector.
        bits: u64,
    },
    /// Positions repeat or go back.
    #[error("the error vector names bit {0} after one not before it; positions must ascend")]
    VectorOrder(u64),
    /// A vector has more errors than bits.
    #[error("the error vector has {count} errors in {bits} bits; there must be at most one a bit")]
    VectorErrors {
        /// Number of errors.
        count: u64,
        /// Number of bits.
        bits: u64,
    },
    /// The text of a vector has a word or character that is no bit or number.
    #[error("an error vector holds {0:?}; only 0 (right) and 1 (error), or whole numbers, are allowed")]
    VectorSymbol(alloc::string::String),
    /// The first octet would meet a bit that the vector does not have.
    #[error("the error vector begins at bit {start}; with {bits} bits it must begin below {bits}")]
    VectorStart {
        /// Bit at which the vector would begin.
        start: u64,
        /// Number of bits of the vector.
        bits: u64,
    },
    /// The MTU is too small for IPv4.
    #[error("the MTU is {0} octets; it must be at least 68 (RFC 791)")]
    Mtu(u16),
    /// Echoes alone would fill a line.
    #[error("the echo interval is shorter than the {needed} that the echoes of both ends take on the line")]
    EchoLoad {
        /// The shortest interval that leaves the slower direction room.
        needed: farcast_core::Span,
    },
}
