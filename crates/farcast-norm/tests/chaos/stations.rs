//! Honest hosts: an engine, its owner with a disk, and a count of octets.

use core::num::NonZeroU32;
use std::collections::BTreeMap;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Deadline, Engine, Reject, Transmit};
use farcast_delivery::{ObjectId, Offer, Outcome};
use farcast_norm::message::Answer;
use farcast_norm::{Body, Receiver, ReceiverEvent, Sender, SenderEvent};

use crate::parcel::Parcel;
use crate::plan::server;
use crate::truth::{Disk, Rule, Shared};

fn ship(transmit: Transmit<farcast_norm::Message>) -> Transmit<Parcel> {
    let Transmit { message, destination, source, interface, ttl, router_alert, spacing } = transmit;
    let message = Parcel::honest(message);
    Transmit { message, destination, source, interface, ttl, router_alert, spacing }
}

/// Sender and its owner.
pub(crate) struct SenderStation {
    pub(crate) engine: Sender,
    /// Symbols of the object that left.
    pub(crate) symbols: u64,
    truth: Shared,
}

impl SenderStation {
    pub(crate) fn new(engine: Sender, truth: Shared) -> Self {
        Self { engine, symbols: 0, truth }
    }

    /// Opens the engine on the owner's command. Only what this life reports counts.
    pub(crate) fn open(&mut self, now: Time) {
        let mut truth = self.truth.borrow_mut();
        truth.outcome = None;
        truth.sites.iter_mut().for_each(|site| site.acknowledged = false);
        truth.tell(now, || "sender begins".into());
        drop(truth);
        farcast_delivery::SenderEngine::open(&mut self.engine, now);
        self.drain(now);
    }

    fn drain(&mut self, now: Time) {
        while let Some(event) = self.engine.poll_event() {
            let mut truth = self.truth.borrow_mut();
            truth.tell(now, || format!("sender: {event:?}"));
            match event {
                SenderEvent::Acknowledged(node) => {
                    let Some(site) = truth.site(node) else { continue };
                    site.acknowledged = true;
                    if !site.disk.verified && !site.forged {
                        let (held, all) = (site.disk.held.count(), site.disk.held.len());
                        let what = format!("{node:?} is acknowledged with {held} of {all} segments");
                        truth.breaks(now, Rule::Success, what);
                    }
                }
                SenderEvent::Ended(outcome) => truth.outcome = Some(outcome),
                _ => {}
            }
        }
    }
}

impl Engine for SenderStation {
    type Message = Parcel;
    type Event = ();

    fn handle(&mut self, now: Time, from: &Arrival, parcel: &Parcel) -> Result<(), Reject> {
        if let Body::Receiver(said) = &parcel.message.body
            && parcel.spoiled
            && !matches!(said.answer, Answer::Nack(_))
            && let Some(site) = self.truth.borrow_mut().site(parcel.message.source)
        {
            site.forged = true;
        }
        let result = self.engine.handle(now, from, &parcel.message);
        self.drain(now);
        result
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
        self.drain(now);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Parcel>> {
        let transmit = self.engine.poll_transmit(now, until);
        self.drain(now);
        let transmit = transmit?;
        if transmit.message.data().is_none() {
            self.truth.borrow_mut().tell(now, || format!("sender sends {:?}", transmit.message.body));
        }
        self.symbols += transmit.message.data().map_or(0, |data| u64::from(data.symbols.count()));
        Some(ship(transmit))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.engine.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        self.engine.settled_until()
    }

    fn prefix(&self, parcel: &Parcel) -> NonZeroU32 {
        self.engine.prefix(&parcel.message)
    }
}

/// Receiver and its owner.
pub(crate) struct ReceiverStation {
    pub(crate) engine: Receiver,
    /// Octets that came in a sender's name, and octets that left.
    pub(crate) heard: u64,
    pub(crate) said: u64,
    site: usize,
    truth: Shared,
    /// Objects under way, and the disks of those that are not the product.
    objects: BTreeMap<ObjectId, Option<Disk>>,
}

impl ReceiverStation {
    pub(crate) fn new(engine: Receiver, site: usize, truth: Shared) -> Self {
        Self { engine, heard: 0, said: 0, site, truth, objects: BTreeMap::new() }
    }

    /// Calls `job` with the disk of an object.
    fn on_disk<T>(&mut self, object: ObjectId, job: impl FnOnce(&mut Disk) -> T) -> Option<T> {
        match self.objects.get_mut(&object)? {
            Some(disk) => Some(job(disk)),
            None => Some(job(&mut self.truth.borrow_mut().sites[self.site].disk)),
        }
    }

    /// Answers the engine's events; `spoiled` refers to the message just handled.
    fn drain(&mut self, now: Time, spoiled: bool) {
        while let Some(event) = self.engine.poll_event() {
            self.truth.borrow_mut().tell_of(self.site, now, || format!("{event:?}"));
            match event {
                ReceiverEvent::Offered(offer) => self.open(now, &offer),
                ReceiverEvent::Store { object, segments, .. } => {
                    self.on_disk(object, |disk| disk.store(segments, spoiled));
                }
                ReceiverEvent::StoreParity { object, block, symbols, .. } => {
                    self.on_disk(object, |disk| disk.store_parity(block, symbols, spoiled));
                }
                ReceiverEvent::Decode { object, block } => {
                    let rebuilt = self.on_disk(object, |disk| disk.decode(block)) == Some(true);
                    if !rebuilt {
                        let what = format!("receiver {} rebuilds block {block} of too little", self.site);
                        self.truth.borrow_mut().breaks(now, Rule::Content, what);
                    }
                    self.engine.decoded(object, block, rebuilt);
                }
                ReceiverEvent::Complete(object) => self.verify(now, object),
                ReceiverEvent::Ended(object, outcome) => self.ended(now, object, &outcome),
                _ => {}
            }
        }
    }

    /// Takes an object. That of the genuine sender, cut as the product is, continues what earlier lives have.
    fn open(&mut self, now: Time, offer: &Offer) {
        let disk = self.truth.borrow().sites[self.site].disk.clone();
        let genuine = (0..2).any(|life| server(life) == offer.sender) && offer.geometry == disk.geometry;
        let disk = if genuine { disk } else { Disk::new(offer.geometry) };
        let held = disk.held.clone();
        self.objects.insert(offer.object, (!genuine).then_some(disk));
        self.engine.accept(now, offer.object, &held);
    }

    fn verify(&mut self, now: Time, object: ObjectId) {
        if self.objects.get(&object).is_none_or(Option::is_some) {
            // No digest matches an invented object.
            return self.engine.decline(object);
        }
        let Some(wrong) = self.on_disk(object, Disk::drop_spoiled) else { return };
        if !wrong.is_empty() {
            return wrong.iter_runs().for_each(|run| self.engine.lost(object, run));
        }
        let full = self.on_disk(object, |disk| {
            disk.verified |= disk.held.is_full();
            disk.held.is_full()
        });
        if full != Some(true) {
            let what = format!("receiver {} calls complete what is not", self.site);
            return self.truth.borrow_mut().breaks(now, Rule::Content, what);
        }
        self.engine.verified(now, object);
    }

    fn ended(&mut self, now: Time, object: ObjectId, outcome: &Outcome) {
        if matches!(outcome, Outcome::Complete(_))
            && self.on_disk(object, |disk| disk.verified && disk.held.is_full()) != Some(true)
        {
            let what = format!("receiver {} is complete without the product", self.site);
            self.truth.borrow_mut().breaks(now, Rule::Content, what);
        }
        self.objects.remove(&object);
    }
}

impl Engine for ReceiverStation {
    type Message = Parcel;
    type Event = ();

    fn handle(&mut self, now: Time, from: &Arrival, parcel: &Parcel) -> Result<(), Reject> {
        if parcel.is_of_sender() {
            self.heard += parcel.octets();
        }
        let result = self.engine.handle(now, from, &parcel.message);
        self.drain(now, parcel.spoiled);
        result
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
        self.drain(now, false);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Parcel>> {
        let transmit = self.engine.poll_transmit(now, until);
        self.drain(now, false);
        let transmit = ship(transmit?);
        self.said += transmit.message.octets();
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.engine.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        // The owner may answer in between.
        Time::ZERO
    }

    fn prefix(&self, parcel: &Parcel) -> NonZeroU32 {
        self.engine.prefix(&parcel.message)
    }
}

/// Returns the length of an engine's debug text, which grows with everything that the engine holds.
pub(crate) fn size(engine: &impl core::fmt::Debug) -> usize {
    format!("{engine:?}").len()
}
