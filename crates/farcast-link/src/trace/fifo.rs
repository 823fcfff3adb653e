//! The drop-tail queue that a trace or a timeline serves.

use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{Backlog, Frame, Output, Port, Totals};
use farcast_core::{Span, Time};

use crate::LinkError;
use crate::pipe::{Inbox, QueueLimit, Stretch, Waiting};

/// What decides when frames leave, in the order in which they were admitted.
pub(super) trait Server {
    /// Sends a frame of `octets` that enters at `now`, behind all that it was given before.
    fn send(&mut self, now: Time, octets: u64) -> Sending;

    /// The one-way delay of what was sent by `departure`.
    fn delay(&mut self, departure: Time) -> Span;
}

/// How a frame is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sending {
    /// When its last octet has been sent.
    pub(super) done: Time,
    /// For how long it kept the channel in use.
    pub(super) busy: Span,
}

/// A drop-tail queue before a server. Each datagram of a run has a fate and a time of its own, so it takes runs apart.
#[derive(Clone, Debug)]
pub(super) struct Fifo<M> {
    out: Port,
    limit: QueueLimit,
    overhead: u16,
    inbox: Inbox<M>,
    waiting: Waiting,
    /// The last release, which the next may not precede.
    floor: Time,
    totals: Totals,
}

impl<M> Fifo<M> {
    /// A queue whose frames leave at `out` and have `overhead` octets more on the link.
    ///
    /// # Errors
    /// [`LinkError::ZeroQueue`] if the queue has a limit of 0.
    pub(super) fn new(limit: QueueLimit, overhead: u16, out: Port) -> Result<Self, LinkError> {
        if matches!(limit, QueueLimit::Packets(0) | QueueLimit::Octets(0)) {
            return Err(LinkError::ZeroQueue);
        }
        let (inbox, waiting, floor) = (Inbox::new(), Waiting::default(), Time::ZERO);
        Ok(Self { out, limit, overhead, inbox, waiting, floor, totals: Totals::default() })
    }

    /// Lets everything enter: where sending takes no time nothing waits, however long a frame is.
    pub(super) const fn lift_limit(&mut self) {
        self.limit = QueueLimit::Unbounded;
    }

    pub(super) fn push(&mut self, now: Time, frame: Frame<M>) {
        self.inbox.push(now, frame);
    }

    pub(super) const fn totals(&self) -> Totals {
        self.totals
    }

    pub(super) fn backlog(&self, now: Time) -> Backlog {
        self.waiting.left_at(now)
    }
}

impl<M: Message> Fifo<M> {
    /// The next datagram that leaves, of those that have entered.
    pub(super) fn poll(&mut self, server: &mut impl Server) -> Option<Output<M>> {
        loop {
            let (now, _) = self.inbox.front()?;
            let frame = self.inbox.take(NonZeroU32::MIN)?;
            let octets = frame.octets(0).saturating_add(u64::from(self.overhead));
            self.waiting.settle(now);
            if self.limit.room(self.waiting.total(), octets) == 0 {
                self.totals.dropped += 1;
                continue;
            }
            let Sending { done, busy } = server.send(now, octets);
            self.waiting.push(Stretch { first: done, every: Span::ZERO, count: 1, octets });
            self.totals.sent += 1;
            self.totals.airtime = self.totals.airtime + busy;
            self.floor = self.floor.max(done + server.delay(done));
            return Some(Output { at: self.floor, port: self.out, frame });
        }
    }
}
