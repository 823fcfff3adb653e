//! What of an object a message carries.

use farcast_core::{Message, Run};

use crate::object::ObjectId;
use crate::proved::Proved;

/// What follows behind a message's header in its datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Nothing: the message is all header.
    None,
    /// Segments of an object, counted in their block.
    Source {
        /// The object.
        object: ObjectId,
        /// The block.
        block: u32,
        /// Which of its segments: one in each datagram.
        segments: Run,
    },
    /// Parity symbols of a block.
    Parity {
        /// The object.
        object: ObjectId,
        /// The block.
        block: u32,
        /// Which symbols: one in each datagram.
        symbols: Run,
    },
    /// Of what stands on the way: what came in the message that it was given last. It leaves before anything else is
    /// handled, so nobody keeps it.
    Passing {
        /// In which datagram of that message, from 0.
        datagram: u32,
    },
    /// Of what stands on the way: what its owner [keeps](crate::ElementRequest::Keep).
    Kept {
        /// Under this key.
        key: u64,
    },
}

impl Content {
    /// Whether anything follows the header.
    pub const fn is_some(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// What a message is for, for those who report what passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// It makes a delivery known.
    Announcement,
    /// It carries content, in this round.
    Content {
        /// Of sending, from 1.
        round: u32,
    },
    /// It asks receivers what they lack.
    Query,
    /// It asks for repair.
    Nak {
        /// The round that it answers.
        round: u32,
        /// The block.
        block: u32,
        /// How many segments of it.
        segments: u32,
    },
    /// It confirms what receivers have said, or says that it is over.
    Confirmation,
    /// All else.
    Other,
}

/// A message of a protocol that delivers objects.
pub trait Delivery: Message {
    /// What it carries.
    fn content(&self) -> Content;

    /// What it is for.
    fn purpose(&self) -> Purpose;

    /// Octets of content in datagram `segment`, without padding; 0 where it carries none.
    fn payload_len(&self, segment: u32) -> usize;

    /// Makes `next`, which came directly behind it, part of this run, if it is its next datagram; whether it is.
    fn join(&mut self, next: &Self) -> bool;

    /// Whether it may come to a receiver's own address: what a sender says to one receiver. All else comes to the
    /// group, where everybody hears it, or not at all.
    fn is_for_one(&self) -> bool;

    /// Whether the receiver `who` may say it to the sender: where it tells for whom it speaks, whether that is this one. Of
    /// what is sealed it is known who says it, and nobody speaks for another. By default nobody may say anything: a
    /// protocol that can be sealed knows its receivers by name or by number.
    fn may_be_said_by(&self, _who: &Proved<'_>) -> bool {
        false
    }

    /// The same of a sender: whether `who` may say it to receivers. By default each may, in its own sessions: what comes
    /// from an address is of who offered something there. A protocol whose messages name their sender looks whether it is
    /// this one.
    fn may_be_sent_by(&self, _who: &Proved<'_>) -> bool {
        true
    }

    /// Whether its sender waits for the answer with something else to send.
    fn is_urgent(&self) -> bool;

    /// Whether it only makes receivers known: an announcement, or a registration. Where the set-up is given, these pass
    /// no link.
    fn is_set_up(&self) -> bool;
}
