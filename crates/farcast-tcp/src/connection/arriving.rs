//! A segment arrives on a connection that has both SYNs (RFC 9293 section 3.10.7.4).

use farcast_core::engine::Reject;
use farcast_core::{Span, Time};

use super::receiving::WindowPart;
use super::timing::Timer;
use super::{Connection, State};
use crate::event::Failure;
use crate::{Flags, Segment};

/// Age at which a peer's last timestamp may have wrapped (RFC 7323 section 5.5).
const TIMESTAMPS_AGE: Span = Span::from_secs(24 * 24 * 3600);

/// Most challenge acknowledgments in a second (RFC 5961 section 7).
const MOST_CHALLENGES: u32 = 10;

/// Count of challenge acknowledgments in the current second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenges {
    /// Start of the current second.
    since: Time,
    count: u32,
}

impl Default for Challenges {
    fn default() -> Self {
        Self { since: Time::ZERO, count: 0 }
    }
}

impl Challenges {
    /// Returns `true` if one more challenge may leave at `now`, and counts that challenge.
    fn allow(&mut self, now: Time) -> bool {
        if now.since(self.since) >= Span::from_secs(1) {
            *self = Self { since: now, count: 0 };
        }
        let allowed = self.count < MOST_CHALLENGES;
        self.count += u32::from(allowed);
        allowed
    }
}

impl Connection {
    pub(super) fn arrive(&mut self, now: Time, segment: &Segment) -> Result<(), Reject> {
        let Some(at) = self.place(segment) else {
            return self.refuse(now, segment, Reject::OutOfRange);
        };
        if self.state == State::SynReceived && at == 0 && segment.flags.has(Flags::SYN) {
            return self.take_crossing(now, segment);
        }
        if self.is_from_the_past(now, segment) {
            return self.refuse(now, segment, Reject::Duplicate);
        }
        if self.agreed.clock.is_some()
            && segment.options.timestamps.is_none()
            && !segment.flags.has(Flags::RST)
        {
            return Err(Reject::Inconsistent); // dropped silently (RFC 7323 section 3.2)
        }
        let end = at + u64::from(segment.sequence_len());
        let (next, edge) = (self.incoming.reassembly.next(), self.acceptable_edge());
        // A FIN needs no room.
        let full = at == edge && segment.payload.len > 0;
        if end < next || at > edge || (end == next && at < next) || full {
            return self.refuse_place(now, segment, at, end);
        }
        if segment.flags.has(Flags::RST) {
            return self.take_reset(now, at);
        }
        if segment.flags.has(Flags::SYN) {
            self.challenge(now);
            return Err(Reject::Inconsistent);
        }
        if !segment.flags.has(Flags::ACK) {
            return Err(Reject::Inconsistent);
        }
        self.take_acknowledgment(now, segment, at)?;
        self.stats.segments_received += 1;
        self.note_timestamp(now, segment, at);
        if end > at {
            self.take_data(now, segment, at, end);
        }
        Ok(())
    }

    /// Returns the position of a segment, from the next position that is expected.
    fn place(&self, segment: &Segment) -> Option<u64> {
        self.incoming.numbering?.position(segment.sequence, self.incoming.reassembly.next())
    }

    /// Takes a SYN that repeats the first, or that crosses ours.
    fn take_crossing(&mut self, now: Time, segment: &Segment) -> Result<(), Reject> {
        if !segment.flags.has(Flags::ACK) {
            self.due.syn = true;
            return Err(Reject::Duplicate);
        }
        if segment.acknowledgment != self.outgoing.numbering.number(1) {
            return Err(Reject::OutOfRange);
        }
        self.syn_was_acknowledged(now, segment);
        self.acknowledger.now();
        Ok(())
    }

    /// Turns a segment down, and tells the peer the next position that is expected.
    fn refuse(&mut self, now: Time, segment: &Segment, reason: Reject) -> Result<(), Reject> {
        if !segment.flags.has(Flags::RST) {
            self.challenge(now);
        }
        Err(reason)
    }

    /// Takes a segment that lies outside the window.
    fn refuse_place(&mut self, now: Time, segment: &Segment, at: u64, end: u64) -> Result<(), Reject> {
        if end <= self.incoming.reassembly.next() && end > at && at > 0 && !segment.flags.has(Flags::RST) {
            // Data received before is acknowledged again: the acknowledgment may have been lost.
            self.incoming.reassembly.take(at, end);
            self.stats.octets_duplicate += u64::from(segment.payload.len);
            self.acknowledger.now();
            if segment.flags.has(Flags::ACK) {
                self.take_acknowledgment(now, segment, at)?;
            }
            if self.state == State::TimeWait {
                self.timers.set(Timer::Linger, now + self.config.time_wait);
            }
            return Err(Reject::Duplicate);
        }
        self.refuse(now, segment, Reject::OutOfRange)
    }

    /// Returns `true` if the segment's timestamp is older than that of the last segment in order (RFC 7323 section
    /// 5.3).
    fn is_from_the_past(&self, now: Time, segment: &Segment) -> bool {
        let Some((clock, told)) = self.agreed.clock.zip(segment.options.timestamps) else { return false };
        told.value.wrapping_sub(clock.recent).cast_signed() < 0
            && now.since(clock.recent_at) < TIMESTAMPS_AGE
            && !segment.flags.has(Flags::RST)
    }

    /// Keeps the timestamp to echo: that of the segment at which the last acknowledgment left off (RFC 7323 section
    /// 4.3).
    fn note_timestamp(&mut self, now: Time, segment: &Segment, at: u64) {
        let told = self.acknowledger.told;
        if let Some((clock, stamp)) = self.agreed.clock.as_mut().zip(segment.options.timestamps)
            && at <= told
            && stamp.value.wrapping_sub(clock.recent).cast_signed() >= 0
        {
            (clock.recent, clock.recent_at) = (stamp.value, now);
        }
    }

    /// Takes a reset. Only a reset at exactly the next position is believed (RFC 5961 section 3.2).
    fn take_reset(&mut self, now: Time, at: u64) -> Result<(), Reject> {
        if at != self.incoming.reassembly.next() {
            self.challenge(now);
            return Err(Reject::OutOfRange);
        }
        let over = matches!(self.state, State::TimeWait | State::Closing | State::LastAck);
        if over {
            self.end();
            self.events.closed = true;
        } else {
            self.fail(Failure::Reset);
        }
        Ok(())
    }

    fn take_acknowledgment(&mut self, now: Time, segment: &Segment, at: u64) -> Result<(), Reject> {
        let first = self.board.first();
        let position = self.outgoing.numbering.position(segment.acknowledgment, first);
        let Some(position) = position.filter(|&p| p <= self.board.next()) else {
            self.challenge(now);
            return Err(Reject::OutOfRange);
        };
        if self.state == State::SynReceived {
            if position == 0 {
                return Err(Reject::OutOfRange);
            }
            self.syn_was_acknowledged(now, segment);
        }
        if position + self.peer.largest < first {
            self.challenge(now);
            return Err(Reject::OutOfRange);
        }
        if position >= first {
            self.acknowledge(now, segment, at, position);
        }
        if self.fin_sent() && self.board.is_empty() {
            self.fin_was_acknowledged(now);
        }
        Ok(())
    }

    fn fin_was_acknowledged(&mut self, now: Time) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.linger(now),
            State::LastAck => {
                self.end();
                self.events.closed = true;
            }
            _ => {}
        }
    }

    fn linger(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.events.closed = true;
        self.timers.set(Timer::Linger, now + self.config.time_wait);
    }

    fn take_data(&mut self, now: Time, segment: &Segment, at: u64, end: u64) {
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            return; // behind a FIN there is nothing (RFC 9293 section 3.10.7.4, seventh)
        }
        let edge = self.acceptable_edge();
        let fin = segment.flags.has(Flags::FIN);
        let data = end - u64::from(fin);
        // Data beyond the window, or beyond a FIN that was seen before, is cut off. A FIN before data that is already
        // known is ignored.
        let last = self.incoming.fin_at.map_or(u64::MAX, |fin| fin + 1);
        let mut right = data.min(edge).min(last);
        if fin && data <= edge && end <= last && !self.incoming.reassembly.has_beyond(end) {
            self.incoming.fin_at = Some(data);
            right = end;
        }
        if at >= right {
            return;
        }
        self.receive(now, WindowPart { left: at, data: data.min(right), right });
        if self.incoming.fin_at.is_some_and(|fin| self.incoming.reassembly.next() > fin) {
            self.peer_has_closed(now);
        }
    }

    fn peer_has_closed(&mut self, now: Time) {
        self.acknowledger.now();
        self.events.peer_closed = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.linger(now),
            _ => {}
        }
    }

    /// Sends a challenge acknowledgment, at most ten a second: the next expected position, for a peer that may be wrong
    /// about it.
    fn challenge(&mut self, now: Time) {
        if self.challenges.allow(now) {
            self.stats.challenges += 1;
            self.due.challenge = true;
        }
    }
}
