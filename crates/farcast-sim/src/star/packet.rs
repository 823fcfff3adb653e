//! What travels over the links of a world.

use std::num::NonZeroU32;

use farcast_core::engine::Message as Run;
use farcast_mftp::Message;

use crate::traffic::FlowMessage;

/// A packet, or a run of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// What the sender of the multicast transfer and its receivers say.
    Mftp(Message),
    /// What an end of a flow says to the other.
    Flow {
        /// The flow's number.
        flow: u32,
        /// What it says.
        message: FlowMessage,
    },
}

impl Run for Packet {
    fn segments(&self) -> NonZeroU32 {
        match self {
            Self::Mftp(message) => message.segments(),
            Self::Flow { message, .. } => message.segments(),
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        match self {
            Self::Mftp(message) => {
                let (head, tail) = message.split(count);
                (Self::Mftp(head), tail.map(Self::Mftp))
            }
            Self::Flow { .. } => (self, None),
        }
    }

    fn wire_len(&self, segment: u32) -> usize {
        match self {
            Self::Mftp(message) => message.wire_len(segment),
            Self::Flow { message, .. } => message.wire_len(segment),
        }
    }
}
