//! Streams: octets without an end that is known at the beginning. Their engines keep the octets that can still be
//! repaired, so they take and give datagrams, and own no more than their window.

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Arrival, RejectCounts, Transmit};

use crate::proved::Proved;

/// What both ends of a stream are to whoever drives them.
pub trait StreamEngine {
    /// What it tells.
    type Event;

    /// A datagram has come. What is turned down is counted, by reason.
    fn handle(&mut self, now: Time, from: &Arrival, datagram: &[u8]);

    /// Whether `who` may say `datagram` to this end: as [`Delivery::may_be_said_by`](crate::Delivery::may_be_said_by) at
    /// the end that sends, and as [`Delivery::may_be_sent_by`](crate::Delivery::may_be_sent_by) at the other.
    fn may_say(&self, datagram: &[u8], who: &Proved<'_>) -> bool;

    /// Time has passed.
    fn handle_timeout(&mut self, now: Time);

    /// Appends the next datagram that leaves to `out`: where it goes, and how.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit<()>>;

    /// When it wants to be asked again; [`Time::NEVER`] if not before something happens.
    fn poll_timeout(&self) -> Time;

    /// What there is to tell.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Messages turned down, by reason.
    fn rejects(&self) -> &RejectCounts;

    /// Datagrams that were no message of the protocol.
    fn malformed(&self) -> u64;
}

/// The end that sends.
pub trait StreamSenderEngine: StreamEngine {
    /// Begins.
    fn open(&mut self, now: Time);

    /// So many datagrams of so many octets of UDP payload in all have left beside what it sends: as
    /// [`SenderEngine::spend`](crate::SenderEngine::spend).
    fn spend(&mut self, datagrams: u64, octets: u64);

    /// Takes octets of the stream, as many as there is room for: how many.
    fn write(&mut self, now: Time, octets: &[u8]) -> usize;

    /// What has been taken so far ends a message: what is taken next begins another.
    fn end_message(&mut self);

    /// What has been taken leaves, even where it fills no segment.
    fn flush(&mut self, now: Time);

    /// Nothing more comes.
    fn finish(&mut self, now: Time);

    /// Whether it is over.
    fn has_ended(&self) -> bool;

    /// Whether receivers answer the group, which is then to be listened to.
    fn hears_group(&self) -> bool;
}

/// What a receiver has of a stream. Places are octets from its beginning; or packets by their numbers, where a protocol
/// does not tell how many octets were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Octets, the first of which has this place in the stream.
    Octets(u64),
    /// Octets that cannot be had: from where, and, if it is known, where the stream goes on.
    Gap(u64, Option<u64>),
    /// The stream has ended, so many octets from its beginning, or from where it was begun with.
    End(u64),
}

/// The end that receives.
pub trait StreamReceiverEngine: StreamEngine {
    /// Appends what is next of the stream to `out`, if it is there.
    fn read(&mut self, out: &mut Vec<u8>) -> Option<Taken>;

    /// Whether its sender has left, or waits for nothing that is said here.
    fn has_left(&self) -> bool;

    /// Everything that was read is in its place: it may be acknowledged.
    fn settle(&mut self, now: Time);

    /// `who` has begun another session: as [`ReceiverEngine::begins_anew`](crate::ReceiverEngine::begins_anew).
    fn begins_anew(&mut self, now: Time, who: &Proved<'_>);
}
