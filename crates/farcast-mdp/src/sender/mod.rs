//! The sender: sends objects at a steady rate, and repairs what receivers request (draft §4.1, §4.4, §4.5, §4.7).

mod grtt;
mod hearing;
mod outgoing;
mod recent;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::{Span, Time, Timers, timers};
use farcast_delivery::nack::quantise::Rtt;
use farcast_delivery::nack::{NodeId, SenderCore, SenderOutcome, Stamp};
use farcast_delivery::{
    Cause, Ending, Figure, Geometry, Gone, Milestone, ObjectId, Phase, Proved, RatePace, RequestCounts,
    RoundProgress, Routes, SenderEngine,
};

use crate::config::{Counted, GRTT_RANGE, SenderConfig};
use crate::error::ConfigError;
use crate::event::{ObjectBegun, SenderEvent};
use crate::message::{About, Body, Data, Flags, FromSender, Head, Info, Message, Probe};

use grtt::Grtt;
use outgoing::{Next, Outgoing};

timers! {
    /// The sender's timers.
    enum Timer {
        /// The next probe of round trips.
        Probe = "probe",
        /// The gathering of requests ends.
        Aggregate = "aggregate",
        /// INFO may be sent again.
        Info = "INFO again",
        /// Unavailable objects may be reported again.
        Squelch = "squelch again",
        /// Requests by unicast may be repeated to the group again.
        Advertise = "advertise again",
        /// The next flush, or the end.
        Flush = "flush",
        /// The next object begins.
        Gap = "next object",
    }
}

/// Least and greatest number of objects for which a flush asks for acknowledgements. Receivers remember no more
/// questions.
const ASKED_AT_ONCE: (u64, u64) = (8, 256);
/// Divisor of the rate for questions and their answers, where a flush asks for more than the least.
const SHARE: u64 = 8;
/// Octets of an acknowledgement, and of a question without its list of nodes.
const ANSWER: usize = 32;

/// Flushes that are sent for receivers that lack only withdrawn objects.
const BEREFT_FLUSHES: u32 = 3;

/// Engine of a sender, which sends objects one after the other.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    /// Division of each object into segments.
    geometries: Vec<Geometry>,
    /// Objects that have begun.
    begun: Vec<Outgoing>,
    /// Objects whose content is no longer available.
    withdrawn: BTreeSet<u32>,
    /// A withdrawn object had not been sent completely before.
    is_cut_short: bool,
    core: SenderCore<ObjectBegun>,
    timers: Timers<Timer>,
    grtt: Grtt,
    sequence: u16,
    probes: u8,
    /// Object and block that were sent last.
    position: (u32, u32),
    /// Repairs are being sent: only requests behind `position` are added to them.
    repairing: bool,
    /// Objects before this one have nothing to be sent.
    low: usize,
    /// Flushes since data were last sent.
    flushes: u32,
    /// Objects with requests that are still being gathered.
    asked: BTreeSet<u32>,
    /// Named receivers that have not acknowledged every object, with the number of objects that each lacks.
    lacking: Vec<(NodeId, usize)>,
    /// Messages that leave before any data.
    outbox: VecDeque<FromSender>,
}

impl Sender {
    /// Creates a sender with the settings `config`.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(config: SenderConfig) -> Result<Self, ConfigError> {
        let geometries = config.check()?;
        let overhead = if let Counted::Packet(overhead) = config.counted { overhead } else { 0 };
        let pace = RatePace { rate: config.rate, overhead, credit: config.credit, granule: 1 };
        Ok(Self {
            geometries,
            begun: Vec::new(),
            withdrawn: BTreeSet::new(),
            is_cut_short: false,
            core: SenderCore::new(pace).with_named(&config.ackers),
            timers: Timers::default(),
            grtt: Grtt::new(config.grtt),
            sequence: 0,
            probes: 0,
            position: (0, 0),
            repairing: false,
            low: 0,
            flushes: 0,
            asked: BTreeSet::new(),
            lacking: config.ackers.iter().map(|&node| (node, config.objects.len())).collect(),
            outbox: VecDeque::new(),
            config,
        })
    }

    /// Returns the settings.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Returns the segments and symbols sent in each round.
    pub fn sent_per_round(&self) -> &[u64] {
        self.core.sent_per_round()
    }

    /// Returns the counts of rejected messages, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.core.rejects
    }

    /// Returns the estimate of the group's greatest round trip.
    pub fn grtt(&self) -> Span {
        self.grtt.estimate()
    }

    /// Returns the time at which the named receiver `node` was heard last.
    pub fn heard(&self, node: NodeId) -> Option<Time> {
        self.core.heard(node)
    }

    /// Begins the next object.
    fn begin_object(&mut self) {
        let object = self.begun.len();
        let Some(geometry) = self.geometries.get(object) else { return };
        let SenderConfig { parity, auto_parity, ackers, .. } = &self.config;
        self.begun.push(Outgoing::new(*geometry, *parity, *auto_parity, ackers.clone()));
        self.core.events.push_back(SenderEvent::Own(ObjectBegun(object as u32)));
        if self.config.objects[object].has_info() {
            self.outbox.push_back(self.info(object as u32, Flags::default()));
        }
        if self.withdrawn.contains(&(object as u32)) {
            // INFO still leaves, so that receivers know the name of the object that they will not get.
            self.begun[object].clear();
            return;
        }
        self.core.extend_round(geometry.segments());
    }

    fn begin_round(&mut self) {
        self.core.begin_round(self.begun.iter().map(Outgoing::len).fold(0, u32::saturating_add));
    }

    fn end(&mut self, outcome: SenderOutcome) {
        self.core.end(outcome);
        self.timers = Timers::default();
        self.outbox.clear();
        self.outbox.push_back(FromSender::Flush { eot: true, object: self.last_begun() });
    }

    /// Returns the object that was begun last.
    fn last_begun(&self) -> u32 {
        self.begun.len().saturating_sub(1) as u32
    }

    /// Returns the round trip that receivers use: quantised as on the wire, and no less than the time of a segment.
    fn advertised(&self) -> Rtt {
        let segment = self.core.pacer.span(usize::from(self.config.segment_size));
        Rtt::of(self.grtt.estimate().max(segment).clamp(GRTT_RANGE.0, GRTT_RANGE.1))
    }

    fn probe(&mut self, now: Time) {
        let interval = self.grtt.probed();
        let (sequence, grtt) = (self.probes, self.advertised());
        self.probes = sequence.wrapping_add(1);
        let hold = if self.config.wildcard { grtt.span() } else { Span::ZERO };
        self.outbox.push_back(FromSender::Probe(Probe {
            wildcard: self.config.wildcard,
            sequence,
            sent: Stamp::of(now),
            hold: Stamp::of(Time::ZERO + hold),
            segment_size: self.config.segment_size,
            rate: u32::try_from(self.config.rate.as_bps() / 8).unwrap_or(u32::MAX),
            rtt: grtt,
            loss: 0,
            nodes: Vec::new(),
        }));
        self.timers.set(Timer::Probe, now + interval);
    }

    fn about(&self, object: u32, more: Flags) -> About {
        let SenderConfig { block_len, parity, objects, .. } = &self.config;
        let object_of = &objects[object as usize];
        let info = if object_of.has_info() { Flags::INFO } else { Flags::default() };
        // The settings were checked: the size fits 32 bits.
        let size = object_of.size as u32;
        About { object, size, ndata: *block_len, nparity: *parity, flags: Flags::FILE.with(info).with(more) }
    }

    fn info(&self, object: u32, more: Flags) -> FromSender {
        let (about, said) = (self.about(object, more), &self.config.objects[object as usize]);
        let (content, vouched) = (said.info.clone(), said.vouched);
        FromSender::Info(Info { about, segment_size: self.config.segment_size, content, vouched })
    }
}

/// Messages that leave.
impl Sender {
    /// Sends a flush: everything was sent, so receivers are to request what they miss. Named receivers are asked to
    /// acknowledge.
    fn flush(&mut self, now: Time) {
        self.core.phase = Phase::Waiting;
        let last = self.begun.len() == self.geometries.len();
        let robust = self.config.robust;
        let named = !self.config.ackers.is_empty() || self.core.has_dismissed();
        let asked = |one: &Outgoing| one.waiting.is_empty() || one.asks >= robust;
        let through = if named { self.begun.iter().all(asked) } else { self.flushes >= robust };
        let delivered = named && last && self.lacking.is_empty();
        let is_bereft = named && self.begun.iter().all(|one| one.waiting.is_empty());
        let most = if is_bereft { robust.min(BEREFT_FLUSHES) } else { robust };
        if delivered || (through && self.flushes >= most) {
            // Gathered requests are still served, and the next object begins in its time.
            if last && self.asked.is_empty() {
                self.conclude();
            }
            return;
        }
        let at_once = self.asked_at_once();
        self.flushes = self.flushes.saturating_add(1);
        self.outbox.push_back(FromSender::Flush { eot: false, object: self.last_begun() });
        let waiting = self.begun.iter_mut().enumerate().filter(|(_, one)| !asked(one));
        for (object, one) in waiting.take(at_once) {
            one.asks += 1;
            let nodes = one.waiting.clone();
            self.outbox.push_back(FromSender::AckReq { object: object as u32, nodes });
        }
        self.timers.set(Timer::Flush, now + self.advertised().span() * 2);
    }

    /// Returns the number of objects for which a flush asks. With many small ones, a few for each flush would take longer
    /// than the objects.
    fn asked_at_once(&self) -> usize {
        let nodes = self.config.ackers.len();
        let each = self.core.pacer.span(ANSWER + 4 * nodes) + self.core.pacer.span(ANSWER) * nodes as u64;
        let all = self.advertised().span() * 2 / SHARE;
        let (least, most) = ASKED_AT_ONCE;
        (all.as_nanos() / each.as_nanos().max(1)).clamp(least, most) as usize
    }

    fn conclude(&mut self) {
        let outcome = self.core.outcome(self.config.ackers.len(), self.lacking.len(), self.is_cut_short);
        for &(node, _) in &self.lacking {
            self.core.events.push_back(SenderEvent::Lost(node));
        }
        self.end(outcome);
    }

    /// Returns the time that `message` takes at the rate.
    fn span(&self, message: &Message) -> Span {
        match (self.config.counted, message.data()) {
            (Counted::Payload, None) => Span::ZERO,
            (Counted::Payload, Some(data)) => self.core.pacer.span(data.len.into()),
            (Counted::Message | Counted::Packet(_), _) => self.core.pacer.span(message.wire_len(0)),
        }
    }

    /// Returns a message of `count` datagrams.
    fn message(&mut self, said: FromSender, count: u32) -> Message {
        let head = Head { sequence: self.sequence, grtt: self.advertised() };
        self.sequence = self.sequence.wrapping_add(count as u16);
        Message { source: self.config.node, body: Body::Sender(head, said) }
    }

    fn say(&mut self, now: Time, said: FromSender) -> Transmit<Message> {
        let message = self.message(said, 1);
        self.core.pacer.settle(now);
        self.core.pacer.charge(self.span(&message));
        if self.outbox.is_empty() {
            self.core.finish();
        }
        Transmit::new(message, self.config.group)
    }

    /// Returns the next run to send, of the lowest object that has any.
    fn next(&mut self) -> Option<(usize, Next)> {
        while let Some(one) = self.begun.get_mut(self.low) {
            if let Some(next) = one.next() {
                return Some((self.low, next));
            }
            self.low += 1;
        }
        None
    }

    /// Returns the next run of symbols, at most what leaves before `until`.
    fn data(&mut self, now: Time, until: Time, object: usize, next: Next) -> Option<Transmit<Message>> {
        let geometry = &self.geometries[object];
        let segment_size = geometry.segment_size();
        let first = geometry.segments_of(next.block, next.symbols).filter(|_| !next.parity);
        let len = first.map_or(segment_size, |segments| geometry.payload_len(segments.first()));
        let repair = if next.repair { Flags::REPAIR } else { Flags::default() };
        let mut data = Data {
            about: self.about(object as u32, repair),
            block: next.block,
            symbols: next.symbols,
            parity: next.parity,
            segment_size,
            len,
            ends_block: false,
        };
        let message = self.message(FromSender::Data(data.clone()), 0);
        let spacing = self.span(&message);
        let count = self.core.pacer.departures_before(until, spacing).min(next.symbols.count());
        data.symbols = farcast_core::Run::new(next.symbols.first(), count)?;
        data.ends_block = self.begun[object].sent(&next, count);
        self.begun[object].recent.note(next.block, now, spacing, count);
        self.core.pacer.charge(spacing * u64::from(count));
        (self.position, self.flushes) = ((object as u32, next.block), 0);
        self.begun[object].asks = 0;
        self.repairing &= next.repair;
        self.core.note_sent(count);
        let message = self.message(FromSender::Data(data), count);
        Some(Transmit::new(message, self.config.group).spaced(spacing))
    }

    /// Begins the next object or a flush, since nothing is left to send of the begun objects.
    fn idle(&mut self, now: Time) {
        self.repairing = false;
        let more = self.begun.len() < self.geometries.len();
        if more && self.config.gap.is_zero() {
            self.begin_object();
            return;
        }
        if more && !self.timers.is_set(Timer::Gap) && self.begun.last().is_some_and(Outgoing::is_through) {
            self.timers.set(Timer::Gap, now + self.config.gap);
        }
        self.flushes = 0;
        self.flush(now);
    }

    fn on(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Probe => self.probe(now),
            Timer::Aggregate => self.repair(now),
            Timer::Flush => self.flush(now),
            Timer::Gap => {
                self.begin_object();
                self.go_on(now);
            }
            Timer::Info | Timer::Squelch | Timer::Advertise => {}
        }
    }

    /// Continues to send after a pause.
    fn go_on(&mut self, now: Time) {
        self.core.resume(now);
        self.timers.stop(Timer::Flush);
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = SenderEvent;

    fn handle(&mut self, now: Time, _from: &Arrival, message: &Message) -> Result<(), Reject> {
        self.core.asked = None;
        let result = self.hear(now, message);
        self.core.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            self.on(now, timer);
        }
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        loop {
            if let Some(said) = self.outbox.pop_front() {
                return Some(self.say(now, said));
            }
            if self.core.phase != Phase::Sending || now < self.core.pacer.next() {
                return None;
            }
            let Some((object, next)) = self.next() else {
                // Either another object begins, or a flush changes the phase.
                self.idle(now);
                continue;
            };
            self.core.pacer.settle(now);
            // A timer may change what is sent, so a run ends before it.
            let own = self.timers.next().map_or(Time::NEVER, |deadline| deadline.at);
            return self.data(now, until.min(own), object, next);
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.core.deadline(self.timers.next(), self.core.phase == Phase::Sending)
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.core.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        // A request may move the position back at any time.
        Time::ZERO
    }
}

impl SenderEngine for Sender {
    type Merged = Infallible;

    fn open(&mut self, now: Time) {
        if self.core.begin(now, self.lacking.len()) {
            self.probe(now);
            self.begin_object();
            self.begin_round();
        }
    }

    fn spend(&mut self, datagrams: u64, octets: u64) {
        self.core.spend(datagrams, octets);
    }

    fn abort(&mut self, _now: Time, _cause: Cause, _text: Option<String>) {
        // MDP has no field for the cause.
        if self.core.may_abort() {
            self.end(SenderOutcome::Aborted);
        }
    }

    fn withdraw(&mut self, _now: Time, object: ObjectId, _gone: &Gone, _why: &str) {
        // An object is a file. Receivers that request it are told that it is not available.
        let object = object.get();
        if !self.withdrawn.insert(object) {
            return;
        }
        let begun = self.begun.get_mut(object as usize);
        self.is_cut_short |= begun.as_ref().is_none_or(|begun| !begun.is_through());
        if let Some(begun) = begun {
            begun.clear();
            self.asked.remove(&object);
        }
    }

    fn dismiss(&mut self, _now: Time, who: &Proved<'_>) {
        let node = NodeId(who.number.receiver());
        let Some(at) = self.lacking.iter().position(|(lacking, _)| *lacking == node) else { return };
        if self.core.ending.is_some() || self.core.phase == Phase::Ended {
            return;
        }
        self.lacking.remove(at);
        self.config.ackers.retain(|acker| *acker != node);
        for one in &mut self.begun {
            one.waiting.retain(|waiting| *waiting != node);
        }
        self.core.dismiss(node);
        self.conclude_if_settled();
    }

    fn moved(&mut self, _now: Time, source: SocketAddr) {
        self.config.source = source;
    }

    fn routes(&self) -> Routes {
        let SenderConfig { source, group, unicast, .. } = self.config;
        Routes::new(source, group, if unicast { source } else { group })
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        self.geometries.get(object.get() as usize)
    }

    fn parity_symbols(&self, object: ObjectId) -> u32 {
        self.geometry(object).map_or(0, |_| self.config.parity.into())
    }

    fn phase(&self) -> Phase {
        self.core.phase
    }

    fn progress(&self) -> RoundProgress {
        self.core.progress()
    }

    fn figures(&self, nacks: &RequestCounts) -> Vec<Figure> {
        let mut figures = self.core.figures(nacks);
        figures.push(Figure::number("grtt_s", Some(self.grtt().as_secs_f64())).labelled("round trip, s"));
        figures
    }

    fn milestone(event: &SenderEvent) -> Option<Milestone> {
        event.milestone()
    }

    fn ending(event: &SenderEvent) -> Option<Ending> {
        event.ending()
    }

    fn asked(&self) -> Option<farcast_delivery::Asked> {
        self.core.asked
    }
}
