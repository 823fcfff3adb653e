//! Events of a star.

use farcast_core::stage::Frame;
use farcast_link::chain::Entry;

use super::flights::Flight;
use super::{Addressed, Packet, SealMessage};
use crate::traffic::End;
use crate::world::{FlowTimer, Timer};

/// Event of a star. `M` is the message type of the transfer's engines, `G` the merged feedback of many receivers.
pub enum Event<M, G> {
    /// Timer of the world.
    Timer(Timer),
    /// A receiver's message has passed the stages of the return path; it can still be lost.
    Reach(Frame<Addressed<M>>),
    /// A receiver's message arrives at the sender.
    Arrive(Frame<Addressed<M>>),
    /// The NAKs of a population reach the sender.
    Merged(G),
    /// Timer of a stage.
    StageWake(u32),
    /// The first datagram of a frame reaches the receivers of a group.
    FanOut {
        /// Number of the group.
        group: u32,
        /// Frame.
        frame: Frame<Addressed<M>>,
    },
    /// A receiver sends a message.
    Answer(Addressed<M>),
    /// A datagram that only the seal sends reaches the receivers of a group.
    Unseal {
        /// Number of the group.
        group: u32,
        /// Datagram.
        message: SealMessage,
    },
    /// A receiver's request for the content key has passed the stages of the return path; it can still be lost.
    ReachRequest(u32),
    /// A receiver's request for the content key arrives at the sender.
    ArriveRequest(u32),
    /// A frame enters a stage, or the rest of a run enters the chain. No other variant is as large, so the tag of an
    /// event has room in this one, and events move by aligned words.
    Enter(Entry<Packet<M>>),
}

impl<M, G> From<Timer> for Event<M, G> {
    fn from(timer: Timer) -> Self {
        Self::Timer(timer)
    }
}

/// Event of a flow. Flow events come last in their instant, so they have a queue of their own, of small events.
#[derive(Clone, Copy)]
pub(super) enum FlowEvent {
    /// Timer of a flow.
    Timer(FlowTimer),
    /// A packet of a flow has passed the links; it can still be lost.
    Reach { flow: u32, end: End, packet: Flight },
}
