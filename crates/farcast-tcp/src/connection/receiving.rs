//! The receiving direction: timing of acknowledgments, and the window offered.

use farcast_core::{Span, Time};

use super::Connection;
use super::timing::Timer;
use crate::config::{Config, DelayedAck, ReceiveWindow};
use crate::event::Stored;
use crate::reassembly::{Reassembly, SegmentEffect};
use crate::sequence::Numbering;

/// The peer's stream.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    /// Numbering of the peer's stream, once its SYN has come.
    pub numbering: Option<Numbering>,
    /// Ranges that have arrived.
    pub reassembly: Reassembly,
    /// Position of the peer's FIN, once known.
    pub fin_at: Option<u64>,
    /// Octets that the owner has taken.
    pub consumed: u64,
}

impl Default for Incoming {
    fn default() -> Self {
        Self { numbering: None, reassembly: Reassembly::new(1), fin_at: None, consumed: 0 }
    }
}

/// Timing of acknowledgments, and the window that they offer.
#[derive(Clone, Debug)]
pub(super) struct Acknowledger {
    policy: DelayedAck,
    window: ReceiveWindow,
    mss: u64,
    scaling: bool,
    /// Number of bits by which our windows are shifted, once agreed.
    shift: u8,
    agreed: bool,
    /// An acknowledgment leaves with the next poll.
    due: bool,
    /// Octets in order that are not acknowledged.
    unacknowledged: u64,
    /// The largest payload seen.
    full: u64,
    /// Number of segments that are still acknowledged at once. After them, `delay` is the delay, which follows the
    /// times between arrivals.
    quick: u32,
    delay: Span,
    last_arrival: Option<Time>,
    /// Size of a growing window so far, in octets.
    grown: u64,
    /// Position up to which the peer may send, as last announced.
    edge: u64,
    /// Position acknowledged last (Last.ACK.sent).
    pub told: u64,
}

impl Acknowledger {
    pub(super) fn new(config: &Config) -> Self {
        let mss = u64::from(config.mss);
        let window = config.receive_window;
        let (quick, delay) = match config.delayed_ack {
            DelayedAck::Off => (0, Span::ZERO),
            DelayedAck::Delayed { delay } => (0, delay),
            DelayedAck::Quick { segments, least, .. } => (segments, least),
        };
        Self {
            policy: config.delayed_ack,
            window,
            mss,
            scaling: config.window_scaling,
            shift: 0,
            agreed: false,
            due: false,
            unacknowledged: 0,
            full: 0,
            quick,
            delay,
            last_arrival: None,
            grown: window.first.unwrap_or(window.size).octets(mss),
            edge: 1,
            told: 0,
        }
    }

    /// Returns the number of bits by which the whole window must be shifted to fit its field (RFC 7323 section 2.3).
    fn needed_shift(&self) -> u8 {
        let window = self.window.size.octets(self.mss);
        (0..14).find(|shift| window <= 65_535 << shift).unwrap_or(14)
    }

    pub(super) fn offered_scale(&self) -> Option<u8> {
        self.scaling.then(|| self.needed_shift())
    }

    pub(super) fn use_scale(&mut self, scaled: bool) {
        self.agreed = scaled;
        self.shift = if scaled { self.needed_shift() } else { 0 };
    }

    pub(super) fn scale(&self) -> Option<u8> {
        self.agreed.then_some(self.shift)
    }

    /// Requests an acknowledgment at once.
    pub(super) fn now(&mut self) {
        self.due = true;
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    /// Returns the position up to which the buffer has room, after `consumed` octets were taken out of it.
    fn edge_for(&self, consumed: u64) -> u64 {
        1 + consumed + self.window.size.octets(self.mss).min(self.grown)
    }

    /// Returns `true` if the window has opened enough since it was last announced to be worth a segment (RFC 9293
    /// section 3.8.6.2.2).
    pub(super) fn wants_update(&self, edge: u64, next: u64) -> bool {
        let told = self.edge.saturating_sub(next);
        let opened = edge.saturating_sub(self.edge);
        told < 2 * self.mss && opened >= self.mss.min(self.window.size.octets(self.mss) / 2)
    }

    /// Returns the window field of a segment that acknowledges up to `next`, when the buffer has room up to `edge`.
    pub(super) fn window(&mut self, next: u64, edge: u64) -> u16 {
        // Opening by less than a segment, or half the buffer, would make the peer send small segments.
        let worth = self.mss.min(self.window.size.octets(self.mss) / 2);
        if edge >= self.edge + worth || edge == next + self.window.size.octets(self.mss) {
            self.edge = self.edge.max(edge);
        }
        let size = self.edge.saturating_sub(next);
        // The window is rounded up, so that the shift does not take a segment away. But rounding must not accumulate
        // (RFC 7323 section 2.4).
        let rounded = size.div_ceil(1 << self.shift) << self.shift;
        let most = edge.max(next) + (1 << self.shift);
        let told = if next + rounded < most { rounded } else { size };
        let field = (told >> self.shift).min(65_535);
        self.edge = self.edge.max(next + (field << self.shift));
        field as u16
    }

    pub(super) fn window_of_syn(&mut self, edge: u64) -> u16 {
        let field = (edge - 1).min(65_535);
        self.edge = self.edge.max(1 + field);
        field as u16
    }

    /// Notes that a segment leaves that acknowledges up to `next`.
    pub(super) fn told(&mut self, next: u64) {
        self.told = next;
        self.due = false;
        self.unacknowledged = 0;
    }

    /// Notes that a segment of `payload` octets has moved the stream on by `octets`. Returns the time until which its
    /// acknowledgment may wait, or `None` if it is due at once.
    fn in_order(&mut self, now: Time, octets: u64, payload: u64, timeout: Span) -> Option<Time> {
        self.full = self.full.max(payload);
        self.unacknowledged += octets;
        self.grown = self.grown.saturating_add(2 * self.mss);
        let delay = match self.policy {
            DelayedAck::Off => Span::ZERO,
            DelayedAck::Delayed { delay } => delay,
            DelayedAck::Quick { segments, least, most } => {
                self.follow(now, segments, least, most, timeout);
                if self.quick > 0 {
                    self.quick -= 1;
                    Span::ZERO
                } else {
                    self.delay
                }
            }
        };
        // More octets than one full-sized segment count as two segments.
        if delay.is_zero() || self.unacknowledged > self.full {
            self.due = true;
            return None;
        }
        Some(now + delay)
    }

    /// Adapts the delay to the time between arrivals. After a pause, the next segments are acknowledged at once again.
    fn follow(&mut self, now: Time, segments: u32, least: Span, most: Span, timeout: Span) {
        let gap = self.last_arrival.map(|last| now.since(last));
        self.last_arrival = Some(now);
        let half = |span: Span| Span::from_nanos(span.as_nanos() / 2);
        match gap {
            None => self.delay = least,
            Some(gap) if gap <= half(least) => self.delay = half(self.delay) + half(least),
            Some(gap) if gap < self.delay => self.delay = (half(self.delay) + gap).min(most),
            Some(gap) if gap > timeout => self.quick = segments,
            Some(_) => {}
        }
    }
}

/// Part of a segment that lies within the window, in positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowPart {
    /// Start of the part and of the segment.
    pub left: u64,
    /// End of the data.
    pub data: u64,
    /// End of the part, behind a FIN if there is one.
    pub right: u64,
}

impl Connection {
    /// Returns the position up to which our buffer has room.
    pub(super) fn window_edge(&self) -> u64 {
        self.acknowledger.edge_for(self.incoming.consumed)
    }

    /// Returns the position up to which the peer may send: the larger of the announced one and that of the room.
    pub(super) fn acceptable_edge(&self) -> u64 {
        self.acknowledger.edge.max(self.window_edge())
    }

    /// Takes a piece of a segment that has arrived.
    pub(super) fn receive(&mut self, now: Time, piece: WindowPart) {
        let WindowPart { left, data, right } = piece;
        let before = self.incoming.reassembly.next();
        let taken = self.incoming.reassembly.take(left, right);
        if matches!(taken, SegmentEffect::InOrder { .. } | SegmentEffect::OutOfOrder) {
            let from = left.max(before);
            if from < data {
                let (skip, len) = ((from - left) as u16, (data - from) as u16);
                self.events.store = Some(Stored { offset: from - 1, skip, len });
            }
        }
        match taken {
            SegmentEffect::InOrder { filled } => {
                self.events.readable |= self.readable() > 0;
                let octets = self.incoming.reassembly.next() - before;
                let timeout = self.estimator.timeout();
                let wait = self.acknowledger.in_order(now, octets, data - left, timeout);
                if filled {
                    self.acknowledger.now();
                } else if let Some(at) = wait
                    && !self.timers.is_set(Timer::Acknowledge)
                {
                    self.timers.set(Timer::Acknowledge, at);
                }
            }
            SegmentEffect::Old => {
                self.stats.octets_duplicate += data.saturating_sub(left);
                self.acknowledger.now();
            }
            SegmentEffect::OutOfOrder | SegmentEffect::TooMany => self.acknowledger.now(),
        }
    }
}
