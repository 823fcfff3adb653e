//! The sender: an object at a steady rate, repaired as receivers ask (RFC 5740 §5.1, §5.4, §5.5).

mod asked;
mod congestion;
mod grtt;
mod schedule;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::{Run, Span, Time, Timers, timers};
use farcast_delivery::{Geometry, NakFate, Pacer, Phase, RatePace, RoundProgress};

use crate::config::SenderConfig;
use crate::error::ConfigError;
use crate::event::{SenderEvent, SenderOutcome};
use crate::message::{
    Answer, Body, Data, Fec, Flags, FromReceiver, FromSender, Fti, Info, Message, NodeId, Point, Request,
    Stamp, Symbol, Terms,
};
use crate::quantise::Rtt;

use asked::Asked;
use congestion::Control;
use grtt::Grtt;
use schedule::Schedule;

timers! {
    /// The sender's timers.
    enum Timer {
        /// The next probe of round trips.
        Probe = "probe",
        /// What receivers ask for has been gathered.
        Aggregate = "aggregate",
        /// What receivers ask for may be about what has not reached them yet.
        Holdoff = "hold-off",
        /// The next flush, or the end.
        Flush = "flush",
    }
}

/// How many rounds are counted one by one; what is sent in later ones counts to the last of these.
const ROUNDS: usize = 4096;

/// Sends one object.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    geometry: Geometry,
    phase: Phase,
    timers: Timers<Timer>,
    control: Control,
    pacer: Pacer,
    schedule: Schedule,
    asked: Asked,
    grtt: Grtt,
    sequence: u16,
    probes: u16,
    /// The block that was sent last, and what came after it is on its way.
    position: u32,
    /// Flushes said since anything was sent.
    flushes: u32,
    /// Who has not acknowledged.
    waiting: Vec<NodeId>,
    /// What leaves before anything else.
    outbox: VecDeque<FromSender>,
    /// How it ends as soon as that has left.
    ending: Option<SenderOutcome>,
    /// Segments and symbols sent in each round.
    rounds: Vec<u64>,
    progress: RoundProgress,
    last_asked: Option<farcast_delivery::Asked>,
    rejects: RejectCounts,
    events: VecDeque<SenderEvent>,
}

impl Sender {
    /// A sender of what `config` says.
    ///
    /// # Errors
    /// What of it cannot be.
    pub fn new(config: SenderConfig) -> Result<Self, ConfigError> {
        let geometry = config.check()?;
        let control = Control::new(&config);
        Ok(Self {
            geometry,
            phase: Phase::Idle,
            timers: Timers::default(),
            pacer: Pacer::new(Some(RatePace { rate: control.rate(), ..config.pace })),
            control,
            schedule: Schedule::new(geometry, config.parity, config.auto_parity),
            asked: Asked::new(geometry, config.parity, config.object, config.fec),
            grtt: Grtt::new(config.grtt, config.grtt_most),
            sequence: 0,
            probes: 0,
            position: 0,
            flushes: 0,
            waiting: config.ackers.clone(),
            outbox: VecDeque::new(),
            ending: None,
            rounds: Vec::new(),
            progress: RoundProgress::default(),
            last_asked: None,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
            config,
        })
    }

    /// Its settings.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// How the object is cut.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How far the round at hand has come.
    pub fn progress(&self) -> RoundProgress {
        self.progress
    }

    /// Segments and symbols sent in each round.
    pub fn sent_per_round(&self) -> &[u64] {
        &self.rounds
    }

    /// What the message handled last asked for, if it asked for repair.
    pub fn asked(&self) -> Option<farcast_delivery::Asked> {
        self.last_asked
    }

    /// Messages turned down, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    /// The group's greatest round trip, as far as it knows.
    pub fn grtt(&self) -> Span {
        self.grtt.estimate()
    }

    /// Begins at `now`.
    pub fn open(&mut self, now: Time) {
        if self.phase != Phase::Idle {
            return;
        }
        self.phase = Phase::Sending;
        self.pacer.begin(now);
        self.events.push_back(SenderEvent::Started { ackers: self.waiting.len() as u32 });
        self.begin_round();
        self.probe(now);
        if !self.config.info.is_empty() {
            self.outbox.push_back(self.info(Flags::default()));
        }
    }

    /// Gives up.
    pub fn abort(&mut self) {
        if self.ending.is_none() && self.phase != Phase::Ended {
            self.end(SenderOutcome::Aborted);
        }
    }

    /// Sends from `source` from now on.
    pub fn moved(&mut self, source: SocketAddr) {
        self.config.source = source;
    }

    fn begin_round(&mut self) {
        if self.rounds.len() < ROUNDS {
            self.rounds.push(0);
        }
        let (round, segments) = (self.progress.round.saturating_add(1), self.schedule.len());
        self.progress = RoundProgress { round, sent: 0, segments };
        self.events.push_back(SenderEvent::Round { round, segments });
    }

    fn end(&mut self, outcome: SenderOutcome) {
        self.phase = if outcome == SenderOutcome::Aborted { Phase::Aborting } else { Phase::Completing };
        self.timers = Timers::default();
        self.outbox.clear();
        self.outbox.push_back(FromSender::Eot);
        self.ending = Some(outcome);
    }

    /// The round trip that receivers count with: what is on the wire, and no less than a segment takes.
    fn advertised(&self) -> Rtt {
        let segment = self.pacer.span(usize::from(self.config.segment_size));
        Rtt::of(self.grtt.estimate().max(segment.min(self.config.grtt_most)))
    }

    fn terms(&self) -> Terms {
        let SenderConfig { instance, backoff, receivers, .. } = self.config;
        Terms { instance, grtt: self.advertised(), backoff, group: receivers }
    }

    /// A message of `count` datagrams.
    fn message(&mut self, said: FromSender, count: u32) -> Message {
        let body = Body::Sender(self.terms(), said);
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(count as u16);
        Message { source: self.config.node, sequence, body }
    }

    /// What every message about the object says of it.
    fn flags(&self) -> Flags {
        let info = if self.config.info.is_empty() { Flags::default() } else { Flags::INFO };
        Flags::FILE.with(info)
    }

    fn info(&self, more: Flags) -> FromSender {
        let SenderConfig { fec, object, .. } = self.config;
        let (flags, fti) = (self.flags().with(more), Some(self.config.transmission()));
        FromSender::Info(Info { flags, fec, object, fti, content: self.config.info.clone() })
    }

    /// Symbol `symbol` of `block`, as payload ids say it.
    fn symbol(&self, block: u32, symbol: u32) -> Symbol {
        let small = self.config.fec == Fec::SmallBlock;
        let block_len = small.then(|| self.geometry.block_len(block) as u16);
        Symbol { block, block_len, symbol: symbol as u16 }
    }

    /// The object's last segment.
    fn last(&self) -> Point {
        let block = self.geometry.blocks() - 1;
        let symbol = self.symbol(block, self.geometry.block_len(block) - 1);
        Point { fec: self.config.fec, object: self.config.object, symbol }
    }
}

/// What is heard.
impl Sender {
    fn hear(&mut self, now: Time, message: &Message) -> Result<(), Reject> {
        let Body::Receiver(said) = &message.body else { return Err(Reject::Unexpected) };
        if said.sender != self.config.node || said.instance != self.config.instance {
            return Err(Reject::OtherSession);
        }
        if !message.source.is_somebody() || message.source == self.config.node {
            return Err(Reject::Collision);
        }
        if !matches!(self.phase, Phase::Sending | Phase::Waiting) {
            return Err(Reject::Unexpected);
        }
        match &said.answer {
            Answer::Nack(requests) => self.nack(now, requests)?,
            Answer::Flushed { point, .. } => self.flushed(message.source, point)?,
            Answer::Ack { .. } => {}
        }
        self.heed(now, message.source, said)?;
        self.measure(now, said);
        Ok(())
    }

    /// What an answer says of the round trip, where it answers one of our probes.
    fn measure(&mut self, now: Time, said: &FromReceiver) {
        if let Some(trip) = said.response.and_then(|response| Stamp::of(now).since(response)) {
            self.grtt.sample(trip);
        }
    }

    fn nack(&mut self, now: Time, requests: &[Request]) -> Result<(), Reject> {
        // Until what was asked for last has had time to arrive, only what comes behind it is news (RFC 5740 §5.4.1).
        let held = self.timers.is_set(Timer::Holdoff);
        let count = self.asked.note(requests, if held { self.position + 1 } else { 0 })?;
        let fate = if count > 0 { NakFate::Used } else { NakFate::Known };
        self.last_asked = Some(farcast_delivery::Asked { round: self.progress.round, count: 1, fate });
        if count == 0 {
            return Ok(());
        }
        if held {
            if self.asked.commit(&mut self.schedule) {
                self.resume(now);
            }
        } else if !self.timers.is_set(Timer::Aggregate) {
            let grtt = self.advertised().span();
            let backoff = u64::from(self.config.backoff);
            // Receivers that do not wait have said it all.
            let wait = if backoff == 0 { Span::ZERO } else { grtt * (backoff + 1) };
            self.timers.set(Timer::Aggregate, now + wait);
        }
        Ok(())
    }

    fn flushed(&mut self, node: NodeId, point: &Point) -> Result<(), Reject> {
        if *point != self.last() {
            return Err(Reject::OutOfRange);
        }
        if !self.config.ackers.contains(&node) {
            return Err(Reject::Stranger);
        }
        let before = self.waiting.len();
        self.waiting.retain(|&waiting| waiting != node);
        if self.waiting.len() == before {
            return Err(Reject::Duplicate);
        }
        self.events.push_back(SenderEvent::Acknowledged(node));
        if self.waiting.is_empty() {
            self.events.push_back(SenderEvent::Delivered);
            if self.phase == Phase::Waiting && self.asked.is_empty() {
                self.end(SenderOutcome::Acknowledged);
            }
        }
        Ok(())
    }

    /// What was asked for is sent.
    fn repair(&mut self, now: Time) {
        let info = self.asked.take_info() && !self.config.info.is_empty();
        if info {
            self.outbox.push_back(self.info(Flags::REPAIR));
            self.flushes = 0;
        }
        self.timers.set(Timer::Holdoff, now + self.advertised().span());
        if self.asked.commit(&mut self.schedule) {
            self.resume(now);
        } else if self.phase == Phase::Waiting && !self.timers.is_set(Timer::Flush) {
            // The end was put off while this was gathered.
            self.flush(now);
        }
    }

    /// Goes back to what is to be sent again.
    fn resume(&mut self, now: Time) {
        if self.phase == Phase::Waiting {
            // Time in which there was nothing to send is not made up for.
            self.pacer.begin(now);
            self.take_up(now);
        }
        self.phase = Phase::Sending;
        self.timers.stop(Timer::Flush);
        self.begin_round();
    }
}

/// What is said.
impl Sender {
    /// Everything has been sent: receivers are to say what they miss, and those who are named that they have it.
    fn flush(&mut self, now: Time) {
        self.phase = Phase::Waiting;
        self.control.rest(now);
        let delivered = !self.config.ackers.is_empty() && self.waiting.is_empty();
        if self.flushes >= self.config.robust || delivered {
            // What is being gathered is still sent.
            if self.asked.is_empty() {
                self.conclude();
            }
            return;
        }
        self.flushes += 1;
        let (point, ackers) = (self.last(), self.waiting.clone());
        self.outbox.push_back(FromSender::Flush { point, ackers });
        self.timers.set(Timer::Flush, now + self.advertised().span() * 2);
    }

    fn conclude(&mut self) {
        let lacking = self.waiting.len() as u32;
        let outcome = match (self.config.ackers.is_empty(), lacking) {
            (true, _) => SenderOutcome::Unknown,
            (false, 0) => SenderOutcome::Acknowledged,
            (false, lacking) => SenderOutcome::Incomplete { lacking },
        };
        for &node in &self.waiting {
            self.events.push_back(SenderEvent::Lost(node));
        }
        self.end(outcome);
    }

    fn say(&mut self, now: Time, said: FromSender) -> Transmit<Message> {
        let message = self.message(said, 1);
        self.pacer.settle(now);
        self.pacer.charge(self.pacer.span(message.wire_len(0)));
        if self.outbox.is_empty()
            && let Some(outcome) = self.ending.take()
        {
            self.phase = Phase::Ended;
            self.events.push_back(SenderEvent::Ended(outcome));
        }
        Transmit::new(message, self.config.group)
    }

    /// The next run of symbols, as much of it as leaves before `until`.
    fn data(&mut self, until: Time) -> Option<Transmit<Message>> {
        let next = self.schedule.next()?;
        let len = self.geometry.segment_size();
        let SenderConfig { fec, object, .. } = self.config;
        let fti: Option<Fti> = Some(self.config.transmission());
        let block_len = self.symbol(next.block, 0).block_len;
        let mut flags = self.flags();
        for (is, flag) in [(next.repair, Flags::REPAIR), (next.explicit, Flags::EXPLICIT)] {
            flags = if is { flags.with(flag) } else { flags };
        }
        let block = next.block;
        let data = |symbols, len, last_len| {
            FromSender::Data(Data { flags, fec, object, block, block_len, symbols, fti, len, last_len })
        };
        let source = next.symbols.first() < self.geometry.block_len(block);
        let message = self.message(data(next.symbols, len, len), 0);
        let header = message.wire_len(0) - usize::from(len);
        let spacing = self.pacer.span(header + usize::from(len));
        let count = self.pacer.departures_before(until, spacing).min(next.symbols.count());
        let symbols = Run::new(next.symbols.first(), count)?;
        let last_len = match self.geometry.segments_of(block, symbols) {
            Some(segments) if source => self.geometry.payload_len(segments.last()),
            _ => len,
        };
        self.schedule.sent(&next, count);
        self.pacer.charge(spacing * u64::from(count - 1));
        self.pacer.charge(self.pacer.span(header + usize::from(last_len)));
        (self.position, self.flushes) = (block, 0);
        self.progress.sent += count;
        if let Some(round) = self.rounds.last_mut() {
            *round += u64::from(count);
        }
        let message = self.message(data(symbols, if count == 1 { last_len } else { len }, last_len), count);
        Some(Transmit::new(message, self.config.group).spaced(spacing))
    }

    fn on(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Probe => self.probe(now),
            Timer::Aggregate => self.repair(now),
            Timer::Holdoff => {}
            Timer::Flush => self.flush(now),
        }
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = SenderEvent;

    fn handle(&mut self, now: Time, _from: &Arrival, message: &Message) -> Result<(), Reject> {
        self.last_asked = None;
        let result = self.hear(now, message);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            self.on(now, timer);
        }
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        if let Some(said) = self.outbox.pop_front() {
            return Some(self.say(now, said));
        }
        if self.phase != Phase::Sending || now < self.pacer.next() {
            return None;
        }
        if self.schedule.is_empty() {
            self.flushes = 0;
            self.flush(now);
            let said = self.outbox.pop_front()?;
            return Some(self.say(now, said));
        }
        self.pacer.settle(now);
        // What a timer makes of it comes between.
        let own = self.timers.next().map_or(Time::NEVER, |deadline| deadline.at);
        self.data(until.min(own))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let timer = self.timers.next();
        let pace = Deadline { at: self.pacer.next(), timer: "pace" };
        match timer {
            _ if self.phase != Phase::Sending => timer,
            Some(timer) if timer.at <= pace.at => Some(timer),
            _ => Some(pace),
        }
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        // A request may make it go back at any time.
        Time::ZERO
    }
}
