//! Sender engine: sends objects at a controlled rate, and repairs them as receivers ask (RFC 5740 §5.1, §5.4, §5.5).

mod ackers;
mod ahead;
mod asked;
mod asking;
mod congestion;
mod crowd;
mod departures;
pub(crate) mod grtt;
mod hearing;
mod objects;
mod parts;
pub(crate) mod patience;
mod protecting;
mod schedule;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::{Run, Span, Time, Timers, timers};
use farcast_delivery::nack::{NodeId, SenderCore, SenderOutcome};
use farcast_delivery::{
    Cause, Ending, ErasureCode, Figure, Geometry, Gone, Milestone, ObjectId, Phase, Proved, RatePace,
    RequestCounts, RoundProgress, Routes, SenderEngine,
};

use crate::config::SenderConfig;
use crate::error::ConfigError;
use crate::event::{Reached, SenderEvent};
use crate::message::{Body, Data, Flags, FromSender, Info, Message, Terms};
use crate::quantise::Rtt;
use crate::requests::BlockId;

use ackers::Ackers;
use asked::Asked;
use asking::{Question, ReturnUse};
use congestion::Control;
use crowd::Crowd;
use departures::Departures;
use grtt::Grtt;
use objects::{Item, Objects};
use patience::Patience;
use schedule::Next;

timers! {
    /// Timers of the sender.
    enum Timer {
        /// Time of the next probe.
        Probe = "probe",
        /// End of gathering requests.
        Aggregate = "aggregate",
        /// End of the hold-off after gathering, during which further requests are added at once.
        Holdoff = "hold-off",
        /// Time of the next flush, or of the end.
        Flush = "flush",
        /// Earliest time of the next watermark flush for named receivers.
        Watermark = "watermark",
        /// Earliest time of the next repetition of unicast requests.
        Advertise = "advertise",
        /// Earliest time of the next squelch.
        Squelch = "squelch",
    }
}

/// Longest time between flushes that named receivers do not answer, unless two GRTTs are longer.
const UNHURRIED: Span = Span::from_millis(250);

/// Maximum number of flushes where each receiver lacks only withdrawn objects.
const BEREFT_FLUSHES: u32 = 3;

/// Sender of objects.
#[derive(Debug)]
pub struct Sender {
    /// Configuration without its objects, which are in `objects`.
    config: SenderConfig,
    objects: Objects,
    core: SenderCore<Reached>,
    timers: Timers<Timer>,
    control: Control,
    asked: Asked,
    grtt: Grtt,
    patience: Patience,
    sequence: u16,
    probes: u16,
    /// Recent transmissions, which a requesting receiver may not have heard.
    departures: Departures,
    crowd: Crowd,
    /// Back-off factor after the first requests.
    usual_backoff: u8,
    /// Number of rounds of flushes since anything else was sent. In a round each named receiver is asked once.
    flushes: u32,
    /// Receivers that are to acknowledge.
    ackers: Ackers,
    return_use: ReturnUse,
    /// `true` if an object was withdrawn before all of it was sent.
    is_cut_short: bool,
    /// Number of objects of the last watermark flush, and the number of rounds of such flushes for it.
    watermark: (u32, u32),
    /// `true` if a request came by unicast since the last repetition of requests.
    unheard: bool,
    /// Messages that leave before anything else.
    outbox: VecDeque<FromSender>,
}

impl Sender {
    /// Makes a sender with this configuration.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(mut config: SenderConfig) -> Result<Self, ConfigError> {
        let geometries = config.check()?;
        let objects = Objects::new(&mut config, geometries);
        let control = Control::new(&config);
        let usual_backoff = config.backoff;
        config.backoff = config.first_backoff.unwrap_or(usual_backoff);
        Ok(Self {
            core: SenderCore::new(RatePace { rate: control.rate(), ..config.pace })
                .with_named(&config.ackers),
            timers: Timers::default(),
            control,
            asked: Asked::new(objects.count(), config.parity),
            grtt: Grtt::new(config.grtt, config.grtt_most, config.ackers.len()),
            patience: Patience::default(),
            sequence: 0,
            probes: 0,
            departures: Departures::default(),
            crowd: Crowd::default(),
            usual_backoff,
            flushes: 0,
            ackers: Ackers::new(&config.ackers, objects.count()),
            return_use: ReturnUse::new(&config, objects.last(0)),
            objects,
            is_cut_short: false,
            watermark: (0, 0),
            unheard: false,
            outbox: VecDeque::new(),
            config,
        })
    }

    /// Returns the configuration, without the objects.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Returns the numbers of segments and symbols sent in each round.
    pub fn sent_per_round(&self) -> &[u64] {
        self.core.sent_per_round()
    }

    /// Returns the number of refused messages, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.core.rejects
    }

    /// Returns the GRTT, as far as it is known.
    pub fn grtt(&self) -> Span {
        self.grtt.estimate()
    }

    /// Returns the time at which the named receiver `node` was heard last.
    pub fn heard(&self, node: NodeId) -> Option<Time> {
        self.core.heard(node)
    }

    fn begin_round(&mut self) {
        self.core.begin_round(self.objects.len());
    }

    fn end(&mut self, outcome: SenderOutcome) {
        self.core.end(outcome);
        self.timers = Timers::default();
        self.outbox.clear();
        self.outbox.push_back(FromSender::Eot);
    }

    /// Returns the GRTT that messages carry: no less than the time of a segment.
    fn advertised(&self) -> Rtt {
        let segment = self.core.pacer.span(usize::from(self.config.segment_size));
        Rtt::of(self.grtt.estimate().max(segment.min(self.config.grtt_most)))
    }

    fn terms(&self) -> Terms {
        let SenderConfig { instance, backoff, receivers, .. } = self.config;
        Terms { instance, grtt: self.advertised(), backoff, group: receivers }
    }

    /// Makes a message of `count` datagrams.
    fn message(&mut self, said: FromSender, count: u32) -> Message {
        let body = Body::Sender(self.terms(), said);
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(count as u16);
        Message { source: self.config.node, sequence, body }
    }
}

/// Messages of the sender.
impl Sender {
    /// Schedules the gathered requests.
    fn repair(&mut self, now: Time) {
        self.usual_backoff();
        self.timers.set(Timer::Holdoff, now + self.advertised().span());
        if self.asked.commit(&mut self.objects) {
            self.resume(now);
        } else if self.core.phase == Phase::Waiting && !self.timers.is_set(Timer::Flush) {
            // The end was postponed while requests were gathered.
            self.flush(now);
        }
    }

    /// Returns to sending, because there is something to repeat.
    fn resume(&mut self, now: Time) {
        if self.core.resume(now) {
            self.take_up(now);
        }
        self.timers.stop(Timer::Flush);
        self.begin_round();
    }

    /// Sends a flush, because everything has been sent: receivers ask for what they miss, and named receivers
    /// acknowledge. After enough flushes, ends the transmission.
    fn flush(&mut self, now: Time) {
        self.core.phase = Phase::Waiting;
        self.control.rest(now);
        let is_bereft = self.ackers.are_bereft();
        let most = if is_bereft { self.config.robust.min(BEREFT_FLUSHES) } else { self.config.robust };
        if self.flushes >= most || self.is_settled() {
            // Requests that are being gathered are still answered.
            if self.asked.is_empty() {
                self.conclude();
            }
            return;
        }
        // On a local network, twenty GRTTs are shorter than a pause of a busy host, so named receivers get longer.
        let often = self.advertised().span() * 2;
        let wait = if self.ackers.is_empty() {
            often
        } else {
            (often * (1 << self.flushes.min(10))).min(often.max(UNHURRIED))
        };
        self.patience.note(now, self.advertised().span(), self.config.backoff);
        let wait = if is_bereft {
            often
        } else {
            wait.max(self.patience.left(now) / u64::from(most - self.flushes))
        };
        let objects = self.objects.count();
        let Question { nodes, ends_round, turn_in } = self.question(now, objects);
        self.flushes += u32::from(ends_round);
        self.flush_up_to(objects, nodes);
        let wait = turn_in.map_or(wait, |turn_in| self.wait_for_turn(now, turn_in, ends_round, most));
        self.timers.set(Timer::Flush, now + wait);
    }

    fn conclude(&mut self) {
        let lost = self.ackers.lost();
        let outcome = self.core.outcome(self.ackers.len(), lost.len(), self.is_cut_short);
        self.core.events.extend(lost.into_iter().map(SenderEvent::Lost));
        self.end(outcome);
    }

    fn say(&mut self, now: Time, said: FromSender) -> Transmit<Message> {
        let message = self.message(said, 1);
        self.core.pacer.settle(now);
        self.core.pacer.charge(self.core.pacer.span(message.wire_len(0)));
        if self.outbox.is_empty() {
            self.core.finish();
        }
        Transmit::new(message, self.config.group)
    }

    /// Sends the next item; of symbols, as many as leave before `until`.
    fn content(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        let item = self.objects.next()?;
        self.flushes = 0;
        match item {
            Item::Info(object, again) => {
                let said = self.info(object, again)?;
                self.objects.sent(&item, 1);
                self.departures.info(now, object);
                Some(self.say(now, said))
            }
            Item::Data(object, next) => {
                self.core.pacer.settle(now);
                let (message, count, spacing) = self.data(object, &next, until)?;
                self.protect(now, spacing, object, &next, count);
                let fresh = self.objects.sent(&item, count);
                if next.repair || fresh > 0 {
                    let symbols = Run::new(next.symbols.first(), count)?;
                    self.departures.forget(now - self.oldest());
                    self.crowd.note_repair(now + self.spread());
                    let of = BlockId { object, block: next.block };
                    self.departures.symbols(now, spacing, of, symbols, fresh);
                }
                self.core.note_sent(count);
                Some(Transmit::new(message, self.config.group).spaced(spacing))
            }
        }
    }

    fn info(&self, object: u32, again: bool) -> Option<FromSender> {
        let outgoing = self.objects.get(object)?;
        let flags = if again { outgoing.flags.with(Flags::REPAIR) } else { outgoing.flags };
        let (fec, object, fti) = (self.config.fec, object as u16, Some(outgoing.fti));
        let (vouched, content) = (outgoing.vouched, outgoing.info.clone());
        Some(FromSender::Info(Info { flags, fec, object, fti, vouched, content }))
    }

    /// Makes a message of as many symbols of `next` as leave before `until`. Returns it with their number and spacing.
    fn data(&mut self, object: u32, next: &Next, until: Time) -> Option<(Message, u32, Span)> {
        let outgoing = self.objects.get(object)?;
        let (geometry, block) = (outgoing.geometry, next.block);
        let len = geometry.segment_size();
        let mut flags = outgoing.flags;
        for (is, flag) in [(next.repair, Flags::REPAIR), (next.explicit, Flags::EXPLICIT)] {
            flags = if is { flags.with(flag) } else { flags };
        }
        let (fec, fti) = (self.config.fec, Some(outgoing.fti));
        let point = self.objects.point(object, block, 0);
        let (object, block_len) = (point.object, point.symbol.block_len);
        let data = |symbols, len, last_len| {
            FromSender::Data(Data { flags, fec, object, block, block_len, symbols, fti, len, last_len })
        };
        let source = next.symbols.first() < geometry.block_len(block);
        let message = self.message(data(next.symbols, len, len), 0);
        let header = message.wire_len(0) - usize::from(len);
        let spacing = self.core.pacer.span(header + usize::from(len));
        let count = self.core.pacer.departures_before(until, spacing).min(next.symbols.count());
        let symbols = Run::new(next.symbols.first(), count)?;
        let last_len = match geometry.segments_of(block, symbols) {
            Some(segments) if source => geometry.payload_len(segments.last()),
            _ => len,
        };
        self.core.pacer.charge(spacing * u64::from(count - 1));
        self.core.pacer.charge(self.core.pacer.span(header + usize::from(last_len)));
        let message = self.message(data(symbols, if count == 1 { last_len } else { len }, last_len), count);
        Some((message, count, spacing))
    }

    fn on(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Probe => self.probe(now),
            Timer::Aggregate => self.repair(now),
            Timer::Advertise => self.advertise(now),
            Timer::Holdoff | Timer::Watermark | Timer::Squelch => {}
            Timer::Flush => self.flush(now),
        }
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = SenderEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        self.core.asked = None;
        let result = self.hear(now, from, message);
        self.core.rejects.note(result)
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
        if self.core.phase != Phase::Sending || now < self.core.pacer.next() {
            return None;
        }
        if self.objects.is_empty() {
            self.flushes = 0;
            self.ackers.interrupt();
            self.flush(now);
        } else if !self.mark(now) {
            // A run ends at the next timer, which may change the schedule.
            let own = self.timers.next().map_or(Time::NEVER, |deadline| deadline.at);
            return self.content(now, until.min(own));
        }
        let said = self.outbox.pop_front()?;
        Some(self.say(now, said))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.core.deadline(self.timers.next(), self.core.phase == Phase::Sending)
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.core.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        // A request may change the schedule at any time.
        Time::ZERO
    }
}

impl SenderEngine for Sender {
    type Merged = Infallible;

    fn open(&mut self, now: Time) {
        if self.core.begin(now, self.ackers.len()) {
            self.begin_round();
            self.probe(now);
        }
    }

    fn spend(&mut self, datagrams: u64, octets: u64) {
        self.core.spend(datagrams, octets);
    }

    fn abort(&mut self, _now: Time, _cause: Cause, _text: Option<String>) {
        // NORM cannot carry the reason.
        if self.core.may_abort() {
            self.end(SenderOutcome::Aborted);
        }
    }

    fn withdraw(&mut self, _now: Time, object: ObjectId, _gone: &Gone, _why: &str) {
        // An object is a file: nothing more of it is sent, and receivers that ask for it learn so.
        self.is_cut_short |= object.get() >= self.objects.passed();
        self.objects.withdraw(object.get());
    }

    fn dismiss(&mut self, _now: Time, who: &Proved<'_>) {
        let (node, all) = (NodeId(who.number.receiver()), self.objects.count());
        let Some(at) = self.ackers.find(node).filter(|&at| self.ackers.has(at) < all) else { return };
        if self.core.ending.is_some() || self.core.phase == Phase::Ended {
            return;
        }
        self.ackers.remove(at);
        self.grtt.forget(at);
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
        self.objects.get(object.get()).map(|outgoing| &outgoing.geometry)
    }

    fn parity_symbols(&self, object: ObjectId) -> u32 {
        self.geometry(object).map_or(0, |_| self.config.parity.into())
    }

    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        self.config.fec.erasure_code()
    }

    fn phase(&self) -> Phase {
        self.core.phase
    }

    fn progress(&self) -> RoundProgress {
        self.core.progress()
    }

    fn figures(&self, nacks: &RequestCounts) -> Vec<Figure> {
        self.core.figures(nacks)
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
