//! Network elements and repairers between a sender and its receivers, which process the passing messages.
//!
//! A network element or a repairer has ports, numbered from 1. [`Arrival::interface`] is the port by which a message
//! came, [`Transmit::interface`] the port by which it leaves. The surrounding router is a node of a simulated tree, or
//! a real router that runs the program. It hands to the engine, and does not forward,
//!
//! * packets with IP's router alert,
//! * packets to an address of one of the ports.
//!
//! The router itself forwards everything else: multicast to every port of the tree but the one that it came by, unicast
//! by its routes. An engine that [overhears](ElementEngine::overhears) also gets a copy of the multicast that the
//! router forwards.
//!
//! A message that an engine sends names all that an IP header needs: the port, the destination, the TTL, the router
//! alert, and the source if it is not the port's address. Port 0 leaves the choice to the router's routes. A packet to
//! a group with the router alert that does not belong to the protocol is forwarded as if there were no engine.
//!
//! Its messages carry [`Content::Passing`](crate::Content::Passing) or [`Content::Kept`](crate::Content::Kept).
//!
//! [`Arrival::interface`]: farcast_core::engine::Arrival::interface
//! [`Transmit::interface`]: farcast_core::engine::Transmit::interface

use alloc::vec::Vec;
use core::ops::Range;

use farcast_core::engine::{Engine, RejectCounts};

use crate::figure::Figure;

/// Request of an element's event to the owner of the octets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ElementRequest {
    /// Keep the content of the current message, from its datagram `offset` on. The content of each datagram gets a key
    /// of its own.
    Keep {
        /// Keys, one for each datagram; none of them was used before.
        keys: Range<u64>,
        /// Number of the first datagram within the message.
        offset: u32,
    },
    /// Drop the content under these keys, which is no longer needed; some of them may be unknown.
    Forget {
        /// Keys of the content.
        keys: Range<u64>,
    },
}

/// Engine of a network element or a repairer.
pub trait ElementEngine: Engine {
    /// Returns the request that `event` makes, if any. The owner answers it before anything is sent.
    fn request(event: &Self::Event) -> Option<ElementRequest>;

    /// Returns `true` if the engine wants a copy of multicast that merely passes.
    fn overhears(&self) -> bool;

    /// Returns the element's figures, always the same ones in the same order.
    fn figures(&self) -> Vec<Figure>;

    /// Returns the number of rejected messages, by reason.
    fn rejects(&self) -> &RejectCounts;
}
