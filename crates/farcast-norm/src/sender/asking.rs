//! Questions to named receivers. If their list is too long for a segment, or their answers are too many for the return
//! channel, a flush asks a part of them (RFC 5740 §4.2.3), and the next flush asks the next part.

use alloc::vec::Vec;

use farcast_core::engine::Message as _;
use farcast_core::{BitRate, Span, Time};

use super::ackers::Piece;
use super::{Sender, Timer, UNHURRIED};
use crate::config::SenderConfig;
use crate::message::{Answer, Body, FromReceiver, FromSender, Message, NodeId, Point, Stamp};

/// Divisor of the sender's rate that gives the return's rate where none is set.
const RETURN: u64 = 30;
/// Part of the return that answers may take. The rest is for requests.
const SHARE: (u64, u64) = (7, 10);
/// Number of receivers that may all answer at once, unless the return's rate is set.
const FEW: u64 = 32;
/// Time in which the return carries the answers to a flush that asks all receivers, unless two GRTTs are longer.
const AT_ONCE: Span = Span::from_secs(1);

/// Use of the return channel by answers.
#[derive(Clone, Debug)]
pub(super) struct ReturnUse {
    /// Octets of an acknowledgement, with all headers.
    octets: u64,
    /// Time at which the return has carried the answers to all questions so far.
    free_at: Time,
}

impl ReturnUse {
    /// Makes the state of a sender that asks for acknowledgements of points like `point`.
    pub(super) fn new(config: &SenderConfig, point: Point) -> Self {
        let said = FromReceiver {
            sender: config.node,
            instance: config.instance,
            response: Some(Stamp { seconds: 0, micros: 0 }),
            feedback: None,
            answer: Answer::Flushed { id: 0, point },
        };
        let message = Message { source: NodeId::ANY, sequence: 0, body: Body::Receiver(said) };
        let octets = message.wire_len(0) as u64 + u64::from(config.pace.overhead);
        Self { octets, free_at: Time::ZERO }
    }
}

/// Receivers that a flush asks, and the time to the next one.
pub(super) struct Question {
    pub(super) nodes: Vec<NodeId>,
    /// `true` if every receiver that lacks anything has now had its turn.
    pub(super) ends_round: bool,
    /// Time until the next receivers may be asked, where receivers are asked by turns; `None` if all are asked at once.
    pub(super) turn_in: Option<Span>,
}

impl Sender {
    /// Returns the time for which an acknowledgement keeps the part of the return that answers may take.
    fn answer_time(&self) -> Span {
        let (part, whole) = SHARE;
        self.return_rate().time_of_bytes(self.return_use.octets) * whole / part
    }

    /// Returns the rate of the return, which is assumed if it is not known.
    pub(super) fn return_rate(&self) -> BitRate {
        let default = || BitRate::from_bps(self.control.rate().as_bps().div_ceil(RETURN));
        self.config.return_rate.or_else(default).unwrap_or(self.control.rate())
    }

    /// Returns the time that a receiver has for its answer, before it is asked again.
    fn answers_within(&self) -> Span {
        (self.advertised().span() * 2).max(UNHURRIED)
    }

    /// Returns the named receivers that a flush asks for the first `objects` objects, of those that have not acknowledged
    /// these: all, if the flush and the return have room for all, and otherwise those whose turn it is at `now`.
    pub(super) fn question(&mut self, now: Time, objects: u32) -> Question {
        let (grtt, each) = (self.advertised().span(), self.answer_time());
        let carried = |time: Span| time.as_nanos() / each.as_nanos().max(1);
        let room = u64::from(self.config.segment_size / 4).max(1);
        let few = if self.config.return_rate.is_some() { 1 } else { FEW };
        let at_once = carried((grtt * 2).max(AT_ONCE)).max(few).min(room);
        let is_at_once = !self.ackers.are_by_turns() && self.ackers.lacking(objects) as u64 <= at_once;
        let piece = if is_at_once {
            self.ackers.all(objects)
        } else if now < self.return_use.free_at {
            Piece::NONE
        } else {
            // Receivers spread their answers over a GRTT.
            let most = carried(grtt.max(UNHURRIED)).clamp(1, room);
            let piece = self.ackers.next(now, objects, most as usize, self.answers_within());
            self.return_use.free_at = now + each * piece.nodes.len() as u64;
            piece
        };
        let Piece { nodes, ends_round, next_at } = piece;
        let turn_in = (!is_at_once).then(|| self.return_use.free_at.max(next_at).since(now));
        Question { nodes, ends_round, turn_in }
    }

    /// Sends a flush for the first `objects` objects that asks `nodes`.
    pub(super) fn flush_up_to(&mut self, objects: u32, nodes: Vec<NodeId>) {
        self.outbox.push_back(FromSender::Flush { point: self.objects.last(objects - 1), ackers: nodes });
    }

    /// Returns the time after a flush that asks receivers by turns, which may be the last of a round, until the next
    /// flush. Turns come after `turn_in`.
    pub(super) fn wait_for_turn(&self, now: Time, turn_in: Span, ends_round: bool, rounds: u32) -> Span {
        let within = self.answers_within();
        let left = rounds.saturating_sub(self.flushes);
        match (ends_round, left) {
            (false, _) => turn_in.min(within),
            (true, 0) => turn_in.max(within).max(self.patience.left(now)),
            (true, left) => turn_in.min(within).max(self.patience.left(now) / u64::from(left)),
        }
    }

    /// Sends a watermark flush for the objects that were sent completely so far, unless too many were in vain (RFC 5740
    /// §4.2.3.1). Returns `true` if it did.
    pub(super) fn mark(&mut self, now: Time) -> bool {
        let passed = self.objects.passed();
        if !self.config.watermarks || self.timers.is_set(Timer::Watermark) || self.objects.is_empty() {
            return false;
        }
        let asked = if self.watermark.0 == passed { self.watermark.1 } else { 0 };
        if passed == 0 || asked >= self.config.robust || self.ackers.lacking(passed) == 0 {
            return false;
        }
        let Question { nodes, ends_round, turn_in } = self.question(now, passed);
        self.watermark = (passed, asked + u32::from(ends_round));
        self.timers.set(Timer::Watermark, now + turn_in.unwrap_or(self.advertised().span() * 2));
        if nodes.is_empty() {
            return false;
        }
        self.flush_up_to(passed, nodes);
        true
    }
}
