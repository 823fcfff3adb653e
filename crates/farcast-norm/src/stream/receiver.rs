//! Receiver of a stream.

mod hearing;
mod window;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, RejectCounts, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time, Timers, timers};
use farcast_delivery::{Delivery as _, Proved, StreamEngine, StreamReceiverEngine, Taken};

use super::asking::{Heard, Place};
use crate::cc::Listener;
use crate::error::ConfigError;
use crate::message::{Answer, Body, Fec, FromReceiver, Level, Message, NodeId, Point, Stamp, Terms};
use crate::quantise::{Loss, Rtt};
use crate::requests::{BlockSymbol, List, point};
use crate::timing::{Waits, holdoff, silence};
use crate::{ReceiverConfig, wire};

use window::Window;

/// Octets of a repair request without its items.
const HEADER: u64 = crate::receiver::HEADER;
/// Longest silence of a sender without anything to send. It sends a probe each half minute, of which some are lost.
const IDLE: Span = Span::from_secs(100);
/// Acknowledgement type of a probe's answer.
const CC: u8 = 1;
/// Least number of GRTTs over which answers to probes are spread.
const SPREAD: u64 = 4;

timers! {
    /// Timers of a receiver.
    enum Timer {
        /// End of the back-off: requests may be sent.
        Backoff = "back-off",
        /// End of the hold-off: requested repairs have had time to arrive.
        Holdoff = "hold-off",
        /// Time of an acknowledgement.
        Ack = "acknowledge",
        /// Silence of the sender.
        Inactivity = "inactivity",
        /// Time of congestion feedback.
        Report = "report",
    }
}

/// Configuration of a stream's receiver.
#[derive(Clone, Debug)]
pub struct StreamReceiverConfig {
    /// Configuration of the receiver. Settings that concern objects are ignored.
    pub receiver: ReceiverConfig,
    /// Octets of the blocks that are kept while something before them is lacking.
    pub memory: u64,
    /// `true` if the receiver skips what was sent before it listened, and does not ask for repairs of it.
    pub from_now: bool,
}

impl StreamReceiverConfig {
    /// Returns the default configuration: 64 MiB, and everything that the sender can repair.
    pub const fn new(receiver: ReceiverConfig) -> Self {
        Self { receiver, memory: 64 << 20, from_now: false }
    }
}

/// Event of a stream's receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamReceiverEvent {
    /// A stream is heard.
    Joined {
        /// Sender of the stream.
        sender: NodeId,
        /// Source address.
        source: SocketAddr,
    },
    /// A sender sends files and no stream: nothing of it is taken.
    Files {
        /// Source address.
        source: SocketAddr,
    },
    /// The sender has left, or was silent for too long, and the stream has not ended.
    Gone,
}

/// State of a sender and its stream.
#[derive(Debug)]
struct Remote {
    source: SocketAddr,
    node: NodeId,
    instance: u16,
    terms: Terms,
    grtt: Span,
    /// Stream, once any of it has come.
    window: Option<Window>,
    /// Object of which the receiver knows only that it was sent.
    unheard: Option<(Fec, u16)>,
    /// Last object that has come and is not a stream.
    file: Option<u16>,
    place: Place,
    heard: Heard,
    listener: Option<Listener>,
    probed: Option<(Stamp, Time)>,
    /// Point that is to be acknowledged as soon as it can be.
    owed: Option<Point>,
    /// Acknowledgement that is due.
    ack: Option<Answer>,
    silences: u32,
    last_heard: Time,
    gone: bool,
    /// `true` if the sender has begun another session, so that no arriving message belongs to this one.
    past: bool,
    credit: u64,
    timers: Timers<Timer>,
}

/// Receiver engine of a stream.
#[derive(Debug)]
pub struct StreamReceiver {
    config: StreamReceiverConfig,
    remote: Option<Remote>,
    waits: Waits,
    chance: RandomStream,
    sequence: u16,
    outbox: VecDeque<(SocketAddr, Message)>,
    nacks: u64,
    malformed: u64,
    rejects: RejectCounts,
    events: VecDeque<StreamReceiverEvent>,
}

impl StreamReceiver {
    /// Makes a receiver with these settings.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: StreamReceiverConfig) -> Result<Self, ConfigError> {
        config.receiver.check()?;
        let ReceiverConfig { seed, node, .. } = config.receiver;
        Ok(Self {
            waits: Waits { seed },
            chance: RandomStream::derive(seed, &[u64::from(node.0), 1]),
            config,
            remote: None,
            sequence: 0,
            outbox: VecDeque::new(),
            nacks: 0,
            malformed: 0,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
        })
    }

    /// Returns the number of repair requests that were sent.
    pub fn nacks(&self) -> u64 {
        self.nacks
    }

    /// Returns the octets of memory that are, or were, used for blocks that have not been read.
    pub fn kept(&self) -> u64 {
        self.remote.as_ref().and_then(|remote| remote.window.as_ref()).map_or(0, Window::kept)
    }

    /// Returns the m with which to read FEC Encoding ID 2: that of the stream, once any of it has come.
    fn field_bits(&self) -> u8 {
        let window = self.remote.as_ref().and_then(|remote| remote.window.as_ref());
        window.map_or(Fec::ReedSolomon8, Window::fec).field_bits()
    }

    /// Begins to wait for a request, unless nothing is lacking, or the receiver waits already or has just asked.
    fn consider(&mut self, now: Time) {
        let (silent, node) = (self.config.receiver.silent, self.config.receiver.node);
        let Some(remote) = &mut self.remote else { return };
        let waits = remote.timers.is_set(Timer::Backoff) || remote.timers.is_set(Timer::Holdoff);
        if silent || waits || remote.gone || !remote.is_lacking() {
            return;
        }
        remote.heard = Heard::new();
        let wait = self.waits.backoff(node, now, remote.terms, remote.grtt);
        remote.timers.set(Timer::Backoff, now + wait);
    }

    /// Sends requests for what is lacking, unless others have asked for it.
    fn ask(&mut self, now: Time) {
        let Some(remote) = &mut self.remote else { return };
        if !remote.is_lacking() {
            return;
        }
        remote.timers.set(Timer::Holdoff, now + holdoff(remote.terms, remote.grtt));
        let room = usize::try_from(remote.credit.saturating_sub(HEADER)).unwrap_or(usize::MAX);
        let requests = remote.requests(room);
        if !requests.is_empty() {
            self.nacks += 1;
            self.say(now, Answer::Nack(requests));
        }
    }

    /// Sends an answer to the sender, as far as the sender's credit allows.
    fn say(&mut self, now: Time, answer: Answer) {
        let ReceiverConfig { node, unicast, group, loss, .. } = self.config.receiver;
        let Some(remote) = &mut self.remote else { return };
        let response = remote.probed.map(|(sent, at)| sent.later(now.since(at)));
        let grtt = Rtt::of(remote.grtt);
        let of_style = |part| Loss::of_style(part, loss);
        let listener = remote.listener.as_ref().filter(|_| !matches!(answer, Answer::Flushed { .. }));
        let feedback = listener.and_then(|listener| listener.feedback(now, grtt, of_style));
        if feedback.is_some() {
            remote.timers.stop(Timer::Report);
        }
        let said =
            FromReceiver { sender: remote.node, instance: remote.instance, response, feedback, answer };
        let message = Message { source: node, sequence: self.sequence, body: Body::Receiver(said) };
        let octets = wire::encoded_len(&message, 0) as u64;
        let Some(credit) = remote.credit.checked_sub(octets) else { return };
        remote.credit = credit;
        self.sequence = self.sequence.wrapping_add(1);
        self.outbox.push_back((if unicast { remote.source } else { group }, message));
    }

    /// Acknowledges the point that a flush has asked for, if everything up to it is there.
    fn pay(&mut self, now: Time) {
        let ReceiverConfig { node, silent, .. } = self.config.receiver;
        let Some(remote) = &mut self.remote else { return };
        let (Some(point), Some(window)) = (remote.owed, &remote.window) else { return };
        if silent || !window.has(point) {
            return;
        }
        remote.owed = None;
        remote.ack = Some(Answer::Flushed { id: 0, point });
        if !remote.timers.is_set(Timer::Ack) {
            let spread = self.waits.acknowledgement(node, now, remote.grtt);
            remote.timers.set(Timer::Ack, now + spread);
        }
    }

    fn silent(&mut self, now: Time) {
        let robust = self.config.receiver.robust;
        let Some(remote) = &mut self.remote else { return };
        remote.silences += 1;
        if remote.silences > robust && now.since(remote.last_heard) >= IDLE {
            return self.gone();
        }
        remote.timers.set(Timer::Inactivity, now + silence(remote.grtt, robust));
        if remote.silences <= robust {
            self.consider(now);
        }
    }

    /// Handles the end or the long silence of the sender.
    fn gone(&mut self) {
        let Some(remote) = &mut self.remote else { return };
        if core::mem::replace(&mut remote.gone, true) {
            return;
        }
        for timer in [Timer::Backoff, Timer::Holdoff, Timer::Inactivity, Timer::Report] {
            remote.timers.stop(timer);
        }
        if let Some(window) = &mut remote.window {
            window.give_up();
            if !window.will_end() {
                self.events.push_back(StreamReceiverEvent::Gone);
            }
        }
    }

    fn on(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Backoff => self.ask(now),
            Timer::Holdoff => {}
            Timer::Ack => {
                if let Some(answer) = self.remote.as_mut().and_then(|remote| remote.ack.take()) {
                    self.say(now, answer);
                }
            }
            Timer::Inactivity => self.silent(now),
            Timer::Report => self.say(now, Answer::Ack { kind: CC, id: 0, content: Vec::new() }),
        }
    }
}

impl Remote {
    /// Returns `true` if anything that was sent has not come.
    fn is_lacking(&self) -> bool {
        match &self.window {
            Some(window) => window.needs(self.place).lacking().next().is_some(),
            None => self.unheard.is_some(),
        }
    }

    /// Returns the requests to send, within `room` octets; none if others have asked for everything.
    fn requests(&self, room: usize) -> Vec<crate::message::Request> {
        if let Some(window) = &self.window {
            let needs = window.needs(self.place);
            let room = room.min(window.segment_size());
            return if needs.are_covered(&self.heard) { Vec::new() } else { needs.list(room) };
        }
        let mut list = List::new(room.min(crate::receiver::nack::ROOM));
        if let Some((fec, object)) = self.unheard {
            list.add_run(Level::OBJECT, farcast_core::Run::one(0), |_| {
                point(fec, object, BlockSymbol::default())
            });
        }
        list.requests
    }
}

impl StreamEngine for StreamReceiver {
    type Event = StreamReceiverEvent;

    fn may_say(&self, datagram: &[u8], who: &Proved<'_>) -> bool {
        wire::decode(datagram, self.field_bits()).is_ok_and(|packet| packet.message.may_be_sent_by(who))
    }

    fn handle(&mut self, now: Time, from: &Arrival, datagram: &[u8]) {
        let Ok(packet) = wire::decode(datagram, self.field_bits()) else {
            self.malformed += 1;
            return;
        };
        let result = self.hear(now, from, &packet.message, &datagram[packet.payload]);
        let _ = self.rejects.note(result);
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.remote.as_mut().and_then(|remote| remote.timers.expire(now)) {
            self.on(now, timer);
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Transmit<()>> {
        let (to, message) = self.outbox.pop_front()?;
        wire::encode(&message, 0, out);
        Some(Transmit::new((), to))
    }

    fn poll_timeout(&self) -> Time {
        self.remote
            .as_ref()
            .and_then(|remote| remote.timers.next())
            .map_or(Time::NEVER, |deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<StreamReceiverEvent> {
        self.events.pop_front()
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl StreamReceiverEngine for StreamReceiver {
    fn read(&mut self, out: &mut Vec<u8>) -> Option<Taken> {
        self.remote.as_mut()?.window.as_mut()?.read(out)
    }

    fn has_left(&self) -> bool {
        // A sender of which nothing has come is no longer waited for, and another one may come.
        self.remote.as_ref().is_some_and(|remote| remote.gone && remote.window.is_some())
    }

    fn settle(&mut self, now: Time) {
        if let Some(window) = self.remote.as_mut().and_then(|remote| remote.window.as_mut()) {
            window.settle();
        }
        self.pay(now);
    }

    fn begins_anew(&mut self, _now: Time, who: &Proved<'_>) {
        let sender = NodeId(who.number.sender());
        if self.remote.as_ref().is_none_or(|remote| remote.node != sender) {
            return;
        }
        self.gone();
        if let Some(remote) = &mut self.remote {
            (remote.past, remote.credit) = (true, 0);
            (remote.owed, remote.ack, remote.timers) = (None, None, Timers::default());
        }
    }
}
