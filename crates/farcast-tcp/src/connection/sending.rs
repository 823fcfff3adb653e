//! Choice of the next segment to send.

use farcast_core::Time;

use super::rack::TailProbe;
use super::recovery::RecoveryPhase;
use super::timing::Timer;
use super::{Connection, State};
use crate::config::Recovery;
use crate::scoreboard::FlightRecord;
use crate::segment::{SackBlock, SackBlocks};
use crate::sequence::Numbering;
use crate::{Flags, Options, Payload, Segment, SequenceNumber, Timestamps};

/// Segments that are due besides data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DueSegments {
    /// Our SYN.
    pub syn: bool,
    /// A reset of this connection.
    pub reset: bool,
    /// A reset with this number, to a peer that has an old connection.
    pub refusal: Option<SequenceNumber>,
    /// An acknowledgment that tells the peer the next position expected.
    pub challenge: bool,
    /// A probe of the peer's window.
    pub window_probe: bool,
    /// A tail loss probe (RFC 8985 section 7).
    pub tail_probe: bool,
}

/// Our stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutgoingStream {
    pub numbering: Numbering,
    /// Octets that the owner has written.
    pub written: u64,
    /// Nothing more will be written.
    pub closing: bool,
    /// The owner wanted to write more than the buffer had room for.
    pub buffer_full: bool,
    /// Small segments may leave too: the peer's window has long been too small for larger ones.
    pub any_size: bool,
    pub last_sent_at: Time,
}

impl OutgoingStream {
    pub(super) fn new(initial: SequenceNumber) -> Self {
        Self {
            numbering: Numbering::new(initial),
            written: 0,
            closing: false,
            buffer_full: false,
            any_size: false,
            last_sent_at: Time::ZERO,
        }
    }
}

impl Connection {
    /// Returns the next segment, if one is to leave.
    pub(super) fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if core::mem::take(&mut self.due.reset) {
            let mut reset = self.segment(self.board.next(), Flags::RST.with(Flags::ACK));
            reset.acknowledgment = self.acknowledgment();
            return Some(reset);
        }
        if let Some(number) = self.due.refusal.take() {
            return Some(Segment { sequence: number, ..self.segment(0, Flags::RST) });
        }
        if self.due.syn {
            return Some(self.syn(now));
        }
        if matches!(self.state, State::Listen | State::SynSent | State::SynReceived | State::Closed) {
            return None;
        }
        if let Some(segment) = self.next_data(now) {
            return Some(segment);
        }
        if core::mem::take(&mut self.due.window_probe) {
            // The peer already has this octet: it answers with its window (RFC 9293 section 3.8.6.1).
            self.stats.window_probes += 1;
            self.time_persist(now);
            return Some(self.bare(now, self.board.next() - 1));
        }
        if self.acknowledger.is_due() || core::mem::take(&mut self.due.challenge) {
            return Some(self.bare(now, self.board.next()));
        }
        None
    }

    /// Returns an empty segment that acknowledges.
    fn bare(&mut self, now: Time, at: u64) -> Segment {
        let mut segment = self.segment(at, Flags::default());
        self.complete(now, &mut segment);
        segment
    }

    /// Returns a segment that carries data or a FIN, if one may leave.
    fn next_data(&mut self, now: Time) -> Option<Segment> {
        if self.state == State::TimeWait || self.device.is_full() {
            return None;
        }
        let pipe = self.board.pipe();
        let withheld = self.withholds_repairs() && !self.repair.force;
        if let Some(lost) = self.board.next_lost().filter(|_| !withheld) {
            let len = u64::from(lost.len).min(self.agreed.smss);
            let forced = core::mem::take(&mut self.repair.force);
            if forced || pipe == 0 || pipe + len <= self.congestion.window {
                return self.send_again(now, lost.start);
            }
            return None;
        }
        if core::mem::take(&mut self.due.tail_probe) {
            return self.probe_the_tail(now);
        }
        if let Some(segment) = self.next_new(now, pipe) {
            return Some(segment);
        }
        if self.has_nothing_to_ask_with() {
            return self.next_data(now);
        }
        self.next_without_new_data(now, pipe)
    }

    /// Returns a segment of new data, if both windows allow one.
    fn next_new(&mut self, now: Time, pipe: u64) -> Option<Segment> {
        let left = self.data_end().saturating_sub(self.board.next());
        let fin = self.outgoing.closing && !self.fin_sent();
        if left == 0 && !fin {
            return None;
        }
        if left == 0 {
            return Some(self.send_new(now, 0, true));
        }
        self.restart_after_idleness(now);
        let len = self.new_length(now, left)?;
        let allowed = self.congestion.window + self.early_octets();
        if pipe + len > allowed && pipe > 0 && self.repair.credit < len {
            return None;
        }
        if self.holds_back() {
            return None;
        }
        self.repair.credit = self.repair.credit.saturating_sub(len);
        self.repair.sent_early +=
            if self.repair.duplicates > 0 && self.repair.phase == RecoveryPhase::Open { len } else { 0 };
        self.outgoing.any_size = false;
        Some(self.send_new(now, len, fin && len == left))
    }

    /// Returns the octets of new data that the first duplicates let out beyond the window (limited transmit, RFC 3042).
    /// With SACK the pipe has already shrunk by these octets (RFC 6675 section 5 step 3).
    fn early_octets(&self) -> u64 {
        if self.repair.phase == RecoveryPhase::Open && self.config.limited_transmit && !self.agreed.sack {
            u64::from(self.repair.duplicates.min(2)) * self.agreed.smss
        } else {
            0
        }
    }

    /// Returns `true` if duplicates hold new data back until a recovery begins, because limited transmit is off.
    fn holds_back(&self) -> bool {
        self.repair.duplicates > 0
            && self.repair.phase == RecoveryPhase::Open
            && !self.config.limited_transmit
            && self.agreed.sack
    }

    /// Returns the length of the next segment, out of `left` octets of new data; `None` if it should wait (RFC 9293
    /// sections 3.7.4 and 3.8.6.2.1).
    fn new_length(&mut self, now: Time, left: u64) -> Option<u64> {
        let room = self.peer_room();
        let len = left.min(self.agreed.smss).min(room);
        let whole = len == self.agreed.smss || (len == left && (!self.config.nagle || self.board.is_empty()));
        let worth = len > 0 && (whole || 2 * len >= self.peer.largest || self.outgoing.any_size);
        if worth {
            return Some(len);
        }
        if self.board.is_empty() && room < left.min(self.agreed.smss) {
            self.time_persist(now);
        }
        None
    }

    /// Returns the octets that the peer's window takes beyond those that were sent.
    pub(super) fn peer_room(&self) -> u64 {
        self.peer.size.saturating_sub(self.board.flight())
    }

    fn restart_after_idleness(&mut self, now: Time) {
        let idle = self.config.idle_restart
            && self.board.is_empty()
            && self.stats.data_segments_sent > 0
            && now.since(self.outgoing.last_sent_at) > self.estimator.timeout();
        if idle {
            let initial = self.config.initial_window.octets(self.agreed.smss);
            self.congestion.window = self.congestion.window.min(initial);
        }
    }

    /// Sends segments again that may be lost, if a recovery has no new data to send (RFC 6675 `NextSeg` rules 3 and 4).
    fn next_without_new_data(&mut self, now: Time, pipe: u64) -> Option<Segment> {
        let recovering = matches!(self.repair.phase, RecoveryPhase::Recovery { .. });
        if !recovering
            || self.recovery() != Recovery::Sack
            || pipe + self.agreed.smss > self.congestion.window
        {
            return None;
        }
        if let Some(record) = self.board.next_doubtful(self.board.first()) {
            return self.send_again(now, record.start);
        }
        let last = self.board.last().filter(|last| !last.sacked && !last.resent)?;
        if self.rescue() { self.send_again(now, last.start) } else { None }
    }

    /// Sends a tail loss probe: new data if there is any, or the last segment again (RFC 8985 section 7.3).
    fn probe_the_tail(&mut self, now: Time) -> Option<Segment> {
        if self.board.is_empty() || self.repair.phase != RecoveryPhase::Open {
            return None;
        }
        let left = self.data_end().saturating_sub(self.board.next());
        let len = left.min(self.agreed.smss);
        self.stats.tail_loss_probes += 1;
        let fresh = len > 0 && len <= self.peer_room();
        self.repair.probe = Some(TailProbe { end: 0, again: !fresh });
        let segment = if fresh {
            let fin = self.outgoing.closing && len == left;
            Some(self.send_new(now, len, fin))
        } else {
            let last = self.board.last()?;
            self.send_again(now, last.start)
        };
        self.repair.probe = Some(TailProbe { end: self.board.next(), again: !fresh });
        self.timers.set(Timer::Retransmit, now + self.estimator.timeout());
        segment
    }

    /// Sends the segment at `start` again.
    fn send_again(&mut self, now: Time, start: u64) -> Option<Segment> {
        let record = self.board.resend(now, start, self.agreed.smss as u32)?;
        self.note_resent(now);
        self.stats.retransmits += 1;
        let segment = self.carrying(now, &record);
        if self.recovery() == Recovery::Rack && start == self.board.first() {
            // As in Linux, each retransmission of the first segment in flight gets a whole timeout.
            self.timers.set(Timer::Retransmit, now + self.estimator.timeout());
        }
        self.time_what_was_sent(now, false);
        Some(segment)
    }

    /// Sends `len` octets of new data, with a FIN behind them if `fin`.
    fn send_new(&mut self, now: Time, len: u64, fin: bool) -> Segment {
        let start = self.board.next();
        let taken = len as u32 + u32::from(fin);
        self.board.push(now, taken, fin);
        if fin {
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
        let record = FlightRecord {
            start,
            len: taken,
            sent_at: now,
            transmissions: 1,
            fin,
            sacked: false,
            lost: false,
            resent: false,
        };
        let segment = self.carrying(now, &record);
        self.time_what_was_sent(now, true);
        segment
    }

    /// Returns the segment of a record.
    fn carrying(&mut self, now: Time, record: &FlightRecord) -> Segment {
        let len = record.len - u32::from(record.fin);
        let end = record.start + u64::from(len);
        let mut flags = if record.fin { Flags::FIN } else { Flags::default() };
        if len > 0 && end == self.data_end() {
            flags = flags.with(Flags::PSH);
        }
        let mut segment = self.segment(record.start, flags);
        segment.payload = Payload { offset: record.start - 1, len: len as u16 };
        self.complete(now, &mut segment);
        self.outgoing.last_sent_at = now;
        self.stats.data_segments_sent += u64::from(len > 0);
        self.stats.octets_sent += u64::from(len);
        self.count_sent(u64::from(record.len));
        segment
    }

    /// Returns a segment at position `at`, without an acknowledgment yet.
    pub(super) fn segment(&self, at: u64, flags: Flags) -> Segment {
        Segment {
            source_port: self.local.port(),
            destination_port: self.remote.map_or(0, |remote| remote.port()),
            sequence: self.outgoing.numbering.number(at),
            flags,
            ..Segment::default()
        }
    }

    /// Returns the acknowledgment number: the next position expected.
    pub(super) fn acknowledgment(&self) -> SequenceNumber {
        self.incoming
            .numbering
            .map_or(SequenceNumber(0), |incoming| incoming.number(self.incoming.reassembly.next()))
    }

    /// Adds the fields that every segment of an open connection has: acknowledgment, window, options.
    fn complete(&mut self, now: Time, segment: &mut Segment) {
        let next = self.incoming.reassembly.next();
        let edge = self.window_edge();
        segment.flags = segment.flags.with(Flags::ACK);
        segment.acknowledgment = self.acknowledgment();
        segment.window = self.acknowledger.window(next, edge);
        segment.options.timestamps =
            self.agreed.clock.map(|clock| Timestamps { value: clock.value(now), echo: clock.recent });
        if self.agreed.sack && self.incoming.reassembly.has_report(self.config.dsack) {
            let room = usize::from(self.config.mss).saturating_sub(usize::from(segment.payload.len));
            segment.options.sack = self.blocks(&segment.options, room);
        }
        self.acknowledger.told(next);
        self.timers.stop(Timer::Acknowledge);
        self.due.challenge = false;
    }

    /// Returns the SACK blocks to report that fit beside `options`, and into `room` octets with them.
    fn blocks(&mut self, options: &Options, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let free = 40usize.min(room).saturating_sub(options.wire_len() + 4);
        let Some(numbering) = self.incoming.numbering else { return blocks };
        for (left, right) in self.incoming.reassembly.report(self.config.dsack).take(free / 8) {
            blocks.push(SackBlock { left: numbering.number(left), right: numbering.number(right) });
        }
        blocks
    }
}
