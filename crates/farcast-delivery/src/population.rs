//! Populations: many like receivers, behind one fan-out, as one entity.

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::{Losses, Time};

/// Channel between a population and its sender, as far as it affects the population's messages.
#[derive(Debug)]
pub struct Channel<'a> {
    /// Loss process of the channel that all receivers share.
    pub losses: &'a mut (dyn Losses + 'static),
    /// Octets of each datagram beyond its `wire_len`, as the losses count them.
    pub overhead: u16,
    /// `true` if only messages with content are lost.
    pub data_only: bool,
    /// Loss process of answers. Present if all answers take equally long and the sender may
    /// [merge](crate::SenderEngine::may_merge) them; the population then merges its answers. Otherwise it sends each
    /// alone.
    pub merged: Option<&'a mut (dyn Losses + 'static)>,
}

/// Messages of receivers.
#[derive(Clone, PartialEq, Debug)]
pub enum Feedback<M, Merged> {
    /// One receiver's message.
    Each {
        /// Receiver that sends the message.
        receiver: u32,
        /// The message and its destination.
        transmit: Transmit<M>,
    },
    /// Messages of many receivers at one instant, without those that were lost on the way.
    Merged(Merged),
}

/// Time and content of a receiver's message.
pub type TimedFeedback<M, Merged> = (Time, Feedback<M, Merged>);

/// Counts of a population's messages, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedbackCounts {
    /// Requests for repair sent.
    pub naks: u64,
    /// Requests for repair that were merged and lost on the way; included in `naks`.
    pub naks_lost: u64,
    /// Segments that the requests asked for.
    pub naked_dtus: u64,
    /// Requests that were sent merged.
    pub merged: u64,
    /// Octets of the merged requests, with the channel's overhead.
    pub merged_octets: u64,
}

/// Many like receivers that decide exactly as single engines would. With the same losses they send the same messages at
/// the same nanoseconds (law 11).
pub trait Population {
    /// Message type that the population receives and sends.
    type Message;
    /// Type of the merged messages of many receivers.
    type Merged;

    /// Handles a message whose first datagram reaches the fan-out at `now`. It takes the datagrams of the run that
    /// arrive before the population's own next timer, but at least one. Returns the number of datagrams taken.
    fn handle(
        &mut self,
        now: Time,
        from: &Arrival,
        message: &Self::Message,
        channel: &mut Channel<'_>,
    ) -> u32;

    /// Acts on every timer that is due at `now`.
    fn handle_timeout(&mut self, now: Time);

    /// Returns the time of the next timer; [`Time::NEVER`] if none runs.
    fn poll_timeout(&self) -> Time;

    /// Returns the next message and the time at which it leaves. Within a run, that time may be later than the time of
    /// the first datagram.
    fn poll_feedback(&mut self) -> Option<TimedFeedback<Self::Message, Self::Merged>>;

    /// Returns the time at which each receiver was complete; [`Time::NEVER`] for one that is not.
    fn completed(&self) -> &[Time];

    /// Returns the number of segments that `receiver` lacks. `None` if it does not know the total, or the protocol does
    /// not count them.
    fn lacks(&self, _receiver: u32) -> Option<u32> {
        None
    }

    /// Returns, for each receiver, the number of symbols of each block sent by the time it was complete; 0 for an
    /// incomplete one. Empty if receivers request what they lack, because the number then measures nothing.
    fn symbols_needed(&self) -> &[u32] {
        &[]
    }

    /// Returns the counts of messages sent so far.
    fn counts(&self) -> &FeedbackCounts;
}
