//! Events of a tree.

use farcast_core::stage::Frame;
use farcast_link::chain::Entry;

use super::{Carried, Packet};
use crate::traffic::End;
use crate::world::{FlowTimer, Timer};

/// Event of a tree. `M` is the message type of the transfer's engines, `G` the merged feedback of many receivers.
pub enum Event<M, G> {
    /// Timer of the world.
    Timer(Timer),
    /// A receiver sends a message.
    Answer(Answer<M>),
    /// The NAKs of a population reach the sender.
    Merged(G),
    /// A frame enters a stage of an edge, or the rest of a run enters the edge's chain.
    Enter {
        /// Number of the edge.
        edge: u32,
        /// Frame, and its way.
        entry: Entry<Packet<M>>,
    },
    /// Timer of a stage of an edge.
    StageWake {
        /// Number of the edge.
        edge: u32,
        /// Number of the stage.
        stage: u32,
    },
    /// A frame has passed the return chain of an edge; the losses behind it are not drawn yet.
    Leave {
        /// Number of the edge.
        edge: u32,
        /// Frame.
        frame: Frame<Packet<M>>,
    },
    /// A frame reaches one end of an edge, or several; far ends may lose it.
    Reach {
        /// Number of the edge.
        edge: u32,
        /// Direction in which the frame passed the edge.
        to: End,
        /// End of the edge.
        place: u32,
        /// Frame.
        frame: Frame<Packet<M>>,
    },
    /// A frame has reached the node at an end of an edge and can no longer be lost there.
    Pass {
        /// Number of the edge.
        edge: u32,
        /// End of the edge.
        place: u32,
        /// Frame.
        frame: Frame<Packet<M>>,
    },
    /// Timer of an element.
    ElementWake {
        /// Number of the node.
        node: u32,
    },
    /// Timer of a flow.
    Flow(FlowTimer),
}

impl<M, G> From<Timer> for Event<M, G> {
    fn from(timer: Timer) -> Self {
        Self::Timer(timer)
    }
}

/// Message of a receiver.
pub struct Answer<M> {
    pub(super) group: u32,
    pub(super) receiver: u32,
    pub(super) to: u32,
    pub(super) carried: Carried<M>,
}
