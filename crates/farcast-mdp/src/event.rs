//! Events that the engines report.

use alloc::boxed::Box;

use farcast_core::Run;
use farcast_delivery::{ObjectId, Offer};
use farcast_norm::NodeId;
pub use farcast_norm::{ReceiverOutcome, SenderOutcome};

/// An event that a sender reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// The sender has begun to send.
    Started {
        /// Number of receivers that are to acknowledge.
        ackers: u32,
    },
    /// The sender begins with this object, numbered from 0.
    Object(u32),
    /// A round begins: round 1 sends everything once, later ones send repairs.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Segments and symbols that wait to be sent when the round begins.
        segments: u32,
    },
    /// A named receiver has every object.
    Acknowledged(NodeId),
    /// A named receiver was given up: it has not acknowledged every object, although it was asked often enough.
    Lost(NodeId),
    /// All named receivers have every object.
    Delivered,
    /// The sender is done.
    Ended(SenderOutcome),
}

/// An event that a receiver reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// The sender offers an object.
    Offered(Box<Offer>),
    /// INFO of an object came after its content: the object has this name.
    Named(Box<Offer>),
    /// Store these segments of the message that is being handled.
    Store {
        /// Object of the segments.
        object: ObjectId,
        /// Segments, counted through the object.
        segments: Run,
        /// Index in the message of the first of them.
        offset: u32,
    },
    /// Keep these parity symbols of the message that is being handled.
    StoreParity {
        /// Object of the symbols.
        object: ObjectId,
        /// Block of the object, from 0.
        block: u32,
        /// Parity symbols of the block, from 0.
        symbols: Run,
        /// Index in the message of the first of them.
        offset: u32,
    },
    /// Rebuild this block, of which enough symbols are there.
    Decode {
        /// Object of the block.
        object: ObjectId,
        /// Block of the object, from 0.
        block: u32,
    },
    /// Every segment of the object is stored.
    Complete(ObjectId),
    /// Reception of the object has ended.
    Ended(ObjectId, ReceiverOutcome),
}
