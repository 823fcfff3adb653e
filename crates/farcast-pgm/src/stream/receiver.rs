//! The receiver of a stream.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine as _, RejectCounts, Transmit};
use farcast_core::{Span, Time};
use farcast_delivery::{
    Delivery as _, Proved, ReceiverEngine as _, StreamEngine, StreamReceiverEngine, Taken,
};

use super::bare;
use crate::config::{Delivering, ReceiverConfig};
use crate::error::ConfigError;
use crate::event::{MessageEvent, ReceiverEvent};
use crate::message::{Body, Gsi, Message, Opt, Sqn, Tsi};
use crate::receiver::Receiver;
use crate::sqn::Place;
use crate::wire;

/// Settings of the receiver of a stream.
#[derive(Clone, Debug)]
pub struct StreamReceiverConfig {
    /// Settings of the engine; `delivering` is ignored, since a stream is received.
    pub receiver: ReceiverConfig,
    /// The receiver leaves out everything sent before it listened, even what can still be repaired.
    pub from_now: bool,
}

/// An event that the receiver of a stream reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamReceiverEvent {
    /// The receiver has joined a stream.
    Joined {
        /// Session of the stream.
        tsi: Tsi,
        /// Address of the source.
        source: SocketAddr,
    },
    /// A session sends files and not a stream: nothing of it is accepted.
    Files {
        /// Address of the source.
        source: SocketAddr,
    },
    /// The source has given up or was silent for too long before the stream ended.
    Gone,
}

/// Engine of the receiver of a stream.
#[derive(Debug)]
pub struct StreamReceiver {
    engine: Receiver,
    from_now: bool,
    /// Session that the receiver has joined.
    tsi: Option<Tsi>,
    /// First numbers of sessions, as far as they are known: of the joined session, and before joining of those that
    /// were heard last.
    first: VecDeque<(Tsi, Sqn)>,
    /// Sessions that send files, as far as they are remembered.
    files: VecDeque<Tsi>,
    /// A session that has ended without content, with the time at which that is accepted.
    empty: Option<Empty>,
    /// Last number of a session that has ended.
    last: Option<(Tsi, Sqn)>,
    /// Messages of which a part has come, by the places of their first TPDUs.
    parts: BTreeMap<u64, Vec<u8>>,
    /// Octets, gaps and the end that the owner has yet to read, in order.
    ready: VecDeque<(Taken, Vec<u8>)>,
    /// Places that can no longer be obtained and were not reported: the first, and one behind the last.
    gap: Option<(u64, u64)>,
    octets: u64,
    standing: Standing,
    /// Everything from the beginning of the stream on was received.
    is_sound: bool,
    malformed: u64,
    events: VecDeque<StreamReceiverEvent>,
}

/// Time for which content of another session is awaited, if one session has ended without content.
const NOTHING: Span = Span::from_secs(1);
/// The most sessions whose first numbers are remembered before joining, and the most file sessions that are remembered.
const BEGINNINGS: usize = 64;

/// A session that has ended without content.
#[derive(Clone, Copy, Debug)]
struct Empty {
    tsi: Tsi,
    source: SocketAddr,
    until: Time,
}

/// State of the stream at a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// Nothing of the stream was delivered.
    Ahead,
    Begun,
    Ended,
    /// The source is gone.
    Left,
}

impl StreamReceiver {
    /// Creates a receiver with these settings.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(config: StreamReceiverConfig) -> Result<Self, ConfigError> {
        let StreamReceiverConfig { receiver, from_now } = config;
        Ok(Self {
            engine: Receiver::new(ReceiverConfig { delivering: Delivering::Stream, ..receiver })?,
            from_now,
            tsi: None,
            first: VecDeque::new(),
            files: VecDeque::new(),
            empty: None,
            last: None,
            parts: BTreeMap::new(),
            ready: VecDeque::new(),
            gap: None,
            octets: 0,
            standing: Standing::Ahead,
            is_sound: true,
            malformed: 0,
            events: VecDeque::new(),
        })
    }

    /// Returns the number of requests for repair that were sent.
    pub fn naks(&self) -> u64 {
        self.engine.naks()
    }

    /// Returns the octets that are kept and were not read.
    pub fn kept(&self) -> u64 {
        let parts: usize = self.parts.values().map(Vec::len).sum();
        let ready: usize = self.ready.iter().map(|(_, octets)| octets.len()).sum();
        (parts + ready) as u64
    }

    /// Takes the first and last number of a session from a message, before the engine handles it.
    fn look_at(&mut self, message: &mut Message) {
        let first = match &message.body {
            Body::Data(data) if data.options.syn => Some(data.sqn),
            // A window that is empty now had no number before.
            Body::Spm(spm) if !spm.is_windowless() && spm.lead.next() == spm.trail => Some(spm.trail),
            _ => None,
        };
        if self.tsi.is_none_or(|tsi| tsi == message.tsi) {
            if let Some(first) = first.filter(|_| self.first_of(message.tsi).is_none()) {
                if self.first.len() == BEGINNINGS {
                    self.first.pop_front();
                }
                self.first.push_back((message.tsi, first));
            }
            if let Body::Spm(spm) = &message.body
                && spm.options.contains(&Opt::Fin)
            {
                self.last = Some((message.tsi, spm.lead));
            }
        }
        if self.from_now {
            match &mut message.body {
                Body::Data(data) => (data.options.syn, data.options.join) = (false, None),
                Body::Spm(spm) => spm.options.retain(|option| !matches!(option, Opt::Join(_))),
                _ => {}
            }
        }
    }

    /// Returns `true` if `message` belongs to a session that sends files, as a descriptor shows. Nothing of such a
    /// session is accepted.
    fn is_of_files(&mut self, message: &Message, source: SocketAddr) -> bool {
        if self.files.contains(&message.tsi) {
            return true;
        }
        if message.data().is_none_or(|data| data.descriptor.is_none()) {
            return false;
        }
        if self.files.len() == BEGINNINGS {
            self.files.pop_front();
        }
        self.files.push_back(message.tsi);
        self.engine.forget(message.tsi);
        self.events.push_back(StreamReceiverEvent::Files { source });
        if self.tsi == Some(message.tsi) {
            self.leave();
        }
        true
    }

    /// Returns the first number of the joined session.
    fn first(&self) -> Option<Sqn> {
        self.tsi.and_then(|tsi| self.first_of(tsi))
    }

    fn first_of(&self, tsi: Tsi) -> Option<Sqn> {
        self.first.iter().find(|(of, _)| *of == tsi).map(|&(_, first)| first)
    }

    /// Joins the first session of which content has come.
    fn look_whether_to_join(&mut self, tsi: Tsi, source: SocketAddr) {
        if self.tsi.is_none() && self.engine.has_begun(tsi) && self.engine.is_fed(tsi) {
            self.join(tsi, source);
        }
    }

    fn join(&mut self, tsi: Tsi, source: SocketAddr) {
        self.tsi = Some(tsi);
        self.engine.hear_only(tsi);
        self.events.push_back(StreamReceiverEvent::Joined { tsi, source });
    }

    /// Joins a session that has ended without content, if no other has brought any in time.
    fn join_empty(&mut self, now: Time) {
        if let Some(empty) = self.empty.take_if(|empty| empty.until <= now)
            && self.tsi.is_none()
        {
            self.join(empty.tsi, empty.source);
            self.finish();
        }
    }

    /// Handles the events of the engine; `content` is the part of a message that has just come.
    fn look(&mut self, now: Time, content: &[u8]) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                ReceiverEvent::Own(MessageEvent::Part { apdu, len, offset }) => {
                    self.keep(apdu.at, len, offset, content);
                }
                ReceiverEvent::Own(MessageEvent::Apdu(apdu)) => self.deliver(apdu.at),
                ReceiverEvent::Own(MessageEvent::Dropped(apdu)) => {
                    self.parts.remove(&apdu.at);
                    if self.standing != Standing::Ahead {
                        self.lose(apdu.at, apdu.at + 1);
                    }
                }
                ReceiverEvent::Own(MessageEvent::Lost { at, count, .. }) => {
                    self.lose(at, at + u64::from(count));
                }
                ReceiverEvent::Own(MessageEvent::Finished(tsi)) if self.tsi == Some(tsi) => self.finish(),
                ReceiverEvent::Own(MessageEvent::Finished(tsi))
                    if self.tsi.is_none() && self.empty.is_none() =>
                {
                    let source = self.engine.source(tsi);
                    let until = if self.engine.knows_only(tsi) { now } else { now + NOTHING };
                    self.empty = source.map(|source| Empty { tsi, source, until });
                }
                ReceiverEvent::Own(MessageEvent::Gone(tsi)) if self.tsi == Some(tsi) => self.leave(),
                // Events of files do not concern a stream.
                _ => {}
            }
        }
        self.tell_gap();
    }

    fn keep(&mut self, at: u64, len: u32, offset: u32, content: &[u8]) {
        let octets = self.parts.entry(at).or_insert_with(|| alloc::vec![0; len as usize]);
        if let Some(place) = octets.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..content.len()))
        {
            place.copy_from_slice(content);
        }
    }

    /// Delivers the message that begins at `at`, which is next.
    fn deliver(&mut self, at: u64) {
        let Some(octets) = self.parts.remove(&at) else { return };
        self.tell_gap();
        let is_first = core::mem::replace(&mut self.standing, Standing::Begun) == Standing::Ahead;
        let begins = is_first && self.first() == Some(Sqn(at as u32));
        self.is_sound &= begins || !is_first;
        self.octets += octets.len() as u64;
        self.ready.push_back((Taken::Octets(if begins { 0 } else { at }), octets));
    }

    /// Notes that the places from `from` up to `to` can no longer be obtained.
    fn lose(&mut self, from: u64, to: u64) {
        self.is_sound = false;
        let (first, end) = self.gap.unwrap_or((from, to));
        self.gap = Some((first.min(from), end.max(to)));
    }

    fn tell_gap(&mut self) {
        if let Some((from, to)) = self.gap.take() {
            self.ready.push_back((Taken::Gap(from, Some(to)), Vec::new()));
        }
    }

    /// Ends the stream: the session has ended, and everything of it has come or was reported as lost.
    fn finish(&mut self) {
        if let Some((at, _)) = self.parts.pop_first() {
            // The source has not sent the rest of this message.
            self.parts.clear();
            self.lose(at, at + 1);
        }
        self.tell_gap();
        let last = self.last.filter(|&(tsi, _)| self.standing == Standing::Ahead && Some(tsi) == self.tsi);
        let end = last.map(|(_, last)| last.next());
        if let Some(end) = end.filter(|&end| self.first() != Some(end)) {
            // Everything in the stream was sent before this receiver began.
            self.is_sound = false;
            self.ready.push_back((Taken::Octets(Place::first(end).0), Vec::new()));
        }
        self.standing = Standing::Ended;
        self.ready.push_back((Taken::End(self.octets), Vec::new()));
    }

    fn leave(&mut self) {
        self.parts.clear();
        if self.standing != Standing::Ended {
            self.standing = Standing::Left;
            self.events.push_back(StreamReceiverEvent::Gone);
        }
    }
}

impl StreamEngine for StreamReceiver {
    type Event = StreamReceiverEvent;

    fn may_say(&self, datagram: &[u8], who: &Proved<'_>) -> bool {
        wire::decode(datagram).is_ok_and(|packet| packet.message.may_be_sent_by(who))
    }

    fn handle(&mut self, now: Time, from: &Arrival, datagram: &[u8]) {
        let Ok(packet) = wire::decode(datagram) else {
            self.malformed += 1;
            return;
        };
        let mut message = packet.message;
        if self.is_of_files(&message, from.source) {
            return;
        }
        self.look_at(&mut message);
        // The engine counts the messages that it rejects.
        let _ = self.engine.handle(now, from, &message);
        self.look_whether_to_join(message.tsi, from.source);
        self.look(now, &datagram[packet.payload]);
        self.join_empty(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
        self.look(now, &[]);
        self.join_empty(now);
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit<()>> {
        let transmit = self.engine.poll_transmit(now, now)?;
        let begin = out.len();
        wire::encode(&transmit.message, 0, out);
        wire::finish(&mut out[begin..]);
        Some(bare(&transmit))
    }

    fn poll_timeout(&self) -> Time {
        let engine = self.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        self.empty.map_or(engine, |empty| engine.min(empty.until))
    }

    fn poll_event(&mut self) -> Option<StreamReceiverEvent> {
        self.events.pop_front()
    }

    fn rejects(&self) -> &RejectCounts {
        self.engine.rejects()
    }

    fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl StreamReceiverEngine for StreamReceiver {
    fn read(&mut self, out: &mut Vec<u8>) -> Option<Taken> {
        let (taken, octets) = self.ready.pop_front()?;
        out.extend_from_slice(&octets);
        Some(taken)
    }

    fn has_left(&self) -> bool {
        let is_over = matches!(self.standing, Standing::Ended | Standing::Left);
        is_over && (!self.is_sound || !self.engine.is_busy())
    }

    fn settle(&mut self, now: Time) {
        let has_begun = self.standing != Standing::Ahead;
        if let Some(tsi) = self.tsi.filter(|_| has_begun && self.is_sound && self.ready.is_empty()) {
            self.engine.keep_told(now, tsi);
        }
    }

    fn begins_anew(&mut self, now: Time, who: &Proved<'_>) {
        let source = Gsi(who.number.source());
        self.engine.begins_anew(source);
        if self.tsi.is_some_and(|tsi| tsi.gsi == source) {
            // Neither another stream nor this one is joined again.
            self.engine.stop(now);
        }
        self.look(now, &[]);
    }
}
