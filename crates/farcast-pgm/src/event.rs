//! Events that the engines report.

use farcast_core::{Run, Time};
use farcast_delivery::{ObjectId, Offer};

use crate::message::{NodeId, Sqn, Tsi};

/// An event that a source reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// The source has begun to send.
    Started {
        /// Number of named receivers.
        named: u32,
    },
    /// A round begins: round 1 sends everything once, later ones send repairs after everything was sent.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// TPDUs that wait to be sent when the round begins.
        segments: u32,
    },
    /// This message can no longer be repaired: the engine needs its octets no more.
    Released(ObjectId),
    /// A named receiver has everything.
    Acknowledged(NodeId),
    /// A named receiver was given up before it said that it has everything.
    Lost(NodeId),
    /// All named receivers have everything.
    Delivered,
    /// The source is done.
    Ended(SenderOutcome),
}

/// Outcome for a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// Every named receiver has everything.
    Acknowledged,
    /// Everything was sent, repairs included. No receiver was named, so it is not known which have everything.
    Unknown,
    /// Some named receivers have not acknowledged.
    Incomplete {
        /// Number of these receivers.
        lacking: u32,
    },
    /// The owner of the source gave up.
    Aborted,
}

/// Identity of a message (an APDU) of a source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApduId {
    /// Session of the message.
    pub tsi: Tsi,
    /// Place of its first TPDU, counted in 64 bits through all numbers of the session.
    pub at: u64,
}

/// An event that a receiver reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// A source offers a file.
    Offered(Offer),
    /// Store these segments of the message that is being handled.
    Store {
        /// The object.
        object: ObjectId,
        /// Segments, counted through the object.
        segments: Run,
        /// Index in the message of the datagram that holds the first of them.
        offset: u32,
    },
    /// Keep the TSDU of the message that is being handled: it is parity of a transmission group.
    StoreParity {
        /// The object.
        object: ObjectId,
        /// Transmission group of the object, from 0.
        block: u32,
        /// Index of the parity packet in its group.
        symbol: u32,
    },
    /// Rebuild the missing packets of a group from its parity, and store them.
    Decode {
        /// The object.
        object: ObjectId,
        /// Transmission group of the object, from 0.
        block: u32,
    },
    /// All segments of a file are stored.
    Complete(ObjectId),
    /// Reception of a file has ended.
    Ended(ObjectId, ReceiverOutcome),
    /// Keep the TSDU of the message that is being handled.
    Part {
        /// Message (APDU) to which the TSDU belongs.
        apdu: ApduId,
        /// Octets of the whole message.
        len: u32,
        /// Octet of the message at which the TSDU belongs.
        offset: u32,
    },
    /// This message is complete, and its turn has come.
    Apdu(ApduId),
    /// Nothing more of this message will come: its stored octets are not needed.
    Dropped(ApduId),
    /// Data that can no longer be obtained; reported in the order of messages where these are ordered.
    Lost {
        /// Session of the data.
        tsi: Tsi,
        /// First sequence number that is lost.
        sqn: Sqn,
        /// The same number as a 64-bit place, as in [`ApduId::at`].
        at: u64,
        /// Number of TPDUs that are lost.
        count: u32,
    },
    /// A source has ended its session, and everything of it has arrived or was reported as lost.
    Finished(Tsi),
    /// A source gave up, or has been silent for long.
    Gone(Tsi),
}

/// Outcome of a file for a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverOutcome {
    /// The file is complete and verified since this instant.
    Complete(Time),
    /// The source has left or fallen silent.
    Lost,
    /// The source sends no more, or can no longer repair the missing data.
    Missed,
    /// The owner of the receiver declined the file, could not keep it, or gave up.
    Stopped,
}
