//! Engine of a receiver, which never sends anything.

mod reception;
mod ring;
mod withdrawal;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::{AT_HAND, Answer, Decline, Geometry, ObjectId, Offer, Outcome, Received};

use crate::config::ReceiverConfig;
use crate::message::{Description, Message};
use reception::Reception;

/// Maximum number of objects received at the same time.
const MOST: usize = AT_HAND;
/// Time without new content after which an object gives up its place to another.
const STALE: Span = Span::from_secs(1);
/// Maximum number of finished transmissions that are remembered.
const MOST_OVER: usize = 256;
/// Maximum numbers of source symbols and of parity symbols of a block in any code.
const MOST_SYMBOLS: u16 = 32_768;
/// Minimum number of segments of a block, if there are several blocks. An object with smaller blocks could have so many
/// that their state takes more memory than their content.
const LEAST_BLOCK: u16 = 32;
/// Limit up to which a block may have more parity symbols than segments. More parity makes sense only for small
/// numbers.
const SMALL_PARITY: u16 = 255;

/// Event of a receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReceiverEvent {
    /// An object is offered: open it.
    Offered(Offer),
    /// Store these segments, which are counted through the whole object.
    Store {
        /// Object that the segments belong to.
        object: ObjectId,
        /// Segments to be stored.
        segments: Run,
        /// Number of the message's datagram that carries the first segment.
        offset: u32,
    },
    /// Keep these parity symbols.
    Parity {
        /// Object that the symbols belong to.
        object: ObjectId,
        /// Block that the symbols belong to.
        block: u32,
        /// Symbols to be kept.
        symbols: Run,
        /// Number of the message's datagram that carries the first symbol.
        offset: u32,
    },
    /// Rebuild this block, which has enough symbols.
    Decode {
        /// Object that the block belongs to.
        object: ObjectId,
        /// Block to be rebuilt.
        block: u32,
    },
    /// Verify the object: every segment is stored.
    Complete(ObjectId),
    /// The engine has finished with this object for now.
    Ended(ObjectId, Outcome),
    /// The engine has finished with this object, of which files are withdrawn. If the outcome is
    /// [`SourceChanged`](Outcome::SourceChanged), everything else is stored.
    Withdrawn {
        /// Object that has ended.
        object: ObjectId,
        /// Outcome of its reception.
        outcome: Outcome,
        /// Reason in words, with the name of the first withdrawn file that became known.
        why: String,
    },
}

/// Counts of an object that has ended.
#[derive(Clone, Copy, Debug)]
struct ObjectCounts {
    object: ObjectId,
    received: Received,
    heard: u64,
}

/// Engine of a receiver, which takes symbols until the objects are complete.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    receptions: Vec<Reception>,
    /// Transmissions that are finished for this receiver, the oldest first.
    over: VecDeque<(u32, [u8; 32])>,
    /// Counts of the object that ended last, for the report of its end.
    last: Option<ObjectCounts>,
    next_object: u32,
    rejects: RejectCounts,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// Creates a receiver that has heard nothing.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            config,
            receptions: Vec::new(),
            over: VecDeque::new(),
            last: None,
            next_object: 0,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
        }
    }

    /// Handles the owner's answer.
    pub fn answer(&mut self, now: Time, object: ObjectId, answer: Answer) {
        let Some(at) = self.receptions.iter().position(|one| one.object == object) else { return };
        let reception = &mut self.receptions[at];
        match answer {
            Answer::Open(held) | Answer::OpenEarlier(held, _) => reception.open(&held),
            Answer::Held(held) | Answer::Compared(held) => reception.hold(&held, &mut self.events),
            Answer::Lost(segments) => reception.lost(segments),
            Answer::Decoded { block, rebuilt } => reception.decoded(block, rebuilt, &mut self.events),
            Answer::Verified if reception.is_complete() => {
                self.end(at, Outcome::Complete(now), true);
                return;
            }
            // It comes round again.
            Answer::Declined(Decline::Busy) => {
                self.end(at, Outcome::Lost, false);
                return;
            }
            Answer::Declined(_) | Answer::Failed(..) => {
                self.end(at, Outcome::Failed, true);
                return;
            }
            Answer::Verified | Answer::ListIs(_) | Answer::Listed => {}
        }
        self.look(at);
    }

    /// Takes parity symbols of a block that were kept from before.
    pub fn kept(&mut self, object: ObjectId, block: u32, symbols: &Bitmap) {
        let Some(at) = self.receptions.iter().position(|one| one.object == object) else { return };
        self.receptions[at].keep(block, symbols, &mut self.events);
        self.look(at);
    }

    /// Leaves every object.
    pub fn stop(&mut self) {
        while !self.receptions.is_empty() {
            self.end(0, Outcome::Failed, false);
        }
    }

    /// Returns `true` if content of any current object has come. An object that was only described does not count.
    pub fn is_busy(&self) -> bool {
        self.receptions.iter().any(|one| one.fed.is_some())
    }

    /// Returns `true` if content of a current object of the sender at `source` has come.
    pub fn is_busy_with(&self, source: SocketAddr) -> bool {
        self.receptions.iter().any(|one| one.source == source && one.fed.is_some())
    }

    /// Returns the available segments of `object`.
    pub fn have(&self, object: ObjectId) -> Option<&Bitmap> {
        self.of(object).map(Reception::have)
    }

    /// Returns the counts of `object`.
    pub fn received(&self, object: ObjectId) -> Received {
        let last = || self.last.filter(|last| last.object == object).map(|last| last.received);
        self.of(object).map(Reception::received).or_else(last).unwrap_or_default()
    }

    /// Records content that could not be stored, so that it does not count as lost on the way.
    pub fn unstored(&mut self, source: SocketAddr, message: &Message) {
        let Message::Symbols(symbols) = message else { return };
        let of = |one: &&mut Reception| one.session == symbols.session && one.source == source;
        if let Some(reception) = self.receptions.iter_mut().find(of) {
            reception.unstored(symbols);
        }
    }

    /// Returns the number of symbols of `object` that came while any were needed, useless ones included.
    pub fn heard(&self, object: ObjectId) -> u64 {
        let last = || self.last.filter(|last| last.object == object).map(|last| last.heard);
        self.of(object).map(|reception| reception.heard).or_else(last).unwrap_or_default()
    }

    /// Returns the progress of `object`: the number of usable symbols, and the number needed.
    pub fn symbols(&self, object: ObjectId) -> Option<(u32, u32)> {
        self.of(object).map(|reception| (reception.usable(), reception.geometry().segments()))
    }

    /// Returns the number of rejected messages, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    fn of(&self, object: ObjectId) -> Option<&Reception> {
        self.receptions.iter().find(|reception| reception.object == object)
    }

    /// Ends an object that will get nothing more, and requests verification of one that is complete.
    fn look(&mut self, at: usize) {
        let Some(reception) = self.receptions.get_mut(at) else { return };
        if reception.is_bereft {
            self.end(at, Outcome::SourceChanged, true);
        } else if reception.becomes_complete() {
            self.events.push_back(ReceiverEvent::Complete(reception.object));
        } else if reception.is_over && reception.lacks() {
            self.end(at, Outcome::Missed, false);
        }
    }

    fn end(&mut self, at: usize, outcome: Outcome, for_good: bool) {
        let reception = self.receptions.swap_remove(at);
        if for_good {
            if self.over.len() == MOST_OVER {
                self.over.pop_front();
            }
            self.over.push_back((reception.session, reception.id));
        }
        let (object, received, heard) = (reception.object, reception.received(), reception.heard);
        self.last = Some(ObjectCounts { object, received, heard });
        let why = reception.withdrawal.map(|withdrawal| withdrawal.sentence());
        self.events.push_back(match (why, outcome) {
            (Some(why), Outcome::SourceChanged | Outcome::Missed) => {
                ReceiverEvent::Withdrawn { object, outcome, why }
            }
            _ => ReceiverEvent::Ended(object, outcome),
        });
    }

    fn take(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match message {
            Message::Description(description) => self.described(now, from, description),
            Message::Withdrawn(withdrawn) => {
                let at = self.find(from, withdrawn.session)?;
                self.receptions[at].withdraw(withdrawn)?;
                self.receptions[at].heard_at = now;
                self.look(at);
                Ok(())
            }
            Message::Symbols(symbols) => {
                let at = self.find(from, symbols.session)?;
                let reception = &mut self.receptions[at];
                reception.symbols(symbols, &mut self.events)?;
                reception.fed = Some(now);
                // Rejected noise does not keep an object alive.
                reception.heard_at = now;
                self.look(at);
                Ok(())
            }
        }
    }

    /// Returns the index of the reception of `session` from its sender.
    fn find(&self, from: &Arrival, session: u32) -> Result<usize, Reject> {
        let of_session = |one: &Reception| one.session == session;
        let at = self.receptions.iter().position(|one| of_session(one) && one.source == from.source);
        at.ok_or_else(|| {
            let known = self.receptions.iter().any(of_session);
            if known { Reject::Stranger } else { Reject::Unexpected }
        })
    }

    fn described(&mut self, now: Time, from: &Arrival, described: &Description) -> Result<(), Reject> {
        if let Some(at) = self.receptions.iter().position(|one| one.id == described.id) {
            let reception = &mut self.receptions[at];
            if !reception.agrees(described) {
                return Err(Reject::Inconsistent);
            }
            if (reception.source, reception.session) != (from.source, described.session) {
                if now.since(reception.heard_at) < self.config.succession {
                    return Err(Reject::Duplicate);
                }
                // The sender was started again. The stored symbols stay valid.
                (reception.source, reception.session) = (from.source, described.session);
            }
            reception.described(now, described);
            self.look(at);
            return Ok(());
        }
        if described.over || self.over.contains(&(described.session, described.id)) {
            return Err(Reject::Duplicate);
        }
        let geometry = geometry(described)?;
        self.make_room(now, geometry.segments())?;
        let object = self.number();
        let offer = Offer {
            object,
            sender: from.source,
            session: described.session,
            group: from.destination.ip(),
            name: described.name.clone(),
            provisional: false,
            id: Some(described.id),
            vouched: None,
            serial: None,
            geometry,
            parity_symbols: described.parity.into(),
            overwrite: described.overwrite,
            rate_bps: described.rate_kbps.saturating_mul(1000),
        };
        self.receptions.push(Reception::new(object, described, from.source, geometry, now));
        self.events.push_back(ReceiverEvent::Offered(offer));
        Ok(())
    }

    /// Makes room for an object of `segments` segments. Objects without any content give way first, then those without
    /// new content.
    fn make_room(&mut self, now: Time, segments: u32) -> Result<(), Reject> {
        let most = u64::from(self.config.segments);
        if u64::from(segments) > most {
            return Err(Reject::Limit);
        }
        loop {
            let at_hand: u64 = self.receptions.iter().map(|one| u64::from(one.geometry().segments())).sum();
            if self.receptions.len() < MOST && at_hand + u64::from(segments) <= most {
                return Ok(());
            }
            // An object displaces others, but no smaller ones unless the maximum number of objects is reached.
            let crowded = self.receptions.len() == MOST;
            let yields = |(at, one): (usize, &Reception)| {
                let stale = one.fed.is_none_or(|fed| {
                    now.since(fed) >= STALE && (crowded || one.geometry().segments() >= segments)
                });
                (stale && !one.is_complete()).then_some((one.fed, one.heard_at, at))
            };
            let yielding = self.receptions.iter().enumerate().filter_map(yields).min();
            let (_, _, at) = yielding.ok_or(Reject::Limit)?;
            self.end(at, Outcome::Lost, false);
        }
    }

    /// Returns a number that no current object has.
    fn number(&mut self) -> ObjectId {
        loop {
            let object = ObjectId::new(self.next_object);
            self.next_object = self.next_object.wrapping_add(1);
            if self.of(object).is_none() {
                return object;
            }
        }
    }

    /// Returns the time at which the sender of a current object has been silent for too long.
    fn silent_at(&self, reception: &Reception) -> Time {
        if !reception.lacks() {
            return Time::NEVER;
        }
        // An outage may be long. But after its announced end, a sender that continues is heard soon.
        self.ended_at(reception).min(reception.heard_at + self.config.silence)
    }

    /// Returns the time at which the sender has ended, judging by its announcements.
    fn ended_at(&self, reception: &Reception) -> Time {
        reception.heard_at.max(reception.ends_at) + self.config.grace.max(reception.silence)
    }
}

/// Returns the geometry of the described object, if it is valid.
fn geometry(described: &Description) -> Result<Geometry, Reject> {
    let Description { size, segment, block, parity, .. } = *described;
    if block > MOST_SYMBOLS || parity > block.max(SMALL_PARITY) {
        return Err(Reject::OutOfRange);
    }
    let geometry = Geometry::partitioned(size, segment.into(), block.into());
    let geometry = geometry.map_err(|_| Reject::OutOfRange)?;
    if geometry.blocks() > 1 && block < LEAST_BLOCK { Err(Reject::OutOfRange) } else { Ok(geometry) }
}

impl Engine for Receiver {
    type Message = Message;
    type Event = ReceiverEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let result = self.take(now, from, message);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(at) = self.receptions.iter().position(|one| self.silent_at(one) <= now) {
            let outcome =
                if self.ended_at(&self.receptions[at]) <= now { Outcome::Missed } else { Outcome::Lost };
            self.end(at, outcome, false);
        }
    }

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Message>> {
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.receptions.iter().map(|one| self.silent_at(one)).min()?;
        (at < Time::NEVER).then_some(Deadline { at, timer: "silence" })
    }

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::NEVER
    }

    fn prefix(&self, message: &Message) -> NonZeroU32 {
        let Message::Symbols(symbols) = message else { return message.segments() };
        let of_session = self.receptions.iter().filter(|one| one.session == symbols.session);
        // The last symbol that a block needs makes it ready to be rebuilt.
        let needed = of_session.filter_map(|one| NonZeroU32::new(one.needed(symbols.block))).min();
        needed.map_or(message.segments(), |needed| needed.min(message.segments()))
    }
}
