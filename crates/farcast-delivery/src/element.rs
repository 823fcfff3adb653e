//! What stands on the way between a sender and its receivers, and looks at what passes.
//!
//! A network element or a repairer has ports, numbered from 1: [`Arrival::interface`] says by which one something came,
//! [`Transmit::interface`] by which one it leaves. The router around it, a node of a simulated tree or a real router
//! that runs the program, hands it, and does not forward,
//!
//! * whatever bears IP's router alert,
//! * whatever is addressed to one of the addresses of its ports;
//!
//! everything else the router forwards itself: multicast to every port of the tree but the one that it came by, unicast
//! by its routes. An engine that [overhears](ElementEngine::overhears) is handed a copy, too, of multicast that the
//! router forwards.
//!
//! What an engine sends says all that an IP header needs: the port, the destination, the source where that is another
//! than the port's address, the TTL, and whether it bears the router alert. Port 0 leaves the choice to the router's
//! routes. What comes with the router alert to a group and is none of the protocol's, the router forwards as if there
//! were no engine.
//!
//! Its messages carry [`Content::Passing`](crate::Content::Passing) or [`Content::Kept`](crate::Content::Kept).
//!
//! [`Arrival::interface`]: farcast_core::engine::Arrival::interface
//! [`Transmit::interface`]: farcast_core::engine::Transmit::interface

use alloc::vec::Vec;
use core::ops::Range;

use farcast_core::engine::{Engine, RejectCounts};

use crate::figure::Figure;

/// What an event of an element asks of whoever owns the octets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ElementRequest {
    /// Keep the content of the message at hand, from its datagram `offset` on: that of each datagram under a key of its
    /// own.
    Keep {
        /// The keys; none of them was used before.
        keys: Range<u64>,
        /// In which datagram of the message the first lies.
        offset: u32,
    },
    /// What is kept under these keys is not asked for any more; some of them may be unknown.
    Forget {
        /// The keys.
        keys: Range<u64>,
    },
}

/// An engine that stands on the way.
pub trait ElementEngine: Engine {
    /// What `event` asks for, if it asks for anything. It is answered before anything is sent.
    fn request(event: &Self::Event) -> Option<ElementRequest>;

    /// Whether it is to hear multicast that merely passes.
    fn overhears(&self) -> bool;

    /// What it has done, always the same figures in the same order.
    fn figures(&self) -> Vec<Figure>;

    /// Messages turned down, by reason.
    fn rejects(&self) -> &RejectCounts;
}
