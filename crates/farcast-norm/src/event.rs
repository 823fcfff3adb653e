//! Events of the engines.

use alloc::vec::Vec;

use farcast_delivery::{ObjectId, nack};

use crate::message::NodeId;

/// Event of a sender.
pub type SenderEvent = nack::SenderEvent<Reached>;

/// Event of a receiver.
pub type ReceiverEvent = nack::ReceiverEvent<Command>;

/// Progress of a named receiver, which has all objects up to one that is not the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reached {
    /// Receiver.
    pub node: NodeId,
    /// Object.
    pub object: ObjectId,
}

/// Command of a sender's application (CMD(APPLICATION)).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Sender.
    pub sender: NodeId,
    /// Content of the command.
    pub content: Vec<u8>,
}
