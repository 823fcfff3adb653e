//! The server of a pipe and its drop-tail queue, decided at entry.

use alloc::collections::VecDeque;
use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::Frame;
use farcast_core::{BitRate, Span, Time};

use super::entering_before;

/// How much may wait or be in service at once. The frame in service counts with all its octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// Anything.
    #[default]
    Unbounded,
    /// So many frames, at least 1.
    Packets(u32),
    /// So many octets, at least 1. A longer frame never enters.
    Octets(u64),
}

/// Datagrams that enter one after the other: a run as the server sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lot {
    segments: NonZeroU32,
    spacing: Span,
    /// Octets of the first datagram, and of all others but the last.
    octets: u64,
    /// Octets of the last.
    last: u64,
}

impl Lot {
    pub(super) fn of<M: Message>(frame: &Frame<M>, overhead: u16) -> Self {
        let segments = frame.message.segments();
        let octets = |segment| frame.octets(segment).saturating_add(u64::from(overhead));
        Self { segments, spacing: frame.spacing, octets: octets(0), last: octets(segments.get() - 1) }
    }

    /// Whether it is one datagram.
    pub(super) const fn is_single(&self) -> bool {
        self.segments.get() == 1
    }

    /// How many at the front have one length.
    fn alike(&self) -> NonZeroU32 {
        if self.last == self.octets {
            return self.segments;
        }
        NonZeroU32::new(self.segments.get() - 1).unwrap_or(self.segments)
    }

    /// Octets of the first `count`.
    pub(super) fn octets_of(&self, count: NonZeroU32) -> u64 {
        if count < self.segments {
            return self.octets.saturating_mul(u64::from(count.get()));
        }
        self.octets.saturating_mul(u64::from(count.get() - 1)).saturating_add(self.last)
    }

    /// When datagram `index` enters, if the first does at `now`.
    fn entry(&self, now: Time, index: u32) -> Time {
        now + self.spacing * u64::from(index)
    }
}

/// What becomes of the first `count` datagrams of a lot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// They find the queue full.
    Drop { count: NonZeroU32 },
    /// They are sent.
    Send {
        count: NonZeroU32,
        /// When the first has been sent.
        first: Time,
        /// The time from one to the next.
        spacing: Span,
        /// The time that sending them takes.
        busy: Span,
        /// The longest time from an entry to the end of its sending.
        wait: Span,
    },
}

/// A server of constant rate and its queue.
#[derive(Clone, Debug)]
pub(super) struct Server {
    rate: Option<BitRate>,
    limit: QueueLimit,
    /// When everything that entered has been sent.
    free: Time,
    /// What waits or is in service; kept only where there is a limit.
    backlog: Backlog,
}

impl Server {
    pub(super) fn new(rate: Option<BitRate>, limit: QueueLimit) -> Self {
        Self { rate, limit, free: Time::ZERO, backlog: Backlog::default() }
    }

    /// Decides about the datagrams at the front of `lot`, the first of which enters at `now`: as many as share a fate
    /// and leave evenly spaced.
    pub(super) fn admit(&mut self, now: Time, lot: &Lot) -> Decision {
        let Some(rate) = self.rate else {
            let (count, spacing) = (lot.segments, lot.spacing);
            return Decision::Send { count, first: now, spacing, busy: Span::ZERO, wait: Span::ZERO };
        };
        let service = rate.time_of_bytes(lot.octets);
        self.backlog.settle(now);
        let Some(mut room) = self.room(lot.octets) else {
            return Decision::Drop { count: self.turned_away(now, lot) };
        };
        if service <= lot.spacing && self.backlog.holds_only(lot.octets) {
            // One like them leaves from each entry to the next: the backlog never grows.
            room = NonZeroU32::MAX;
        }
        if self.free <= now && service <= lot.spacing {
            self.pass(now, lot, service)
        } else {
            self.enqueue(now, lot, service, room)
        }
    }

    /// How many more frames of `octets` may enter before any leaves.
    fn room(&self, octets: u64) -> Option<NonZeroU32> {
        let room = match self.limit {
            QueueLimit::Unbounded => u64::MAX,
            QueueLimit::Packets(limit) => u64::from(limit).saturating_sub(self.backlog.frames),
            QueueLimit::Octets(limit) => {
                limit.saturating_sub(self.backlog.octets).checked_div(octets).unwrap_or(u64::MAX)
            }
        };
        NonZeroU32::new(u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// How many find the queue full: those that enter before anything leaves it.
    fn turned_away(&self, now: Time, lot: &Lot) -> NonZeroU32 {
        let until = self.backlog.next_departure().unwrap_or(Time::NEVER);
        entering_before(now, lot.spacing, until, lot.alike())
    }

    /// Each finds the server idle, now and at every later entry: nothing waits.
    fn pass(&mut self, now: Time, lot: &Lot, service: Span) -> Decision {
        let count = lot.alike();
        self.free = lot.entry(now, count.get() - 1) + service;
        self.remember(self.free, service, NonZeroU32::MIN, lot.octets);
        let busy = service * u64::from(count.get());
        Decision::Send { count, first: now + service, spacing: lot.spacing, busy, wait: service }
    }

    /// Each but perhaps the first finds the server busy: they leave back to back.
    fn enqueue(&mut self, now: Time, lot: &Lot, service: Span, room: NonZeroU32) -> Decision {
        let start = self.free.max(now);
        let mut count = lot.alike().min(room);
        if service < lot.spacing {
            // What waits shrinks with every entry; the last to count is the one that finds the server just done.
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
        if self.limit != QueueLimit::Unbounded {
            self.backlog.push(Stretch { first, every, count: u64::from(count.get()), octets });
        }
    }
}

#[cfg(test)]
impl Server {
    /// Entries that the backlog holds.
    pub(super) fn entries(&self) -> usize {
        self.backlog.stretches.len()
    }
}

/// Frames of one length that leave evenly spaced.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// When the first has been sent.
    first: Time,
    every: Span,
    count: u64,
    /// Octets of each.
    octets: u64,
}

impl Stretch {
    /// How many have been sent by `now`.
    fn sent_by(&self, now: Time) -> u64 {
        if now < self.first {
            return 0;
        }
        let later = now.since(self.first).as_nanos().checked_div(self.every.as_nanos());
        later.map_or(self.count, |later| later.saturating_add(1).min(self.count))
    }
}

/// What waits or is in service, by departure. Frames of one length that leave back to back are one entry.
#[derive(Clone, Debug, Default)]
struct Backlog {
    stretches: VecDeque<Stretch>,
    frames: u64,
    octets: u64,
}

impl Backlog {
    /// Forgets what has been sent by `now`; a frame that is done at the instant of an entry has left.
    fn settle(&mut self, now: Time) {
        while let Some(stretch) = self.stretches.front_mut() {
            let sent = stretch.sent_by(now);
            stretch.count -= sent;
            stretch.first += stretch.every * sent;
            self.frames -= sent;
            self.octets = self.octets.saturating_sub(stretch.octets.saturating_mul(sent));
            if stretch.count > 0 {
                return;
            }
            self.stretches.pop_front();
        }
    }

    fn push(&mut self, stretch: Stretch) {
        self.frames += stretch.count;
        self.octets = self.octets.saturating_add(stretch.octets.saturating_mul(stretch.count));
        match self.stretches.back_mut() {
            // While anything waits the server sends without a pause, so what is behind continues what is before.
            Some(back) if back.octets == stretch.octets => back.count += stretch.count,
            _ => self.stretches.push_back(stretch),
        }
    }

    /// Whether every frame in it has `octets`.
    fn holds_only(&self, octets: u64) -> bool {
        self.stretches.iter().all(|stretch| stretch.octets == octets)
    }

    /// When the next frame has been sent.
    fn next_departure(&self) -> Option<Time> {
        self.stretches.front().map(|stretch| stretch.first)
    }
}
