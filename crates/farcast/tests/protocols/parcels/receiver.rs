//! Engine that takes every parcel that it hears.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, RejectCounts, Transmit};
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{Answer, Geometry, ObjectId, Offer, Outcome, Received, ReceiverEngine, Request};

use super::wire::Message;

/// Event of the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    Open(Offer),
    Store(ObjectId, Run, u32),
    Verify(ObjectId),
    Ended(ObjectId, Outcome),
}

#[derive(Debug)]
struct Parcel {
    offer: Offer,
    have: Option<Bitmap>,
    over: bool,
    received: Received,
}

#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// Parcels by sender and number. An ended parcel stays, so that it is not received twice.
    parcels: BTreeMap<(SocketAddr, u16), Parcel>,
    rejects: RejectCounts,
    events: VecDeque<Asks>,
}

impl Receiver {
    fn take(&mut self, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match *message {
            Message::Label { number, segment, size, ref name } => {
                let object = ObjectId::new(self.parcels.len() as u32);
                if self.parcels.contains_key(&(from.source, number)) {
                    return Err(Reject::Duplicate);
                }
                let geometry = Geometry::new(size, segment.into(), u32::MAX >> 2);
                let offer = Offer {
                    object,
                    sender: from.source,
                    session: 0,
                    group: from.destination.ip(),
                    name: name.clone(),
                    provisional: false,
                    id: None,
                    serial: Some(number.into()),
                    vouched: None,
                    geometry: geometry.map_err(|_| Reject::OutOfRange)?,
                    parity_symbols: 0,
                    overwrite: false,
                    rate_bps: u32::MAX,
                };
                self.events.push_back(Asks::Open(offer.clone()));
                let parcel = Parcel { offer, have: None, over: false, received: Received::default() };
                self.parcels.insert((from.source, number), parcel);
                Ok(())
            }
            Message::Data { number, run, last, .. } => {
                let parcel = self.parcels.get_mut(&(from.source, number)).ok_or(Reject::Unexpected)?;
                let object = parcel.offer.object;
                let have = parcel.have.as_mut().ok_or(Reject::Unexpected)?;
                if run.end() > have.len() || parcel.offer.geometry.payload_len(run.last()) != last {
                    return Err(Reject::OutOfRange);
                }
                let gaps: Vec<Run> = have.gaps_in(run).collect();
                for gap in gaps {
                    have.insert_run(gap);
                    parcel.received.segments += u64::from(gap.count());
                    self.events.push_back(Asks::Store(object, gap, gap.first() - run.first()));
                    if have.is_full() {
                        self.events.push_back(Asks::Verify(object));
                    }
                }
                Ok(())
            }
        }
    }

    fn parcel(&self, object: ObjectId) -> Option<&Parcel> {
        self.parcels.values().find(|parcel| parcel.offer.object == object)
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
        Some(match *event {
            Asks::Open(ref offer) => Request::Open(offer),
            Asks::Store(object, segments, offset) => Request::Store { object, segments, offset },
            Asks::Verify(object) => Request::Verify(object),
            Asks::Ended(object, outcome) => Request::Ended(object, outcome),
        })
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer) {
        let found = self.parcels.values_mut().find(|parcel| parcel.offer.object == object && !parcel.over);
        let Some(parcel) = found else { return };
        let outcome = match answer {
            Answer::Open(held) => {
                if held.is_full() {
                    self.events.push_back(Asks::Verify(object));
                }
                parcel.have = Some(held);
                return;
            }
            Answer::Lost(run) => {
                if let Some(have) = &mut parcel.have {
                    have.remove_run(run);
                }
                return;
            }
            Answer::Verified => Outcome::Complete(now),
            _ => Outcome::Failed,
        };
        (parcel.over, parcel.have) = (true, None);
        self.events.push_back(Asks::Ended(object, outcome));
    }

    fn stop(&mut self, _now: Time) {
        for parcel in self.parcels.values_mut().filter(|parcel| !parcel.over) {
            parcel.over = true;
            self.events.push_back(Asks::Ended(parcel.offer.object, Outcome::Failed));
        }
    }

    fn moved(&mut self, _now: Time) {}

    fn is_busy(&self) -> bool {
        self.parcels.values().any(|parcel| !parcel.over)
    }

    fn have(&self, object: ObjectId) -> Option<&Bitmap> {
        self.parcel(object)?.have.as_ref()
    }

    fn received(&self, object: ObjectId) -> Received {
        self.parcel(object).map_or(Received::default(), |parcel| parcel.received)
    }

    fn naks(&self) -> u64 {
        0
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}
