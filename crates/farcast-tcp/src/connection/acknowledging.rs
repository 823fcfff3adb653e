//! Handling of an acknowledgment: what arrived, round trips, and the peer's window.

use farcast_core::{Span, Time};

use super::Connection;
use super::recovery::{News, RecoveryPhase};
use crate::config::WriteSpace;
use crate::congestion::Growth;
use crate::rto::AckProgress;
use crate::scoreboard::Delivered;
use crate::{Recovery, Segment};

/// Receive window that the peer has announced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    /// Octets that the peer takes beyond those that it has acknowledged.
    pub size: u64,
    /// Largest window that the peer has offered.
    pub largest: u64,
    /// Number of bits by which the window field is shifted.
    pub scale: u8,
    /// Positions of the segment that announced the window (SND.WL1, SND.WL2).
    pub told_at: (u64, u64),
}

impl Connection {
    /// Takes an acknowledgment of everything below `position`, which lies between SND.UNA and SND.NXT; its segment
    /// begins at `at`.
    pub(super) fn acknowledge(&mut self, now: Time, segment: &Segment, at: u64, position: u64) {
        let first = self.board.first();
        let flight = self.board.flight();
        let busy = self.uses_its_window();
        let mut delivered = Delivered { highest: self.board.highest_arrived(), ..Delivered::default() };
        let repeated = self.agreed.sack && self.hear_blocks(now, segment, position, &mut delivered);
        let advanced = position > first;
        if advanced {
            self.board.acknowledge(now, position, &mut delivered);
        }
        if advanced || flight == 0 {
            // With nothing in flight, the acknowledgment answers a probe: the connection stays however long the window
            // is closed (RFC 9293 section 3.8.6.1).
            self.unanswered.retries = 0;
        }
        self.measure(now, segment, &delivered, advanced);
        let window_changed = self.hear_window(segment, at, position);
        let bare = segment.sequence_len() == 0 && !window_changed;
        let duplicate = !advanced && flight > 0 && if self.agreed.sack { delivered.octets > 0 } else { bare };
        if !advanced && !duplicate && !repeated && delivered.octets == 0 {
            if bare && segment.options.sack.is_empty() {
                self.hear_of_probe_silently(position);
            }
            return;
        }
        self.note_repetition(repeated);
        let echo = self.agreed.clock.and(segment.options.timestamps).map(|stamp| stamp.echo);
        let news = News { now, position, delivered, advanced, duplicate, repeated, echo, busy, flight };
        self.undo_if_spurious(&news);
        self.learn(&news);
        let age = self.board.age_of_first(now);
        let earlier = news.delivered.last_trip.zip(age).is_some_and(|(trip, age)| trip > age);
        if self.recovery() == Recovery::Rack && !advanced && earlier {
            // As in Linux: segments that were sent before the retransmission of the first segment still arrive, so the
            // retransmission cannot be answered yet.
            self.time_again(now, true);
        }
        if advanced {
            // RFC 6582: only the first partial acknowledgment of a recovery without SACK restarts the timer.
            let restart = self.restarts_timer();
            self.time_again(now, restart);
            self.make_room();
        }
    }

    /// Returns `true` if the congestion window limits sending. In slow start the window may have just doubled.
    fn uses_its_window(&self) -> bool {
        let used = self.board.flight();
        let window = self.congestion.window;
        if self.congestion.in_slow_start() {
            window < 2 * used + self.agreed.smss
        } else {
            used + self.agreed.smss > window
        }
    }

    /// Takes SACK blocks. Returns `true` if the first block reports a duplicate (RFC 2883 section 4).
    fn hear_blocks(
        &mut self,
        now: Time,
        segment: &Segment,
        position: u64,
        delivered: &mut Delivered,
    ) -> bool {
        let mut repeated = false;
        let place = |number| self.outgoing.numbering.position(number, position);
        let blocks = segment.options.sack.as_slice();
        let ranges = blocks.iter().map(|block| place(block.left).zip(place(block.right)));
        let mut second = None;
        for (n, range) in ranges.enumerate() {
            let Some((left, right)) = range.filter(|range| range.0 < range.1 && range.1 <= self.board.next())
            else {
                continue; // it reports octets that were never sent
            };
            if n == 0 {
                repeated = right <= position;
                second = Some((left, right));
            } else if n == 1
                && let Some((l, r)) = second
            {
                repeated |= left <= l && r <= right;
            }
            if right > position {
                self.board.arrive(now, left.max(position), right, delivered);
            }
        }
        repeated
    }

    /// Takes a round trip: that of the first segment acknowledged, or by the timestamp if that segment was sent twice
    /// (RFC 6298 section 3, RFC 7323 section 4.1). In a long recovery only SACK blocks tell how the round trip grows.
    fn measure(&mut self, now: Time, segment: &Segment, delivered: &Delivered, advanced: bool) {
        let by_timestamp = || {
            let (clock, stamp) = self.agreed.clock.zip(segment.options.timestamps)?;
            let ticks = clock.value(now).wrapping_sub(stamp.echo);
            let sane = stamp.echo != 0 && ticks < 1 << 24;
            sane.then(|| (clock.tick * u64::from(ticks)).max(Span::from_nanos(1)))
        };
        let trip = if advanced { delivered.first_trip.or_else(by_timestamp) } else { delivered.last_trip };
        if let Some(trip) = trip {
            self.estimator.sample(trip, self.progress());
        }
    }

    /// Returns the position acknowledged and the next position of the outgoing stream.
    pub(super) const fn progress(&self) -> AckProgress {
        AckProgress { acknowledged: self.board.first(), next: self.board.next() }
    }

    /// Takes the window that the segment announces, unless a newer segment announced one (RFC 9293 section 3.10.7.4).
    /// Returns `true` if the window has changed.
    fn hear_window(&mut self, segment: &Segment, at: u64, position: u64) -> bool {
        let peer = &mut self.peer;
        if (at, position) < peer.told_at && at <= peer.told_at.0 {
            return false;
        }
        peer.told_at = (at, position);
        let size = u64::from(segment.window) << peer.scale;
        let changed = size != peer.size;
        peer.size = size;
        peer.largest = peer.largest.max(size);
        if changed && size > 0 {
            self.unanswered.probes = 0;
            self.timers.stop(super::timing::Timer::Persist);
        }
        changed
    }

    /// Lets the congestion window grow.
    pub(super) fn grow(&mut self, news: &News) {
        if !news.advanced {
            return;
        }
        if !news.busy {
            return self.congestion.pause(news.now);
        }
        self.congestion.grow(Growth {
            now: news.now,
            octets: news.delivered.acknowledged,
            delivered: news.delivered.octets,
            round_trip: self.estimator.smoothed().unwrap_or(Span::ZERO),
            sample: news.delivered.last_trip,
            acknowledged: news.position,
            next: self.board.next(),
        });
    }

    fn restarts_timer(&mut self) -> bool {
        match &mut self.repair.phase {
            RecoveryPhase::Recovery { partial, .. } if !self.agreed.sack => core::mem::take(partial),
            _ => true,
        }
    }

    /// Tells the owner that the send buffer has room again.
    fn make_room(&mut self) {
        let (waiting, most) = (self.outgoing.written - self.acknowledged(), self.config.send_buffer);
        let room = match self.config.write_space {
            WriteSpace::Any => waiting < most,
            WriteSpace::Third => waiting <= most / 3 * 2,
        };
        if self.outgoing.buffer_full && room {
            self.outgoing.buffer_full = false;
            self.events.writable = true;
        }
    }
}
