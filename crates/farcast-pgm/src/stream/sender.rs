//! The source of a stream.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine as _, Message as _, RejectCounts, Transmit};
use farcast_delivery::nack::StreamSenderEvent;
use farcast_delivery::{
    Content, Delivery as _, ObjectId, Proved, SenderEngine as _, StreamEngine, StreamSenderEngine,
};

use super::{BACKLOG, bare};
use crate::config::{SenderConfig, Sending};
use crate::error::ConfigError;
use crate::event::{Released, SenderEvent};
use crate::message::Message;
use crate::sender::Sender;
use crate::wire::{self, FRAGMENT_OPTIONS};

/// The most TPDUs of a message, which is the limit of OpenPGM's reassembly (its `PGM_MAX_FRAGMENTS`). A longer message
/// leaves as several.
pub const MOST_FRAGMENTS: usize = 16;

/// Settings of the source of a stream.
#[derive(Clone, Debug)]
pub struct StreamSenderConfig {
    /// Settings of the engine, which must send messages.
    pub sender: SenderConfig,
    /// The owner sets the ends of messages. Otherwise a message ends where a TPDU is full, or where the owner flushes.
    pub messages: bool,
}

/// State of the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Ahead,
    /// The owner writes nothing more.
    Written,
    /// The engine was told that no message follows.
    Told,
}

/// Engine of the source of a stream.
#[derive(Debug)]
pub struct StreamSender {
    engine: Sender,
    messages: bool,
    /// Messages that can still be repaired, in order.
    kept: VecDeque<(ObjectId, Vec<u8>)>,
    /// Message that is being written, and whether it is complete (`is_sealed`).
    pending: Vec<u8>,
    is_sealed: bool,
    end: End,
    /// Message that is leaving, and the index of its next TPDU.
    leaving: Option<(Transmit<Message>, u32)>,
    octets: u64,
    ended: bool,
    malformed: u64,
    events: VecDeque<StreamSenderEvent>,
}

impl StreamSender {
    /// Creates a source with these settings.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(config: StreamSenderConfig) -> Result<Self, ConfigError> {
        if config.sender.sending != Sending::Messages {
            return Err(ConfigError::Range("what is sent, which is no stream,"));
        }
        Ok(Self {
            engine: Sender::new(config.sender)?,
            messages: config.messages,
            kept: VecDeque::new(),
            pending: Vec::new(),
            is_sealed: false,
            end: End::Ahead,
            leaving: None,
            octets: 0,
            ended: false,
            malformed: 0,
            events: VecDeque::new(),
        })
    }

    /// Returns the octets that are kept, both waiting and repairable.
    pub fn kept(&self) -> u64 {
        let of_messages: usize = self.kept.iter().map(|(_, octets)| octets.len()).sum();
        (of_messages + self.pending.len()) as u64
    }

    /// Returns the engine, for its figures.
    pub fn engine(&self) -> &Sender {
        &self.engine
    }

    /// Returns the octets of a TSDU of a message of `len` octets.
    fn cut(&self, len: usize) -> usize {
        let tsdu = usize::from(self.engine.config().tsdu);
        if len <= tsdu { tsdu } else { tsdu - FRAGMENT_OPTIONS }
    }

    /// Returns the most octets of a message.
    fn most(&self) -> usize {
        if self.messages { self.cut(usize::MAX) * MOST_FRAGMENTS } else { self.cut(0) }
    }

    /// Hands a complete message to the engine, if there is room. Returns `true` if another message may begin.
    fn advance(&mut self, now: Time) -> bool {
        let is_whole = self.is_sealed || self.pending.len() >= self.most();
        if is_whole && !self.pending.is_empty() {
            if self.engine.waiting() >= BACKLOG {
                return false;
            }
            // The length is valid, so the engine accepts the message unless it accepts none.
            let Ok(object) = self.engine.send(now, self.pending.len() as u32) else { return false };
            self.kept.push_back((object, core::mem::take(&mut self.pending)));
        }
        self.is_sealed &= !self.pending.is_empty();
        if self.end == End::Written && self.pending.is_empty() {
            self.engine.finish(now);
            self.end = End::Told;
        }
        true
    }

    /// Handles the events of the engine.
    fn look(&mut self) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                SenderEvent::Own(Released(_)) => drop(self.kept.pop_front()),
                SenderEvent::Acknowledged(node) => {
                    self.events.push_back(StreamSenderEvent::Acknowledged(node));
                }
                SenderEvent::Lost(node) => self.events.push_back(StreamSenderEvent::Lost(node)),
                SenderEvent::Ended(outcome) => {
                    self.ended = true;
                    self.events.push_back(StreamSenderEvent::Ended(outcome));
                }
                SenderEvent::Started { .. } | SenderEvent::Round { .. } | SenderEvent::Delivered => {}
            }
        }
    }

    /// Returns the octets of TPDU `index` of `message`.
    fn payload(&self, message: &Message, index: u32) -> &[u8] {
        let (Some(data), Content::Source { object, segments, .. }) = (message.data(), message.content())
        else {
            return &[];
        };
        let first = self.kept.front().map_or(0, |(first, _)| first.get());
        let at = object.get().wrapping_sub(first) as usize;
        let octets = self.kept.get(at).map_or(&[][..], |(_, octets)| octets);
        let begin = (segments.first() + index) as usize * self.cut(octets.len());
        octets.get(begin..begin + data.tsdu_len(index)).unwrap_or_default()
    }
}

impl StreamEngine for StreamSender {
    type Event = StreamSenderEvent;

    fn may_say(&self, datagram: &[u8], who: &Proved<'_>) -> bool {
        wire::decode(datagram).is_ok_and(|packet| packet.message.may_be_said_by(who))
    }

    fn handle(&mut self, now: Time, from: &Arrival, datagram: &[u8]) {
        let Ok(packet) = wire::decode(datagram) else {
            self.malformed += 1;
            return;
        };
        // The engine counts the messages that it rejects.
        let _ = self.engine.handle(now, from, &packet.message);
        self.look();
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
        self.advance(now);
        self.look();
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit<()>> {
        self.advance(now);
        let (transmit, index) = match self.leaving.take() {
            Some(leaving) => leaving,
            None => (self.engine.poll_transmit(now, now)?, 0),
        };
        let begin = out.len();
        wire::encode(&transmit.message, index, out);
        out.extend_from_slice(self.payload(&transmit.message, index));
        wire::finish(&mut out[begin..]);
        let leaves = bare(&transmit);
        if index + 1 < transmit.message.segments().get() {
            self.leaving = Some((transmit, index + 1));
        } else {
            // Events are handled now, since a released message has left completely.
            self.look();
        }
        Some(leaves)
    }

    fn poll_timeout(&self) -> Time {
        if self.leaving.is_some() {
            return Time::ZERO;
        }
        self.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<StreamSenderEvent> {
        self.events.pop_front()
    }

    fn rejects(&self) -> &RejectCounts {
        self.engine.rejects()
    }

    fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl StreamSenderEngine for StreamSender {
    fn open(&mut self, now: Time) {
        self.engine.open(now);
    }

    fn moved(&mut self, now: Time, source: SocketAddr) {
        self.engine.moved(now, source);
    }

    fn spend(&mut self, datagrams: u64, octets: u64) {
        self.engine.spend(datagrams, octets);
    }

    fn write(&mut self, now: Time, octets: &[u8]) -> usize {
        let mut taken = 0;
        while self.end == End::Ahead && self.advance(now) && taken < octets.len() {
            let room = self.most() - self.pending.len();
            let rest = &octets[taken..];
            let part = &rest[..rest.len().min(room)];
            self.pending.extend_from_slice(part);
            taken += part.len();
        }
        self.octets += taken as u64;
        taken
    }

    fn end_message(&mut self) {
        self.is_sealed = !self.pending.is_empty();
    }

    fn flush(&mut self, now: Time) {
        // A message is never cut by a flush: the source waits for its end.
        if !self.messages {
            self.is_sealed = !self.pending.is_empty();
        }
        self.advance(now);
    }

    fn finish(&mut self, now: Time) {
        if self.end == End::Ahead {
            self.is_sealed = !self.pending.is_empty();
            self.end = End::Written;
            self.advance(now);
        }
    }

    fn octets(&self) -> u64 {
        self.octets
    }

    fn has_ended(&self) -> bool {
        self.ended && self.leaving.is_none()
    }

    fn hears_group(&self) -> bool {
        // Requests go to the source's own address (RFC 3208 §6.3).
        false
    }
}
