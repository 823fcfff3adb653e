//! Content that a message carries.

use farcast_core::{Message, Run};

use crate::object::ObjectId;
use crate::proved::Proved;

/// Content behind a message's header in its datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// No content: the message is all header.
    None,
    /// Segments of an object, counted in their block.
    Source {
        /// Object that the segments belong to.
        object: ObjectId,
        /// Block that the segments belong to.
        block: u32,
        /// Segments, one in each datagram, counted from the start of the block.
        segments: Run,
    },
    /// Parity symbols of a block.
    Parity {
        /// Object that the symbols belong to.
        object: ObjectId,
        /// Block that the symbols belong to.
        block: u32,
        /// Parity symbols, one in each datagram.
        symbols: Run,
    },
    /// Content of the message that a network element handled last. The element sends it before it handles anything
    /// else, so nobody stores it.
    Passing {
        /// Number of the datagram within that message, from 0.
        datagram: u32,
    },
    /// Content that the owner of a network element [keeps](crate::ElementRequest::Keep).
    Kept {
        /// Key under which it is kept.
        key: u64,
    },
}

impl Content {
    /// Returns `true` if content follows the header.
    pub const fn is_some(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Purpose of a message, for reports of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Announcement of a delivery.
    Announcement,
    /// Content of a round of sending.
    Content {
        /// Number of the round, from 1.
        round: u32,
    },
    /// Query that asks receivers which segments they lack.
    Query,
    /// Request for repair (NAK).
    Nak {
        /// Round that the request answers.
        round: u32,
        /// Block that the request is for.
        block: u32,
        /// Number of segments that the request asks for.
        segments: u32,
    },
    /// Confirmation of what receivers have said, or of the end of the delivery.
    Confirmation,
    /// Any other purpose.
    Other,
}

/// Message of a protocol that delivers objects.
pub trait Delivery: Message {
    /// Returns the content that the message carries.
    fn content(&self) -> Content;

    /// Returns the purpose of the message.
    fn purpose(&self) -> Purpose;

    /// Returns the octets of content in datagram `segment`, without padding; 0 for a message without content.
    fn payload_len(&self, segment: u32) -> usize;

    /// Appends `next`, which arrived directly after this run, if it is the run's next datagram. Returns `true` if it
    /// was appended.
    fn join(&mut self, next: &Self) -> bool;

    /// Returns `true` if the message may come to a receiver's own address, as a message of the sender to one receiver
    /// does. Any other message comes to the group, where everybody hears it, or not at all.
    fn is_for_one(&self) -> bool;

    /// Returns `true` if the receiver `who` may send this message to the sender. A message that names a receiver must
    /// name `who`: the seal proves the origin of a message, and no receiver may speak for another. By default no
    /// receiver may send anything: a protocol that can be sealed knows its receivers by name or by number.
    fn may_be_said_by(&self, _who: &Proved<'_>) -> bool {
        false
    }

    /// Returns `true` if the sender `who` may send this message to receivers. By default every sender may, in its own
    /// sessions: a message belongs to the sender that made an offer from the same address. A protocol whose messages
    /// name their sender checks the name.
    fn may_be_sent_by(&self, _who: &Proved<'_>) -> bool {
        true
    }

    /// Returns `true` if the sender waits for the answer while it has more to send.
    fn is_urgent(&self) -> bool;

    /// Returns `true` if the message only makes receivers known: an announcement, or a registration. Where the set-up
    /// is given, these messages pass no link.
    fn is_set_up(&self) -> bool;
}
