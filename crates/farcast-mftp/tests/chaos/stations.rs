//! Honest hosts: an engine, its owner with a disk, and a meter.

use core::fmt::{self, Write};
use core::num::NonZeroU32;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, Transmit};
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::{Offer, Phase};
use farcast_mftp::message::cancel;
use farcast_mftp::{Body, ClientId, Receiver, ReceiverEvent, Sender, SenderEvent};

use crate::meter::Meter;
use crate::parcel::Parcel;
use crate::plan::Earlier;
use crate::truth::Shared;

/// Digest of the genuine product.
pub(crate) const PRODUCT: [u8; 32] = [7; 32];

/// Wraps a message that an engine sends, and counts it.
fn ship(meter: &mut Meter, transmit: Transmit<farcast_mftp::Message>) -> Transmit<Parcel> {
    let Transmit { message, destination, source, interface, ttl, router_alert, spacing } = transmit;
    let message = Parcel::honest(message);
    meter.send(destination, &message);
    Transmit { message, destination, source, interface, ttl, router_alert, spacing }
}

/// Sender and its owner.
pub(crate) struct SenderStation {
    pub(crate) engine: Sender,
    pub(crate) meter: Meter,
    life: usize,
    truth: Shared,
}

impl SenderStation {
    pub(crate) fn new(engine: Sender, life: usize, truth: Shared) -> Self {
        Self { engine, meter: Meter::default(), life, truth }
    }

    fn drain(&mut self, now: Time) {
        while let Some(event) = self.engine.poll_event() {
            // An unproved Done is reported as such, and is no success.
            let proven = match event {
                SenderEvent::Done { client, .. } => self.believes(client),
                _ => false,
            };
            self.truth.borrow_mut().sender_told(now, self.life, &event, proven);
        }
    }

    /// Returns `true` if the summary would report `client` as complete, given the state Done.
    pub(crate) fn believes(&self, client: ClientId) -> bool {
        let draft = self.engine.config().secret.is_none();
        self.engine.member(client).is_some_and(|m| (draft || m.is_proven()) && m.replaced.is_none())
    }

    /// Opens the engine on the owner's command.
    pub(crate) fn open(&mut self, now: Time) {
        self.engine.open(now);
        self.drain(now);
    }
}

impl Engine for SenderStation {
    type Message = Parcel;
    type Event = ();

    fn handle(&mut self, now: Time, from: &Arrival, parcel: &Parcel) -> Result<(), Reject> {
        // The driver listens to the group only while it checks for other transmissions.
        if from.destination.ip().is_multicast()
            && from.destination == self.engine.config().private
            && self.engine.phase() != Phase::Announcing
        {
            return Err(Reject::Unexpected);
        }
        self.meter.hear(from, parcel);
        let result = self.engine.handle(now, from, &parcel.message);
        let hidden = speaker(parcel).is_some_and(|client| !self.truth.borrow().tells_of_client(client));
        if !hidden {
            note(&self.truth, now, "the sender", from, parcel, result);
        }
        self.drain(now);
        if let Some(client) = speaker(parcel).filter(|&client| result.is_ok() && self.believes(client)) {
            self.truth.borrow_mut().lives[self.life].accepted.insert(client);
        }
        result
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
        self.drain(now);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Parcel>> {
        let transmit = self.engine.poll_transmit(now, until);
        self.drain(now);
        transmit.map(|transmit| ship(&mut self.meter, transmit))
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

/// Job of an owner that takes some time.
#[derive(Clone, Debug)]
enum Job {
    /// Open the product and take part.
    Open(Offer),
    /// Verify.
    Verify,
    /// Rebuild a block.
    Decode(u32),
    /// Compare the list of files with an older version.
    Compare,
}

/// Receiver and its owner.
pub(crate) struct ReceiverStation {
    pub(crate) engine: Receiver,
    pub(crate) meter: Meter,
    site: usize,
    truth: Shared,
    /// Time that the disk takes to open or to verify.
    slow: Span,
    jobs: VecDeque<(Time, u64, Job)>,
    /// Count of offers and ends, by which a job of an ended session is dropped.
    session: u64,
    /// `true` if the product being received is the genuine one.
    genuine: bool,
    /// Older version, and the number of segments of the list for the comparison.
    earlier: Option<(Earlier, u32)>,
}

impl ReceiverStation {
    pub(crate) fn new(
        engine: Receiver,
        site: usize,
        slow: Span,
        earlier: Option<(Earlier, u32)>,
        truth: Shared,
    ) -> Self {
        Self {
            engine,
            meter: Meter::default(),
            site,
            truth,
            slow,
            jobs: VecDeque::new(),
            session: 0,
            genuine: false,
            earlier,
        }
    }

    fn tell(&self, now: Time, line: impl FnOnce() -> String) {
        self.truth.borrow_mut().tell_of(self.site, now, line);
    }

    /// Answers the engine's events; `spoiled` refers to the message just handled.
    fn drain(&mut self, now: Time, spoiled: bool) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                ReceiverEvent::Store { segments, .. } => {
                    if self.genuine {
                        self.truth.borrow_mut().sites[self.site].disk.store(now, segments, spoiled);
                        self.look_for_list();
                    }
                }
                ReceiverEvent::StoreParity { block, .. } => {
                    if self.genuine {
                        self.truth.borrow_mut().sites[self.site].disk.store_parity(block, spoiled);
                    }
                }
                ReceiverEvent::Compare => {
                    self.tell(now, || "compares".into());
                    let takes = self.earlier.as_ref().map_or(Span::ZERO, |(earlier, _)| earlier.takes);
                    self.jobs.push_back((now + takes, self.session, Job::Compare));
                    self.jobs.make_contiguous().sort_by_key(|&(due, ..)| due);
                }
                ReceiverEvent::Decode { block } => self.later(now, Job::Decode(block)),
                ReceiverEvent::Complete => self.later(now, Job::Verify),
                ReceiverEvent::Offered(offer) => {
                    self.session += 1;
                    self.tell(now, || {
                        format!("offered {:?} by {}", String::from_utf8_lossy(&offer.name), offer.sender)
                    });
                    self.later(now, Job::Open(offer));
                }
                ReceiverEvent::Ended(outcome) => {
                    self.session += 1;
                    self.tell(now, || format!("{outcome:?}"));
                }
                event => self.tell(now, || format!("{event:?}")),
            }
        }
    }

    /// Does a job at once, or after the disk's time.
    fn later(&mut self, now: Time, job: Job) {
        if self.slow.is_zero() {
            self.act(now, job);
        } else {
            self.jobs.push_back((now + self.slow, self.session, job));
        }
    }

    fn act(&mut self, now: Time, job: Job) {
        match job {
            Job::Open(offer) => {
                let held = {
                    let disk = &self.truth.borrow().sites[self.site].disk;
                    self.genuine = offer.id == Some(PRODUCT) && offer.geometry == disk.geometry;
                    if self.genuine { disk.held.clone() } else { Bitmap::new(offer.geometry.segments()) }
                };
                // The directory may hold an older version, unless the stored segments show that it was compared before.
                if self.genuine && held.is_empty() && self.earlier.is_some() {
                    self.engine.accept_comparing(now, held, false);
                } else {
                    self.engine.accept(now, held);
                }
            }
            Job::Compare => self.compare(now),
            Job::Decode(block) => {
                if self.genuine {
                    self.truth.borrow_mut().sites[self.site].disk.decode(block);
                }
                self.engine.decoded(block, true);
            }
            Job::Verify => self.verify(now),
        }
    }

    /// Tells the engine when the list of files is complete.
    fn look_for_list(&mut self) {
        let Some((_, segments)) = &self.earlier else { return };
        let disk = &mut self.truth.borrow_mut().sites[self.site].disk;
        let list = Run::new(0, (*segments).min(disk.geometry.segments())).unwrap_or(Run::one(0));
        if disk.held.contains(0) && !disk.spoiled.contains(0) {
            self.engine.list_is(list.count());
        }
        if disk.held.count_in(list) < list.count() {
            return;
        }
        if disk.spoiled.count_in(list) == 0 {
            return self.engine.listed();
        }
        // The digest of the list does not match.
        disk.spoiled.remove_run(list);
        disk.held.remove_run(list);
        self.engine.lost(list);
    }

    fn compare(&mut self, now: Time) {
        let Some((earlier, _)) = self.earlier.clone() else { return };
        let held = {
            let disk = &mut self.truth.borrow_mut().sites[self.site].disk;
            let segments = f64::from(disk.geometry.segments());
            let (from, to) = ((earlier.has.start * segments) as u32, (earlier.has.end * segments) as u32);
            let gaps: Vec<Run> = Run::new(from, to.saturating_sub(from))
                .map_or_else(Vec::new, |run| disk.held.gaps_in(run).collect());
            for gap in gaps {
                disk.store(now, gap, earlier.lies);
            }
            disk.held.clone()
        };
        self.engine.compared(now, &held);
    }

    fn verify(&mut self, now: Time) {
        if !self.genuine {
            // No digest matches an invented product.
            return self.engine.fail(cancel::QUIT_SYSTEM, Some("the digest does not match".into()));
        }
        if self.earlier.is_some() && !self.truth.borrow().sites[self.site].disk.held.is_full() {
            // A part of the list was wrong, and will come again.
            return;
        }
        let wrong = self.truth.borrow_mut().sites[self.site].disk.drop_spoiled();
        if !wrong.is_empty() {
            self.tell(now, || format!("{} segments do not match the digest", wrong.count()));
            return wrong.iter_runs().for_each(|run| self.engine.lost(run));
        }
        {
            let disk = &mut self.truth.borrow_mut().sites[self.site].disk;
            assert!(disk.held.is_full(), "complete, and the disk has {} segments", disk.held.count());
            disk.verified = true;
        }
        self.tell(now, || "verified".into());
        self.engine.verified(now);
    }
}

impl Engine for ReceiverStation {
    type Message = Parcel;
    type Event = ();

    fn handle(&mut self, now: Time, from: &Arrival, parcel: &Parcel) -> Result<(), Reject> {
        self.meter.hear(from, parcel);
        let result = self.engine.handle(now, from, &parcel.message);
        if self.truth.borrow().tells_of(self.site) {
            let label = self.truth.borrow().sites[self.site].label.clone();
            note(&self.truth, now, &label, from, parcel, result);
        }
        self.drain(now, parcel.spoiled);
        result
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
        self.drain(now, false);
        while self.jobs.front().is_some_and(|&(due, ..)| due <= now) {
            let Some((_, session, job)) = self.jobs.pop_front() else { return };
            if session == self.session {
                self.act(now, job);
                self.drain(now, false);
                // A timer that the job sets may be due at once.
                self.engine.handle_timeout(now);
                self.drain(now, false);
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Parcel>> {
        let transmit = self.engine.poll_transmit(now, until);
        self.drain(now, false);
        transmit.map(|transmit| ship(&mut self.meter, transmit))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let job = self.jobs.front().map(|&(at, ..)| Deadline { at, timer: "disk" });
        let engine = self.engine.poll_timeout();
        job.into_iter().chain(engine).min_by(|a, b| a.at.cmp(&b.at).then(Ordering::Less))
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

/// Returns the honest receiver that sent a message.
fn speaker(parcel: &Parcel) -> Option<ClientId> {
    let client = match &parcel.message.body {
        Body::Registration(m) => m.entries.first()?.client,
        Body::Nak(m) => m.client,
        Body::Ack(m) => m.client,
        Body::Done(m) => m.client,
        _ => return None,
    };
    parcel.forged.is_none().then_some(client)
}

/// Records a forged message that was accepted, and an honest one that was rejected.
fn note(truth: &Shared, now: Time, who: &str, from: &Arrival, parcel: &Parcel, result: Result<(), Reject>) {
    if let (None, Err(reason)) = (parcel.forged, result)
        && !matches!(reason, Reject::Duplicate)
    {
        let source = from.source;
        truth.borrow_mut().tell(now, || format!("{who} turned down {source}: {reason}: {}", brief(parcel)));
    }
    if let (Some(forged), Ok(())) = (parcel.forged, result) {
        let (source, to) = (from.source, from.destination);
        let (attacker, number) = (forged.attacker, forged.number);
        truth.borrow_mut().tell(now, || {
            format!("{who} took #{number} of attacker {attacker}, {source} -> {to}: {}", brief(parcel))
        });
    }
}

/// Returns a message in one line.
pub(crate) fn brief(parcel: &Parcel) -> String {
    let mut text = format!("{:?}", parcel.message);
    if text.len() > 300 {
        let end = (0..=300).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// Returns the length of an engine's debug text, which grows with everything that the engine holds.
pub(crate) fn size(engine: &impl fmt::Debug) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = write!(count, "{engine:?}");
    count.0
}

/// Returns the address from which a receiver answers in life `life` at site `site`; the port differs each time.
pub(crate) fn answers_from(site: usize, life: usize, draw: u64) -> SocketAddr {
    SocketAddr::from((site_ip(site), 32_768 + (draw % 28_000) as u16 + life as u16))
}

/// Returns the host address of a receiver.
pub(crate) fn site_ip(site: usize) -> [u8; 4] {
    let host = site as u32 + 1;
    [10, (host >> 16) as u8, (host >> 8) as u8, host as u8]
}
