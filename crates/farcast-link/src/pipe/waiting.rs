//! Backlog of frames whose departures are known at entry, for servers, lines and slots alike.

use alloc::collections::VecDeque;

use farcast_core::stage::Backlog;
use farcast_core::{Span, Time};

/// Frames of one length that leave evenly spaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Time at which the first has been sent.
    pub(crate) first: Time,
    /// The time from one to the next.
    pub(crate) every: Span,
    /// Number of frames.
    pub(crate) count: u64,
    /// Octets of each frame.
    pub(crate) octets: u64,
}

impl Stretch {
    /// Returns the number of frames that have been sent by `now`.
    fn sent_by(&self, now: Time) -> u64 {
        if now < self.first {
            return 0;
        }
        let later = now.since(self.first).as_nanos().checked_div(self.every.as_nanos());
        later.map_or(self.count, |later| later.saturating_add(1).min(self.count))
    }

    /// Returns `true` if `next` continues this stretch evenly.
    fn continues_in(&self, next: &Self) -> bool {
        self.octets == next.octets
            && self.every == next.every
            && self.first + self.every * self.count == next.first
    }

    const fn sum(&self) -> u64 {
        self.octets.saturating_mul(self.count)
    }
}

/// Frames that wait or are in service, by departure. Frames of one length that leave evenly spaced are one entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingFrames {
    stretches: VecDeque<Stretch>,
    total: Backlog,
}

impl WaitingFrames {
    /// Forgets the frames that have been sent by `now`; a frame that is done at the instant of an entry has left.
    pub(crate) fn settle(&mut self, now: Time) {
        while let Some(stretch) = self.stretches.front_mut() {
            let sent = stretch.sent_by(now);
            stretch.count -= sent;
            stretch.first += stretch.every * sent;
            self.total.frames -= sent;
            self.total.octets = self.total.octets.saturating_sub(stretch.octets.saturating_mul(sent));
            if stretch.count > 0 {
                return;
            }
            self.stretches.pop_front();
        }
    }

    /// Adds frames that leave behind all others.
    pub(crate) fn push(&mut self, stretch: Stretch) {
        self.total.frames += stretch.count;
        self.total.octets = self.total.octets.saturating_add(stretch.sum());
        match self.stretches.back_mut() {
            Some(back) if back.continues_in(&stretch) => back.count += stretch.count,
            _ => self.stretches.push_back(stretch),
        }
    }

    /// Adds a frame that leaves at `departure`, behind all others.
    pub(crate) fn push_one(&mut self, departure: Time, octets: u64) {
        self.push(Stretch { first: departure, every: Span::ZERO, count: 1, octets });
    }

    /// Returns the backlog as it was last settled, with the frames that have entered since.
    pub(crate) const fn total(&self) -> Backlog {
        self.total
    }

    /// Returns the part of the backlog that is left at `now`.
    pub(crate) fn left_at(&self, now: Time) -> Backlog {
        let mut left = Backlog::default();
        for stretch in &self.stretches {
            let rest = Stretch { count: stretch.count - stretch.sent_by(now), ..*stretch };
            left.frames += rest.count;
            left.octets = left.octets.saturating_add(rest.sum());
        }
        left
    }

    /// Returns `true` if every frame here has `octets` and one leaves in any time of `span` until none is left. The
    /// caller must know that the server pauses nowhere.
    pub(crate) fn leaves_one_each(&self, octets: u64, span: Span) -> bool {
        self.stretches.iter().all(|stretch| stretch.octets == octets && stretch.every <= span)
    }

    /// Returns the time at which the next frame has been sent.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        self.stretches.front().map(|stretch| stretch.first)
    }
}

#[cfg(test)]
impl WaitingFrames {
    /// Returns the number of entries.
    pub(crate) fn stretches(&self) -> usize {
        self.stretches.len()
    }
}
