//! The receiver: one object after the other, and what it lacks asked for (RFC 5740 §5.2, §5.3).

mod content;
mod hearing;
mod nack;
pub(crate) mod needs;
mod session;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::{Bitmap, Run, Time, Timers, timers};
use farcast_delivery::Received;

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::message::{Answer, Body, FromReceiver, Message, NodeId, Point, Stamp};
use crate::timing::{Waits, holdoff, silence};

use nack::Heard;
use session::{Key, Session, State};

timers! {
    /// The receiver's timers.
    enum Timer {
        /// What it asks for may be said.
        Backoff = "back-off",
        /// What it asked for has had time to come.
        Holdoff = "hold-off",
        /// An acknowledgement.
        Ack = "acknowledge",
        /// Nothing was heard of the sender for long.
        Inactivity = "inactivity",
    }
}

/// How many objects that are through are remembered: a sender that still sends one is not to begin it anew.
const REMEMBERED: usize = 64;

/// An acknowledgement that is due.
#[derive(Clone, Debug)]
struct Due {
    to: SocketAddr,
    sender: NodeId,
    instance: u16,
    point: Point,
}

/// The last probe: whose, its time, and when it came.
#[derive(Clone, Copy, Debug)]
struct Probed {
    sender: NodeId,
    instance: u16,
    sent: Stamp,
    at: Time,
}

/// Receives objects, one at a time.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    session: Option<Session>,
    /// Objects that are through, and whether they are there.
    through: VecDeque<(Key, bool)>,
    heard: Heard,
    probed: Option<Probed>,
    due: Option<Due>,
    timers: Timers<Timer>,
    waits: Waits,
    sequence: u16,
    outbox: VecDeque<Transmit<Message>>,
    received: Received,
    rejects: RejectCounts,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// A receiver with these settings.
    ///
    /// # Errors
    /// What of them cannot be.
    pub fn new(config: ReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            waits: Waits { seed: config.seed },
            config,
            session: None,
            through: VecDeque::new(),
            heard: Heard::default(),
            probed: None,
            due: None,
            timers: Timers::default(),
            sequence: 0,
            outbox: VecDeque::new(),
            received: Received::default(),
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
        })
    }

    /// Whether an object is at hand.
    pub fn is_busy(&self) -> bool {
        self.session.is_some()
    }

    /// The segments that are there of the object at hand.
    pub fn have(&self) -> Option<&Bitmap> {
        let session = self.session.as_ref()?;
        (!matches!(session.state, State::Unnamed | State::Opening)).then_some(&session.have)
    }

    /// What has come.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Messages turned down, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}

/// What the owner answers.
impl Receiver {
    /// It takes the object, and has these segments; a bitmap of another length counts as empty.
    pub fn accept(&mut self, held: Bitmap) {
        if let Some(session) = self.session.as_mut().filter(|session| session.state == State::Opening) {
            let segments = session.geometry.segments();
            session.have = if held.len() == segments { held } else { Bitmap::new(segments) };
            session.state = State::Receiving;
            self.check_complete();
        }
    }

    /// It has these segments besides.
    pub fn held(&mut self, held: &Bitmap) {
        if let Some(session) = self.session.as_mut().filter(|session| session.is_receiving()) {
            session.have.union(held);
            let begun: Vec<u32> = session.held.keys().copied().collect();
            for block in begun {
                self.check_decodable(block);
            }
            self.check_complete();
        }
    }

    /// These segments have to come again.
    pub fn lost(&mut self, segments: Run) {
        if let Some(session) = &mut self.session
            && matches!(session.state, State::Receiving | State::Verifying)
        {
            session.have.remove_run(segments);
            session.low = session.low.min(segments.first());
            if !session.have.is_full() {
                session.state = State::Receiving;
            }
        }
    }

    /// A block was rebuilt, or could not be. Either way its parity is used up.
    pub fn decoded(&mut self, block: u32, rebuilt: bool) {
        let Some(session) = &mut self.session else { return };
        if !session.decoding.remove(&block) {
            return;
        }
        session.forget_parity(block);
        if let (true, Some(run)) = (rebuilt, session.geometry.block_run(block)) {
            session.have.insert_run(run);
            self.check_complete();
        }
    }

    /// Everything is verified and has its final name. The sender may still ask.
    pub fn verified(&mut self, now: Time) {
        if let Some(session) = self.session.as_mut().filter(|session| session.state == State::Verifying) {
            session.state = State::Complete(now);
            self.timers.stop(Timer::Backoff);
        }
    }

    /// It does not want the object, or cannot keep it.
    pub fn stop(&mut self) {
        match self.session.as_ref().map(|session| session.state) {
            Some(State::Complete(at)) => self.end(ReceiverOutcome::Complete(at)),
            Some(_) => self.end(ReceiverOutcome::Stopped),
            None => {}
        }
    }

    /// The sender has gone.
    fn gone(&mut self) {
        match self.session.as_ref().map(|session| session.state) {
            Some(State::Complete(at)) => self.end(ReceiverOutcome::Complete(at)),
            // What the owner says of it still counts.
            Some(State::Verifying) | None => {}
            Some(_) => self.end(ReceiverOutcome::Lost),
        }
    }

    fn end(&mut self, outcome: ReceiverOutcome) {
        let Some(session) = self.session.take() else { return };
        if self.through.len() == REMEMBERED {
            self.through.pop_front();
        }
        self.through.push_back((session.key, matches!(outcome, ReceiverOutcome::Complete(_))));
        for timer in [Timer::Backoff, Timer::Holdoff, Timer::Inactivity] {
            self.timers.stop(timer);
        }
        self.events.push_back(ReceiverEvent::Ended(outcome));
    }
}

/// What it says.
impl Receiver {
    /// Begins to wait to ask for what lacks, unless it waits already or has just asked.
    fn consider(&mut self, now: Time) {
        let Some(session) = &self.session else { return };
        let waits = self.timers.is_set(Timer::Backoff) || self.timers.is_set(Timer::Holdoff);
        if self.config.silent || waits || !session.has_needs() {
            return;
        }
        self.heard = Heard::default();
        let wait = self.waits.backoff(self.config.node, now, session.terms);
        self.timers.set(Timer::Backoff, now + wait);
    }

    /// Asks for what lacks, unless the sender has gone back to it or others have asked.
    fn ask(&mut self, now: Time) {
        let Some(session) = &self.session else { return };
        if !session.has_needs() {
            return;
        }
        self.timers.set(Timer::Holdoff, now + holdoff(session.terms));
        if session.is_covered(&self.heard) {
            return;
        }
        let (requests, asked) = session.requests();
        let Key { source, sender, instance, .. } = session.key;
        self.received.naks += 1;
        self.received.asked += asked;
        self.say(now, source, (sender, instance), Answer::Nack(requests));
    }

    fn say(&mut self, now: Time, source: SocketAddr, (sender, instance): (NodeId, u16), answer: Answer) {
        let probed = self.probed.filter(|probed| (probed.sender, probed.instance) == (sender, instance));
        let response = probed.map(|probed| probed.sent.later(now.since(probed.at)));
        let said = FromReceiver { sender, instance, response, feedback: None, answer };
        let message =
            Message { source: self.config.node, sequence: self.sequence, body: Body::Receiver(said) };
        self.sequence = self.sequence.wrapping_add(1);
        let to = if self.config.unicast { source } else { self.config.group };
        self.outbox.push_back(Transmit::new(message, to));
    }

    fn silent(&mut self, now: Time) {
        let Some(session) = &mut self.session else { return };
        session.silences += 1;
        if session.silences > self.config.robust || matches!(session.state, State::Complete(_)) {
            self.gone();
        }
        let Some(session) = &self.session else { return };
        self.timers.set(Timer::Inactivity, now + silence(session.terms, self.config.robust));
        self.consider(now);
    }

    fn on(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Backoff => self.ask(now),
            Timer::Holdoff => {}
            Timer::Ack => {
                if let Some(Due { to, sender, instance, point }) = self.due.take() {
                    self.say(now, to, (sender, instance), Answer::Flushed { id: 0, point });
                }
            }
            Timer::Inactivity => self.silent(now),
        }
    }
}

impl Engine for Receiver {
    type Message = Message;
    type Event = ReceiverEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let result = self.hear(now, from, message);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            self.on(now, timer);
        }
    }

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Message>> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }

    fn prefix(&self, message: &Message) -> NonZeroU32 {
        match (message.data(), &self.session) {
            (Some(data), Some(session)) => session.prefix(data),
            (Some(_), None) => NonZeroU32::MIN,
            (None, _) => message.segments(),
        }
    }
}
