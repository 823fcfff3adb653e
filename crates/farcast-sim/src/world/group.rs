//! Groups of receivers.

use std::borrow::Cow;
use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine as _, Message};
use farcast_core::{Among, Bitmap, Losses, Span, Time};
use farcast_delivery::{
    Answer, Channel, Delivery as _, Feedback, FeedbackCounts, Merged, ObjectId, Population as _, Protocol,
    ReceiverEngine as _, Request,
};

use super::keys::{GroupLosses, RequiredKey};
use super::{Party, ReceivedContent};

/// Receiver with an engine of its own.
pub struct Station<P: Protocol> {
    /// Engine.
    pub engine: P::Receiver,
    /// Time of the event that wakes the engine: at `due_at` or before.
    pub(crate) wake: Time,
    /// Time at which the engine wants to be woken, and the place of that timer among the events of the instant.
    pub(crate) due_at: Time,
    pub(crate) place: u64,
    /// Objects that the receiver has accepted and not yet verified.
    open: Vec<ObjectId>,
    /// Time at which the receiver had all objects that it has accepted.
    pub completed: Time,
    /// Counters of the content that the receiver has heard; absent if content is not counted.
    pub content: Option<Box<ReceivedContent>>,
}

/// Simulation of a group: as one population or as single engines.
pub enum Kind<P: Protocol> {
    /// One population for all receivers.
    Population {
        /// Population.
        population: Box<P::Population>,
        /// Time at which the population wants to be woken.
        wake: Time,
    },
    /// One engine for each receiver; messages are handled packet by packet.
    Engines(Vec<Station<P>>),
}

/// Group of like receivers.
pub struct Group<P: Protocol> {
    pub(crate) first: u32,
    pub(crate) receivers: u32,
    /// Population or single engines.
    pub kind: Kind<P>,
    pub(crate) losses: GroupLosses,
    pub(crate) delay: Span,
    pub(crate) data_only: bool,
    pub(crate) lost: Vec<u32>,
    /// Stations whose timers may have moved, in the order of their numbers.
    pub(crate) touched: Vec<u32>,
}

/// Message of one receiver, or merged messages of several, with its time.
pub(crate) type TimedFeedback<P> = farcast_delivery::TimedFeedback<<P as Protocol>::Message, Merged<P>>;

/// Message, or a run of messages, that reaches a group.
pub struct Incoming<'a, M> {
    /// Party that sent the message.
    pub(crate) from: Party,
    /// Party that the message is for.
    pub(crate) to: Party,
    /// Message.
    pub(crate) message: &'a M,
    /// Octets of the first datagram on the link.
    pub(crate) octets: u64,
    /// Octets of UDP and IP, which `octets` includes.
    pub(crate) overhead: u16,
}

impl<M: Message> Incoming<'_, M> {
    /// Returns the first datagram.
    fn head(&self) -> Cow<'_, M> {
        if self.message.segments() == NonZeroU32::MIN {
            return Cow::Borrowed(self.message);
        }
        Cow::Owned(self.message.clone().split(NonZeroU32::MIN).0)
    }
}

impl<P: Protocol> Group<P> {
    /// Returns the number of the group's first receiver.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Returns the number of receivers.
    pub fn receivers(&self) -> u32 {
        self.receivers
    }

    /// Returns the time at which receiver `n` of the group was complete; [`Time::NEVER`] if it never was.
    pub fn completed(&self, n: u32) -> Time {
        match &self.kind {
            Kind::Population { population, .. } => population.completed()[n as usize],
            Kind::Engines(stations) => stations[n as usize].completed,
        }
    }

    /// Returns the number of segments that receiver `n` of the group lacks; `None` if it has not heard how many there
    /// are.
    pub fn lacks(&self, n: u32) -> Option<u32> {
        match &self.kind {
            Kind::Population { population, .. } => population.lacks(n),
            Kind::Engines(stations) => {
                let station = &stations[n as usize];
                farcast_delivery::lacks(&station.engine, &station.open)
            }
        }
    }

    /// Returns the number of symbols of each block that had been sent when receiver `n` of the group was complete.
    /// `None` if it never was, or if the group is not a population that counts symbols.
    pub fn symbols_needed(&self, n: u32) -> Option<u32> {
        let Kind::Population { population, .. } = &self.kind else { return None };
        population.symbols_needed().get(n as usize).copied().filter(|&symbols| symbols > 0)
    }

    /// Returns the number of receivers that lack something.
    pub fn incomplete(&self) -> u32 {
        (0..self.receivers).filter(|&n| self.completed(n) == Time::NEVER).count() as u32
    }

    /// Returns the number of NAKs that the receivers have sent.
    pub fn naks(&self) -> u64 {
        match &self.kind {
            Kind::Population { population, .. } => population.counts().naks,
            Kind::Engines(stations) => stations.iter().map(|station| station.engine.naks()).sum(),
        }
    }

    /// Returns the message counts of a population. They are zero for single engines, whose messages are seen one by
    /// one.
    pub fn counts(&self) -> FeedbackCounts {
        match &self.kind {
            Kind::Population { population, .. } => *population.counts(),
            Kind::Engines(_) => FeedbackCounts::default(),
        }
    }

    /// Marks the timer of every engine as possibly moved.
    pub(crate) fn touch_all(&mut self) {
        if let Kind::Engines(stations) = &self.kind {
            self.touched.extend(0..stations.len() as u32);
        }
    }

    /// Returns the index in this group of the receiver `party`, if it belongs to the group.
    pub(crate) fn member(&self, party: Party) -> Option<u32> {
        party.as_receiver()?.checked_sub(self.first).filter(|&n| n < self.receivers)
    }

    /// Delivers at least the first datagram of a message to the group at `now`. A receiver does not hear its own
    /// message. Returns the number of datagrams that were delivered.
    pub(crate) fn take(
        &mut self,
        now: Time,
        from: &Arrival,
        incoming: &Incoming<'_, P::Message>,
        merged: Option<&mut (dyn Losses + 'static)>,
        feedback: &mut Vec<TimedFeedback<P>>,
    ) -> u32 {
        if let Some(member) = self.member(incoming.to) {
            self.take_alone(now, from, incoming, member, feedback);
            return 1;
        }
        let speaker = self.member(incoming.from);
        let Self { kind, losses, lost, touched, data_only, .. } = self;
        let message = incoming.message;
        let needs = if incoming.to == Party::APART { RequiredKey::ContentKey } else { RequiredKey::Keys };
        let spared = *data_only && !message.content().is_some();
        match kind {
            Kind::Population { population, .. } => {
                if population.poll_timeout() <= now {
                    population.handle_timeout(now);
                }
                let (overhead, open) = (incoming.overhead, matches!(losses, GroupLosses::Open(_)));
                let (losses, _) = losses.losses(needs, spared);
                let mut channel = Channel { losses, overhead, data_only: *data_only && open, merged };
                let taken = population.handle(now, from, message, &mut channel);
                feedback.extend(std::iter::from_fn(|| population.poll_feedback()));
                taken
            }
            Kind::Engines(stations) => {
                lost.clear();
                let (losses, spared) = losses.losses(needs, spared);
                let among = if spared { Among::These(&[]) } else { Among::All };
                losses.draw(now, incoming.octets, among, lost);
                let head = incoming.head();
                let mut losers = lost.iter().copied().peekable();
                for (n, station) in (0..).zip(stations.iter_mut()) {
                    if losers.next_if_eq(&n).is_some() || speaker == Some(n) {
                        continue;
                    }
                    station.hear(now, n, from, &head, feedback);
                    touched.push(n);
                }
                1
            }
        }
    }

    /// Delivers the first datagram of a message for `member` alone, unless the channel loses it.
    fn take_alone(
        &mut self,
        now: Time,
        from: &Arrival,
        incoming: &Incoming<'_, P::Message>,
        member: u32,
        feedback: &mut Vec<TimedFeedback<P>>,
    ) {
        let message = incoming.message;
        let spared = self.data_only && !message.content().is_some();
        let alone = [member];
        let among = if spared { Among::These(&[]) } else { Among::These(&alone) };
        self.lost.clear();
        self.losses.channel().draw(now, incoming.octets, among, &mut self.lost);
        if !self.lost.is_empty() {
            return;
        }
        if let Some(keys) = self.losses.keys() {
            keys.content_key_reaches(member);
        }
        let head = incoming.head();
        match &mut self.kind {
            Kind::Population { population, .. } => {
                if population.poll_timeout() <= now {
                    population.handle_timeout(now);
                }
                let mut others = Others { member, receivers: self.receivers };
                let mut channel = Channel {
                    losses: &mut others,
                    overhead: incoming.overhead,
                    data_only: false,
                    merged: None,
                };
                population.handle(now, from, &head, &mut channel);
                feedback.extend(std::iter::from_fn(|| population.poll_feedback()));
            }
            Kind::Engines(stations) => {
                stations[member as usize].hear(now, member, from, &head, feedback);
                self.touched.push(member);
            }
        }
    }

    /// Delivers the first datagram of a message without loss to all receivers that it is for.
    pub(crate) fn tell(
        &mut self,
        now: Time,
        from: &Arrival,
        incoming: &Incoming<'_, P::Message>,
        feedback: &mut Vec<TimedFeedback<P>>,
    ) {
        let channel = self.losses.replace(GroupLosses::lossless());
        self.take(now, from, incoming, None, feedback);
        self.losses.replace(channel);
    }

    /// Adds a seal to the group's channel. Content has a key of its own if `apart`; every receiver has the keys if
    /// `given`.
    pub(crate) fn seal(&mut self, apart: bool, given: bool) {
        let losses = std::mem::replace(&mut self.losses, GroupLosses::Open(GroupLosses::lossless()));
        self.losses = losses.seal(self.receivers, apart, given);
    }

    /// Delivers a datagram of the seal, of `octets` octets. The `readers` that do not lose it have the keys of KEYS
    /// from then on, or the content key if the datagram is for one receiver `alone`.
    pub(crate) fn unseal(&mut self, now: Time, octets: u64, readers: &[u32], alone: bool) {
        let Self { losses, lost, data_only, .. } = self;
        lost.clear();
        let among = Among::These(if *data_only { &[] } else { readers });
        losses.channel().draw(now, octets, among, lost);
        let Some(keys) = losses.keys() else { return };
        let mut lost = lost.iter().copied().peekable();
        for &reader in readers.iter().filter(|reader| lost.next_if_eq(reader).is_none()) {
            if alone {
                keys.content_key_reaches(reader);
            } else {
                keys.keys_reach(reader);
            }
        }
    }

    /// Handles a timer of `station`, or of the population.
    pub(crate) fn wake(&mut self, now: Time, station: u32, feedback: &mut Vec<TimedFeedback<P>>) {
        match &mut self.kind {
            Kind::Population { population, .. } => {
                population.handle_timeout(now);
                feedback.extend(std::iter::from_fn(|| population.poll_feedback()));
            }
            Kind::Engines(stations) => {
                stations[station as usize].wake_up(now, station, feedback);
                self.touched.push(station);
            }
        }
    }
}

/// Loss process in which all receivers of a population but one lose a datagram.
#[derive(Debug)]
struct Others {
    member: u32,
    receivers: u32,
}

impl Losses for Others {
    fn draw(&mut self, _now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let other = |n: &u32| *n != self.member;
        match among {
            Among::All => lost.extend((0..self.receivers).filter(other)),
            Among::These(members) => lost.extend(members.iter().copied().filter(other)),
        }
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

impl<P: Protocol> Station<P> {
    pub(crate) fn new(engine: P::Receiver) -> Self {
        Self {
            engine,
            wake: Time::NEVER,
            due_at: Time::NEVER,
            place: 0,
            open: Vec::new(),
            completed: Time::NEVER,
            content: None,
        }
    }

    /// Returns the time at which the engine wants to be woken.
    pub(crate) fn due(&self) -> Time {
        self.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at)
    }

    /// Delivers a message to the engine.
    fn hear(
        &mut self,
        now: Time,
        n: u32,
        from: &Arrival,
        message: &P::Message,
        feedback: &mut Vec<TimedFeedback<P>>,
    ) {
        // Due timers come before arrivals of the same instant.
        if self.due() <= now {
            self.wake_up(now, n, feedback);
        }
        if let Some(content) = &mut self.content {
            content.arrives(message.payload_len(0) as u64);
        }
        // The engine counts what it refuses.
        let _ = self.engine.handle(now, from, message);
        self.drain(now, n, feedback);
        if let Some(content) = &mut self.content {
            content.is_over();
        }
    }

    fn wake_up(&mut self, now: Time, n: u32, feedback: &mut Vec<TimedFeedback<P>>) {
        self.engine.handle_timeout(now);
        self.drain(now, n, feedback);
    }

    /// Answers the engine's requests and collects its messages. The simulated owner accepts every object, holds nothing
    /// beforehand, and verifies at once.
    fn drain(&mut self, now: Time, n: u32, feedback: &mut Vec<TimedFeedback<P>>) {
        loop {
            if let Some(event) = self.engine.poll_event() {
                let (object, answer) = match P::Receiver::request(&event) {
                    Some(Request::Open(offer)) => {
                        self.completed = Time::NEVER;
                        if !self.open.contains(&offer.object) {
                            self.open.push(offer.object);
                        }
                        (offer.object, Answer::Open(Bitmap::new(offer.geometry.segments())))
                    }
                    Some(Request::Decode { object, block }) => {
                        (object, Answer::Decoded { block, rebuilt: true })
                    }
                    Some(Request::Verify(object)) => {
                        self.open.retain(|&open| open != object);
                        if self.open.is_empty() {
                            self.completed = now;
                        }
                        (object, Answer::Verified)
                    }
                    Some(Request::Store { object, segments, .. }) => {
                        if let Some(content) = &mut self.content {
                            content.stores(now, object, Some(segments));
                        }
                        continue;
                    }
                    Some(Request::Parity { object, .. }) => {
                        if let Some(content) = &mut self.content {
                            content.stores(now, object, None);
                        }
                        continue;
                    }
                    _ => continue,
                };
                self.engine.answer(now, object, answer);
            } else if let Some(transmit) = self.engine.poll_transmit(now, Time::NEVER) {
                feedback.push((now, Feedback::Each { receiver: n, transmit }));
            } else {
                return;
            }
        }
    }
}
