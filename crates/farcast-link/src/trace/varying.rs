//! The stage whose rate and delay follow a timeline.

use alloc::sync::Arc;

use farcast_core::stage::Port;
use farcast_core::{Span, Time};

use super::fifo::{Fifo, SendOutcome, Server};
use super::timeline::Lap;
use super::{Timeline, TimelineCursor};
use crate::LinkError;
use crate::pipe::QueueLimit;

/// The settings of a [`TimelinePipe`].
#[derive(Clone, PartialEq, Debug)]
pub struct TimelinePipeConfig {
    /// The timeline that the link follows. Time 0 of the timeline is time 0 of the stage.
    pub timeline: Arc<Timeline>,
    /// The limit of the frames that wait or are in service; a frame that would exceed it is dropped. If the timeline
    /// has no rates, nothing ever waits.
    pub queue: QueueLimit,
    /// Octets that the link adds to each frame.
    pub overhead: u16,
}

/// One direction of a link whose rate and delay follow a timeline.
///
/// Frames are sent at the rate of the moment. A frame that is being sent when the rate changes goes on at the new rate.
/// During an outage, a rate of 0, this frame and those behind it wait.
///
/// Each frame is delayed by the timeline's delay at the end of its sending. A frame whose delay has become shorter
/// overtakes no earlier one: it leaves together with the last of them. If the last line of a timeline that does not
/// repeat is an outage, frames that are not sent by then never leave ([`Time::NEVER`]).
///
/// The airtime is the time in which frames were sent, without outages. Rate and delay cannot be set: they are the
/// timeline's. The limit of the queue can be set, if there is one. Losses are a
/// [`TimelineLoss`](crate::losses::TimelineLoss).
pub type TimelinePipe<M> = Fifo<M, RateSchedule>;

impl<M> TimelinePipe<M> {
    /// Creates a link whose frames leave at `out`.
    ///
    /// # Errors
    /// [`LinkError::ZeroQueue`] if the queue has a limit of 0.
    pub fn new(config: TimelinePipeConfig, out: Port) -> Result<Self, LinkError> {
        let TimelinePipeConfig { timeline, queue, overhead } = config;
        let (lap, has_rate) = (timeline.lap(), timeline.has_rate());
        let (sending, leaving) = (TimelineCursor::new(timeline.clone()), TimelineCursor::new(timeline));
        let schedule = RateSchedule { sending, leaving, lap, free: Time::ZERO };
        let mut pipe = Self::before(schedule, queue, overhead, out)?;
        if !has_rate {
            pipe.lift_limit();
        }
        Ok(pipe)
    }
}

/// A server whose rate changes with time.
#[derive(Clone, Debug)]
pub struct RateSchedule {
    /// Conditions at the time up to which sending has been worked out.
    sending: TimelineCursor,
    /// Conditions at the end of a sending.
    leaving: TimelineCursor,
    lap: Option<Lap>,
    /// Time at which every frame that entered has been sent.
    free: Time,
}

impl RateSchedule {
    /// Returns the end of `work` (bit/s times nanoseconds) that begins at `at`, and the part of that time with a rate
    /// above 0.
    fn work(&mut self, mut at: Time, mut work: u128) -> SendOutcome {
        let mut busy = Span::ZERO;
        if let Some(Lap { period, work: each, open }) = self.lap
            && work > each
        {
            // A lap does the same work from wherever it begins; a rest is left for the steps.
            let laps = u64::try_from((work - 1) / each).unwrap_or(u64::MAX);
            work -= u128::from(laps) * each;
            at += period * laps;
            busy = open * laps;
        }
        loop {
            let (conditions, until) = self.sending.at(at);
            let Some(rate) = conditions.rate else { return SendOutcome { done: at, busy } };
            let rate = u128::from(rate);
            let room = u128::from(until.since(at).as_nanos()) * rate;
            if work <= room {
                // A rate of 0 has room for no work, and no work takes no time.
                let span = Span::from_nanos(work.div_ceil(rate.max(1)) as u64);
                return SendOutcome { done: at + span, busy: busy + span };
            }
            if until == Time::NEVER {
                return SendOutcome { done: Time::NEVER, busy };
            }
            if rate > 0 {
                busy = busy + until.since(at);
            }
            work -= room;
            at = until;
        }
    }
}

impl Server for RateSchedule {
    fn send(&mut self, now: Time, octets: u64) -> SendOutcome {
        let work = u128::from(octets) * 8_000_000_000;
        let sending = self.work(self.free.max(now), work);
        self.free = sending.done;
        sending
    }

    fn delay(&mut self, departure: Time) -> Span {
        self.leaving.at(departure).0.delay
    }
}

#[cfg(test)]
mod tests;
