//! The stage that replays a rate trace.

use alloc::sync::Arc;

use farcast_core::stage::Port;
use farcast_core::{Span, Time};

use super::fifo::{Fifo, Sending, Server};
use super::opportunities::Place;
use super::{OPPORTUNITY_OCTETS, RateTrace};
use crate::LinkError;
use crate::pipe::QueueLimit;

/// The settings of a [`TracePipe`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracePipeConfig {
    /// When it can deliver. Time 0 of the trace is time 0 of the stage.
    pub trace: Arc<RateTrace>,
    /// What may wait, a frame that was sent in part with all its octets among it; what enters beyond that is dropped.
    pub queue: QueueLimit,
    /// The one-way delay behind the opportunity in which a frame was delivered.
    pub delay: Span,
    /// Octets that the link adds to each frame.
    pub overhead: u16,
}

/// One direction of a link that delivers where a rate trace has an opportunity.
///
/// The rules are those of `LinkQueue::rationalize` in mahimahi (`src/frontend/link_queue.cc`, 2015 and later):
///
/// - an opportunity delivers up to [`OPPORTUNITY_OCTETS`] of what had entered before it; a frame that enters at its
///   very instant waits for the next, because mahimahi uses up what is due before it takes in a packet;
/// - octets that the frame at the head does not need go to the frames behind it that are waiting then;
/// - what is left of an opportunity when nothing waits is lost, and so is an opportunity that finds nothing;
/// - a frame leaves at the opportunity that delivers its last octet;
/// - when the last line has been used the trace begins again, its time 0 being that last line's.
///
/// It differs in three points. Entries are told apart to the nanosecond, where mahimahi rounds them down to the
/// millisecond of its clock: what enters within the millisecond of an opportunity, but after its start, waits for the
/// next here as there. A frame longer than 1504 octets takes several opportunities, where mahimahi stops with an error.
/// And the limit of the queue counts a frame that was delivered in part, which mahimahi's later queues do not.
///
/// Its airtime is the time in which anything waited. The delay, and the limit of the queue if there is one, can be
/// [set](farcast_core::stage::Stage::set) while it runs, as a [`Pipe`](crate::Pipe)'s; the rate is the trace's.
pub type TracePipe<M> = Fifo<M, Opportunities>;

impl<M> TracePipe<M> {
    /// A link whose frames leave at `out`.
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
    next: Place,
    /// When that is.
    at: Time,
    /// Octets that it has left, 1 at least.
    left: u64,
    /// When the frame before was delivered.
    last: Time,
    delay: Span,
}

impl Opportunities {
    fn go_to(&mut self, place: Place) {
        (self.next, self.at, self.left) = (place, self.trace.time(place), OPPORTUNITY_OCTETS);
    }

    /// Uses up `octets`: the time at which the last of them is delivered.
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
    fn send(&mut self, now: Time, octets: u64) -> Sending {
        if self.at <= now {
            self.go_to(self.trace.first_after(now));
        }
        let done = self.deliver(octets);
        let busy = done.since(self.last.max(now));
        self.last = done;
        Sending { done, busy }
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
