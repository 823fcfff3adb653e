//! The stage that a trace and a timeline have in common: a drop-tail queue before a server.

use core::num::NonZeroU32;

use farcast_core::engine::{Deadline, Message};
use farcast_core::stage::{Backlog, Frame, NotSettable, Output, Port, Setting, Settings, Stage, Totals};
use farcast_core::{Span, Time};

use crate::LinkError;
use crate::pipe::{Inbox, QueueLimit, WaitingFrames};

/// Server of a queue: decides when frames leave, in the order in which they were admitted.
pub trait Server {
    /// Sends a frame of `octets` that enters at `now`, behind all earlier frames.
    fn send(&mut self, now: Time, octets: u64) -> SendOutcome;

    /// Returns the one-way delay of frames that were sent by `departure`.
    fn delay(&mut self, departure: Time) -> Span;

    /// Returns the delay, to be changed for later frames; `None` if it cannot change while the stage runs.
    fn delay_setting(&mut self) -> Option<&mut Span> {
        None
    }

    /// Returns that delay.
    fn delay_set(&self) -> Option<Span> {
        None
    }
}

/// Result of sending a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendOutcome {
    /// Time at which its last octet has been sent.
    pub done: Time,
    /// Time for which it kept the channel in use.
    pub busy: Span,
}

/// One direction of a link: a drop-tail queue before a server, whose departures are known at entry. It takes runs
/// apart, since each datagram has a fate and a time of its own.
#[derive(Clone, Debug)]
pub struct Fifo<M, S> {
    server: S,
    out: Port,
    limit: QueueLimit,
    overhead: u16,
    inbox: Inbox<M>,
    waiting: WaitingFrames,
    /// The last release; no later frame is released before it.
    floor: Time,
    totals: Totals,
}

impl<M, S> Fifo<M, S> {
    /// Creates a queue before `server`, whose frames leave at `out` and have `overhead` octets more on the link.
    ///
    /// # Errors
    /// [`LinkError::ZeroQueue`] if the queue has a limit of 0.
    pub(super) fn before(server: S, limit: QueueLimit, overhead: u16, out: Port) -> Result<Self, LinkError> {
        if matches!(limit, QueueLimit::Packets(0) | QueueLimit::Octets(0)) {
            return Err(LinkError::ZeroQueue);
        }
        let (inbox, waiting, totals) = (Inbox::new(), WaitingFrames::default(), Totals::default());
        Ok(Self { server, out, limit, overhead, inbox, waiting, floor: Time::ZERO, totals })
    }

    /// Removes the limit: where sending takes no time nothing waits, whatever a frame's length.
    pub(super) const fn lift_limit(&mut self) {
        self.limit = QueueLimit::Unbounded;
    }
}

impl<M: Message, S: Server> Stage<M> for Fifo<M, S> {
    fn handle(&mut self, now: Time, _port: Port, frame: Frame<M>) {
        self.inbox.push(now, frame);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_output(&mut self) -> Option<Output<M>> {
        loop {
            let (now, _) = self.inbox.front()?;
            let frame = self.inbox.take(NonZeroU32::MIN)?;
            let octets = frame.octets(0).saturating_add(u64::from(self.overhead));
            self.waiting.settle(now);
            if self.limit.room(self.waiting.total(), octets) == 0 {
                self.totals.dropped += 1;
                continue;
            }
            let SendOutcome { done, busy } = self.server.send(now, octets);
            self.waiting.push_one(done, octets);
            self.totals.sent += 1;
            self.totals.airtime = self.totals.airtime + busy;
            self.floor = self.floor.max(done + self.server.delay(done));
            return Some(Output { at: self.floor, port: self.out, frame });
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn settings(&self, _port: Port) -> Settings {
        Settings { rate: None, delay: self.server.delay_set(), queue: self.limit.octets() }
    }

    fn may_set(&self, _port: Port, setting: Setting) -> Result<(), NotSettable> {
        match setting {
            Setting::Delay(_) if self.server.delay_set().is_some() => Ok(()),
            Setting::Queue(_) if self.limit.is_limit() => Ok(()),
            other => Err(NotSettable::Absent(other.name())),
        }
    }

    fn set(&mut self, _now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)?;
        match (setting, self.server.delay_setting()) {
            (Setting::Delay(delay), Some(set)) => *set = delay,
            (Setting::Queue(octets), _) => self.limit = QueueLimit::Octets(octets.get()),
            _ => {}
        }
        Ok(())
    }

    fn backlog(&self, now: Time) -> Option<Backlog> {
        Some(self.waiting.left_at(now))
    }
}
