//! Reactions of a receiver to the messages of senders and of other receivers.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::engine::{Arrival, Message as _, Reject};
use farcast_core::{Run, Span, Time, Timers};
use farcast_delivery::nack::quantise::Rtt;
use farcast_delivery::nack::{ContentState, NodeId, ObjectContent, earned};
use farcast_delivery::{ObjectId, Outcome, Passage};

use super::nack::Heard;
use super::runs::Runs;
use super::session::{Incoming, Key, Loss, Probed, Session, Standing};
use super::{DUE, Receiver, Timer, WINDOW, silence};
use crate::config::Sync;
use crate::event::ReceiverEvent;
use crate::message::{
    About, Answer, Body, Data, Flags, FromReceiver, FromSender, Head, Info, Message, Probe,
};

/// Octets of a segment, which limit NACKs, until a message tells them.
const SEGMENT: u16 = 512;

/// The longest time over which answers to a probe are spread.
const HOLD: Span = Span::from_secs(60);

/// The longest round trip that is accepted from a sender.
const GRTT_MOST: Span = Span::from_secs(10);

/// Number of INFO messages that are remembered from senders without content.
const INFOS: usize = 64;

/// Silence at a sender's old address after which it may continue from another address.
const MOVES: Span = Span::from_millis(500);

impl Receiver {
    pub(super) fn hear(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match &message.body {
            Body::Sender(head, said) if message.source.is_somebody() => {
                let key = Key { source: from.source, sender: message.source };
                let noted = self.note_sender(now, from, key, said);
                self.note_early(now, key, said);
                noted?;
                if let Some(session) = &mut self.session {
                    let grtt = if head.grtt.span() > GRTT_MOST { Rtt::of(GRTT_MOST) } else { head.grtt };
                    (session.grtt, session.standing, session.last_heard) = (grtt, Standing::Here, now);
                    let count = message.segments().get();
                    session.loss.came(head.sequence, count);
                    session.passage.came_numbered_by_16_bits(head.sequence, count);
                    let octets = message.wire_len(0) as u64 * u64::from(count);
                    session.credit = earned(session.credit, octets);
                    self.timers.set(Timer::Inactivity, now + silence(session.grtt, self.config.robust));
                }
                self.hear_sender(now, *head, said)
            }
            Body::Receiver(said) if message.source != self.config.node => self.hear_other(said),
            _ => Err(Reject::Collision),
        }
    }

    /// Remembers messages of a sender that has sent no content yet: its probe, whose time counts from now on, and its
    /// INFO, which it sends only once.
    fn note_early(&mut self, now: Time, key: Key, said: &FromSender) {
        let fed = self.session.as_ref().is_some_and(|session| session.key == key && session.fed.is_some());
        match said {
            FromSender::Probe(probe) if self.session.as_ref().is_none_or(|session| session.key != key) => {
                self.early = Some((key, Probed { sequence: probe.sequence, sent: probe.sent, at: now }));
            }
            FromSender::Info(info) if !fed => {
                self.infos.retain(|(of, old)| *of != key || old.about.object != info.about.object);
                if self.infos.len() == INFOS {
                    self.infos.pop_front();
                }
                self.infos.push_back((key, info.clone()));
            }
            _ => {}
        }
    }

    /// Names `object`, which was begun by its content, from an earlier INFO.
    fn recall_info(&mut self, object: u32) -> Result<(), Reject> {
        let Some(session) = &self.session else { return Ok(()) };
        let found =
            self.infos.iter().position(|(of, info)| *of == session.key && info.about.object == object);
        let Some((_, info)) = found.and_then(|at| self.infos.remove(at)) else { return Ok(()) };
        self.learn(&info.about, info.segment_size, Some(&info)).map(drop)
    }

    /// Checks that a message comes from the current sender, or begins with another one.
    fn note_sender(&mut self, now: Time, from: &Arrival, key: Key, said: &FromSender) -> Result<(), Reject> {
        let begins_with = self.begins_with(said);
        if let Some(session) = &mut self.session {
            let begins_anew = match said {
                // INFO of a known number after silence shows that the sender was started again.
                FromSender::Info(info) => {
                    session.standing == Standing::Left
                        && begins(&info.about)
                        && info.about.object < session.next
                }
                _ => false,
            };
            if session.key == key && !begins_anew && session.standing != Standing::Past {
                session.silences = 0;
                return Ok(());
            }
            // A node is known by its id. If it sends from another address, it was started again. If it is still heard
            // at the old address, it is another node with the same id.
            let moved = session.key.sender == key.sender && now.since(session.last_heard) >= MOVES;
            if moved && begins_with.is_some() {
                self.gone();
            }
            let yields = self.session.as_ref().is_none_or(|session| session.yields(now, said));
            if !yields || begins_with.is_none() {
                return Err(Reject::OtherSession);
            }
            self.leave();
        }
        let Some((object, late)) = begins_with else { return Err(Reject::Unexpected) };
        self.session = Some(Session {
            key,
            group: from.destination,
            grtt: Rtt::of(Span::from_millis(500)),
            segment_size: SEGMENT,
            objects: BTreeMap::new(),
            unheard: Runs::default(),
            info_asked: BTreeMap::new(),
            asked: BTreeSet::new(),
            missed: 0,
            over: Runs::default(),
            complete: Runs::default(),
            sync: object,
            next: object,
            position: (object, 0),
            probed: self.early.take().filter(|early| early.0 == key).map(|early| early.1),
            silences: 0,
            done: VecDeque::new(),
            loss: Loss::default(),
            passage: Passage::default(),
            standing: Standing::Here,
            late,
            put_off: false,
            begun: now,
            last_heard: now,
            fed: None,
            credit: 0,
        });
        Ok(())
    }

    /// Returns the object with which a receiver may begin here, and `true` if that is in the midst of a transmission.
    fn begins_with(&self, said: &FromSender) -> Option<(u32, bool)> {
        let (object, begins) = match said {
            FromSender::Info(info) => (info.about.object, begins(&info.about)),
            FromSender::Data(data) => {
                (data.about.object, !data.parity && data.block == 0 && begins(&data.about))
            }
            FromSender::Flush { eot: false, object } => (*object, false),
            _ => return None,
        };
        (begins || self.config.sync == Sync::Anywhere).then_some((object, !begins))
    }

    fn hear_sender(&mut self, now: Time, head: Head, said: &FromSender) -> Result<(), Reject> {
        match said {
            FromSender::Info(info) => {
                let fresh = self.learn(&info.about, info.segment_size, Some(info))?;
                let Some(session) = &mut self.session else { return Ok(()) };
                // Repeated INFO tells little of the sender's position.
                if (info.about.object, 0) > session.position {
                    session.position = (info.about.object, 0);
                    self.consider(now);
                } else if fresh && session.late {
                    // INFO was requested first, so that the rest may be requested now.
                    self.timers.stop(Timer::Holdoff);
                    self.consider(now);
                }
                Ok(())
            }
            FromSender::Data(data) => {
                let learned = self.learn(&data.about, data.segment_size, None);
                if learned == Err(Reject::Limit) {
                    self.follow(now, data);
                }
                let fresh = learned?;
                if fresh {
                    // INFO that contradicts the object is ignored.
                    let _ = self.recall_info(data.about.object);
                }
                self.data(now, data, fresh)
            }
            FromSender::Flush { eot, object } => {
                self.passed(now, *object)?;
                if *eot {
                    self.gone();
                }
                Ok(())
            }
            FromSender::Squelch { sync, invalid } => {
                let Some(session) = &self.session else { return Err(Reject::Unexpected) };
                let gone = |object: &u32| object < sync || invalid.contains(object);
                let gone: alloc::vec::Vec<u32> = session.objects.keys().copied().filter(gone).collect();
                for object in gone {
                    let is_listed = invalid.contains(&object);
                    let why = if is_listed { Outcome::Missed } else { Outcome::Lost };
                    self.give_up(object, why);
                }
                self.forget(*sync, invalid);
                Ok(())
            }
            FromSender::AckReq { object, nodes } => self.acknowledge(now, head, *object, nodes),
            FromSender::Probe(probe) => {
                self.probe(now, probe);
                Ok(())
            }
            FromSender::NackAdv(nacks) => {
                self.overhear(nacks);
                Ok(())
            }
        }
    }

    /// Checks that `object` may be received, and notes the numbers up to it as known.
    fn enter(&mut self, object: u32) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        if object < session.sync {
            let wanted = session.objects.contains_key(&object) || session.unheard.contains(object);
            return if wanted { Ok(()) } else { Err(Reject::Unexpected) };
        }
        if object == u32::MAX {
            return Err(Reject::OutOfRange);
        }
        if object.saturating_sub(session.next) > WINDOW {
            // Objects so far behind are given up (draft §4.2).
            let all: alloc::vec::Vec<u32> = session.objects.keys().copied().collect();
            (session.sync, session.next) = (object, object);
            for behind in all {
                self.lose(behind);
            }
            self.forget(object, &[]);
        }
        if let Some(session) = &mut self.session
            && let Some(more) = (object + 1).checked_sub(session.next)
            && let Some(run) = Run::new(session.next, more)
        {
            session.unheard.insert(run);
            session.next = run.end();
        }
        Ok(())
    }

    /// Forgets objects before `sync` and the `invalid` ones, which the sender has no more.
    fn forget(&mut self, sync: u32, invalid: &[u32]) {
        let Some(session) = &mut self.session else { return };
        session.unheard.remove_before(sync);
        for &object in invalid {
            session.unheard.remove(object);
        }
        session.asked.retain(|&object| session.unheard.contains(object));
        session.info_asked.retain(|&object, _| session.unheard.contains(object));
    }

    /// Follows a sender of which no more objects can be begun now. The receiver asks for its data when there is room.
    fn follow(&mut self, now: Time, data: &Data) {
        let Some(session) = &mut self.session else { return };
        let block = if data.ends_block { data.block + 1 } else { data.block };
        session.position = session.position.max((data.about.object, block));
        self.consider(now);
    }

    /// Takes the division of an object into segments and, from `info`, its name. Returns `true` if the object is
    /// offered only now.
    fn learn(&mut self, about: &About, segment_size: u16, info: Option<&Info>) -> Result<bool, Reject> {
        self.enter(about.object)?;
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        match info {
            _ if session.unheard.contains(about.object) => {
                self.begin(about, segment_size, info)?;
                Ok(true)
            }
            _ if !session.objects.contains_key(&about.object) => Err(Reject::Duplicate),
            Some(info) => self.name(about, segment_size, info).map(|()| false),
            None => Ok(false),
        }
    }

    /// Offers an object of which nothing had come before, if there is room.
    fn begin(&mut self, about: &About, segment_size: u16, info: Option<&Info>) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        let geometry = about.geometry(segment_size).ok_or(Reject::OutOfRange)?;
        if about.flags.has(Flags::UNRELIABLE) {
            return Err(Reject::Unexpected);
        }
        if u32::from(about.ndata) + u32::from(about.nparity) > 255 {
            return Err(Reject::OutOfRange);
        }
        if u64::from(about.size) > self.config.largest || session.room() == 0 {
            return Err(Reject::Limit);
        }
        let about = About { flags: about.flags.without(Flags::REPAIR), ..*about };
        let named = info.is_some() || !about.flags.has(Flags::INFO);
        let id = next_id(&mut self.next_id);
        let mut content = ObjectContent::new(id, geometry, about.nparity.into(), named);
        content.passage = session.passage;
        let mut one = Incoming::new(content, about);
        one.info_asked = session.info_asked.remove(&about.object).unwrap_or(0);
        session.segment_size = segment_size;
        let offer = one.offer(&session.key, session.group, about.object, info);
        session.unheard.remove(about.object);
        session.asked.remove(&about.object);
        session.objects.insert(about.object, one);
        self.events.push_back(ReceiverEvent::Offered(Box::new(offer)));
        Ok(())
    }

    /// Names an object that was begun without its INFO.
    fn name(&mut self, about: &About, segment_size: u16, info: &Info) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        let one = session.objects.get_mut(&about.object).filter(|one| !one.content.is_named);
        let one = one.ok_or(Reject::Duplicate)?;
        if !one.about.is_same(about) || one.content.geometry.segment_size() != segment_size {
            return Err(Reject::Inconsistent);
        }
        let offer = one.offer(&session.key, session.group, about.object, Some(info));
        self.events.push_back(ReceiverEvent::Named(Box::new(offer)));
        one.content.name(&mut self.events);
        Ok(())
    }

    /// Notes that the sender has sent all of `object` and everything before it.
    fn passed(&mut self, now: Time, object: u32) -> Result<(), Reject> {
        self.enter(object)?;
        if let Some(session) = &mut self.session {
            session.position = (object + 1, 0);
        }
        self.consider(now);
        Ok(())
    }

    fn acknowledge(&mut self, now: Time, head: Head, object: u32, nodes: &[NodeId]) -> Result<(), Reject> {
        let Some(session) = &self.session else { return Err(Reject::Unexpected) };
        let there = match session.objects.get(&object) {
            Some(one) => matches!(one.content.state, ContentState::Complete(_)),
            None => session.complete.contains(object),
        };
        let named = nodes.contains(&self.config.node);
        if !there {
            if named && self.recall(object) {
                self.consider(now);
                return Ok(());
            }
            self.enter(object)?;
            if let Some(session) = &mut self.session {
                // The sender asks for the first objects first, and has passed more than these.
                session.position = session.position.max((object + 1, 0));
                if named && self.waiting.len() < DUE && session.is_to_come(object) {
                    self.waiting.insert(object);
                }
            }
            self.consider(now);
            return Ok(());
        }
        if !self.config.silent && named && self.due.len() < DUE {
            if !self.due.contains(&object) {
                self.due.push(object);
            }
            if !self.timers.is_set(Timer::Ack) {
                // The answers are spread over one round trip (draft §4.7).
                let spread = head.grtt.span().min(GRTT_MOST).as_secs_f64() * self.random.unit();
                self.timers.set(Timer::Ack, now + Span::from_secs_f64(spread));
            }
        }
        Ok(())
    }

    /// Takes up an object that was sent before this receiver began and is now to be acknowledged. Returns `true` if it
    /// may.
    fn recall(&mut self, object: u32) -> bool {
        let Some(session) = self.session.as_mut().filter(|session| object < session.sync) else {
            return false;
        };
        let fits = self.config.sync == Sync::Anywhere;
        if fits && !session.objects.contains_key(&object) && !session.over.contains(object) {
            session.unheard.insert(Run::one(object));
        }
        fits
    }

    fn probe(&mut self, now: Time, probe: &Probe) {
        let Some(session) = &mut self.session else { return };
        session.probed = Some(Probed { sequence: probe.sequence, sent: probe.sent, at: now });
        session.loss.probed();
        let asked = probe.wildcard || probe.nodes.contains(&self.config.node);
        if asked && !self.config.silent {
            let hold =
                Span::from_secs(probe.hold.seconds.into()) + Span::from_micros(probe.hold.micros.into());
            let spread = hold.min(HOLD).as_secs_f64() * self.random.unit();
            self.timers.set(Timer::Answer, now + Span::from_secs_f64(spread));
        }
    }

    fn hear_other(&mut self, said: &FromReceiver) -> Result<(), Reject> {
        let session = self.session.as_ref().ok_or(Reject::Unexpected)?;
        if said.server != session.key.sender {
            return Err(Reject::OtherSession);
        }
        if let Answer::Nack(nacks) = &said.answer {
            self.overhear(nacks);
        }
        Ok(())
    }

    /// Notes requests of other receivers, which need not be repeated.
    fn overhear(&mut self, nacks: &[crate::message::ObjectNack]) {
        if let (Some(session), true) = (&self.session, self.timers.is_set(Timer::Backoff)) {
            session.overhear(&mut self.heard, nacks);
        }
    }

    /// Gives up `object`, which can no longer be obtained.
    fn lose(&mut self, object: u32) {
        self.give_up(object, Outcome::Lost);
    }

    /// Gives up `object`, which can no longer be obtained, for the reason `why`.
    fn give_up(&mut self, object: u32, why: Outcome) {
        match self
            .session
            .as_ref()
            .and_then(|session| session.objects.get(&object))
            .map(|one| one.content.state)
        {
            Some(ContentState::Complete(at)) => self.end(object, Outcome::Complete(at)),
            // The owner's verification still counts.
            Some(ContentState::Verifying) | None => {}
            Some(_) => self.end(object, why),
        }
    }

    /// Ends the session of a sender that has gone. An object whose segments are all there is complete without its name.
    pub(super) fn gone(&mut self) {
        let Some(session) = &mut self.session else { return };
        session.standing = session.standing.max(Standing::Left);
        let all: alloc::vec::Vec<u32> = session.objects.keys().copied().collect();
        for object in all {
            if let Some(one) = self.session.as_mut().and_then(|session| session.objects.get_mut(&object)) {
                one.content.name(&mut self.events);
            }
            self.lose(object);
        }
        if let Some(session) = &mut self.session {
            session.miss();
        }
    }

    /// Ends the session of the current sender, so that another can take its place.
    fn leave(&mut self) {
        self.gone();
        self.due.clear();
        self.waiting.clear();
        self.heard = Heard::default();
        self.timers = Timers::default();
    }
}

/// Returns the id of the next object, and advances `next`.
fn next_id(next: &mut ObjectId) -> ObjectId {
    core::mem::replace(next, ObjectId::new(next.get().wrapping_add(1)))
}

/// Returns `true` if a receiver may begin with this message: it is sent for the first time.
fn begins(about: &About) -> bool {
    !about.flags.has(Flags::REPAIR)
}
