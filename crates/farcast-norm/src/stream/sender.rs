//! Sender of a stream, at a steady rate.

mod hearing;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, RejectCounts, Transmit};
use farcast_core::{Run, Span, Time, Timers, timers};
use farcast_delivery::nack::{SenderOutcome, StreamSenderEvent};
use farcast_delivery::{Delivery as _, Pacer, Proved, StreamEngine, StreamSenderEngine};

use super::asked::Asked;
use super::outgoing::{Next, Outgoing, StreamCut};
use super::segment::HEADER;
use crate::config::SenderConfig;
use crate::error::ConfigError;
use crate::message::{Body, Data, Flags, FromSender, Fti, Message, NodeId, Point, Probe, Stamp, Terms};
use crate::quantise::Rtt;
use crate::requests::{BlockSymbol, point};
use crate::sender::grtt::Grtt;
use crate::sender::patience::Patience;
use crate::wire;

/// Number of the stream among a sender's objects.
const OBJECT: u16 = 0;

/// Longest time between flushes that named receivers do not answer, unless two GRTTs are longer.
const UNHURRIED: Span = Span::from_millis(250);

/// Maximum number of symbols that wait to leave: an owner with more octets has to wait.
const BACKLOG: usize = 512;

timers! {
    /// Timers of the sender.
    enum Timer {
        /// Time of the next probe.
        Probe = "probe",
        /// End of gathering requests.
        Aggregate = "aggregate",
        /// End of the hold-off, in which requests may be about repairs that have not reached their receivers yet.
        Holdoff = "hold-off",
        /// Time of the next flush, or of the end.
        Flush = "flush",
        /// Earliest time of the next squelch.
        Squelch = "squelch",
        /// Time at which a block may be dropped.
        Room = "room",
    }
}

/// Receiver that is to acknowledge.
#[derive(Clone, Copy, Debug)]
struct Acker {
    node: NodeId,
    /// First symbol that it has not acknowledged.
    has: (u32, u32),
    /// Number of flushes that it has not answered with progress.
    asked: u32,
    /// `true` if it was given up.
    lost: bool,
}

/// Sender engine of a stream.
#[derive(Debug)]
pub struct StreamSender {
    config: SenderConfig,
    fti: Fti,
    outgoing: Outgoing,
    timers: Timers<Timer>,
    pacer: Pacer,
    asked: Asked,
    grtt: Grtt,
    patience: Patience,
    sequence: u16,
    probes: u16,
    /// Block of the symbol that was sent last.
    position: u32,
    /// Number of flushes since anything else was sent.
    flushes: u32,
    ackers: Vec<Acker>,
    outbox: VecDeque<FromSender>,
    /// `true` if the owner writes nothing more.
    finishing: bool,
    opened: bool,
    ended: bool,
    malformed: u64,
    rejects: RejectCounts,
    events: VecDeque<StreamSenderEvent>,
}

impl StreamSender {
    /// Makes a sender with the settings of `config`, whose one object stands for the stream. The object's size is the
    /// number of octets to keep for repairs, at least two blocks.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: SenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        if config.ackers.len() * 4 > usize::from(config.segment_size) {
            return Err(ConfigError::Ackers(config.ackers.len()));
        }
        let kept = config.objects.first().map_or(0, |object| object.size);
        let block = u64::from(config.block_len) * u64::from(config.segment_size);
        let blocks = kept.div_ceil(block).max(2);
        let fti = config.transmission(blocks * block);
        let symbol = usize::from(config.segment_size) + HEADER;
        let code = super::code(config.fec, config.block_len, config.parity, symbol);
        if code.is_none() && config.parity > 0 {
            let (block, parity) = (config.block_len, config.parity);
            return Err(ConfigError::Code { block, parity, fec: config.fec.id(), most: 0 });
        }
        let cut = StreamCut {
            len: config.block_len,
            segment: config.segment_size,
            parity: config.parity,
            auto: config.auto_parity,
        };
        let acker = |&node| Acker { node, has: (0, 0), asked: 0, lost: false };
        Ok(Self {
            fti,
            outgoing: Outgoing::new(cut, code, usize::try_from(blocks).unwrap_or(usize::MAX)),
            timers: Timers::default(),
            pacer: Pacer::new(Some(config.pace)),
            asked: Asked::default(),
            grtt: Grtt::new(config.grtt, config.grtt_most, config.ackers.len()),
            patience: Patience::default(),
            sequence: 0,
            probes: 0,
            position: 0,
            flushes: 0,
            ackers: config.ackers.iter().map(acker).collect(),
            outbox: VecDeque::new(),
            finishing: false,
            opened: false,
            ended: false,
            malformed: 0,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
            config,
        })
    }

    /// Returns the GRTT, as far as it is known.
    pub fn grtt(&self) -> Span {
        self.grtt.estimate()
    }

    fn advertised(&self) -> Rtt {
        let segment = self.pacer.span(usize::from(self.config.segment_size));
        Rtt::of(self.grtt.estimate().max(segment.min(self.config.grtt_most)))
    }

    /// Returns the time for which a block is kept after anything of it was sent. In this time, a receiver that lacks
    /// any of it can ask three times, by the GRTT that it hears now, each time after a hold-off and a back-off, and the
    /// sender can gather the requests.
    fn kept_for(&self) -> Span {
        self.advertised().span() * (3 * (3 * u64::from(self.config.backoff) + 4))
    }

    /// Makes room for more, if a block may be dropped: all named receivers have it, or it was kept for long enough.
    /// Returns `true` if there is room.
    fn has_room(&mut self, now: Time) -> bool {
        let least = self.least();
        let mut until = Time::NEVER;
        let len = self.outgoing.len();
        let room = self.outgoing.make_room(|block, kept| {
            if let Some(least) = least {
                return least >= (block, len);
            }
            until = kept;
            now >= kept
        });
        if !room && until != Time::NEVER {
            self.timers.set(Timer::Room, until);
        }
        room
    }

    /// Returns the first symbol that a named receiver lacks, among receivers that are waited for; `None` if there are
    /// none.
    fn least(&self) -> Option<(u32, u32)> {
        self.ackers.iter().filter(|acker| !acker.lost).map(|acker| acker.has).min()
    }

    fn point(&self, block: u32, symbol: u32) -> Point {
        point(self.config.fec, OBJECT, BlockSymbol { block, len: self.outgoing.len(), symbol })
    }

    /// Sends a flush for everything that has been sent: receivers ask for what they miss, and named receivers
    /// acknowledge. After enough flushes, ends the transmission.
    fn flush_sent(&mut self, now: Time) {
        let Some(last) = self.outgoing.last_sent() else { return self.conclude() };
        let behind = (last.0, last.1 + 1);
        let lacking: Vec<NodeId> = self
            .ackers
            .iter()
            .filter(|acker| !acker.lost && acker.has < behind)
            .map(|acker| acker.node)
            .collect();
        let named = !self.ackers.is_empty();
        if named && lacking.is_empty() || self.flushes >= self.config.robust {
            if self.asked.is_empty() {
                self.give_up(&lacking);
                self.conclude();
            }
            return;
        }
        let often = self.advertised().span() * 2;
        let wait = if named {
            (often * (1 << self.flushes.min(10))).min(often.max(UNHURRIED))
        } else {
            // Receivers may ask for a block as long as it is kept.
            often.max(self.kept_for() / u64::from(self.config.robust))
        };
        self.patience.note(now, self.advertised().span(), self.config.backoff);
        let wait = wait.max(self.patience.left(now) / u64::from(self.config.robust - self.flushes));
        self.flushes += 1;
        self.outbox.push_back(FromSender::Flush { point: self.point(last.0, last.1), ackers: lacking });
        self.timers.set(Timer::Flush, now + wait);
    }

    /// Gives up the receivers in `lacking`, which have not answered.
    fn give_up(&mut self, lacking: &[NodeId]) {
        for acker in self.ackers.iter_mut().filter(|acker| lacking.contains(&acker.node)) {
            acker.lost = true;
            self.events.push_back(StreamSenderEvent::Lost(acker.node));
        }
    }

    /// Ends the transmission, if the stream has ended and everything was sent.
    fn conclude(&mut self) {
        if !self.outgoing.has_ended() || self.ended || self.outgoing.next().is_some() {
            return;
        }
        let lacking = self.ackers.iter().filter(|acker| acker.lost).count() as u32;
        let outcome = match (self.ackers.is_empty(), lacking) {
            (true, _) => SenderOutcome::Unknown,
            (false, 0) => SenderOutcome::Acknowledged,
            (false, lacking) => SenderOutcome::Incomplete { lacking },
        };
        self.ended = true;
        self.timers = Timers::default();
        self.outbox.clear();
        self.outbox.push_back(FromSender::Eot);
        self.events.push_back(StreamSenderEvent::Ended(outcome));
    }

    /// Writes the end of the stream as a symbol, once there is room.
    fn end_stream(&mut self, now: Time) {
        if self.finishing && !self.outgoing.has_ended() && self.has_room(now) {
            self.outgoing.seal();
            if self.has_room(now) {
                self.outgoing.end();
            }
        }
    }

    fn repair(&mut self, now: Time) {
        self.timers.set(Timer::Holdoff, now + self.advertised().span());
        self.commit(now);
    }

    fn commit(&mut self, now: Time) {
        let idle = self.outgoing.next().is_none();
        let (new, spent) = self.asked.commit(&mut self.outgoing);
        if spent {
            let _ = self.rejects.note::<()>(Err(farcast_core::engine::Reject::Limit));
        }
        if new {
            self.flushes = 0;
            self.timers.stop(Timer::Flush);
            if idle {
                self.pacer.begin(now);
            }
        } else if idle && !self.timers.is_set(Timer::Flush) {
            // The end was postponed while requests were gathered.
            self.flush_sent(now);
        }
    }

    fn probe(&mut self, now: Time) {
        let (sequence, sent) = (self.probes, Stamp::of(now));
        self.probes = sequence.wrapping_add(1);
        self.timers.set(Timer::Probe, now + self.grtt.probed());
        self.patience.note(now, self.advertised().span(), self.config.backoff);
        let probe = Probe { flags: 0, sequence, sent, rate: None, nodes: Vec::new() };
        self.outbox.push_back(FromSender::Probe(probe));
    }

    fn say(&mut self, now: Time, said: FromSender, next: Option<&Next>, out: &mut Vec<u8>) -> Transmit<()> {
        let SenderConfig { instance, backoff, receivers, node, group, .. } = self.config;
        let terms = Terms { instance, grtt: self.advertised(), backoff, group: receivers };
        let message = Message { source: node, sequence: self.sequence, body: Body::Sender(terms, said) };
        self.sequence = self.sequence.wrapping_add(1);
        let before = out.len();
        wire::encode(&message, 0, out);
        if let Some(next) = next {
            self.outgoing.put_payload(next, out);
        }
        self.pacer.settle(now);
        self.pacer.charge(self.pacer.span(out.len() - before));
        Transmit::new((), group)
    }

    fn data(&self, next: &Next) -> FromSender {
        let mut flags = Flags::STREAM;
        for (is, flag) in [(next.repair, Flags::REPAIR), (next.explicit, Flags::EXPLICIT)] {
            flags = if is { flags.with(flag) } else { flags };
        }
        let Point { fec, object, symbol } = self.point(next.block, next.symbol);
        FromSender::Data(Data {
            flags,
            fec,
            object,
            block: next.block,
            block_len: symbol.block_len,
            symbols: Run::one(next.symbol),
            fti: Some(self.fti),
            len: next.len,
            last_len: next.len,
        })
    }

    /// Asks named receivers for their progress, if they lag so far that blocks cannot be dropped. Returns `true` if it
    /// did.
    fn mark(&mut self, now: Time) -> bool {
        let behind = self.outgoing.fresh().0;
        if self.timers.is_set(Timer::Flush) || behind == 0 {
            return false;
        }
        let far = behind.saturating_sub(self.outgoing.first()) / 2;
        let lags = |acker: &&mut Acker| !acker.lost && acker.has.0 + far < behind;
        let mut lacking = Vec::new();
        let mut lost = Vec::new();
        for acker in self.ackers.iter_mut().filter(lags) {
            acker.asked += 1;
            // Lacking symbols may have to be sent several times, with a flush every half round trip.
            let patience = self.config.robust * 4;
            if acker.asked > patience { lost.push(acker.node) } else { lacking.push(acker.node) }
        }
        self.give_up(&lost);
        if lacking.is_empty() {
            return false;
        }
        let point = self.point(behind - 1, self.outgoing.len() - 1);
        self.outbox.push_back(FromSender::Flush { point, ackers: lacking });
        self.timers.set(Timer::Flush, now + (self.advertised().span() * 2).max(UNHURRIED / 4));
        true
    }
}

impl StreamEngine for StreamSender {
    type Event = StreamSenderEvent;

    fn may_say(&self, datagram: &[u8], who: &Proved<'_>) -> bool {
        wire::decode(datagram, self.config.fec.field_bits())
            .is_ok_and(|packet| packet.message.may_be_said_by(who))
    }

    fn handle(&mut self, now: Time, from: &Arrival, datagram: &[u8]) {
        let Ok(packet) = wire::decode(datagram, self.config.fec.field_bits()) else {
            self.malformed += 1;
            return;
        };
        let result = self.hear(now, from, &packet.message);
        let _ = self.rejects.note(result);
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Probe => self.probe(now),
                Timer::Aggregate => self.repair(now),
                Timer::Flush if self.outgoing.next().is_none() => self.flush_sent(now),
                Timer::Flush | Timer::Holdoff | Timer::Squelch => {}
                Timer::Room => self.end_stream(now),
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit<()>> {
        if let Some(said) = self.outbox.pop_front() {
            return Some(self.say(now, said, None, out));
        }
        if !self.opened || self.ended || now < self.pacer.next() {
            return None;
        }
        self.end_stream(now);
        if self.mark(now) {
            let said = self.outbox.pop_front()?;
            return Some(self.say(now, said, None, out));
        }
        let next = self.outgoing.next()?;
        let said = self.data(&next);
        let to = self.say(now, said, Some(&next), out);
        self.outgoing.sent(now + self.kept_for(), &next);
        self.position = next.block;
        self.flushes = 0;
        if self.outgoing.next().is_none() {
            // Receivers learn what should have come within half a GRTT; at once, if nothing more comes.
            let wait = if self.finishing { Span::ZERO } else { self.advertised().span() / 2 };
            self.timers.set(Timer::Flush, now + wait);
        }
        Some(to)
    }

    fn poll_timeout(&self) -> Time {
        let timer = self.timers.next().map_or(Time::NEVER, |deadline| deadline.at);
        let sends = self.opened && !self.ended && self.outgoing.next().is_some();
        if sends { timer.min(self.pacer.next()) } else { timer }
    }

    fn poll_event(&mut self) -> Option<StreamSenderEvent> {
        self.events.pop_front()
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl StreamSenderEngine for StreamSender {
    fn open(&mut self, now: Time) {
        if !self.opened {
            self.opened = true;
            self.pacer.begin(now);
            self.probe(now);
        }
    }

    fn moved(&mut self, _now: Time, source: SocketAddr) {
        self.config.source = source;
    }

    fn spend(&mut self, datagrams: u64, octets: u64) {
        self.pacer.charge(self.pacer.span_beside(datagrams, octets));
    }

    fn write(&mut self, now: Time, octets: &[u8]) -> usize {
        let idle = self.outgoing.next().is_none();
        let mut taken = 0;
        while taken < octets.len()
            && !self.finishing
            && self.outgoing.backlog() < BACKLOG
            && self.has_room(now)
        {
            taken += self.outgoing.take(&octets[taken..]);
        }
        if idle && taken > 0 {
            self.pacer.begin(now);
        }
        taken
    }

    fn end_message(&mut self) {
        self.outgoing.end_message();
    }

    fn flush(&mut self, now: Time) {
        if self.outgoing.next().is_none() {
            self.pacer.begin(now);
        }
        self.outgoing.seal();
    }

    fn finish(&mut self, now: Time) {
        self.finishing = true;
        if self.outgoing.next().is_none() {
            self.pacer.begin(now);
        }
        self.end_stream(now);
    }

    fn octets(&self) -> u64 {
        self.outgoing.octets()
    }

    fn has_ended(&self) -> bool {
        self.ended && self.outbox.is_empty()
    }

    fn hears_group(&self) -> bool {
        !self.config.unicast
    }
}
