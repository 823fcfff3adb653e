//! What travels over the links of a world.

use std::num::NonZeroU32;

use farcast_core::engine::Message;

use crate::traffic::FlowMessage;

/// Who says a message of the transfer, or whom it is for. One number, so that packets stay small: receivers are fewer
/// than the numbers that stand for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Party(u32);

impl Party {
    /// The sender, at the hub.
    pub const HUB: Self = Self(u32::MAX);
    /// Everyone: the receivers, and what a receiver says to them the sender as well.
    pub const GROUP: Self = Self(u32::MAX - 1);

    /// Receiver `n`.
    pub const fn receiver(n: u32) -> Self {
        Self(n)
    }

    /// The number of the receiver that it is, if it is one.
    pub fn as_receiver(self) -> Option<u32> {
        (self.0 < Self::GROUP.0).then_some(self.0)
    }
}

/// A message of the transfer, or a run of them, and between whom it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Addressed<M> {
    /// Who says it.
    pub from: Party,
    /// Whom it is for.
    pub to: Party,
    /// What is said.
    pub message: M,
}

impl<M: Message> Message for Addressed<M> {
    fn segments(&self) -> NonZeroU32 {
        self.message.segments()
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self { from, to, message } = self;
        let (head, tail) = message.split(count);
        (Self { from, to, message: head }, tail.map(|message| Self { from, to, message }))
    }

    fn wire_len(&self, segment: u32) -> usize {
        self.message.wire_len(segment)
    }
}

/// A packet, or a run of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<M> {
    /// What the sender of the multicast transfer and its receivers say.
    Transfer(Addressed<M>),
    /// What an end of a flow says to the other.
    Flow {
        /// The flow's number.
        flow: u32,
        /// What it says.
        message: FlowMessage,
    },
}

impl<M: Message> Message for Packet<M> {
    fn segments(&self) -> NonZeroU32 {
        match self {
            Self::Transfer(message) => message.segments(),
            Self::Flow { message, .. } => message.segments(),
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        match self {
            Self::Transfer(message) => {
                let (head, tail) = message.split(count);
                (Self::Transfer(head), tail.map(Self::Transfer))
            }
            Self::Flow { .. } => (self, None),
        }
    }

    fn wire_len(&self, segment: u32) -> usize {
        match self {
            Self::Transfer(message) => message.wire_len(segment),
            Self::Flow { message, .. } => message.wire_len(segment),
        }
    }
}
