//! A pipe: rate, queue, delay and jitter in one direction.

use core::num::NonZeroU32;

use farcast_core::engine::{Deadline, Message};
use farcast_core::random::RandomStream;
use farcast_core::stage::{
    Backlog, Fate, Frame, NotSettable, Output, Port, Setting, Settings, Stage, Totals,
};
use farcast_core::{BitRate, Span, Time};

use crate::LinkError;

mod inbox;
mod latency;
mod server;
mod waiting;

pub(crate) use inbox::{Inbox, entering_before};
pub use latency::{Jitter, JitterShape};
pub use server::QueueLimit;
pub(crate) use waiting::WaitingFrames;

use latency::Latency;
use server::{Decision, Lot, Server};

/// The settings of a [`Pipe`]. By default every frame passes at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipeConfig {
    /// The rate at which frames are sent; without one, sending takes no time.
    pub rate: Option<BitRate>,
    /// The limit of the frames that wait or are in service; a frame that would exceed it is dropped. Without a rate no
    /// frame ever waits, and the limit never acts.
    pub queue: QueueLimit,
    /// The one-way delay, from the end of sending.
    pub delay: Span,
    /// The variation of the delay from frame to frame.
    pub jitter: Option<Jitter>,
    /// Octets that the link adds to each frame.
    pub overhead: u16,
}

impl PipeConfig {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`LinkError::ZeroQueue`] if the queue has a limit of 0, [`LinkError::JitterBeyondDelay`] if a frame might leave
    /// before it was sent, [`LinkError::JitterLimit`] if normal jitter is cut below its deviation.
    pub fn check(&self) -> Result<(), LinkError> {
        if matches!(self.queue, QueueLimit::Packets(0) | QueueLimit::Octets(0)) {
            return Err(LinkError::ZeroQueue);
        }
        self.jitter.map_or(Ok(()), |jitter| jitter.check(self.delay))
    }
}

/// Number of frames, and their octets with all overhead. Both saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Frames.
    pub frames: u64,
    /// Octets.
    pub octets: u64,
}

impl Tally {
    const fn count(&mut self, frames: u32, octets: u64) {
        self.frames = self.frames.saturating_add(frames as u64);
        self.octets = self.octets.saturating_add(octets);
    }
}

/// Counters of a [`Pipe`]. Complete once its outputs have been polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipeCounters {
    /// Frames that entered.
    pub entered: Tally,
    /// Frames that were or will be sent.
    pub sent: Tally,
    /// Frames that found the queue full.
    pub dropped: Tally,
    /// The time that sending took: the airtime.
    pub busy: Span,
    /// The longest time from a frame's entry to the end of its sending.
    pub longest_wait: Span,
    /// The most octets that were waiting or in service when a frame had entered, without the sent part of the frame in
    /// service: `longest_wait` at the pipe's rate, rounded down. If the rate was changed: the most of the products of a
    /// frame's wait and the rate with which it entered.
    pub longest_queue: u64,
}

/// One direction of a link: a server with a rate and a drop-tail queue, and a delay behind it.
///
/// Frames enter at any port and leave at the port that the pipe was made with; a duplex link is two pipes. The time at
/// which a frame leaves is known when it enters, so there are no timers.
///
/// Runs pass whole where they can: with their own spacing while the server is idle at each entry, and with the time of
/// service for spacing while it is the bottleneck. All segments of a run but the last have one length, as in a
/// segmented send. A shorter last segment takes less time, so it leaves as an output of its own. Jitter takes a run
/// apart.
///
/// The rate, the delay and the limit of a queue that has one can be [set](Stage::set) while the pipe runs. Since
/// departures are known at entry, frames that have entered keep their times. A new rate begins behind the frames that
/// wait. A frame whose delay has become shorter overtakes no earlier one (unless jitter may reorder): it leaves
/// together with the last of them.
#[derive(Clone, Debug)]
pub struct Pipe<M> {
    config: PipeConfig,
    out: Port,
    server: Server,
    latency: Latency,
    /// Frames that have entered and have no decision yet.
    inbox: Inbox<M>,
    /// Frames decided last, with the time at which their sending ends.
    sent: Inbox<M>,
    /// The longest wait since the rate was last set.
    longest_wait: Span,
    counters: PipeCounters,
}

/// Result of a decision on frames.
enum FrameFate<M> {
    /// The frame is dropped, or has joined those that have been sent.
    Done,
    /// The frame leaves.
    Leaves(Output<M>),
}

impl<M: Message> Pipe<M> {
    /// Creates a pipe whose frames leave at `out`; jitter is drawn from `stream`.
    ///
    /// # Errors
    /// The error of [`PipeConfig::check`].
    pub fn new(config: PipeConfig, out: Port, stream: RandomStream) -> Result<Self, LinkError> {
        config.check()?;
        Ok(Self {
            config,
            out,
            server: Server::new(config.rate, config.queue),
            latency: Latency::new(config.delay, config.jitter, stream),
            inbox: Inbox::new(),
            sent: Inbox::new(),
            longest_wait: Span::ZERO,
            counters: PipeCounters::default(),
        })
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> &PipeCounters {
        &self.counters
    }

    /// Decides on the frames of the inbox up to the first difference in their fates. A single datagram that is sent
    /// leaves at once, without a detour over `sent`.
    fn judge(&mut self) -> Option<FrameFate<M>> {
        let (now, frame) = self.inbox.front()?;
        let lot = Lot::of(frame, self.config.overhead);
        let decision = self.server.admit(now, &lot);
        let (Decision::Drop { count } | Decision::Send { count, .. }) = decision;
        let octets = lot.octets_of(count);
        let mut frame = self.inbox.take(count)?;
        self.counters.entered.count(count.get(), octets);
        match decision {
            Decision::Drop { .. } => self.counters.dropped.count(count.get(), octets),
            Decision::Send { first, spacing, busy, wait, .. } => {
                self.counters.sent.count(count.get(), octets);
                self.note_service(busy, wait);
                frame.spacing = spacing;
                if lot.is_single() {
                    let release = self.latency.release(first, spacing, count);
                    frame.spacing = release.spacing;
                    return Some(FrameFate::Leaves(Output { at: release.at, port: self.out, frame }));
                }
                self.sent.push(first, frame);
            }
        }
        Some(FrameFate::Done)
    }

    fn note_service(&mut self, busy: Span, wait: Span) {
        let counters = &mut self.counters;
        counters.busy = counters.busy + busy;
        if wait > self.longest_wait {
            self.longest_wait = wait;
            counters.longest_wait = counters.longest_wait.max(wait);
            let bps = self.config.rate.map_or(0, BitRate::as_bps);
            let octets = u128::from(wait.as_nanos()) * u128::from(bps) / 8_000_000_000;
            counters.longest_queue = counters.longest_queue.max(u64::try_from(octets).unwrap_or(u64::MAX));
        }
    }

    /// Returns the next output of the frames that have been sent: all datagrams of a frame, or one if each has a delay
    /// of its own.
    fn release(&mut self) -> Option<Output<M>> {
        let (departure, frame) = self.sent.front()?;
        let release = self.latency.release(departure, frame.spacing, frame.message.segments());
        let mut frame = self.sent.take(release.count)?;
        frame.spacing = release.spacing;
        Some(Output { at: release.at, port: self.out, frame })
    }
}

impl<M: Message> Stage<M> for Pipe<M> {
    fn pass(&mut self, now: Time, _port: Port, octets: u64) -> Option<Fate> {
        let lot = Lot::single(octets, self.config.overhead);
        let decision = self.server.admit(now, &lot);
        let octets = lot.octets_of(NonZeroU32::MIN);
        self.counters.entered.count(1, octets);
        Some(match decision {
            Decision::Drop { .. } => {
                self.counters.dropped.count(1, octets);
                Fate::Dropped
            }
            Decision::Send { first, spacing, busy, wait, .. } => {
                self.counters.sent.count(1, octets);
                self.note_service(busy, wait);
                Fate::Leaves(self.latency.release(first, spacing, NonZeroU32::MIN).at)
            }
        })
    }

    fn handle(&mut self, now: Time, _port: Port, frame: Frame<M>) {
        self.inbox.push(now, frame);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_output(&mut self) -> Option<Output<M>> {
        loop {
            if let Some(output) = self.release() {
                return Some(output);
            }
            if let FrameFate::Leaves(output) = self.judge()? {
                return Some(output);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn totals(&self) -> Totals {
        let PipeCounters { sent, dropped, busy, .. } = self.counters;
        Totals { sent: sent.frames, dropped: dropped.frames, airtime: busy, ..Totals::default() }
    }

    fn settings(&self, _port: Port) -> Settings {
        let PipeConfig { rate, .. } = self.config;
        let queue = self.server.limit().octets().filter(|_| rate.is_some());
        Settings { rate, delay: Some(self.latency.delay()), queue }
    }

    fn may_set(&self, _port: Port, setting: Setting) -> Result<(), NotSettable> {
        match setting {
            Setting::Rate(_) => Ok(()),
            Setting::Delay(delay) => self.latency.may_set_delay(delay),
            // Without a rate no frame ever waits.
            Setting::Queue(_) if self.config.rate.is_some() && self.server.limit().is_limit() => Ok(()),
            other => Err(NotSettable::Absent(other.name())),
        }
    }

    fn set(&mut self, _now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)?;
        match setting {
            Setting::Rate(rate) => {
                self.config.rate = Some(rate);
                self.longest_wait = Span::ZERO;
                self.server.set_rate(rate);
            }
            Setting::Delay(delay) => self.latency.set_delay(delay),
            Setting::Queue(octets) => self.server.set_limit(QueueLimit::Octets(octets.get())),
            _ => {}
        }
        Ok(())
    }

    fn backlog(&self, now: Time) -> Option<Backlog> {
        Some(self.server.backlog(now))
    }
}

#[cfg(test)]
mod tests;
