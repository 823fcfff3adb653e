//! The receiver: takes the objects of one sender, and requests what it lacks (draft §4.2, §4.3).

mod content;
mod hearing;
mod nack;
mod runs;
mod session;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Run, Span, Time, Timers, timers};
use farcast_delivery::nack::quantise::Rtt;
use farcast_delivery::nack::{ContentState, ObjectContent, random_backoff};
use farcast_delivery::{
    Answer as OwnerAnswer, Decline, ObjectId, Outcome, Proved, Received, ReceiverEngine,
    Request as OwnerRequest,
};

use crate::config::{MOST_OBJECTS, ReceiverConfig};
use crate::error::ConfigError;
use crate::event::ReceiverEvent;
use crate::message::{Answer, Body, FromReceiver, Info, Message, ObjectNack, Request};
use crate::wire::{self, NACK_HEADER, request_len};

use nack::Heard;
use session::{Done, Key, Probed, Session, Standing};

timers! {
    /// The receiver's timers.
    enum Timer {
        /// The back-off of a request ends.
        Backoff = "back-off",
        /// The data requested last have had time to come.
        Holdoff = "hold-off",
        /// Acknowledgements leave.
        Ack = "acknowledge",
        /// The answer to a probe leaves.
        Answer = "answer a probe",
        /// Nothing was heard of the sender for long.
        Inactivity = "inactivity",
    }
}

/// Longest wait before a request, and pause after one, in round trips (draft §4.3).
const BACKOFF: u64 = 1;
const HOLDOFF: u64 = 4;

/// Maximum distance by which an object may lie behind the last known one and still be wanted.
const WINDOW: u32 = MOST_OBJECTS as u32;

/// Complete objects that are kept until the sender asks for their acknowledgement.
const COMPLETE: usize = 8;

/// Number of finished objects whose counters are remembered.
const REMEMBERED: usize = 256;

/// Maximum number of objects that wait to be acknowledged.
const DUE: usize = 256;

/// Engine of a receiver, which takes the objects of one sender at a time.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    session: Option<Session>,
    /// Last probe of a sender that is not the current one.
    early: Option<(Key, Probed)>,
    /// INFO messages of objects of which nothing else had come.
    infos: VecDeque<(Key, Info)>,
    /// Id of the next object.
    next_id: ObjectId,
    heard: Heard,
    /// Objects that are to be acknowledged.
    due: Vec<u32>,
    /// Objects that the sender asked to acknowledge, and that have yet to be begun or verified here.
    waiting: BTreeSet<u32>,
    timers: Timers<Timer>,
    random: RandomStream,
    outbox: VecDeque<Transmit<Message>>,
    naks: u64,
    rejects: RejectCounts,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// Creates a receiver with these settings.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(config: ReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            random: RandomStream::derive(config.seed, &[u64::from(config.node.0)]),
            config,
            session: None,
            early: None,
            infos: VecDeque::new(),
            next_id: ObjectId::FIRST,
            heard: Heard::default(),
            due: Vec::new(),
            waiting: BTreeSet::new(),
            timers: Timers::default(),
            outbox: VecDeque::new(),
            naks: 0,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
        })
    }

    /// Returns the finished and the complete objects by the sender's numbers, each with the time of its completion.
    /// `None` stands for an object that was given up. Only the last 256 finished objects are known.
    pub fn objects(&self) -> impl Iterator<Item = (u32, Option<Time>)> + '_ {
        let complete = |(&object, one): (&u32, &session::Incoming)| match one.content.state {
            ContentState::Complete(at) => Some((object, Some(at))),
            _ => None,
        };
        let session = self.session.iter();
        session.flat_map(move |session| {
            let done = session.done.iter().map(|done| (done.object, done.at));
            done.chain(session.objects.iter().filter_map(complete))
        })
    }

    /// Returns the number of requests for repair that were sent.
    pub fn naks(&self) -> u64 {
        self.naks
    }

    /// Returns the counts of rejected messages, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}

/// Answers of the owner.
impl Receiver {
    /// Accepts the object, of which the owner already has the segments `held`; a bitmap of another length counts as
    /// empty.
    pub fn accept(&mut self, id: ObjectId, held: &Bitmap) {
        let opening = |content: &&mut ObjectContent| content.state == ContentState::Opening;
        let Some(content) = self.content(id).filter(opening) else { return };
        content.state = ContentState::Receiving;
        let none = Bitmap::default();
        let held = if held.len() == content.have.len() { held } else { &none };
        if let Some(session) = self.session.as_mut().filter(|_| !held.is_empty()) {
            session.fed = session.fed.or(Some(session.last_heard));
        }
        self.held(id, held);
    }

    /// Resumes requests that were put off until the owner had answered.
    pub(crate) fn resume(&mut self, now: Time) {
        if self.session.as_mut().is_some_and(|session| core::mem::take(&mut session.put_off)) {
            self.consider(now);
        }
    }

    /// Notes that the owner has the segments `held` besides.
    pub fn held(&mut self, id: ObjectId, held: &Bitmap) {
        let mut objects = self.session.iter_mut().flat_map(|session| session.objects.values_mut());
        if let Some(one) = objects.find(|one| one.content.id == id) {
            one.content.hold(held, &mut self.events);
        }
    }

    /// Notes that these segments have to come again.
    pub fn lost(&mut self, id: ObjectId, segments: Run) {
        let complete = |content: &ObjectContent| matches!(content.state, ContentState::Complete(_));
        if let Some(content) = self.content(id).filter(|content| !complete(content)) {
            content.lose(segments);
        }
        // Nobody sends these segments any more.
        if self.session.as_ref().is_some_and(|session| session.standing == Standing::Past) {
            self.gone();
        }
    }

    /// Notes that a block was rebuilt, or could not be.
    pub fn decoded(&mut self, id: ObjectId, block: u32, rebuilt: bool) {
        let mut objects = self.session.iter_mut().flat_map(|session| session.objects.values_mut());
        if let Some(one) = objects.find(|one| one.content.id == id) {
            one.content.decoded(block, rebuilt, &mut self.events);
        }
    }

    /// Notes that the whole object is verified and has its final name. The sender may still ask for it.
    pub fn verified(&mut self, now: Time, id: ObjectId) {
        let verifying = |content: &&mut ObjectContent| content.state == ContentState::Verifying;
        let Some(content) = self.content(id).filter(verifying) else { return };
        content.state = ContentState::Complete(now);
        let Some(session) = &mut self.session else { return };
        session.fed = Some(now);
        let complete =
            session.objects.iter().filter(|(_, one)| matches!(one.content.state, ContentState::Complete(_)));
        let complete: Vec<u32> = complete.map(|(&object, _)| object).collect();
        // A silent receiver is not asked, and a sender that has left does not ask.
        let keep = if session.standing != Standing::Here || self.config.silent { 0 } else { COMPLETE };
        let over = complete.len().saturating_sub(keep);
        for &object in &complete[..over] {
            self.complete(object);
        }
        let Some(session) = &self.session else { return };
        // There may be room now for objects sent meanwhile, and everything requested before has come.
        if session.may_go_on() {
            self.timers.stop(Timer::Holdoff);
        }
        self.consider(now);
    }

    /// Declines the object, which the owner does not want or cannot keep.
    pub fn decline(&mut self, id: ObjectId) {
        if let Some(object) = self.number_of(id) {
            self.end(object, Outcome::Failed);
        }
    }

    /// Puts an object off for which the owner has no room now; the receiver will request it again.
    pub fn postpone(&mut self, now: Time, id: ObjectId) {
        let Some(object) = self.number_of(id) else { return };
        self.end(object, Outcome::Lost);
        if let Some(session) = &mut self.session {
            session.over.remove(object);
            session.unheard.insert(Run::one(object));
        }
        self.consider(now);
    }

    /// Returns the number of the object that its owner knows by `id`.
    fn number_of(&self, id: ObjectId) -> Option<u32> {
        let mut objects = self.session.iter().flat_map(|session| &session.objects);
        objects.find(|(_, one)| one.content.id == id).map(|(&object, _)| object)
    }

    /// Ends `object` if it is complete. Returns `true` if it is.
    fn complete(&mut self, object: u32) -> bool {
        let one = self.session.as_ref().and_then(|session| session.objects.get(&object));
        let Some(ContentState::Complete(at)) = one.map(|one| one.content.state) else { return false };
        self.end(object, Outcome::Complete(at));
        true
    }

    fn end(&mut self, object: u32, outcome: Outcome) {
        let Some(session) = &mut self.session else { return };
        let Some(one) = session.objects.remove(&object) else { return };
        if session.done.len() == REMEMBERED {
            session.done.pop_front();
        }
        let received = one.content.received.passed(one.content.passage, session.passage);
        let at = if let Outcome::Complete(at) = outcome { Some(at) } else { None };
        session.done.push_back(Done { object, id: one.content.id, at, received });
        session.over.insert(Run::one(object));
        if at.is_some() {
            session.complete.insert(Run::one(object));
        }
        self.events.push_back(ReceiverEvent::Ended(one.content.id, outcome));
    }
}

/// Returns the silence of a sender after which the receiver acts (draft §4.3).
fn silence(grtt: Rtt, robust: u32) -> Span {
    (grtt.span() * 2 * u64::from(robust)).max(Span::from_secs(1))
}

/// Messages of the receiver.
impl Receiver {
    /// Starts the back-off of a request for missing data, unless it runs already or a request has just left.
    fn consider(&mut self, now: Time) {
        let Some(session) = &self.session else { return };
        let waits = self.timers.is_set(Timer::Backoff) || self.timers.is_set(Timer::Holdoff);
        let has_reason = session.has_need() || !self.waiting.is_empty();
        if self.config.silent || waits || !has_reason {
            return;
        }
        self.heard = Heard::default();
        let most = session.grtt.span() * BACKOFF;
        let wait = random_backoff(most, self.config.receivers, &mut self.random);
        self.timers.set(Timer::Backoff, now + wait);
    }

    /// Requests missing data, unless the sender has gone back to them or others have requested them.
    fn ask(&mut self, now: Time) {
        let waiting = core::mem::take(&mut self.waiting);
        let Some(session) = &mut self.session else { return };
        if !session.may_ask() {
            session.put_off = session.has_need();
            return self.have_wait(now, &waiting);
        }
        self.timers.set(Timer::Holdoff, now + session.grtt.span() * HOLDOFF);
        if session.is_covered(&self.heard) {
            return;
        }
        let room = session.credit.saturating_sub(wire::FROM_RECEIVER as u64);
        let nacks = session.requests(usize::try_from(room).unwrap_or(usize::MAX));
        for nack in nacks.iter().filter(|nack| nack.requests.contains(&Request::Info)) {
            match session.objects.get_mut(&nack.object) {
                Some(one) => one.info_asked += 1,
                None => *session.info_asked.entry(nack.object).or_insert(0) += 1,
            }
        }
        let objects = nacks.iter().map(|nack| nack.object);
        session.asked = objects.filter(|&object| session.unheard.contains(object)).collect();
        // Of objects that a sender only names, no more is remembered than one request holds.
        session.info_asked.retain(|object, _| session.asked.contains(object));
        let first = nacks.first().and_then(|nack| session.objects.get_mut(&nack.object));
        if let Some(one) = first {
            one.content.received.naks += 1;
        }
        self.naks += 1;
        self.say(now, Answer::Nack(nacks));
    }

    /// Makes a sender wait that asked for acknowledgement of these objects, which are being verified or have no room
    /// yet. Requests their INFO, which is short: a sender does not give up a receiver that requests something.
    fn have_wait(&mut self, now: Time, waiting: &BTreeSet<u32>) {
        let Some(session) = &self.session else { return };
        let is_new = |object: &&u32| session.is_to_come(**object) && !self.heard.has_info(**object);
        let nacks: Vec<ObjectNack> = waiting
            .iter()
            .filter(is_new)
            .map(|&object| ObjectNack { object, requests: alloc::vec![Request::Info] })
            .take(usize::from(session.segment_size) / (NACK_HEADER + request_len(&Request::Info)))
            .collect();
        if !nacks.is_empty() {
            self.timers.set(Timer::Holdoff, now + session.grtt.span() * HOLDOFF);
            self.naks += 1;
            self.say(now, Answer::Nack(nacks));
        }
    }

    /// Sends `answer` to the sender, unless the sender has not sent enough octets to be answered.
    fn say(&mut self, now: Time, answer: Answer) {
        let Some(session) = &mut self.session else { return };
        let response = session.probed.map(|probed| probed.sent.later(now.since(probed.at)));
        let said = FromReceiver {
            server: session.key.sender,
            response,
            loss: session.loss.estimate,
            probe: session.probed.map_or(0, |probed| probed.sequence),
            answer,
        };
        let to = if self.config.unicast { session.key.source } else { self.config.group };
        let message = Message { source: self.config.node, body: Body::Receiver(said) };
        let Some(credit) = session.credit.checked_sub(message.wire_len(0) as u64) else { return };
        session.credit = credit;
        self.outbox.push_back(Transmit::new(message, to));
    }

    fn silent(&mut self, now: Time) {
        let Some(session) = &mut self.session else { return };
        session.silences += 1;
        if session.is_complete() || session.silences > self.config.robust {
            self.gone();
            return;
        }
        self.timers.set(Timer::Inactivity, now + silence(session.grtt, self.config.robust));
        self.consider(now);
    }

    fn on(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Backoff => self.ask(now),
            Timer::Holdoff => {}
            Timer::Ack => {
                for object in core::mem::take(&mut self.due) {
                    self.say(now, Answer::Object(object));
                }
            }
            Timer::Answer => self.say(now, Answer::Probe),
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

impl ReceiverEngine for Receiver {
    fn request(event: &ReceiverEvent) -> Option<OwnerRequest<'_>> {
        event.request()
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: OwnerAnswer) {
        match answer {
            OwnerAnswer::Open(held) | OwnerAnswer::OpenEarlier(held, _) => {
                self.accept(object, &held);
                self.resume(now);
            }
            OwnerAnswer::Declined(Decline::Busy) => self.postpone(now, object),
            OwnerAnswer::Declined(_) | OwnerAnswer::Failed(..) => self.decline(object),
            OwnerAnswer::Held(held) | OwnerAnswer::Compared(held) => self.held(object, &held),
            OwnerAnswer::Lost(segments) => self.lost(object, segments),
            OwnerAnswer::Decoded { block, rebuilt } => self.decoded(object, block, rebuilt),
            OwnerAnswer::Verified => self.verified(now, object),
            OwnerAnswer::ListIs(_) | OwnerAnswer::Listed => {}
        }
    }

    fn stop(&mut self, _now: Time) {
        let all: Vec<u32> = self.session.iter().flat_map(|session| session.objects.keys().copied()).collect();
        for object in all {
            if !self.complete(object) {
                self.end(object, Outcome::Failed);
            }
        }
        if let Some(session) = &mut self.session {
            session.miss();
        }
    }

    fn moved(&mut self, _now: Time) {}

    /// Ends the session of the sender. Verification by the owner still counts, and the receiver sends nothing more
    /// about this session.
    fn begins_anew(&mut self, _now: Time, who: &Proved<'_>) {
        let sender = who.number.sender();
        self.early = self.early.take().filter(|(key, _)| key.sender.0 != sender);
        if self.session.as_ref().is_none_or(|session| session.key.sender.0 != sender) {
            return;
        }
        self.gone();
        self.due.clear();
        self.waiting.clear();
        self.timers = Timers::default();
        if let Some(session) = &mut self.session {
            (session.standing, session.credit) = (Standing::Past, 0);
        }
    }

    fn is_busy(&self) -> bool {
        // A sender of which no content has come keeps nobody waiting.
        self.session.as_ref().is_some_and(|session| session.fed.is_some() && !session.is_idle())
    }

    fn is_busy_with(&self, source: SocketAddr) -> bool {
        self.session.as_ref().is_some_and(|session| session.key.source == source) && self.is_busy()
    }

    fn have(&self, object: ObjectId) -> Option<&Bitmap> {
        let mut contents = self.session.as_ref()?.objects.values().map(|one| &one.content);
        contents.find(|content| content.id == object).map(|content| &content.have)
    }

    fn unstored(&mut self, from: &Arrival, message: &Message) {
        let Body::Sender(head, _) = &message.body else { return };
        let key = Key { source: from.source, sender: message.source };
        if let Some(session) = self.session.as_mut().filter(|session| session.key == key) {
            session.passage.came_numbered_by_16_bits(head.sequence, message.segments().get());
        }
    }

    fn received(&self, object: ObjectId) -> Received {
        let Some(session) = &self.session else { return Received::default() };
        let mut contents = session.objects.values().map(|one| &one.content);
        let at_hand = contents.find(|content| content.id == object);
        let at_hand = at_hand.map(|content| content.received.passed(content.passage, session.passage));
        let done = || session.done.iter().find(|done| done.id == object).map(|done| done.received);
        at_hand.or_else(done).unwrap_or_default()
    }

    fn missed(&self, source: SocketAddr) -> u32 {
        let session = self.session.as_ref().filter(|session| session.key.source == source);
        session.map_or(0, |session| session.missed)
    }

    fn naks(&self) -> u64 {
        self.naks
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}
