//! Whether a group is another's.

use core::net::SocketAddr;

use farcast_core::Time;

/// What is heard of other deliveries on a group, and when it is theirs: what waits for a group asks.
pub trait Occupancy {
    /// What is heard.
    type Message;

    /// Notes a message that came to the group from `source`.
    fn hear(&mut self, now: Time, source: SocketAddr, message: &Self::Message);

    /// Whether the group is nobody's at `now`.
    fn is_free(&self, now: Time) -> bool;
}
