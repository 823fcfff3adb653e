//! NORM as a protocol of [`farcast_delivery`]. Drivers know only that interface, and not NORM.

use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, RejectCounts};
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{
    Answer, Asked, Cause, Content, Decline, Delivery, Ending, ErasureCode, Figure, Geometry, Gone, Milestone,
    ObjectId, Outcome, Packet, Phase, Protocol, Proved, Purpose, Received, ReceiverEngine, Request,
    RequestCounts, RoundProgress, Routes, SenderEngine,
};

use crate::event::{ReceiverEvent, ReceiverOutcome, SenderEvent, SenderOutcome};
use crate::message::{Answer as Said, Body, Fec, Flags, FromSender, Message, NodeId};
use crate::population::Population;
use crate::receiver::Receiver;
use crate::requests::asked_for;
use crate::sender::Sender;
use crate::wire;

/// NORM, as a type for generic drivers.
#[derive(Clone, Copy, Debug)]
pub enum Norm {}

impl Protocol for Norm {
    type Message = Message;
    type Sender = Sender;
    type Receiver = Receiver;
    type Population = Population;
    type Codec = Codec;
}

/// Codec of NORM's messages ([`wire`]).
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// Code of the DATA that is sent. Each of its datagrams has transmission information.
    pub fec: Fec,
}

impl farcast_delivery::Codec for Codec {
    type Message = Message;
    type Error = wire::DecodeError;

    fn header_len(&self) -> usize {
        // RFC 5740 §4.2.1: four words, the payload id, and EXT_FTI.
        16 + self.fec.payload_id_len() + if self.fec == Fec::ReedSolomon8 { 12 } else { 16 }
    }

    fn datagram_len(&self, payload: usize) -> usize {
        self.header_len() + payload
    }

    fn encode(&self, message: &Message, segment: u32, out: &mut Vec<u8>) {
        wire::encode(message, segment, out);
    }

    fn decode(&self, datagram: &[u8]) -> Result<Packet<Message>, wire::DecodeError> {
        wire::decode(datagram, self.fec.field_bits())
    }
}

impl Delivery for Message {
    fn content(&self) -> Content {
        let Some(data) = self.data() else { return Content::None };
        // Object numbers on the wire are indices of the list that is sent.
        let (object, block, symbols) = (ObjectId::new(data.object.into()), data.block, data.symbols);
        // A message without the number of source symbols comes from another sender, so its parity cannot be told from
        // source symbols here.
        let parity = data.source_symbols().and_then(|len| symbols.first().checked_sub(len));
        match parity.and_then(|first| Run::new(first, symbols.count())) {
            Some(symbols) => Content::Parity { object, block, symbols },
            None => Content::Source { object, block, segments: symbols },
        }
    }

    fn purpose(&self) -> Purpose {
        match &self.body {
            Body::Sender(_, said) => match said {
                // Round numbers are not on the wire; a flag tells whether it is the first.
                FromSender::Data(data) => {
                    Purpose::Content { round: if data.flags.has(Flags::REPAIR) { 2 } else { 1 } }
                }
                FromSender::Info(_) => Purpose::Announcement,
                FromSender::Flush { .. } | FromSender::AckReq { .. } | FromSender::Probe(_) => Purpose::Query,
                FromSender::Eot => Purpose::Confirmation,
                _ => Purpose::Other,
            },
            Body::Receiver(said) => match &said.answer {
                Said::Nack(requests) => {
                    let mut points = requests.iter().flat_map(|request| &request.points);
                    let block = points.next().map_or(0, |point| point.symbol.block);
                    Purpose::Nak { round: 0, block, segments: asked_for(requests) }
                }
                Said::Flushed { .. } => Purpose::Confirmation,
                Said::Ack { .. } => Purpose::Other,
            },
        }
    }

    fn payload_len(&self, segment: u32) -> usize {
        self.data().map_or(0, |data| data.payload_len(segment))
    }

    fn join(&mut self, next: &Self) -> bool {
        let (source, sequence) = (self.source, self.sequence);
        let Body::Sender(terms, FromSender::Data(run)) = &mut self.body else { return false };
        let Body::Sender(others, FromSender::Data(data)) = &next.body else { return false };
        let follows = sequence.wrapping_add(run.symbols.count() as u16) == next.sequence;
        if source != next.source || terms != others || !follows || !run.continues(data) {
            return false;
        }
        let Some(symbols) = Run::new(run.symbols.first(), run.symbols.count() + data.symbols.count()) else {
            return false;
        };
        (run.symbols, run.last_len) = (symbols, data.last_len);
        true
    }

    fn is_for_one(&self) -> bool {
        false
    }

    fn may_be_said_by(&self, who: &Proved<'_>) -> bool {
        matches!(self.body, Body::Receiver(_)) && self.source.0 == who.number.receiver()
    }

    fn may_be_sent_by(&self, who: &Proved<'_>) -> bool {
        matches!(self.body, Body::Sender(..)) && self.source.0 == who.number.sender()
    }

    fn is_urgent(&self) -> bool {
        matches!(&self.body, Body::Sender(_, FromSender::Flush { .. }))
    }

    fn is_set_up(&self) -> bool {
        false
    }
}

impl SenderEngine for Sender {
    type Merged = Infallible;

    fn open(&mut self, now: Time) {
        Self::open(self, now);
    }

    fn spend(&mut self, datagrams: u64, octets: u64) {
        Self::spend(self, datagrams, octets);
    }

    fn abort(&mut self, _now: Time, _cause: Cause, _text: Option<String>) {
        // NORM cannot carry the reason.
        Self::abort(self);
    }

    fn withdraw(&mut self, _now: Time, object: ObjectId, _gone: &Gone, _why: &str) {
        // An object is a file.
        Self::withdraw(self, object);
    }

    fn moved(&mut self, _now: Time, source: SocketAddr) {
        Self::moved(self, source);
    }

    fn routes(&self) -> Routes {
        let config = self.config();
        Routes {
            source: config.source,
            announcements: config.group,
            content: config.group,
            answers: if config.unicast { config.source } else { config.group },
        }
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        Self::geometry(self, object)
    }

    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        code_of(self.config().fec)
    }

    fn parity_symbols(&self, object: ObjectId) -> u32 {
        Self::geometry(self, object).map_or(0, |_| self.config().parity.into())
    }

    fn phase(&self) -> Phase {
        Self::phase(self)
    }

    fn progress(&self) -> RoundProgress {
        Self::progress(self)
    }

    fn figures(&self, nacks: &RequestCounts) -> Vec<Figure> {
        let sent = Self::sent_per_round(self);
        alloc::vec![
            Figure::count("rounds", sent.len() as u64).labelled("rounds"),
            Figure::counts("segments_per_round", sent.to_vec()).labelled("segments sent"),
            Figure::count("nacks.sent", nacks.sent).labelled("NACKs sent"),
            Figure::count("nacks.collided", nacks.collided).labelled("requests collided"),
            Figure::count("nacks.late", nacks.late).labelled("NACKs too late"),
            Figure::count("nacks.used", nacks.used),
        ]
    }

    fn milestone(event: &SenderEvent) -> Option<Milestone> {
        Some(match *event {
            SenderEvent::Started { ackers } => Milestone::Began { receivers: ackers },
            SenderEvent::Round { round, segments } => Milestone::Round { round, segments },
            SenderEvent::Reached { .. } => return None,
            SenderEvent::Acknowledged(_) => Milestone::Done,
            SenderEvent::Lost(_) => Milestone::Left,
            SenderEvent::Delivered => Milestone::Delivered,
            // Receivers do not register, so it is not known whether there are any.
            SenderEvent::Ended(_) => Milestone::Ended { alone: false },
        })
    }

    fn ending(event: &SenderEvent) -> Option<Ending> {
        let SenderEvent::Ended(outcome) = event else { return None };
        Some(match outcome {
            SenderOutcome::Acknowledged | SenderOutcome::Unknown => Ending::Finished,
            SenderOutcome::Incomplete { .. } => Ending::Silence,
            // Only the time limit aborts a sender in a simulation.
            SenderOutcome::Aborted => Ending::TimeLimit,
        })
    }

    fn asked(&self) -> Option<Asked> {
        Self::asked(self)
    }
}

/// Returns the erasure code of `fec`, as in NRL's library.
const fn code_of(fec: Fec) -> ErasureCode {
    match fec {
        Fec::ReedSolomon8 | Fec::SmallBlock | Fec::ReedSolomon(8) => ErasureCode::ReedSolomon8,
        Fec::ReedSolomon(16) => ErasureCode::ReedSolomon16,
        Fec::ReedSolomon(_) => ErasureCode::Unknown,
    }
}

impl ReceiverEngine for Receiver {
    fn request(event: &ReceiverEvent) -> Option<Request<'_>> {
        Some(match *event {
            ReceiverEvent::Offered(ref offer) => Request::Open(offer),
            ReceiverEvent::Named(ref offer) => Request::Rename(offer),
            ReceiverEvent::Store { object, segments, offset } => Request::Store { object, segments, offset },
            ReceiverEvent::StoreParity { object, block, symbols, offset } => {
                Request::Parity { object, block, symbols, offset }
            }
            ReceiverEvent::Decode { object, block } => Request::Decode { object, block },
            ReceiverEvent::Complete(object) => Request::Verify(object),
            ReceiverEvent::Ended(object, outcome) => {
                let outcome = match outcome {
                    ReceiverOutcome::Complete(at) => Outcome::Complete(at),
                    ReceiverOutcome::Lost => Outcome::Lost,
                    ReceiverOutcome::Withdrawn => Outcome::Missed,
                    ReceiverOutcome::Stopped => Outcome::Failed,
                };
                Request::Ended(object, outcome)
            }
            ReceiverEvent::Command { .. } => return None,
        })
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer) {
        match answer {
            Answer::Open(held) | Answer::OpenEarlier(held, _) => self.accept(now, object, &held),
            Answer::Declined(Decline::Busy) => self.postpone(object),
            Answer::Declined(_) | Answer::Failed(..) => self.decline(object),
            Answer::Held(held) | Answer::Compared(held) => self.held(object, &held),
            Answer::Lost(segments) => self.lost(object, segments),
            Answer::Decoded { block, rebuilt } => self.decoded(object, block, rebuilt),
            Answer::Verified => self.verified(now, object),
            Answer::ListIs(_) | Answer::Listed => {}
        }
    }

    fn stop(&mut self, _now: Time) {
        Self::stop(self);
    }

    fn moved(&mut self, _now: Time) {}

    fn begins_anew(&mut self, _now: Time, who: &Proved<'_>) {
        Self::begins_anew(self, NodeId(who.number.sender()));
    }

    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }

    fn is_busy_with(&self, source: SocketAddr) -> bool {
        Self::is_busy_with(self, source)
    }

    fn erasure_code(&self, object: ObjectId) -> ErasureCode {
        self.fec(object).map_or(ErasureCode::Unknown, code_of)
    }

    fn have(&self, object: ObjectId) -> Option<&Bitmap> {
        Self::have(self, object)
    }

    fn unstored(&mut self, from: &Arrival, message: &Message) {
        Self::unstored(self, from.source, message);
    }

    fn received(&self, object: ObjectId) -> Received {
        Self::received(self, object)
    }

    fn missed(&self, source: SocketAddr) -> u32 {
        Self::missed(self, source)
    }

    fn naks(&self) -> u64 {
        Self::naks(self)
    }

    fn rejects(&self) -> &RejectCounts {
        Self::rejects(self)
    }
}
