//! Engine of a sender, which goes round the rings of symbols, no matter who listens.

mod withdrawing;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, Transmit};
use farcast_core::{Run, Span, Time};
use farcast_delivery::{Geometry, Pacer, Phase, RoundProgress};

use crate::config::{ConfigError, Duration, SenderConfig};
use crate::message::{Description, Kind, Message, Symbols};
use crate::timing::{self, DESCRIBE_EVERY, LEADS, SHARE};
use withdrawing::Withdrawal;

/// Maximum number of symbols of a block that leave one after the other, before those of the next block. More would save
/// reads of the file. But a burst of losses shorter than all stripes together hits some blocks by whole stripes, and
/// others not at all. The worst block decides when a receiver is complete.
const STRIPE: u32 = 4;
/// Minimum number of stripes in a block. With wide stripes, a receiver that lacks one symbol of the last block waits
/// for the stripes of all other blocks.
const STRIPES: u32 = 128;
/// Returns the number of symbols of a block with `block` segments that leave before those of the next block.
pub(crate) fn stripe(block: u32) -> u32 {
    (block / STRIPES).clamp(1, STRIPE)
}

/// Number of final descriptions, which say that nothing follows, and the interval between them.
const GOODBYES: u32 = 3;
const BETWEEN_GOODBYES: Span = Span::from_millis(100);

/// Event of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SenderEvent {
    /// The first symbol leaves.
    Began,
    /// A round of sending begins.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Symbols that the round sends.
        symbols: u32,
    },
    /// The transmission has ended. The sender does not know which receivers have received anything.
    Ended {
        /// `true` if it was stopped before all was sent.
        stopped: bool,
        /// `true` if files were withdrawn before all of them was sent.
        withdrawn: bool,
    },
}

/// Position of the sender in the rings of all blocks.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Start of the current stripe in the rings.
    first: u32,
    /// Symbols of the stripe in each block.
    width: u32,
    /// Current block, and the number of its symbols of the stripe that have left.
    block: u32,
    within: u32,
    /// Symbols of each block that the round sends after this stripe.
    left: u32,
}

/// Consecutive symbols of the current stripe and block.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    kind: Kind,
    run: Run,
    /// Number of symbols of the stripe before these.
    within: u32,
}

/// Engine of a sender of one object.
#[derive(Clone, Debug)]
pub struct Sender {
    config: SenderConfig,
    phase: Phase,
    pacer: Pacer,
    cursor: Cursor,
    /// Current round, from 1, and the symbols sent in each round; 0 before the first.
    round: u32,
    sent: Vec<u64>,
    /// Times of the first symbol and, if given, of the end.
    data_at: Time,
    end_at: Time,
    describe_at: Time,
    describe_every: Span,
    lead: Span,
    lead_every: Span,
    /// Time at which the next segment of the head is due, and its number.
    head_at: Time,
    head_every: Span,
    head: u32,
    repeated: u64,
    goodbyes: u32,
    stopped: bool,
    withdrawal: Option<Box<Withdrawal>>,
    events: VecDeque<SenderEvent>,
}

impl Sender {
    /// Creates a sender that has not begun.
    ///
    /// # Errors
    /// Returns an error for a setting that cannot work.
    pub fn new(config: SenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let mut sender = Self {
            phase: Phase::Idle,
            pacer: Pacer::new(Some(config.pace)),
            cursor: Cursor { first: 0, width: 0, block: 0, within: 0, left: 0 },
            round: 0,
            sent: Vec::new(),
            data_at: Time::NEVER,
            end_at: Time::NEVER,
            describe_at: Time::ZERO,
            describe_every: Span::ZERO,
            lead: Span::ZERO,
            lead_every: Span::ZERO,
            head_at: Time::NEVER,
            head_every: Span::ZERO,
            head: 0,
            repeated: 0,
            goodbyes: 0,
            stopped: false,
            withdrawal: None,
            events: VecDeque::new(),
            config,
        };
        let description = Message::Description(sender.description());
        let span = sender.pacer.span(description.wire_len(0));
        let round = sender.symbol_span() * u64::from(sender.round_len());
        sender.describe_every = timing::between_descriptions(span, round);
        sender.lead = timing::lead(span, round, sender.config.lead);
        sender.lead_every = Span::from_nanos(sender.lead.as_nanos().div_ceil(LEADS)).max(span);
        let segments = u64::from(sender.head_len()).max(1);
        let each = Span::from_nanos(DESCRIBE_EVERY.as_nanos() / segments);
        sender.head_every = each.max(sender.symbol_span() * SHARE);
        Ok(sender)
    }

    /// Returns the settings.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Begins to describe the object, and to send its symbols after the lead time.
    pub fn open(&mut self, now: Time) {
        self.phase = Phase::Announcing;
        (self.data_at, self.describe_at) = (now + self.lead, now);
        // The first segments of the head are sent in their turn anyway.
        self.head_at = if self.head_len() == 0 { Time::NEVER } else { self.data_at + self.head_every };
        if let Duration::For(span) = self.config.duration {
            self.end_at = self.data_at + span;
        }
        self.pacer.begin(now);
    }

    /// Stops, and tells receivers that nothing follows.
    pub fn stop(&mut self) {
        if !matches!(self.phase, Phase::Completing | Phase::Ended) {
            (self.phase, self.stopped) = (Phase::Aborting, true);
        }
    }

    /// Returns the phase of the transmission.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the progress of the current round.
    pub fn progress(&self) -> RoundProgress {
        let sent = self.sent.last().map_or(0, |&sent| u32::try_from(sent).unwrap_or(u32::MAX));
        RoundProgress {
            round: self.round,
            sent,
            segments: if self.round == 0 { 0 } else { self.round_len() },
        }
    }

    /// Returns the number of symbols that each round has sent.
    pub fn sent(&self) -> &[u64] {
        &self.sent
    }

    /// Returns the number of segments that are not sent, because they are withdrawn.
    pub fn withdrawn(&self) -> u32 {
        self.withdrawal.as_ref().map_or(0, |withdrawal| withdrawal.count())
    }

    /// Returns the number of segments of the head that were repeated for receivers that come late.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Returns the number of parity symbols of each block, from the first on, that the sender may send in all.
    pub fn parity_planned(&self) -> u32 {
        let block = self.geometry().block_size();
        let symbols = match self.config.duration {
            Duration::Rounds(rounds) => self.symbols_until(rounds),
            Duration::For(span) => {
                let each = self.symbol_span().as_nanos() * u64::from(self.geometry().blocks());
                // A late sender makes up for some of its time.
                span.as_nanos() / each.max(1) + u64::from(STRIPE)
            }
        };
        let parity = symbols.saturating_sub(u64::from(block));
        u32::try_from(parity).unwrap_or(u32::MAX).min(self.config.shape.parity())
    }

    pub(crate) fn spend(&mut self, datagrams: u64, octets: u64) {
        self.pacer.charge(self.pacer.span_beside(datagrams, octets));
    }

    pub(crate) fn moved(&mut self, source: SocketAddr) {
        self.config.source = source;
    }

    fn geometry(&self) -> &Geometry {
        self.config.shape.geometry()
    }

    fn head_len(&self) -> u32 {
        self.config.head.min(self.geometry().segments())
    }

    /// Returns the number of symbols of the current round, or of the first one before it.
    fn round_len(&self) -> u32 {
        let (blocks, each) = (u64::from(self.geometry().blocks()), u64::from(self.round_each()));
        // A block with one segment less skips the symbol of that number, which is not worth counting.
        u32::try_from(blocks * each).unwrap_or(u32::MAX)
    }

    fn symbol_span(&self) -> Span {
        self.pacer.span(crate::wire::HEADER_LEN + usize::from(self.geometry().segment_size()))
    }

    fn description(&self) -> Description {
        let (config, geometry) = (&self.config, self.geometry());
        Description {
            session: config.session,
            id: config.id,
            size: geometry.size(),
            segment: geometry.segment_size(),
            block: geometry.block_size() as u16,
            parity: config.shape.parity() as u16,
            rate_kbps: u32::try_from(config.pace.rate.as_bps() / 1000).unwrap_or(u32::MAX),
            left_ms: u32::try_from(self.left().as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX),
            overwrite: config.overwrite,
            over: matches!(self.phase, Phase::Completing | Phase::Aborting),
            name: config.name.clone(),
        }
    }

    /// Returns the approximate remaining time. It is slightly too short if the sender is not late.
    pub fn left(&self) -> Span {
        let now = self.pacer.next();
        if !matches!(self.phase, Phase::Announcing | Phase::Sending) {
            return Span::ZERO;
        }
        match self.config.duration {
            Duration::For(_) => self.end_at.since(now),
            Duration::Rounds(rounds) => {
                let all = self.symbols_until(rounds).saturating_mul(self.geometry().blocks().into());
                let symbols = all.saturating_sub(self.sent.iter().sum());
                let time = self.symbol_span() * symbols;
                // Add the time of descriptions and repeated head segments.
                self.data_at.since(now) + time + time / SHARE * 2
            }
        }
    }

    fn describe(&mut self, spaced: Span) -> Transmit<Message> {
        let message = Message::Description(self.description());
        let span = self.pacer.span(message.wire_len(0));
        self.pacer.charge(span.max(spaced));
        Transmit::new(message, self.config.group)
    }

    /// Returns the next final description, or ends the transmission.
    fn say_goodbye(&mut self) -> Option<Transmit<Message>> {
        if self.goodbyes == GOODBYES {
            self.phase = Phase::Ended;
            let withdrawn = self.withdrawal.is_some();
            self.events.push_back(SenderEvent::Ended { stopped: self.stopped, withdrawn });
            return None;
        }
        self.goodbyes += 1;
        Some(self.describe(BETWEEN_GOODBYES))
    }

    fn symbols(&mut self, kind: Kind, block: u32, run: Run) -> Message {
        let geometry = self.geometry();
        let len = geometry.segment_size();
        let last = match kind {
            Kind::Source => geometry.payload_len(geometry.first_of(block) + run.last()),
            Kind::Parity => len,
        };
        let round = u8::try_from(self.round.max(1)).unwrap_or(u8::MAX);
        Message::Symbols(Symbols { session: self.config.session, round, kind, block, run, len, last })
    }

    /// Returns the next segment of the head.
    fn repeat_head(&mut self) -> Transmit<Message> {
        let segment = self.head;
        self.head = (segment + 1) % self.head_len();
        self.head_at = self.head_at.max(self.pacer.next()) + self.head_every;
        self.repeated += 1;
        let (block, geometry) = (self.geometry().block_of(segment), *self.geometry());
        let message = self.symbols(Kind::Source, block, Run::one(segment - geometry.first_of(block)));
        self.pacer.charge(self.pacer.span(message.wire_len(0)));
        Transmit::new(message, self.config.group)
    }

    /// Moves to the next block, stripe or round with symbols that are due. Returns `false` if there is none.
    fn advance(&mut self) -> bool {
        loop {
            if self.remaining().is_some() {
                return true;
            }
            self.cursor.within = 0;
            self.cursor.block += 1;
            if self.cursor.width > 0 && self.cursor.block < self.geometry().blocks() {
                continue;
            }
            let at = self.cursor.first + self.cursor.width;
            let (block, ring) = (self.geometry().block_size(), self.ring());
            let first = if at == ring { 0 } else { at };
            if self.cursor.left == 0 && !self.begin_round() {
                return false;
            }
            let (end, left) = (if first < block { block } else { ring }, self.cursor.left);
            let width = stripe(block).min(end - first);
            self.cursor = Cursor { first, width, block: 0, within: 0, left: left - width };
        }
    }

    /// Begins the next round. Returns `false` if there is none.
    fn begin_round(&mut self) -> bool {
        if self.config.duration == Duration::Rounds(self.round) {
            return false;
        }
        self.round += 1;
        self.cursor.left = self.round_each();
        self.sent.push(0);
        self.events.push_back(SenderEvent::Round { round: self.round, symbols: self.round_len() });
        true
    }

    /// Returns the number of symbols of each block that the current round sends, or the first one before it.
    fn round_each(&self) -> u32 {
        let round = self.round.max(1);
        (self.symbols_until(round) - self.symbols_until(round - 1)) as u32
    }

    /// Returns the number of symbols of each block that the first `rounds` rounds send. A round ends with a whole
    /// stripe, because receivers compute losses from the order of whole stripes. What it sends more than its share, the
    /// next round sends less.
    fn symbols_until(&self, rounds: u32) -> u64 {
        let (block, parity) = (self.geometry().block_size(), self.config.shape.parity());
        let share = u64::from(rounds) * u64::from(self.config.round_symbols());
        let at = (share % u64::from(self.ring())) as u32;
        let (from, len) = if at <= block { (0, block) } else { (block, parity) };
        let end = from + (at - from).next_multiple_of(stripe(block)).min(len);
        share + u64::from(end - at)
    }

    /// Returns the number of symbols in a block's ring.
    fn ring(&self) -> u32 {
        self.geometry().block_size() + self.config.shape.parity()
    }

    /// Returns the remaining part of the stripe in the current block.
    fn remaining(&self) -> Option<Stretch> {
        let Cursor { first, width, block, within, .. } = self.cursor;
        if self.is_torn(block) {
            return self.remaining_of_torn();
        }
        let source = self.geometry().block_size();
        let stretch = |kind, run| Stretch { kind, run, within };
        let stripe = Run::new(first + within, width.checked_sub(within)?)?;
        if first < source {
            let run = stripe.clip(0, self.geometry().block_len(block));
            return run.map(|run| stretch(Kind::Source, run));
        }
        Run::new(stripe.first() - source, stripe.count()).map(|run| stretch(Kind::Parity, run))
    }

    fn transmit_symbols(&mut self, until: Time) -> Option<Transmit<Message>> {
        let block = self.cursor.block;
        let Stretch { kind, run: all, within } = self.remaining()?;
        let span = self.symbol_span();
        let until = until.min(self.describe_at).min(self.head_at).min(self.end_at);
        let count = self.pacer.departures_before(until, span).clamp(1, all.count());
        let run = Run::new(all.first(), count)?;
        self.cursor.within = within + count;
        if let Some(sent) = self.sent.last_mut() {
            *sent += u64::from(count);
        }
        let message = self.symbols(kind, block, run);
        // The object's last segment may be short. The symbol after it leaves a little earlier.
        let last = self.pacer.span(message.wire_len(count - 1));
        self.pacer.charge(span * u64::from(count - 1) + last);
        Some(Transmit::new(message, self.config.group).spaced(span))
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = SenderEvent;

    fn handle(&mut self, _now: Time, _from: &Arrival, _message: &Message) -> Result<(), Reject> {
        Err(Reject::Unexpected)
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        loop {
            if matches!(self.phase, Phase::Idle | Phase::Ended) {
                return None;
            }
            self.pacer.settle(now);
            let at = self.pacer.next();
            if now < at {
                return None;
            }
            let phase = self.phase;
            match phase {
                Phase::Completing | Phase::Aborting => {
                    return self.tell_withdrawn().or_else(|| self.say_goodbye());
                }
                _ if at >= self.describe_at => {
                    if let Some(told) = self.tell_withdrawn() {
                        return Some(told);
                    }
                    let leads = at + self.lead_every < self.data_at;
                    self.describe_at = at + if leads { self.lead_every } else { self.describe_every };
                    return Some(self.describe(Span::ZERO));
                }
                Phase::Announcing if at < self.data_at => {
                    self.pacer.restart(self.data_at.min(self.describe_at));
                }
                Phase::Announcing => {
                    self.phase = Phase::Sending;
                    self.events.push_back(SenderEvent::Began);
                }
                _ if at >= self.end_at => self.phase = Phase::Completing,
                _ if at >= self.head_at => return Some(self.repeat_head()),
                _ if self.advance() => return self.transmit_symbols(until),
                _ => self.phase = Phase::Completing,
            }
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let busy = !matches!(self.phase, Phase::Idle | Phase::Ended);
        busy.then(|| Deadline { at: self.pacer.next(), timer: "pace" })
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::NEVER
    }
}
