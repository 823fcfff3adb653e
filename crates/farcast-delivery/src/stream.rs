//! Streams: octets without an end that is known at the beginning. Their engines keep the octets that can still be
//! repaired, so no other store exists. They take and return whole datagrams, and store no more than their window.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Arrival, RejectCounts, Transmit};

use crate::proved::Proved;

/// Engine at either end of a stream.
pub trait StreamEngine {
    /// Event type.
    type Event;

    /// Handles a datagram. Rejected datagrams are counted, by reason.
    fn handle(&mut self, now: Time, from: &Arrival, datagram: &[u8]);

    /// Returns `true` if `who` may send `datagram` to this end. The rule is
    /// [`Delivery::may_be_said_by`](crate::Delivery::may_be_said_by) at the sending end, and
    /// [`Delivery::may_be_sent_by`](crate::Delivery::may_be_sent_by) at the receiving end.
    fn may_say(&self, datagram: &[u8], who: &Proved<'_>) -> bool;

    /// Acts on timers that are due at `now`.
    fn handle_timeout(&mut self, now: Time);

    /// Appends the next outgoing datagram to `out`, and returns its destination and how it leaves.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit<()>>;

    /// Returns the time of the next timer; [`Time::NEVER`] if none runs.
    fn poll_timeout(&self) -> Time;

    /// Returns the next event, if any.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Returns the number of rejected messages, by reason.
    fn rejects(&self) -> &RejectCounts;

    /// Returns the number of datagrams that were no message of the protocol.
    fn malformed(&self) -> u64;
}

/// Engine at the sending end of a stream.
pub trait StreamSenderEngine: StreamEngine {
    /// Begins the stream.
    fn open(&mut self, now: Time);

    /// Handles the change of our own address to `source`.
    fn moved(&mut self, now: Time, source: SocketAddr);

    /// Records that `datagrams` other than the engine's own have left, with `octets` of UDP payload in total, as
    /// [`SenderEngine::spend`](crate::SenderEngine::spend) does.
    fn spend(&mut self, datagrams: u64, octets: u64);

    /// Takes as many octets of the stream as there is room for, and returns their number.
    fn write(&mut self, now: Time, octets: &[u8]) -> usize;

    /// Ends a message after the octets taken so far. The octets taken next begin another.
    fn end_message(&mut self);

    /// Sends the octets taken so far, even if they do not fill a segment.
    fn flush(&mut self, now: Time);

    /// Ends the stream: nothing more is written.
    fn finish(&mut self, now: Time);

    /// Returns the number of octets of the stream so far.
    fn octets(&self) -> u64;

    /// Returns `true` if the stream is over.
    fn has_ended(&self) -> bool;

    /// Returns `true` if receivers answer to the group, so that the sender must listen to it.
    fn hears_group(&self) -> bool;
}

/// Part of a stream that a receiver obtained. Places are octets from the beginning of the stream. In a protocol that
/// does not tell how many octets were lost, they are packet numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Octets, and the place of the first of them in the stream.
    Octets(u64),
    /// Gap of octets that cannot be obtained: its place, and the place where the stream continues, if known.
    Gap(u64, Option<u64>),
    /// End of the stream: the place from the beginning of the stream, or from where reception began.
    End(u64),
}

/// Engine at the receiving end of a stream.
pub trait StreamReceiverEngine: StreamEngine {
    /// Appends the next part of the stream to `out`, if it is available.
    fn read(&mut self, out: &mut Vec<u8>) -> Option<Taken>;

    /// Returns `true` if the sender has left, or no longer waits for anything that this end sends.
    fn has_left(&self) -> bool;

    /// Confirms that all octets read so far are stored, so that the engine may acknowledge them.
    fn settle(&mut self, now: Time);

    /// Handles the start of another session by `who`, as
    /// [`ReceiverEngine::begins_anew`](crate::ReceiverEngine::begins_anew) does.
    fn begins_anew(&mut self, now: Time, who: &Proved<'_>);
}
