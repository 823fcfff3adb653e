//! What the engines tell.

use alloc::vec::Vec;

use farcast_core::{Run, Time};
use farcast_delivery::{ObjectId, Offer};

use crate::message::NodeId;

/// What a sender tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// It sends.
    Started {
        /// How many receivers are to acknowledge.
        ackers: u32,
    },
    /// It sends for the first time (1), or what was asked for.
    Round {
        /// Which time.
        round: u32,
        /// Segments and symbols that it then has to send.
        segments: u32,
    },
    /// A named receiver has all objects up to this one, of which it is not the last.
    Reached {
        /// Which receiver.
        node: NodeId,
        /// Up to which object.
        object: ObjectId,
    },
    /// A named receiver has everything.
    Acknowledged(NodeId),
    /// A named receiver has not said that it has everything, however often it was asked.
    Lost(NodeId),
    /// All named receivers have everything.
    Delivered,
    /// It is over.
    Ended(SenderOutcome),
}

/// How it ended for a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// Every named receiver has everything.
    Acknowledged,
    /// Everything was sent, and what was asked for; nobody was named, so who has it is not known.
    Unknown,
    /// Named receivers have not acknowledged, or nobody can have all.
    Incomplete {
        /// Number of named receivers that have not.
        lacking: u32,
    },
    /// Its owner gave up.
    Aborted,
}

/// What a receiver tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// An object is there to be had.
    Offered(Offer),
    /// What is said of an object that was offered before is known now.
    Named(Offer),
    /// Store these segments of the message at hand.
    Store {
        /// The object.
        object: ObjectId,
        /// Counted through the object.
        segments: Run,
        /// Where in the message they begin.
        offset: u32,
    },
    /// Keep these parity symbols of the message at hand.
    StoreParity {
        /// The object.
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
        /// The object.
        object: ObjectId,
        /// Which.
        block: u32,
    },
    /// Everything of an object is there.
    Complete(ObjectId),
    /// It is over with an object.
    Ended(ObjectId, ReceiverOutcome),
    /// A sender's application says something (CMD(APPLICATION)).
    Command {
        /// Which sender's.
        sender: NodeId,
        /// What.
        content: Vec<u8>,
    },
}

/// How it ended for a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverOutcome {
    /// The object is there and verified since this instant.
    Complete(Time),
    /// The sender has left, fallen silent, or cannot repair it any more.
    Lost,
    /// The sender cannot send the object any more, and goes on with others.
    Withdrawn,
    /// Its owner did not want it, could not keep it, or gave up.
    Stopped,
}
