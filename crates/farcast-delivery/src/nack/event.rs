//! Events and outcomes of senders and receivers.

use alloc::boxed::Box;

use farcast_core::Run;

use super::NodeId;
use crate::object::ObjectId;
use crate::receiver::{Offer, Outcome, Request};
use crate::sender::{Ending, Milestone};

/// Event of a sender. `X` is the type of events that only its protocol has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent<X> {
    /// The sender begins to send.
    Started {
        /// Number of receivers that are to acknowledge.
        named: u32,
    },
    /// The sender begins a round: round 1 sends everything for the first time, later ones send repairs.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Segments and symbols that are to be sent when the round begins.
        segments: u32,
    },
    /// A named receiver has everything.
    Acknowledged(NodeId),
    /// A named receiver was given up before it acknowledged everything.
    Lost(NodeId),
    /// All named receivers have everything.
    Delivered,
    /// The transmission is over.
    Ended(SenderOutcome),
    /// Event of the protocol.
    Own(X),
}

impl<X> SenderEvent<X> {
    /// Returns the milestone that the event stands for, if any.
    pub const fn milestone(&self) -> Option<Milestone> {
        Some(match *self {
            Self::Started { named } => Milestone::Began { receivers: named },
            Self::Round { round, segments } => Milestone::Round { round, segments },
            Self::Acknowledged(_) => Milestone::Done,
            Self::Lost(_) => Milestone::Left,
            Self::Delivered => Milestone::Delivered,
            // Receivers do not register, so it is not known whether there are any.
            Self::Ended(_) => Milestone::Ended { alone: false },
            Self::Own(_) => return None,
        })
    }

    /// Returns the reason for the end, if the event reports the end.
    pub const fn ending(&self) -> Option<Ending> {
        let Self::Ended(outcome) = self else { return None };
        Some(match outcome {
            SenderOutcome::Acknowledged | SenderOutcome::Unknown => Ending::Finished,
            SenderOutcome::Incomplete { .. } => Ending::Silence,
            // Only the time limit aborts a sender in a simulation.
            SenderOutcome::Aborted => Ending::TimeLimit,
        })
    }
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

impl SenderOutcome {
    /// Returns the outcome of a transmission that `lacking` of `named` receivers have not acknowledged. An object that
    /// was withdrawn before it was sent completely makes it [cut short](Self::Incomplete).
    pub const fn of(named: usize, lacking: u32, is_cut_short: bool) -> Self {
        match (named, lacking) {
            (0, _) if is_cut_short => Self::Incomplete { lacking: 0 },
            (0, _) => Self::Unknown,
            (_, 0) => Self::Acknowledged,
            (_, lacking) => Self::Incomplete { lacking },
        }
    }
}

/// Event of a stream's sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamSenderEvent {
    /// A named receiver has everything up to the end.
    Acknowledged(NodeId),
    /// A named receiver does not answer, and is no longer waited for.
    Lost(NodeId),
    /// The stream is over.
    Ended(SenderOutcome),
}

/// Event of a receiver. `X` is the type of events that only its protocol has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent<X> {
    /// A sender offers an object.
    Offered(Box<Offer>),
    /// The name of an object that was offered before has arrived.
    Named(Box<Offer>),
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
        /// Block, from 0.
        block: u32,
        /// Parity symbols of the block, from 0.
        symbols: Run,
        /// Index in the message of the first of them.
        offset: u32,
    },
    /// A block can be rebuilt.
    Decode {
        /// Object.
        object: ObjectId,
        /// Block, from 0.
        block: u32,
    },
    /// All segments of an object are stored.
    Complete(ObjectId),
    /// The reception of an object is over.
    Ended(ObjectId, Outcome),
    /// Event of the protocol.
    Own(X),
}

impl<X> ReceiverEvent<X> {
    /// Returns the request that the event makes, if any.
    pub fn request(&self) -> Option<Request<'_>> {
        Some(match *self {
            Self::Offered(ref offer) => Request::Open(offer),
            Self::Named(ref offer) => Request::Rename(offer),
            Self::Store { object, segments, offset } => Request::Store { object, segments, offset },
            Self::StoreParity { object, block, symbols, offset } => {
                Request::Parity { object, block, symbols, offset }
            }
            Self::Decode { object, block } => Request::Decode { object, block },
            Self::Complete(object) => Request::Verify(object),
            Self::Ended(object, outcome) => Request::Ended(object, outcome),
            Self::Own(_) => return None,
        })
    }
}
