//! Engine that listens and never answers, and a population of such receivers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::{Among, Bitmap, Run, Time};
use farcast_delivery::{
    Answer, Channel, Content, Delivery as _, FeedbackCounts, Geometry, ObjectId, Offer, Outcome, Received,
    ReceiverEngine, Request, TimedFeedback,
};

use super::wire::Message;

/// Event of the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    Open(Offer),
    Store { segments: Run, offset: u32 },
    Verify,
    Ended(Outcome),
}

/// Engine that takes part in the first carousel that it hears, until it has everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    offer: Option<Offer>,
    have: Option<Bitmap>,
    /// Digest of the object that it has, and need not receive again.
    done: Option<[u8; 32]>,
    received: Received,
    rejects: RejectCounts,
    events: VecDeque<Asks>,
}

impl Receiver {
    fn take(&mut self, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match *message {
            Message::Announcement { segment, size, id, .. } => {
                if self.offer.is_some() || self.done == Some(id) {
                    return Err(Reject::Duplicate);
                }
                let geometry = Geometry::new(size, segment.into(), u32::MAX >> 2);
                let offer = Offer {
                    object: ObjectId::FIRST,
                    sender: from.source,
                    session: 0,
                    group: from.destination.ip(),
                    name: b"carousel".to_vec(),
                    provisional: false,
                    id: Some(id),
                    serial: None,
                    vouched: None,
                    geometry: geometry.map_err(|_| Reject::OutOfRange)?,
                    parity_symbols: 0,
                    overwrite: true,
                    rate_bps: u32::MAX,
                };
                self.offer = Some(offer.clone());
                self.events.push_back(Asks::Open(offer));
                Ok(())
            }
            Message::Data { run, last, .. } => self.data(from.source, run, last),
        }
    }

    fn data(&mut self, source: SocketAddr, run: Run, last: u16) -> Result<(), Reject> {
        let (Some(offer), Some(have)) = (&self.offer, &mut self.have) else { return Err(Reject::Unexpected) };
        if offer.sender != source {
            return Err(Reject::OtherSession);
        }
        if run.end() > have.len() || offer.geometry.payload_len(run.last()) != last {
            return Err(Reject::OutOfRange);
        }
        if have.count_in(run) == run.count() {
            self.received.duplicates += u64::from(run.count());
            return Err(Reject::Duplicate);
        }
        let gaps: Vec<Run> = have.gaps_in(run).collect();
        for segments in gaps {
            have.insert_run(segments);
            self.received.segments += u64::from(segments.count());
            self.events.push_back(Asks::Store { segments, offset: segments.first() - run.first() });
        }
        self.check();
        Ok(())
    }

    fn check(&mut self) {
        if self.have.as_ref().is_some_and(Bitmap::is_full) {
            self.events.push_back(Asks::Verify);
        }
    }

    fn end(&mut self, outcome: Outcome) {
        (self.offer, self.have) = (None, None);
        self.events.push_back(Asks::Ended(outcome));
    }
}

impl Engine for Receiver {
    type Message = Message;
    type Event = Asks;

    fn handle(&mut self, _now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let result = self.take(from, message);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Message>> {
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn poll_event(&mut self) -> Option<Asks> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::NEVER
    }
}

impl ReceiverEngine for Receiver {
    fn request(event: &Asks) -> Option<Request<'_>> {
        let object = ObjectId::FIRST;
        Some(match *event {
            Asks::Open(ref offer) => Request::Open(offer),
            Asks::Store { segments, offset } => Request::Store { object, segments, offset },
            Asks::Verify => Request::Verify(object),
            Asks::Ended(outcome) => Request::Ended(object, outcome),
        })
    }

    fn answer(&mut self, now: Time, _object: ObjectId, answer: Answer) {
        match (answer, &mut self.have) {
            (Answer::Open(held) | Answer::OpenEarlier(held, _), None) => {
                let segments = self.offer.as_ref().map_or(0, |offer| offer.geometry.segments());
                self.have = Some(if held.len() == segments { held } else { Bitmap::new(segments) });
                self.check();
            }
            (Answer::Held(held) | Answer::Compared(held), Some(have)) => {
                have.union(&held);
                self.check();
            }
            (Answer::Lost(run), Some(have)) => {
                have.remove_run(run);
            }
            (Answer::Verified, Some(have)) if have.is_full() => {
                self.done = self.offer.as_ref().and_then(|offer| offer.id);
                self.end(Outcome::Complete(now));
            }
            (Answer::Declined(_) | Answer::Failed(..), _) if self.offer.is_some() => {
                self.end(Outcome::Failed);
            }
            _ => {}
        }
    }

    fn stop(&mut self, _now: Time) {
        if self.offer.is_some() {
            self.end(Outcome::Failed);
        }
    }

    fn moved(&mut self, _now: Time) {}

    fn is_busy(&self) -> bool {
        self.offer.is_some()
    }

    fn have(&self, _object: ObjectId) -> Option<&Bitmap> {
        self.have.as_ref()
    }

    fn received(&self, _object: ObjectId) -> Received {
        self.received
    }

    fn naks(&self) -> u64 {
        0
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}

/// Population of receivers with an engine each, as they send nothing.
#[derive(Debug)]
pub(crate) struct Population {
    receivers: Vec<Receiver>,
    completed: Vec<Time>,
    counts: FeedbackCounts,
    lost: Vec<u32>,
}

impl Population {
    pub(crate) fn new(receivers: u32) -> Self {
        let (receivers, completed) = (0..receivers).map(|_| (Receiver::default(), Time::NEVER)).unzip();
        Self { receivers, completed, counts: FeedbackCounts::default(), lost: Vec::new() }
    }
}

impl farcast_delivery::Population for Population {
    type Message = Message;
    type Merged = Infallible;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
        let spared = channel.data_only && message.content() == Content::None;
        self.lost.clear();
        let among = if spared { Among::These(&[]) } else { Among::All };
        channel.losses.draw(now, octets, among, &mut self.lost);
        let (head, _) = message.split(NonZeroU32::MIN);
        for (n, (receiver, completed)) in (0..).zip(self.receivers.iter_mut().zip(&mut self.completed)) {
            if self.lost.contains(&n) {
                continue;
            }
            let _ = receiver.handle(now, from, &head);
            while let Some(event) = receiver.poll_event() {
                match Receiver::request(&event) {
                    Some(Request::Open(offer)) => {
                        let none = Bitmap::new(offer.geometry.segments());
                        receiver.answer(now, offer.object, Answer::Open(none));
                    }
                    Some(Request::Verify(object)) => {
                        *completed = now;
                        receiver.answer(now, object, Answer::Verified);
                    }
                    _ => {}
                }
            }
        }
        1
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    fn poll_feedback(&mut self) -> Option<TimedFeedback<Message, Infallible>> {
        None
    }

    fn completed(&self) -> &[Time] {
        &self.completed
    }

    fn counts(&self) -> &FeedbackCounts {
        &self.counts
    }
}
