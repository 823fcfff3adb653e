//! Events of the engines.

use alloc::vec::Vec;

use farcast_core::{Run, Time};
use farcast_delivery::{ObjectId, Offer};

use crate::message::NodeId;

/// Event of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// The sender begins to send.
    Started {
        /// Number of receivers that are to acknowledge.
        ackers: u32,
    },
    /// The sender begins a round: it sends for the first time (1), or repairs.
    Round {
        /// Number of the round.
        round: u32,
        /// Segments and symbols that are to be sent in the round.
        segments: u32,
    },
    /// A named receiver has all objects up to this one, which is not the last.
    Reached {
        /// Receiver.
        node: NodeId,
        /// Object.
        object: ObjectId,
    },
    /// A named receiver has everything.
    Acknowledged(NodeId),
    /// A named receiver has not acknowledged everything, although it was asked as often as the settings allow.
    Lost(NodeId),
    /// All named receivers have everything.
    Delivered,
    /// The transmission is over.
    Ended(SenderOutcome),
}

/// Outcome of a transmission for its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// Every named receiver has everything.
    Acknowledged,
    /// Everything was sent, including repairs that were asked for. No receiver was named, so it is not known which
    /// receivers have everything.
    Unknown,
    /// Named receivers have not acknowledged, or no receiver can have everything.
    Incomplete {
        /// Number of named receivers that have not acknowledged.
        lacking: u32,
    },
    /// The owner aborted the transmission.
    Aborted,
}

/// Event of a receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// A sender offers an object.
    Offered(Offer),
    /// The INFO of an object that was offered before has arrived.
    Named(Offer),
    /// Request to store segments of the message at hand.
    Store {
        /// Object.
        object: ObjectId,
        /// Segments, counted through the object.
        segments: Run,
        /// Index in the message of the first of them.
        offset: u32,
    },
    /// Request to keep parity symbols of the message at hand.
    StoreParity {
        /// Object.
        object: ObjectId,
        /// Block.
        block: u32,
        /// Parity symbols of the block.
        symbols: Run,
        /// Index in the message of the first of them.
        offset: u32,
    },
    /// A block can be rebuilt.
    Decode {
        /// Object.
        object: ObjectId,
        /// Block.
        block: u32,
    },
    /// All segments of an object are there.
    Complete(ObjectId),
    /// The reception of an object is over.
    Ended(ObjectId, ReceiverOutcome),
    /// A sender's application has sent a command (CMD(APPLICATION)).
    Command {
        /// Sender.
        sender: NodeId,
        /// Content of the command.
        content: Vec<u8>,
    },
}

/// Outcome of an object for a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverOutcome {
    /// The object is complete, and verified since this instant.
    Complete(Time),
    /// The sender has left, fallen silent, or cannot repair it any more.
    Lost,
    /// The sender cannot send the object any more, and goes on with others.
    Withdrawn,
    /// The owner did not want the object, could not keep it, or gave up.
    Stopped,
}
