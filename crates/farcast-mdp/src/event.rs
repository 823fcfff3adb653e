//! What the engines tell.

use alloc::boxed::Box;

use farcast_core::Run;
use farcast_delivery::{ObjectId, Offer};
use farcast_norm::NodeId;
pub use farcast_norm::{ReceiverOutcome, SenderOutcome};

/// What a sender tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// It sends.
    Started {
        /// How many receivers are to acknowledge.
        ackers: u32,
    },
    /// It begins with this object, which objects are counted by from 0.
    Object(u32),
    /// It sends for the first time (1), or what was asked for.
    Round {
        /// Which time.
        round: u32,
        /// Segments and symbols that it then has to send.
        segments: u32,
    },
    /// A named receiver has every object.
    Acknowledged(NodeId),
    /// A named receiver has not said that it has every object, however often it was asked.
    Lost(NodeId),
    /// All named receivers have every object.
    Delivered,
    /// It is over.
    Ended(SenderOutcome),
}

/// What a receiver tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// An object is there to be had.
    Offered(Box<Offer>),
    /// What is said of an object came behind its content: it has this name.
    Named(Box<Offer>),
    /// Store these segments of the message at hand.
    Store {
        /// Of which object.
        object: ObjectId,
        /// Counted through the object.
        segments: Run,
        /// Where in the message they begin.
        offset: u32,
    },
    /// Keep these parity symbols of the message at hand.
    StoreParity {
        /// Of which object.
        object: ObjectId,
        /// The block.
        block: u32,
        /// Its symbols.
        symbols: Run,
        /// Where in the message they begin.
        offset: u32,
    },
    /// A block can be rebuilt.
    Decode {
        /// Of which object.
        object: ObjectId,
        /// Which.
        block: u32,
    },
    /// Every segment of the object is there.
    Complete(ObjectId),
    /// It is over with the object.
    Ended(ObjectId, ReceiverOutcome),
}
