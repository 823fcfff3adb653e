//! Many like receivers behind one fan-out as one entity.

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::{Losses, Time};

/// What lies between a population and its sender, as far as it decides what the population hears and says.
#[derive(Debug)]
pub struct Channel<'a> {
    /// Who loses what of the channel that all share.
    pub losses: &'a mut (dyn Losses + 'static),
    /// Octets that each datagram has besides its `wire_len`, as the losses count them.
    pub overhead: u16,
    /// Whether only content is lost.
    pub data_only: bool,
    /// Where every answer takes equally long and the sender may [merge](crate::SenderEngine::may_merge) them: which
    /// answers are lost. The population then says its answers merged; otherwise one by one.
    pub merged: Option<&'a mut (dyn Losses + 'static)>,
}

/// What receivers say.
#[derive(Clone, PartialEq, Debug)]
pub enum Feedback<M, Merged> {
    /// One receiver's message.
    Each {
        /// Which receiver.
        receiver: u32,
        /// What, and where to.
        transmit: Transmit<M>,
    },
    /// What many say at one instant, those that were lost on their way left out.
    Merged(Merged),
}

/// What receivers say, and when.
pub type TimedFeedback<M, Merged> = (Time, Feedback<M, Merged>);

/// What a population has said, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedbackCounts {
    /// Requests for repair sent.
    pub naks: u64,
    /// Of these, how many were merged and lost on their way.
    pub naks_lost: u64,
    /// Segments that they asked for.
    pub naked_dtus: u64,
    /// Requests that were said merged.
    pub merged: u64,
    /// Their octets with the channel's overhead.
    pub merged_octets: u64,
}

/// Many like receivers that decide as single engines would: given the same losses they say the same things at the same
/// nanoseconds (law 11).
pub trait Population {
    /// What it hears and says.
    type Message;
    /// What many say as one.
    type Merged;

    /// Takes a message whose first datagram reaches the fan-out at `now`, as much of its run as does so before the
    /// population's own next timer, but at least one datagram; how many those were.
    fn handle(
        &mut self,
        now: Time,
        from: &Arrival,
        message: &Self::Message,
        channel: &mut Channel<'_>,
    ) -> u32;

    /// Acts on every timer that is due at `now`.
    fn handle_timeout(&mut self, now: Time);

    /// When it wants to be woken; [`Time::NEVER`] if nothing is to be waited for.
    fn poll_timeout(&self) -> Time;

    /// The next thing that it says, and when: in a run, that may be later than the first datagram's time.
    fn poll_feedback(&mut self) -> Option<TimedFeedback<Self::Message, Self::Merged>>;

    /// When each receiver had everything; [`Time::NEVER`] for one that has not.
    fn completed(&self) -> &[Time];

    /// Number of segments that `receiver` lacks; `None` if it has not heard how many there are, or where nobody counts them.
    fn lacks(&self, _receiver: u32) -> Option<u32> {
        None
    }

    /// How many symbols of each block had been sent when each receiver had everything; 0 for one that has not. Empty where
    /// that is no measure, because receivers ask for what they lack.
    fn symbols_needed(&self) -> &[u32] {
        &[]
    }

    /// What has been said so far.
    fn counts(&self) -> &FeedbackCounts;
}
