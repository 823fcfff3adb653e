//! Receiver engine: takes objects of several senders at once, and asks for repairs of them (RFC 5740 §5.2, §5.3).

mod congestion;
mod content;
mod heard;
mod hearing;
pub(crate) mod nack;
pub(crate) mod needs;
mod numbers;
mod object;
mod remote;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::nack::ContentState;
use farcast_delivery::{
    AT_HAND, Answer as OwnerAnswer, Decline, ErasureCode, ObjectId, Outcome, Proved, Received,
    ReceiverEngine, Request,
};

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::event::ReceiverEvent;
use crate::message::{Answer, Body, Feedback, FromReceiver, Message, Stamp, Terms};
use crate::timing::{Waits, holdoff, silence};

use heard::Heard;
use nack::MESSAGES;
use numbers::Numbers;
use object::Object;
use remote::{Key, Remote, Timer};

/// Maximum number of objects that are under way at once, of all senders.
pub const MOST_OBJECTS: usize = AT_HAND;
/// Maximum number of senders that are known at once.
const MOST_REMOTES: usize = 32;
/// Number of finished objects whose counters are remembered.
const REMEMBERED: usize = 64;
/// Octets of a repair request or an acknowledgement without its items: the common header, the receiver's header, and
/// room for an extension.
pub(crate) const HEADER: u64 = 24 + 12;

/// Message of a known sender, as it came.
#[derive(Clone, Copy, Debug)]
struct Hearing<'a> {
    now: Time,
    from: &'a Arrival,
    /// Index of the sender.
    at: usize,
    terms: Terms,
}

/// Place of an object that is being received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ObjectIndex {
    /// Index of the sender.
    at: usize,
    /// Number of the object.
    number: u32,
}

/// Receiver of objects.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    remotes: Vec<Remote>,
    /// Id of the next object.
    next_object: u32,
    /// Counters of objects that are over.
    over: VecDeque<(ObjectId, Received)>,
    waits: Waits,
    /// Random numbers for the waits of congestion feedback, apart so that they change no other wait.
    chance: RandomStream,
    sequence: u16,
    outbox: VecDeque<Transmit<Message>>,
    naks: u64,
    rejects: RejectCounts,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// Makes a receiver with these settings.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: ReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            waits: Waits { seed: config.seed },
            chance: RandomStream::derive(config.seed, &[u64::from(config.node.0), 1]),
            config,
            remotes: Vec::new(),
            next_object: 0,
            over: VecDeque::new(),
            sequence: 0,
            outbox: VecDeque::new(),
            naks: 0,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
        })
    }

    /// Returns the place of `object`, if it is at hand: the sender's index, and the object's number.
    fn find(&self, object: ObjectId) -> Option<ObjectIndex> {
        self.remotes.iter().enumerate().find_map(|(at, remote)| {
            let found = remote.objects.iter().find(|(_, found)| found.content.id == object);
            found.map(|(&number, _)| ObjectIndex { at, number })
        })
    }

    fn object_mut(&mut self, ObjectIndex { at, number }: ObjectIndex) -> Option<&mut Object> {
        self.remotes.get_mut(at)?.objects.get_mut(&number)
    }
}

/// Answers of the owner.
impl Receiver {
    /// Accepts `object`, of which the owner has these segments. A bitmap of another length counts as empty.
    pub fn accept(&mut self, now: Time, object: ObjectId, held: &Bitmap) {
        let Some(place) = self.find(object) else { return };
        let Some(object) =
            self.object_mut(place).filter(|object| object.content.state == ContentState::Opening)
        else {
            return;
        };
        object.content.state = ContentState::Receiving;
        let missed = core::mem::take(&mut object.missed);
        if !held.is_empty() {
            self.remotes[place.at].fed = Some(now);
        }
        self.hold(place, held);
        if missed {
            self.consider(now, place.at);
        }
    }

    /// Adds segments of `object` that the owner has.
    pub fn held(&mut self, object: ObjectId, held: &Bitmap) {
        if let Some(place) = self.find(object) {
            self.hold(place, held);
        }
    }

    fn hold(&mut self, ObjectIndex { at, number }: ObjectIndex, held: &Bitmap) {
        if let Some(object) = self.remotes[at].objects.get_mut(&number) {
            object.content.hold(held, &mut self.events);
        }
    }

    /// Marks segments of `object` as missing again.
    pub fn lost(&mut self, object: ObjectId, segments: Run) {
        let Some(place) = self.find(object) else { return };
        let Some(object) = self.object_mut(place) else { return };
        object.content.lose(segments);
        // The sender of a session that is over repeats nothing.
        if object.content.is_receiving() && self.remotes[place.at].past {
            self.give_up(place);
        }
    }

    /// Notes that a block of `object` was rebuilt, or could not be.
    pub fn decoded(&mut self, object: ObjectId, block: u32, rebuilt: bool) {
        let Some(ObjectIndex { at, number }) = self.find(object) else { return };
        if let Some(object) = self.remotes[at].objects.get_mut(&number) {
            object.content.decoded(block, rebuilt, &mut self.events);
        }
    }

    /// Notes that all of `object` is verified and has its final name.
    pub fn verified(&mut self, now: Time, object: ObjectId) {
        let Some(ObjectIndex { at, number }) = self.find(object) else { return };
        let verifying = |object: &mut Object| object.content.state == ContentState::Verifying;
        if self.object_mut(ObjectIndex { at, number }).is_some_and(verifying) {
            self.end(ObjectIndex { at, number }, Outcome::Complete(now));
            self.remotes[at].fed = Some(now);
            self.pay(now, at);
            self.look_whether_through(at);
        }
    }

    /// Declines `object`, which the owner does not want or cannot keep.
    pub fn decline(&mut self, object: ObjectId) {
        if let Some(ObjectIndex { at, number }) = self.find(object) {
            self.remotes[at].note_failed(number);
            self.end(ObjectIndex { at, number }, Outcome::Failed);
        }
    }

    /// Postpones an object for which its owner has no room now. The receiver asks for the object again later.
    pub fn postpone(&mut self, object: ObjectId) {
        if let Some(found) = self.find(object) {
            self.give_up(found);
        }
    }

    /// Handles the end or the silence of a sender. Objects that the owner verifies still count. An object that lacks
    /// only its INFO counts as complete.
    fn gone(&mut self, at: usize) {
        let numbers: Vec<u32> = self.remotes[at].objects.keys().copied().collect();
        for number in numbers {
            if let Some(object) = self.remotes[at].objects.get_mut(&number) {
                object.content.name(&mut self.events);
            }
            if self.object_mut(ObjectIndex { at, number }).is_some_and(|object| object.content.is_receiving())
            {
                self.give_up(ObjectIndex { at, number });
            }
        }
        let remote = &mut self.remotes[at];
        remote.gone = true;
        for timer in [Timer::Backoff, Timer::Holdoff, Timer::Inactivity, Timer::Report] {
            remote.timers.stop(timer);
        }
    }

    fn end(&mut self, ObjectIndex { at, number }: ObjectIndex, outcome: Outcome) {
        let received = self.remotes[at].received(number).unwrap_or_default();
        let Some(object) = self.remotes[at].objects.remove(&number) else { return };
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back((object.content.id, received));
        self.events.push_back(ReceiverEvent::Ended(object.content.id, outcome));
    }

    /// Cancels the back-off of a request if nothing is lacking any more.
    fn look_whether_through(&mut self, at: usize) {
        if !self.remotes[at].is_lacking() {
            self.remotes[at].timers.stop(Timer::Backoff);
        }
    }
}

/// Messages of the receiver.
impl Receiver {
    /// Begins the back-off of a request, unless nothing is lacking, the back-off runs already, or the receiver has just
    /// asked.
    fn consider(&mut self, now: Time, at: usize) {
        let slots = self.slots(at);
        let remote = &mut self.remotes[at];
        remote
            .objects
            .values_mut()
            .for_each(|object| object.missed |= object.content.state == ContentState::Opening);
        let waits = remote.timers.is_set(Timer::Backoff) || remote.timers.is_set(Timer::Holdoff);
        if self.config.silent || waits || !remote.has_need(now, slots) {
            return;
        }
        remote.heard = Heard::default();
        let wait = self.waits.backoff(self.config.node, now, remote.terms, remote.grtt);
        remote.timers.set(Timer::Backoff, now + wait);
    }

    /// Sends requests for lacking content, unless the sender has returned to this content or others have asked for it.
    fn ask(&mut self, now: Time, at: usize) {
        let slots = self.slots(at);
        let remote = &mut self.remotes[at];
        let Some(from) = remote.needs_from(now, slots) else { return };
        remote.asked_from = from;
        remote.timers.set(Timer::Holdoff, now + holdoff(remote.terms, remote.grtt));
        if remote.is_covered(now, slots) {
            return;
        }
        let mut rest = Some((0, 0));
        for _ in 0..MESSAGES {
            let Some(from) = rest else { return };
            let remote = &mut self.remotes[at];
            let room = remote.credit.saturating_sub(HEADER);
            let need = remote.need(now, slots, from, usize::try_from(room).unwrap_or(usize::MAX));
            if need.requests.is_empty() {
                return;
            }
            self.naks += 1;
            for (number, asked) in need.asked {
                if let Some(object) = remote.objects.get_mut(&number) {
                    object.content.received.naks += u64::from(asked > 0);
                }
            }
            self.say(now, at, Answer::Nack(need.requests));
            // A request that does not fit an empty message is never sent.
            rest = need.rest.filter(|rest| *rest > from);
        }
    }

    /// Sends an answer to a sender, if the credit of that sender allows its length.
    fn say(&mut self, now: Time, at: usize, answer: Answer) {
        let response = self.remotes[at].probed.map(|(sent, at)| sent.later(now.since(at)));
        let flushed = matches!(answer, Answer::Flushed { .. });
        let feedback = if flushed { None } else { self.feedback(now, at) };
        self.send(at, response, feedback, answer);
    }

    fn send(&mut self, at: usize, response: Option<Stamp>, feedback: Option<Feedback>, answer: Answer) {
        let remote = &mut self.remotes[at];
        let (sender, instance) = (remote.key.node, remote.key.instance);
        let said = FromReceiver { sender, instance, response, feedback, answer };
        let message =
            Message { source: self.config.node, sequence: self.sequence, body: Body::Receiver(said) };
        let Some(credit) = remote.credit.checked_sub(message.wire_len(0) as u64) else { return };
        remote.credit = credit;
        self.sequence = self.sequence.wrapping_add(1);
        let to = if self.config.unicast { remote.key.source } else { self.config.group };
        self.outbox.push_back(Transmit::new(message, to));
    }

    fn silent(&mut self, now: Time, at: usize) {
        let robust = self.config.robust;
        let remote = &mut self.remotes[at];
        remote.silences += 1;
        if remote.silences > robust || !remote.is_lacking() {
            return self.gone(at);
        }
        let silence = silence(remote.grtt, robust);
        remote.timers.set(Timer::Inactivity, now + silence);
        self.consider(now, at);
    }

    fn on(&mut self, now: Time, at: usize, timer: Timer) {
        match timer {
            Timer::Backoff => self.ask(now, at),
            Timer::Holdoff | Timer::Rest => {}
            Timer::Ack => {
                if let Some(answer) = self.remotes[at].ack.take() {
                    self.say(now, at, answer);
                }
            }
            Timer::Inactivity => self.silent(now, at),
            Timer::Report => self.report(now, at),
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
        for at in 0..self.remotes.len() {
            while let Some(timer) = self.remotes[at].timers.expire(now) {
                self.on(now, at, timer);
            }
        }
    }

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Message>> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.remotes.iter().filter_map(|remote| remote.timers.next()).min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }

    fn prefix(&self, message: &Message) -> NonZeroU32 {
        let Some(data) = message.data() else { return message.segments() };
        let Body::Sender(terms, _) = &message.body else { return NonZeroU32::MIN };
        // If two senders have the same id, only the source address tells whose message it is.
        let of =
            |remote: &&Remote| (remote.key.node, remote.key.instance) == (message.source, terms.instance);
        let mut found = self.remotes.iter().filter(|remote| !remote.past).filter(of);
        match (found.next(), found.next()) {
            (Some(remote), None) => remote.prefix(data),
            _ => NonZeroU32::MIN,
        }
    }
}

impl ReceiverEngine for Receiver {
    fn request(event: &ReceiverEvent) -> Option<Request<'_>> {
        event.request()
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: OwnerAnswer) {
        match answer {
            OwnerAnswer::Open(held) | OwnerAnswer::OpenEarlier(held, _) => self.accept(now, object, &held),
            OwnerAnswer::Declined(Decline::Busy) => self.postpone(object),
            OwnerAnswer::Declined(_) | OwnerAnswer::Failed(..) => self.decline(object),
            OwnerAnswer::Held(held) | OwnerAnswer::Compared(held) => self.held(object, &held),
            OwnerAnswer::Lost(segments) => self.lost(object, segments),
            OwnerAnswer::Decoded { block, rebuilt } => self.decoded(object, block, rebuilt),
            OwnerAnswer::Verified => self.verified(now, object),
            OwnerAnswer::ListIs(_) | OwnerAnswer::Listed => {}
        }
    }

    fn stop(&mut self, _now: Time) {
        for at in 0..self.remotes.len() {
            while let Some((&number, _)) = self.remotes[at].objects.first_key_value() {
                self.remotes[at].note_failed(number);
                self.end(ObjectIndex { at, number }, Outcome::Failed);
            }
            self.leave(at);
            self.gone(at);
        }
    }

    fn moved(&mut self, _now: Time) {}

    fn begins_anew(&mut self, _now: Time, who: &Proved<'_>) {
        for at in 0..self.remotes.len() {
            if self.remotes[at].key.node.0 == who.number.sender() {
                // Objects of the old session that are being verified still count.
                self.gone(at);
                self.remotes[at].pass();
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.remotes.iter().any(Remote::is_busy)
    }

    fn is_busy_with(&self, source: SocketAddr) -> bool {
        let is_of = |remote: &Remote| remote.key.source == source || remote.former == Some(source);
        self.remotes.iter().any(|remote| is_of(remote) && remote.is_busy())
    }

    fn erasure_code(&self, object: ObjectId) -> ErasureCode {
        let object =
            self.find(object).and_then(|ObjectIndex { at, number }| self.remotes[at].objects.get(&number));
        object.map_or(ErasureCode::Unknown, |object| object.fec.erasure_code())
    }

    fn have(&self, object: ObjectId) -> Option<&Bitmap> {
        let ObjectIndex { at, number } = self.find(object)?;
        self.remotes[at].objects.get(&number).map(|object| &object.content.have)
    }

    fn unstored(&mut self, from: &Arrival, message: &Message) {
        let Body::Sender(terms, _) = &message.body else { return };
        let key = Key { source: from.source, node: message.source, instance: terms.instance };
        if let Some(remote) = self.remotes.iter_mut().find(|remote| remote.key == key) {
            remote.passage.came_numbered_by_16_bits(message.sequence, message.segments().get());
        }
    }

    fn received(&self, object: ObjectId) -> Received {
        let at_hand =
            self.find(object).and_then(|ObjectIndex { at, number }| self.remotes[at].received(number));
        let over = || self.over.iter().rev().find(|(over, _)| *over == object).map(|&(_, received)| received);
        at_hand.or_else(over).unwrap_or_default()
    }

    fn missed(&self, source: SocketAddr) -> u32 {
        let left = self.remotes.iter().filter(|remote| remote.key.source == source && remote.gone);
        let numbers = left.filter(|remote| remote.fed.is_some()).filter_map(|remote| remote.numbers.as_ref());
        numbers.map(Numbers::missed).fold(0, u32::saturating_add)
    }

    fn naks(&self) -> u64 {
        self.naks
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}
