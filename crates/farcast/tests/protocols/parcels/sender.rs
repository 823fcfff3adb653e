//! Engine that sends several parcels at once, again and again, with a few segments of each in turn.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, Transmit};
use farcast_core::{BitRate, Run, Time};
use farcast_delivery::{Cause, Geometry, Milestone, ObjectId, Phase, RoundProgress, Routes, SenderEngine};

use super::wire::Message;

/// Segments of one parcel that leave before those of the next one.
const TURN: u32 = 3;

/// Event of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Begun,
    Over,
}

/// Parcel, with the next segment of this round.
#[derive(Debug)]
struct Parcel {
    name: Vec<u8>,
    geometry: Geometry,
    next: u32,
}

#[derive(Debug)]
pub(crate) struct Sender {
    parcels: Vec<Parcel>,
    routes: Routes,
    rate: BitRate,
    rounds: usize,
    /// Messages that are left in this round, in reverse order.
    plan: Vec<Message>,
    sent: Vec<u64>,
    next_at: Time,
    phase: Phase,
    events: VecDeque<Told>,
}

impl Sender {
    pub(crate) fn new(
        parcels: Vec<(Vec<u8>, Geometry)>,
        (source, group): (SocketAddr, SocketAddr),
        rate: BitRate,
        rounds: usize,
    ) -> Self {
        let parcels = parcels.into_iter().map(|(name, geometry)| Parcel { name, geometry, next: 0 });
        Self {
            parcels: parcels.collect(),
            routes: Routes { source, announcements: group, content: group, answers: source },
            rate,
            rounds,
            plan: Vec::new(),
            sent: Vec::new(),
            next_at: Time::ZERO,
            phase: Phase::Idle,
            events: VecDeque::new(),
        }
    }

    /// Plans a round: labels, then segments of all parcels mixed.
    fn round(&mut self) {
        self.sent.push(0);
        for (number, parcel) in (0..).zip(&mut self.parcels) {
            parcel.next = 0;
            let (segment, size) = (parcel.geometry.segment_size(), parcel.geometry.size());
            self.plan.push(Message::Label { number, segment, size, name: parcel.name.clone() });
        }
        let mut any = true;
        while std::mem::take(&mut any) {
            for (number, parcel) in (0..).zip(&mut self.parcels) {
                let count = TURN.min(parcel.geometry.segments() - parcel.next);
                let Some(run) = Run::new(parcel.next, count) else { continue };
                parcel.next = run.end();
                any = true;
                let (len, last) = (parcel.geometry.segment_size(), parcel.geometry.payload_len(run.last()));
                self.plan.push(Message::Data { number, run, len, last });
            }
        }
        self.plan.reverse();
    }

    fn end(&mut self) {
        self.phase = Phase::Ended;
        self.events.push_back(Told::Over);
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = Told;

    fn handle(&mut self, _now: Time, _from: &Arrival, _message: &Message) -> Result<(), Reject> {
        Err(Reject::Unexpected)
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time, _until: Time) -> Option<Transmit<Message>> {
        if self.phase != Phase::Sending || now < self.next_at {
            return None;
        }
        if self.plan.is_empty() {
            if self.sent.len() == self.rounds {
                self.end();
                return None;
            }
            self.round();
        }
        let message = self.plan.pop()?;
        let count = message.segments().get();
        *self.sent.last_mut()? += u64::from(count);
        self.next_at += self.rate.time_of_bytes(message.wire_len(0) as u64) * u64::from(count);
        Some(Transmit { router_alert: true, ttl: Some(1), ..Transmit::new(message, self.routes.content) })
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
        self.routes.source = source;
    }

    fn routes(&self) -> Routes {
        self.routes
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        self.parcels.get(object.get() as usize).map(|parcel| &parcel.geometry)
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn progress(&self) -> RoundProgress {
        RoundProgress { round: self.sent.len() as u32, ..RoundProgress::default() }
    }

    fn milestone(event: &Told) -> Option<Milestone> {
        Some(match event {
            Told::Begun => Milestone::Began { receivers: 0 },
            Told::Over => Milestone::Ended { alone: false },
        })
    }
}
