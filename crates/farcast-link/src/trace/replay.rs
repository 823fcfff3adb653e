//! The stage that replays a rate trace.

use alloc::sync::Arc;

use farcast_core::stage::Port;
use farcast_core::{Span, Time};

use super::fifo::{Fifo, SendOutcome, Server};
use super::opportunities::OpportunityPlace;
use super::{OPPORTUNITY_OCTETS, RateTrace};
use crate::LinkError;
use crate::pipe::QueueLimit;

/// The settings of a [`TracePipe`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracePipeConfig {
    /// The opportunities to deliver. Time 0 of the trace is time 0 of the stage.
    pub trace: Arc<RateTrace>,
    /// The limit of the frames that wait, among them a frame sent in part, with all its octets. A frame that would
    /// exceed it is dropped.
    pub queue: QueueLimit,
    /// The one-way delay from the opportunity in which a frame was delivered to its arrival.
    pub delay: Span,
    /// Octets that the link adds to each frame.
    pub overhead: u16,
}

/// One direction of a link that delivers at the opportunities of a rate trace.
///
/// The rules are those of `LinkQueue::rationalize` in mahimahi (`src/frontend/link_queue.cc`, 2015 and later):
///
/// - An opportunity delivers up to [`OPPORTUNITY_OCTETS`] of the frames that had entered before it. A frame that enters
///   at its very instant waits for the next, because mahimahi uses up due opportunities before it takes in a packet.
/// - Octets that the frame at the head does not need go to the frames behind it that are waiting then.
/// - The rest of an opportunity is lost when nothing waits, and so is an opportunity that finds nothing.
/// - A frame leaves at the opportunity that delivers its last octet.
/// - When the last line has been used the trace begins again; its time 0 is then the time of that last line.
///
/// It differs in three points. First, entries are told apart to the nanosecond, and mahimahi rounds them down to the
/// millisecond of its clock. A frame that enters within the millisecond of an opportunity, but after its start, waits
/// for the next in both. Second, a frame longer than 1504 octets takes several opportunities; mahimahi stops with an
/// error. Third, the limit of the queue counts a frame that was delivered in part, which mahimahi's later queues do
/// not.
///
/// The airtime is the time in which any frame waited. The delay, and the limit of the queue if there is one, can be
/// [set](farcast_core::stage::Stage::set) while it runs, as a [`Pipe`](crate::Pipe)'s; the rate is the trace's.
pub type TracePipe<M> = Fifo<M, Opportunities>;

impl<M> TracePipe<M> {
    /// Creates a link whose frames leave at `out`.
    ///
    /// # Errors
    /// [`LinkError::ZeroQueue`] if the queue has a limit of 0.
    pub fn new(config: TracePipeConfig, out: Port) -> Result<Self, LinkError> {
        let TracePipeConfig { trace, queue, delay, overhead } = config;
        let next = trace.first_after(Time::ZERO);
        let (at, left, last) = (trace.time(next), OPPORTUNITY_OCTETS, Time::ZERO);
        Self::before(Opportunities { trace, next, at, left, last, delay }, queue, overhead, out)
    }
}

/// The place in the trace from which the next octets are delivered.
#[derive(Clone, Debug)]
pub struct Opportunities {
    trace: Arc<RateTrace>,
    next: OpportunityPlace,
    /// Time of the opportunity `next`.
    at: Time,
    /// Octets that the opportunity has left, at least 1.
    left: u64,
    /// Time at which the frame before was delivered.
    last: Time,
    delay: Span,
}

impl Opportunities {
    fn go_to(&mut self, place: OpportunityPlace) {
        (self.next, self.at, self.left) = (place, self.trace.time(place), OPPORTUNITY_OCTETS);
    }

    /// Uses up `octets`. Returns the time at which the last of them is delivered.
    fn deliver(&mut self, octets: u64) -> Time {
        if octets > self.left {
            let rest = octets - self.left;
            // The last opportunity that it needs is used at least in part.
            self.go_to(self.trace.behind(self.next, rest.div_ceil(OPPORTUNITY_OCTETS)));
            self.left = OPPORTUNITY_OCTETS - (rest - 1) % OPPORTUNITY_OCTETS - 1;
        } else {
            self.left -= octets;
        }
        let done = self.at;
        if self.left == 0 {
            self.go_to(self.trace.behind(self.next, 1));
        }
        done
    }
}

impl Server for Opportunities {
    fn send(&mut self, now: Time, octets: u64) -> SendOutcome {
        if self.at <= now {
            self.go_to(self.trace.first_after(now));
        }
        let done = self.deliver(octets);
        let busy = done.since(self.last.max(now));
        self.last = done;
        SendOutcome { done, busy }
    }

    fn delay(&mut self, _departure: Time) -> Span {
        self.delay
    }

    fn delay_setting(&mut self) -> Option<&mut Span> {
        Some(&mut self.delay)
    }

    fn delay_set(&self) -> Option<Span> {
        Some(self.delay)
    }
}

#[cfg(test)]
mod tests;
