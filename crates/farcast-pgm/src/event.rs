//! Events that the engines report.

use core::ops::Range;

use farcast_delivery::{ObjectId, nack};

use crate::message::{Sqn, Tsi};

/// Event of a source.
pub type SenderEvent = nack::SenderEvent<Released>;

/// Event of a receiver.
pub type ReceiverEvent = nack::ReceiverEvent<MessageEvent>;

/// Message that can no longer be repaired: the engine needs its octets no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Released(pub ObjectId);

/// Identity of a message (an APDU) of a source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApduId {
    /// Session of the message.
    pub tsi: Tsi,
    /// Place of its first TPDU, counted in 64 bits through all numbers of the session.
    pub at: u64,
}

/// Event about messages, and about a source's session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageEvent {
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

/// An instruction of an element to its owner about contents; only a repairer gives any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ElementEvent {
    /// Keep the content of the message that is being handled, from its datagram `offset` on, under these keys.
    Keep {
        /// One key for each datagram.
        keys: Range<u64>,
        /// Index in the message of the first datagram to keep.
        offset: u32,
    },
    /// Forget the contents that are kept under these keys.
    Forget {
        /// The keys.
        keys: Range<u64>,
    },
}
