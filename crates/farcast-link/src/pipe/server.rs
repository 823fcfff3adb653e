//! The server of a pipe and its drop-tail queue, decided at entry.

use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{Backlog, Frame};
use farcast_core::{BitRate, Span, Time};

use super::entering_before;
use super::waiting::{Stretch, WaitingFrames};

/// Limit of the frames that wait or are in service at once. The frame in service counts with all its octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// No limit.
    #[default]
    Unbounded,
    /// A number of frames, at least 1.
    Packets(u32),
    /// A number of octets, at least 1. A longer frame never enters.
    Octets(u64),
}

impl QueueLimit {
    /// Returns the limit, if it is one of octets.
    pub(crate) const fn octets(self) -> Option<u64> {
        if let Self::Octets(octets) = self { Some(octets) } else { None }
    }

    /// Returns `true` if there is a limit.
    pub(crate) fn is_limit(self) -> bool {
        self != Self::Unbounded
    }

    /// Returns the number of further frames of `octets` that may enter beside the backlog `waiting`.
    pub(crate) fn room(self, waiting: Backlog, octets: u64) -> u32 {
        let room = match self {
            Self::Unbounded => u64::MAX,
            Self::Packets(limit) => u64::from(limit).saturating_sub(waiting.frames),
            Self::Octets(limit) => {
                limit.saturating_sub(waiting.octets).checked_div(octets).unwrap_or(u64::MAX)
            }
        };
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}

/// Datagrams that enter one after the other: a run, as the server needs to know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lot {
    segments: NonZeroU32,
    spacing: Span,
    /// Octets of the first datagram, and of all others but the last.
    octets: u64,
    /// Octets of the last datagram.
    last: u64,
}

impl Lot {
    pub(super) fn of<M: Message>(frame: &Frame<M>, overhead: u16) -> Self {
        let segments = frame.message.segments();
        let octets = |segment| frame.octets(segment).saturating_add(u64::from(overhead));
        Self { segments, spacing: frame.spacing, octets: octets(0), last: octets(segments.get() - 1) }
    }

    /// Creates a lot of one datagram of `octets` octets.
    pub(super) fn single(octets: u64, overhead: u16) -> Self {
        let octets = octets.saturating_add(u64::from(overhead));
        Self { segments: NonZeroU32::MIN, spacing: Span::ZERO, octets, last: octets }
    }

    /// Returns `true` if the lot is one datagram.
    pub(super) const fn is_single(&self) -> bool {
        self.segments.get() == 1
    }

    /// Returns the number of datagrams at the front that have one length.
    fn alike(&self) -> NonZeroU32 {
        if self.last == self.octets {
            return self.segments;
        }
        NonZeroU32::new(self.segments.get() - 1).unwrap_or(self.segments)
    }

    /// Returns the octets of the first `count` datagrams.
    pub(super) fn octets_of(&self, count: NonZeroU32) -> u64 {
        if count < self.segments {
            return self.octets.saturating_mul(u64::from(count.get()));
        }
        self.octets.saturating_mul(u64::from(count.get() - 1)).saturating_add(self.last)
    }

    /// Returns the time at which datagram `index` enters, if the first enters at `now`.
    fn entry(&self, now: Time, index: u32) -> Time {
        now + self.spacing * u64::from(index)
    }
}

/// Fate of the first `count` datagrams of a lot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// They find the queue full.
    Drop { count: NonZeroU32 },
    /// They are sent.
    Send {
        count: NonZeroU32,
        /// Time at which the first has been sent.
        first: Time,
        /// The time from one to the next.
        spacing: Span,
        /// The time that sending them takes.
        busy: Span,
        /// The longest time from a datagram's entry to the end of its sending.
        wait: Span,
    },
}

/// A server of constant rate and its queue.
#[derive(Clone, Debug)]
pub(super) struct Server {
    rate: Option<BitRate>,
    limit: QueueLimit,
    /// Time at which every frame that entered has been sent.
    free: Time,
    /// Frames that wait or are in service.
    waiting: WaitingFrames,
}

impl Server {
    pub(super) fn new(rate: Option<BitRate>, limit: QueueLimit) -> Self {
        Self { rate, limit, free: Time::ZERO, waiting: WaitingFrames::default() }
    }

    /// Sends frames that enter from now on at `rate`; frames that entered before keep their times.
    pub(super) const fn set_rate(&mut self, rate: BitRate) {
        self.rate = Some(rate);
    }

    pub(super) const fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// Sets the limit for frames that enter from now on; frames that wait stay.
    pub(super) const fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }

    /// Returns the frames that wait or are in service at `now`.
    pub(super) fn backlog(&self, now: Time) -> Backlog {
        self.waiting.left_at(now)
    }

    /// Decides about the datagrams at the front of `lot`, the first of which enters at `now`. The decision covers as
    /// many as share a fate and leave evenly spaced.
    pub(super) fn admit(&mut self, now: Time, lot: &Lot) -> Decision {
        let Some(rate) = self.rate else {
            let (count, spacing) = (lot.segments, lot.spacing);
            return Decision::Send { count, first: now, spacing, busy: Span::ZERO, wait: Span::ZERO };
        };
        let service = rate.time_of_bytes(lot.octets);
        self.waiting.settle(now);
        let Some(mut room) = self.room(lot.octets) else {
            return Decision::Drop { count: self.turned_away(now, lot) };
        };
        if service <= lot.spacing && self.waiting.leaves_one_each(lot.octets, lot.spacing) {
            // From each entry to the next a datagram like them leaves: the backlog never grows.
            room = NonZeroU32::MAX;
        }
        if self.free <= now && service <= lot.spacing {
            self.pass(now, lot, service)
        } else {
            self.enqueue(now, lot, service, room)
        }
    }

    /// Returns the number of further frames of `octets` that may enter before any leaves; `None` for none.
    fn room(&self, octets: u64) -> Option<NonZeroU32> {
        NonZeroU32::new(self.limit.room(self.waiting.total(), octets))
    }

    /// Returns the number of datagrams that find the queue full: those that enter before a frame leaves it.
    fn turned_away(&self, now: Time, lot: &Lot) -> NonZeroU32 {
        let until = self.waiting.next_departure().unwrap_or(Time::NEVER);
        entering_before(now, lot.spacing, until, lot.alike())
    }

    /// Sends datagrams each of which finds the server idle, now and at every later entry: nothing waits.
    fn pass(&mut self, now: Time, lot: &Lot, service: Span) -> Decision {
        let count = lot.alike();
        self.free = lot.entry(now, count.get() - 1) + service;
        self.remember(self.free, service, NonZeroU32::MIN, lot.octets);
        let busy = service * u64::from(count.get());
        Decision::Send { count, first: now + service, spacing: lot.spacing, busy, wait: service }
    }

    /// Sends datagrams each of which, except perhaps the first, finds the server busy: they leave back to back.
    fn enqueue(&mut self, now: Time, lot: &Lot, service: Span, room: NonZeroU32) -> Decision {
        let start = self.free.max(now);
        let mut count = lot.alike().min(room);
        if service < lot.spacing {
            // The backlog shrinks with every entry; the last to count is the one that finds the server just done.
            let shrinks = lot.spacing.saturating_sub(service).as_nanos();
            let more = u32::try_from(start.since(now).as_nanos() / shrinks).unwrap_or(u32::MAX);
            count = count.min(NonZeroU32::MIN.saturating_add(more));
        }
        let first = start + service;
        let busy = service * u64::from(count.get());
        self.free = start + busy;
        self.remember(first, service, count, lot.octets);
        // The wait grows or shrinks steadily, so it is longest at one of the ends.
        let at_last = self.free.since(lot.entry(now, count.get() - 1));
        Decision::Send { count, first, spacing: service, busy, wait: first.since(now).max(at_last) }
    }

    fn remember(&mut self, first: Time, every: Span, count: NonZeroU32, octets: u64) {
        self.waiting.push(Stretch { first, every, count: u64::from(count.get()), octets });
    }
}

#[cfg(test)]
impl Server {
    /// Entries that the backlog holds.
    pub(super) fn entries(&self) -> usize {
        self.waiting.stretches()
    }
}
