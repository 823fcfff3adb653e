//! Engine that sends an object again and again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, Transmit};
use farcast_core::{BitRate, Run, Span, Time};
use farcast_delivery::{
    Cause, Figure, Geometry, Milestone, ObjectId, Phase, RequestCounts, RoundProgress, Routes, SenderEngine,
};

use super::wire::Message;

/// Figure for the number of turns.
pub(crate) const TURNS: &str = "turns";
/// Figure for the segments of each turn.
pub(crate) const SEGMENTS_PER_TURN: &str = "segments_per_turn";
/// Figure for the segments beyond the first turn's, in per cent of the object.
pub(crate) const OVERHEAD: &str = "sent.again_percent";

/// Event of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Begun,
    Turn(u32),
    Over,
}

/// Engine that sends an object a fixed number of times, whoever listens.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) id: [u8; 32],
    pub(crate) geometry: Geometry,
    pub(crate) group: SocketAddr,
    pub(crate) source: SocketAddr,
    pub(crate) rate: BitRate,
    pub(crate) turns: u32,
    sent: Vec<u64>,
    next: u32,
    next_at: Time,
    phase: Phase,
    events: VecDeque<Told>,
}

impl Sender {
    pub(crate) fn new(
        (id, geometry): ([u8; 32], Geometry),
        (source, group): (SocketAddr, SocketAddr),
        rate: BitRate,
        turns: u32,
    ) -> Self {
        let (sent, next, next_at, events) = (Vec::new(), 0, Time::ZERO, VecDeque::new());
        let phase = Phase::Idle;
        Self { id, geometry, group, source, rate, turns, sent, next, next_at, phase, events }
    }

    fn end(&mut self) {
        self.phase = Phase::Ended;
        self.events.push_back(Told::Over);
    }

    fn span(&self, message: &Message) -> Span {
        self.rate.time_of_bytes(message.wire_len(0) as u64 + 28)
    }

    /// Begins the next turn.
    fn announce(&mut self) -> Message {
        self.sent.push(0);
        let turn = self.sent.len() as u32;
        self.events.push_back(Told::Turn(turn));
        let (segment, size) = (self.geometry.segment_size(), self.geometry.size());
        Message::Announcement { turn, segment, size, id: self.id }
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = Told;

    fn handle(&mut self, _now: Time, _from: &Arrival, _message: &Message) -> Result<(), Reject> {
        Err(Reject::Unexpected)
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        if self.phase != Phase::Sending || now < self.next_at {
            return None;
        }
        let turn = self.sent.len() as u32;
        if turn == 0 || self.next == self.geometry.segments() {
            if turn == self.turns {
                self.end();
                return None;
            }
            self.next = 0;
            let message = self.announce();
            self.next_at += self.span(&message);
            return Some(Transmit::new(message, self.group));
        }
        let (len, left) = (self.geometry.segment_size(), self.geometry.segments() - self.next);
        let spacing = self.span(&Message::Data { turn, run: Run::one(0), len, last: len });
        let room = until.since(self.next_at).as_nanos().div_ceil(spacing.as_nanos());
        let run = Run::new(self.next, u32::try_from(room).unwrap_or(u32::MAX).clamp(1, left))?;
        let last = self.geometry.payload_len(run.last());
        self.next = run.end();
        self.next_at += spacing * u64::from(run.count());
        *self.sent.last_mut()? += u64::from(run.count());
        let message = Message::Data { turn, run, len, last };
        Some(Transmit::new(message, self.group).spaced(spacing))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        (self.phase == Phase::Sending).then_some(Deadline { at: self.next_at, timer: "pace" })
    }

    fn poll_event(&mut self) -> Option<Told> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::NEVER
    }
}

impl SenderEngine for Sender {
    type Merged = Infallible;

    fn open(&mut self, now: Time) {
        (self.phase, self.next_at) = (Phase::Sending, now);
        self.events.push_back(Told::Begun);
    }

    fn abort(&mut self, _now: Time, _cause: Cause, _text: Option<String>) {
        self.end();
    }

    fn moved(&mut self, _now: Time, source: SocketAddr) {
        self.source = source;
    }

    fn routes(&self) -> Routes {
        Routes { source: self.source, announcements: self.group, content: self.group, answers: self.source }
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        (object == ObjectId::FIRST).then_some(&self.geometry)
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn progress(&self) -> RoundProgress {
        let segments = self.geometry.segments();
        RoundProgress { round: self.sent.len() as u32, sent: self.next, segments }
    }

    fn figures(&self, _requests: &RequestCounts) -> Vec<Figure> {
        let turns = self.sent.len() as u64;
        let object = f64::from(self.geometry.segments());
        let sent = self.sent.iter().sum::<u64>() as f64;
        vec![
            Figure::count(TURNS, turns).labelled("turns"),
            Figure::counts(SEGMENTS_PER_TURN, self.sent.clone()).labelled("segments sent"),
            Figure::number(OVERHEAD, (turns > 0).then(|| 100.0 * (sent / object - 1.0))).labelled("overhead"),
        ]
    }

    fn milestone(event: &Told) -> Option<Milestone> {
        Some(match *event {
            Told::Begun => Milestone::Began { receivers: 0 },
            Told::Turn(round) => Milestone::Round { round, segments: 0 },
            Told::Over => Milestone::Ended { alone: false },
        })
    }

    fn quiet_until(&self) -> Time {
        Time::NEVER
    }
}
