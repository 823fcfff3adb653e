//! Detection of other deliveries on a multicast group.

use core::net::SocketAddr;

use farcast_core::Time;

/// Tracker of other deliveries' messages on a group. A program that waits for a free group asks it.
pub trait Occupancy {
    /// Message type.
    type Message;

    /// Records a message that came to the group from `source`.
    fn hear(&mut self, now: Time, source: SocketAddr, message: &Self::Message);

    /// Returns `true` if no other delivery uses the group at `now`.
    fn is_free(&self, now: Time) -> bool;
}
