//! What the engines tell.

use farcast_core::{Run, Time};
use farcast_delivery::{ObjectId, Offer};

use crate::message::{NodeId, Sqn, Tsi};

/// What a source tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// It sends.
    Started {
        /// How many receivers are named.
        named: u32,
    },
    /// It sends for the first time (1), or again after all was sent.
    Round {
        /// Which time.
        round: u32,
        /// TPDUs that it then has to send.
        segments: u32,
    },
    /// This message cannot be repaired any more: its octets are not needed.
    Released(ObjectId),
    /// A named receiver has everything.
    Acknowledged(NodeId),
    /// A named receiver has not said that it has everything.
    Lost(NodeId),
    /// All named receivers have everything.
    Delivered,
    /// It is over.
    Ended(SenderOutcome),
}

/// How it ended for a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// Every named receiver has everything.
    Acknowledged,
    /// Everything was sent, and what was asked for; nobody was named, so who has it is not known.
    Unknown,
    /// Named receivers have not acknowledged.
    Incomplete {
        /// How many.
        lacking: u32,
    },
    /// Its owner gave up.
    Aborted,
}

/// A message (an APDU) of a source, by the number of its first TPDU among all that there have been.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApduId {
    /// Whose.
    pub tsi: Tsi,
    /// Its first TPDU.
    pub at: u64,
}

/// What a receiver tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// A file is there to be had.
    Offered(Offer),
    /// Store these segments of the message at hand.
    Store {
        /// The object.
        object: ObjectId,
        /// Counted through the object.
        segments: Run,
        /// Where in the message they begin.
        offset: u32,
    },
    /// Keep the TSDU of the message at hand, which is parity of a transmission group.
    StoreParity {
        /// The object.
        object: ObjectId,
        /// Which of its groups.
        block: u32,
        /// Which of that group's parity.
        symbol: u32,
    },
    /// Rebuild what a group lacks from its parity, and store it.
    Decode {
        /// The object.
        object: ObjectId,
        /// Which of its groups.
        block: u32,
    },
    /// Everything of a file is there.
    Complete(ObjectId),
    /// It is over with a file.
    Ended(ObjectId, ReceiverOutcome),
    /// Keep the TSDU of the message at hand.
    Part {
        /// A piece of this message.
        apdu: ApduId,
        /// Octets of all of it.
        len: u32,
        /// Where in it the TSDU belongs.
        offset: u32,
    },
    /// This message is whole, and its turn has come.
    Apdu(ApduId),
    /// Of this message nothing more comes: what is kept of it is not needed.
    Dropped(ApduId),
    /// Data that cannot be had any more; in the order of messages where these are ordered.
    Lost {
        /// Whose.
        tsi: Tsi,
        /// From this number on.
        sqn: Sqn,
        /// The same among all that there have been, as of [`ApduId`].
        at: u64,
        /// How many TPDUs.
        count: u32,
    },
    /// A source says that its session has ended, and everything of it is here or told as lost.
    Finished(Tsi),
    /// A source gave up, or has not been heard for long.
    Gone(Tsi),
}

/// How it ended for a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverOutcome {
    /// The file is there and verified since this instant.
    Complete(Time),
    /// The source has left or fallen silent.
    Lost,
    /// The source has sent all that it will, or cannot repair it any more.
    Missed,
    /// Its owner did not want it, could not keep it, or gave up.
    Stopped,
}
