//! The receiver: one object after the other, and what it lacks asked for (RFC 5740 §5.2, §5.3).

mod nack;
mod session;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Run, Span, Time, Timers, timers};
use farcast_delivery::Received;

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::message::{
    Answer, Body, Data, Fec, Flags, FromReceiver, FromSender, Fti, Info, Message, NodeId, Point, Probe,
    Request, Stamp, Terms,
};
use crate::timing::random_backoff;

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
    random: RandomStream,
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
            random: RandomStream::derive(config.seed, &[u64::from(config.node.0)]),
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

/// What a sender says.
impl Receiver {
    fn hear(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match &message.body {
            Body::Sender(terms, said) if message.source.is_somebody() => {
                let key =
                    Key { source: from.source, sender: message.source, instance: terms.instance, object: 0 };
                self.hear_sender(now, from, (key, *terms), said)
            }
            Body::Receiver(said) if message.source != self.config.node => self.hear_other(said),
            _ => Err(Reject::Collision),
        }
    }

    fn hear_sender(
        &mut self,
        now: Time,
        from: &Arrival,
        (key, terms): (Key, Terms),
        said: &FromSender,
    ) -> Result<(), Reject> {
        match said {
            FromSender::Data(data) => {
                let key = Key { object: data.object, ..key };
                let open = (data.flags, data.fec, data.fti);
                self.begin_if_new(from, (key, terms), open)?;
                self.note_sender(now, terms);
                self.data(now, data)
            }
            FromSender::Info(info) => {
                let key = Key { object: info.object, ..key };
                let open = (info.flags, info.fec, info.fti);
                self.begin_if_new(from, (key, terms), open)?;
                self.note_sender(now, terms);
                self.info(info)
            }
            FromSender::Flush { point, ackers } => {
                let key = Key { object: point.object, ..key };
                self.flush(now, (key, terms), point, ackers.contains(&self.config.node))
            }
            FromSender::Probe(probe) => self.probe(now, (key, terms), probe),
            FromSender::Eot => {
                self.of_session(&key)?;
                self.gone();
                Ok(())
            }
            FromSender::Squelch { point, invalid } => {
                let session = self.of_session(&key)?;
                // Object numbers go round.
                let passed = session.key.object.wrapping_sub(point.object).cast_signed() < 0;
                if passed || invalid.contains(&session.key.object) {
                    self.gone();
                    return Ok(());
                }
                Err(Reject::Unexpected)
            }
            FromSender::RepairAdv { requests, .. } => {
                self.of_session(&key)?;
                self.overhear(requests);
                Ok(())
            }
            FromSender::AckReq { .. } | FromSender::Application(_) => Err(Reject::Unexpected),
        }
    }

    /// The session, if it is with the sender of `key`, whichever object that names.
    fn of_session(&mut self, key: &Key) -> Result<&mut Session, Reject> {
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        if (Key { object: session.key.object, ..*key }) == session.key {
            Ok(session)
        } else {
            Err(Reject::OtherSession)
        }
    }

    /// Makes sure that the object of `key` is the one at hand.
    fn begin_if_new(
        &mut self,
        from: &Arrival,
        (key, terms): (Key, Terms),
        (flags, fec, fti): (Flags, Fec, Option<Fti>),
    ) -> Result<(), Reject> {
        if self.through.iter().any(|(through, _)| *through == key) {
            return Err(Reject::Duplicate);
        }
        if let Some(session) = &self.session {
            if session.key == key {
                return Ok(());
            }
            let restarted = (session.key.source, session.key.sender) == (key.source, key.sender)
                && session.key.instance != key.instance;
            if !restarted {
                return Err(Reject::OtherSession);
            }
        }
        let session = self.begin(from, (key, terms), (flags, fec, fti))?;
        if self.session.is_some() {
            self.gone();
        }
        let named = !flags.has(Flags::INFO);
        self.session = Some(session);
        self.received = Received::default();
        if named {
            self.offer(None);
        }
        Ok(())
    }

    fn begin(
        &self,
        from: &Arrival,
        (key, terms): (Key, Terms),
        (flags, fec, fti): (Flags, Fec, Option<Fti>),
    ) -> Result<Session, Reject> {
        if flags.has(Flags::STREAM) {
            return Err(Reject::Unexpected);
        }
        let fti = fti.ok_or(Reject::Unexpected)?;
        let geometry = fti.geometry().ok_or(Reject::OutOfRange)?;
        let parity = fti.parity_symbols(fec, self.config.fti);
        let symbols = u32::from(fti.max_block_len) + u32::from(parity);
        // One symbol in a datagram is all that is spoken.
        if symbols > 1 << fec.symbol_bits() || fti.group > 1 {
            return Err(Reject::OutOfRange);
        }
        if fti.size > self.config.largest {
            return Err(Reject::Limit);
        }
        Ok(Session {
            key,
            group: from.destination,
            terms,
            state: State::Unnamed,
            fec,
            fti,
            geometry,
            parity: parity.into(),
            have: Bitmap::default(),
            held: BTreeMap::new(),
            memory: 0,
            decoding: BTreeSet::new(),
            position: (0, 0),
            reached: 0,
            silences: 0,
            low: 0,
        })
    }

    fn offer(&mut self, info: Option<&[u8]>) {
        if let Some(session) = &mut self.session {
            session.state = State::Opening;
            self.events.push_back(ReceiverEvent::Offered(session.offer(info)));
        }
    }

    /// The sender of the object at hand has said something, under these terms.
    fn note_sender(&mut self, now: Time, terms: Terms) {
        if let Some(session) = &mut self.session {
            session.terms = terms;
            session.silences = 0;
            let silence = silence(terms, self.config.robust);
            self.timers.set(Timer::Inactivity, now + silence);
        }
    }

    fn info(&mut self, info: &Info) -> Result<(), Reject> {
        match &self.session {
            Some(session) if session.state == State::Unnamed => {
                self.offer(Some(&info.content));
                Ok(())
            }
            _ => Err(Reject::Duplicate),
        }
    }

    fn flush(
        &mut self,
        now: Time,
        (key, terms): (Key, Terms),
        point: &Point,
        named: bool,
    ) -> Result<(), Reject> {
        let done = self.through.iter().any(|&(through, there)| through == key && there);
        let complete = match &self.session {
            Some(session) if session.key == key => matches!(session.state, State::Complete(_)),
            _ if done => true,
            Some(_) => return Err(Reject::OtherSession),
            None => return Err(Reject::Unexpected),
        };
        if let Some(session) = self.session.as_mut().filter(|session| session.key == key) {
            let block = point.symbol.block;
            if block >= session.geometry.blocks() {
                return Err(Reject::OutOfRange);
            }
            session.position = (block + 1, 0);
            session.reached = session.reached.max(block + 1);
            self.note_sender(now, terms);
            self.consider(now);
        }
        if complete && named && !self.config.silent && !self.timers.is_set(Timer::Ack) {
            self.due =
                Some(Due { to: key.source, sender: key.sender, instance: key.instance, point: *point });
            // RFC 5740 §5.5.3: over one round trip.
            let spread = Span::from_secs_f64(terms.grtt.span().as_secs_f64() * self.random.unit());
            self.timers.set(Timer::Ack, now + spread);
        }
        Ok(())
    }

    fn probe(&mut self, now: Time, (key, terms): (Key, Terms), probe: &Probe) -> Result<(), Reject> {
        if self.session.is_some() {
            self.of_session(&key)?;
            self.note_sender(now, terms);
        }
        let Key { sender, instance, .. } = key;
        self.probed = Some(Probed { sender, instance, sent: probe.sent, at: now });
        Ok(())
    }

    fn hear_other(&mut self, said: &FromReceiver) -> Result<(), Reject> {
        let session = self.session.as_ref().ok_or(Reject::Unexpected)?;
        if (said.sender, said.instance) != (session.key.sender, session.key.instance) {
            return Err(Reject::OtherSession);
        }
        if let Answer::Nack(requests) = &said.answer {
            self.overhear(requests);
        }
        Ok(())
    }

    /// What others have asked for need not be asked for again.
    fn overhear(&mut self, requests: &[Request]) {
        if let (Some(session), true) = (&self.session, self.timers.is_set(Timer::Backoff)) {
            session.overhear(&mut self.heard, requests);
        }
    }
}

/// What comes of the object.
impl Receiver {
    fn data(&mut self, now: Time, data: &Data) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        session.check(data)?;
        let before = session.position.0;
        session.position = (data.block, data.symbols.last());
        session.reached = session.reached.max(data.block);
        let result = match session.state {
            State::Unnamed | State::Opening => Err(Reject::Unexpected),
            State::Complete(_) | State::Verifying => Err(Reject::Duplicate),
            State::Receiving => self.store(data),
        };
        if data.block > before {
            if let Some(session) = &mut self.session {
                session.advance();
            }
            self.consider(now);
        }
        result
    }

    fn store(&mut self, data: &Data) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        let parity = session.parity_of(data);
        let new = match parity {
            Some(symbols) => self.store_parity(data.block, symbols)?,
            None => self.store_source(data),
        };
        self.received.duplicates += u64::from(data.symbols.count() - new);
        if new == 0 {
            return Err(Reject::Duplicate);
        }
        self.check_decodable(data.block);
        self.check_complete();
        Ok(())
    }

    fn store_source(&mut self, data: &Data) -> u32 {
        let Some(session) = &mut self.session else { return 0 };
        let Some(run) = session.geometry.segments_of(data.block, data.symbols) else { return 0 };
        let mut new = 0;
        while let Some(segments) = session.have.next_gap_in(run) {
            session.have.insert_run(segments);
            new += segments.count();
            let offset = segments.first() - run.first();
            self.events.push_back(ReceiverEvent::Store { segments, offset });
        }
        self.received.segments += u64::from(new);
        new
    }

    fn store_parity(&mut self, block: u32, symbols: Run) -> Result<u32, Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        if session.lacks(block) == 0 {
            return Ok(0);
        }
        let count = session.held.get(&block).map(Bitmap::count);
        let before = count.map_or(0, |count| session.memory_of(block, count));
        // As much as the run may bring.
        let most = session.memory_of(block, count.unwrap_or(0) + symbols.count()) - before;
        if session.memory + most > self.config.parity_memory {
            return Err(Reject::Limit);
        }
        let held = session.held.entry(block).or_insert_with(|| Bitmap::new(session.parity));
        let mut new = 0;
        for symbol in symbols.segments().filter(|&symbol| held.insert(symbol)) {
            new += 1;
            let (symbols, offset) = (Run::one(symbol), symbol - symbols.first());
            self.events.push_back(ReceiverEvent::StoreParity { block, symbols, offset });
        }
        let after = held.count();
        session.memory += session.memory_of(block, after) - before;
        self.received.parity += u64::from(new);
        Ok(new)
    }

    /// Has the owner rebuild `block` once there is enough of it.
    fn check_decodable(&mut self, block: u32) {
        let Some(session) = &mut self.session else { return };
        if session.missing_in(block) == 0 {
            session.forget_parity(block);
        } else if session.lacks(block) == 0 && session.decoding.insert(block) {
            self.events.push_back(ReceiverEvent::Decode { block });
        }
    }

    fn check_complete(&mut self) {
        if let Some(session) = self.session.as_mut().filter(|session| session.is_receiving())
            && session.have.is_full()
        {
            session.state = State::Verifying;
            self.events.push_back(ReceiverEvent::Complete);
        }
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

/// How long nothing must be heard of a sender until something is wrong (RFC 5740 §5.3).
fn silence(terms: Terms, robust: u32) -> Span {
    (terms.grtt.span() * 2 * u64::from(robust)).max(Span::from_secs(1))
}

/// What it says.
impl Receiver {
    /// Begins to wait to ask for what lacks, unless it waits already or has just asked.
    fn consider(&mut self, now: Time) {
        let Some(session) = &self.session else { return };
        let waits = self.timers.is_set(Timer::Backoff) || self.timers.is_set(Timer::Holdoff);
        if self.config.silent || waits || session.first_need().is_none() {
            return;
        }
        self.heard = Heard::default();
        let Terms { grtt, backoff, group, .. } = session.terms;
        let most = grtt.span() * u64::from(backoff);
        self.timers.set(Timer::Backoff, now + random_backoff(most, group, &mut self.random));
    }

    /// Asks for what lacks, unless the sender has gone back to it or others have asked.
    fn ask(&mut self, now: Time) {
        let Some(session) = &self.session else { return };
        if session.first_need().is_none() {
            return;
        }
        let Terms { grtt, backoff, .. } = session.terms;
        self.timers.set(Timer::Holdoff, now + grtt.span() * (u64::from(backoff) + 2));
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
