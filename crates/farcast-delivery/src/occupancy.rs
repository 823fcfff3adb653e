//! Detection of other deliveries on a multicast group.

use core::marker::PhantomData;
use core::net::SocketAddr;

use farcast_core::{Span, Time};

use crate::content::{Content, Delivery, Purpose};

/// Tracker of other deliveries' messages on a group. A program that waits for a free group asks it.
pub trait Occupancy {
    /// Message type.
    type Message;

    /// Records a message that came to the group from `source`.
    fn hear(&mut self, now: Time, source: SocketAddr, message: &Self::Message);

    /// Records a sealed datagram, whose content is unknown. By default it does not count.
    fn hear_sealed(&mut self, _now: Time, _source: SocketAddr) {}

    /// Returns `true` if no other delivery uses the group at `now`.
    fn is_free(&self, now: Time) -> bool;

    /// Returns the sender that was heard last, if any was.
    fn heard(&self) -> Option<SocketAddr>;
}

/// Tracker that takes a group for free once no sender was heard on it for [`QUIET`].
#[derive(Clone, Debug)]
pub struct Silence<M> {
    since: Time,
    heard: Option<SocketAddr>,
    message: PhantomData<M>,
}

/// Time without any message of a sender after which a group is taken for free. Content that leaves at more than a few
/// hundred bit/s has no longer pauses.
pub const QUIET: Span = Span::from_secs(2);

impl<M> Silence<M> {
    /// Makes a tracker that begins to listen at `now`.
    pub const fn new(now: Time) -> Self {
        Self { since: now, heard: None, message: PhantomData }
    }

    fn note(&mut self, now: Time, source: SocketAddr) {
        (self.since, self.heard) = (now, Some(source));
    }
}

impl<M: Delivery> Occupancy for Silence<M> {
    type Message = M;

    fn hear(&mut self, now: Time, source: SocketAddr, message: &M) {
        let sends = !matches!(message.content(), Content::None)
            || matches!(message.purpose(), Purpose::Announcement | Purpose::Content { .. } | Purpose::Query);
        if sends {
            self.note(now, source);
        }
    }

    /// Receivers of a sealed delivery answer its sender alone, so a sealed datagram to the group comes from a sender.
    fn hear_sealed(&mut self, now: Time, source: SocketAddr) {
        self.note(now, source);
    }

    fn is_free(&self, now: Time) -> bool {
        now.since(self.since) >= QUIET
    }

    fn heard(&self) -> Option<SocketAddr> {
        self.heard
    }
}
