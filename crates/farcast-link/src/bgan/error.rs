//! Errors in the configuration of the BGAN stages.

use farcast_core::Span;

/// A setting that the BGAN stages cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BganError {
    /// A count or a length that must not be zero.
    #[error("{0} must be above zero")]
    Zero(&'static str),
    /// The forward frame does not divide into its FEC blocks.
    #[error("a forward frame of {frame} with {fec_blocks} FEC blocks: it must divide into whole nanoseconds")]
    FecBlocks {
        /// The frame.
        frame: Span,
        /// FEC blocks in it.
        fec_blocks: u32,
    },
    /// The tables of PDU payloads and overheads do not match.
    #[error("{payloads} PDU payloads and {overheads} PDU overheads: there must be as many, at least 1")]
    PduTable {
        /// Entries of the table of payloads.
        payloads: usize,
        /// Entries of the table of overheads.
        overheads: usize,
    },
    /// A PDU is longer than an FEC block.
    #[error("a PDU of {payload} + {overhead} octets: an FEC block holds {block}")]
    PduTooLong {
        /// Its payload in octets.
        payload: u32,
        /// Its overhead in octets.
        overhead: u32,
        /// Octets of an FEC block.
        block: u32,
    },
    /// Only a lost PDU can take the rest of its FEC block with it.
    #[error("drop_rest_of_block needs the loss unit to be a PDU")]
    DropRest,
    /// The slots of the return link do not fit its frame.
    #[error("return slots of {slots} in all in a frame of {frame}: they must fit")]
    Slots {
        /// All slots of a frame together.
        slots: Span,
        /// The frame.
        frame: Span,
    },
    /// The back-off window is doubled too often.
    #[error("a back-off window doubled up to {0} times: at most 31 are possible")]
    Doubling(u32),
}
