//! MFTP behind the seam: its drivers know [`farcast_delivery`] and not MFTP.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Reject, RejectCounts};
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{
    Ahead, Answer, Asked, Cause, Channel, Content, Decline, Delivery, Ending, FeedbackCounts, Figure,
    Geometry, Gone, Milestone, ObjectId, Occupancy, Outcome, Packet, Phase, Protocol, Proved, Purpose,
    Received, ReceiverEngine, Request, RequestCounts, RoundProgress, Routes, SenderEngine, Words,
};

use crate::event::{ReceiverEvent, ReceiverOutcome, SenderEvent, SenderOutcome};
use crate::figures;
use crate::message::{Body, ClientId, DataKind, DeclineReason, Message, Naks, StatusType, cancel};
use crate::population::{Feedback, Population};
use crate::receiver::Receiver;
use crate::sender::{Neighbourhood, Sender};
use crate::wire;

/// MFTP protocol.
#[derive(Clone, Copy, Debug)]
pub enum Mftp {}

impl Protocol for Mftp {
    const WORDS: Words = figures::WORDS;

    type Message = Message;
    type Sender = Sender;
    type Receiver = Receiver;
    type Population = Population;
    type Codec = Codec;
}

/// Encoding of MFTP's messages as bytes ([`wire`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Codec;

impl farcast_delivery::Codec for Codec {
    type Message = Message;
    type Error = wire::DecodeError;

    fn header_len(&self) -> usize {
        wire::DATA_HEADER_LEN
    }

    fn datagram_len(&self, payload: usize) -> usize {
        wire::data_len(payload)
    }

    fn encode(&self, message: &Message, segment: u32, out: &mut Vec<u8>) {
        wire::encode(message, segment, out);
    }

    fn decode(&self, datagram: &[u8]) -> Result<Packet<Message>, wire::DecodeError> {
        wire::decode(datagram)
    }
}

impl Delivery for Message {
    fn content(&self) -> Content {
        let Body::Data(data) = &self.body else { return Content::None };
        // A product is the one object of its transmission.
        let (object, block) = (ObjectId::FIRST, data.block);
        match data.kind {
            DataKind::Source => Content::Source { object, block, segments: data.dtus },
            DataKind::Parity => Content::Parity { object, block, symbols: data.dtus },
        }
    }

    fn purpose(&self) -> Purpose {
        match &self.body {
            Body::Announce(_) => Purpose::Announcement,
            Body::Data(data) => Purpose::Content { round: data.pass },
            Body::StatusRequest(_) => Purpose::Query,
            Body::Nak(nak) => {
                Purpose::Nak { round: nak.pass, block: nak.block, segments: nak.missing.count() }
            }
            Body::Completion(_) => Purpose::Confirmation,
            _ => Purpose::Other,
        }
    }

    fn payload_len(&self, segment: u32) -> usize {
        match &self.body {
            Body::Data(data) => data.payload_len(segment),
            _ => 0,
        }
    }

    fn join(&mut self, next: &Self) -> bool {
        let (Body::Data(run), Body::Data(data)) = (&mut self.body, &next.body) else { return false };
        if self.transmission != next.transmission || !run.continues(data) {
            return false;
        }
        let Some(dtus) = Run::new(run.dtus.first(), run.dtus.count() + 1) else { return false };
        (run.dtus, run.last_len) = (dtus, data.last_len);
        true
    }

    fn is_for_one(&self) -> bool {
        matches!(
            self.body,
            Body::Abort(_)
                | Body::Grant(_)
                | Body::Echo(_)
                | Body::EchoResponse(_)
                | Body::Join(_)
                | Body::Leave(_)
        )
    }

    fn may_be_said_by(&self, &Proved { name, .. }: &Proved<'_>) -> bool {
        let own = ClientId::from_name(name);
        match &self.body {
            Body::Registration(registration) => {
                registration.entries.iter().all(|entry| entry.client == own)
                    && registration.name.as_deref().is_none_or(|said| said == name)
            }
            Body::Nak(nak) => nak.client == own,
            Body::Ack(ack) => ack.client == own,
            Body::Done(done) => done.client == own,
            Body::Quit(quit) => quit.client == Some(own),
            Body::Query(_) | Body::EchoResponse(_) => true,
            _ => false,
        }
    }

    fn is_urgent(&self) -> bool {
        matches!(&self.body, Body::StatusRequest(request) if request.status == StatusType::All)
    }

    fn is_set_up(&self) -> bool {
        matches!(self.body, Body::Announce(_) | Body::Registration(_) | Body::Grant(_))
    }
}

impl SenderEngine for Sender {
    type Merged = Naks;

    fn open(&mut self, now: Time) {
        Self::open(self, now);
    }

    fn start(&mut self, now: Time) {
        Self::start(self, now);
    }

    fn spend(&mut self, datagrams: u64, octets: u64) {
        Self::spend(self, datagrams, octets);
    }

    fn spend_at_once(&mut self, datagrams: u64, octets: u64) {
        Self::spend_at_once(self, datagrams, octets);
    }

    fn abort(&mut self, now: Time, cause: Cause, text: Option<String>) {
        let reason = match cause {
            Cause::Application => cancel::ABORT_APPLICATION,
            Cause::System => cancel::ABORT_SYSTEM,
            Cause::SourceChanged => cancel::ABORT_SOURCE_CHANGED,
            Cause::SourceRenewed => cancel::ABORT_SOURCE_RENEWED,
        };
        Self::abort(self, now, reason, text);
    }

    fn withdraw(&mut self, _now: Time, _object: ObjectId, gone: &Gone, why: &str) {
        Self::withdraw(self, gone, why);
    }

    fn dismiss(&mut self, now: Time, who: &Proved<'_>) {
        Self::dismiss(self, now, ClientId::from_name(who.name));
    }

    fn moved(&mut self, now: Time, source: SocketAddr) {
        Self::moved(self, now, source);
    }

    fn routes(&self) -> Routes {
        let config = self.config();
        Routes {
            source: config.server,
            announcements: config.public,
            content: config.private,
            answers: config.response,
        }
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        (object == ObjectId::FIRST).then(|| Self::geometry(self))
    }

    fn parity_symbols(&self, _object: ObjectId) -> u32 {
        self.config().parity_symbols
    }

    fn phase(&self) -> Phase {
        Self::phase(self)
    }

    fn progress(&self) -> RoundProgress {
        self.pass()
    }

    fn figures(&self, naks: &RequestCounts) -> Vec<Figure> {
        figures::figures(&self.stats().dtus_per_pass, naks)
    }

    fn milestone(event: &SenderEvent) -> Option<Milestone> {
        Some(match *event {
            SenderEvent::Registered { .. } => Milestone::Joined,
            SenderEvent::Started { receivers, .. } => Milestone::Began { receivers },
            SenderEvent::Pass { pass, dtus } => Milestone::Round { round: pass, segments: dtus },
            SenderEvent::Done { .. } => Milestone::Done,
            SenderEvent::Declined { .. } | SenderEvent::Quit { .. } | SenderEvent::Lost { .. } => {
                Milestone::Left
            }
            SenderEvent::Delivered => Milestone::Delivered,
            SenderEvent::Ended(ref outcome) => {
                Milestone::Ended { alone: *outcome == SenderOutcome::NoReceivers }
            }
            SenderEvent::Refused { .. } => return None,
        })
    }

    fn ending(event: &SenderEvent) -> Option<Ending> {
        let SenderEvent::Ended(outcome) = event else { return None };
        Some(match outcome {
            SenderOutcome::NoReceivers => Ending::Nobody,
            SenderOutcome::Aborted { reason: cancel::ABORT_TRANSFER_TIMEOUT } => Ending::TimeLimit,
            SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT } => Ending::Silence,
            SenderOutcome::Finished | SenderOutcome::Aborted { .. } | SenderOutcome::GroupInUse { .. } => {
                Ending::Finished
            }
        })
    }

    fn asked(&self) -> Option<Asked> {
        Self::asked(self)
    }

    fn quiet_until(&self) -> Time {
        Self::quiet_until(self)
    }

    fn parity_ahead(&self) -> [Option<Ahead>; 2] {
        let object = ObjectId::FIRST;
        Self::parity_ahead(self).map(|ahead| ahead.map(|(block, symbols)| Ahead { object, block, symbols }))
    }

    fn may_merge(&self) -> bool {
        Self::may_merge(self)
    }

    fn handle_merged(&mut self, now: Time, naks: &Naks) -> Result<(), Reject> {
        self.handle_naks(now, naks)
    }
}

impl ReceiverEngine for Receiver {
    fn request(event: &ReceiverEvent) -> Option<Request<'_>> {
        let object = ObjectId::FIRST;
        Some(match *event {
            ReceiverEvent::Offered(ref offer) => Request::Open(offer),
            ReceiverEvent::Store { segments, offset } => Request::Store { object, segments, offset },
            ReceiverEvent::StoreParity { block, symbols, offset } => {
                Request::Parity { object, block, symbols, offset }
            }
            ReceiverEvent::Decode { block } => Request::Decode { object, block },
            ReceiverEvent::Compare => Request::Compare(object),
            ReceiverEvent::Complete => Request::Verify(object),
            ReceiverEvent::Ended(ref outcome) => Request::Ended(object, meaning(outcome)),
            _ => return None,
        })
    }

    fn is_settled(event: &ReceiverEvent) -> bool {
        matches!(event, ReceiverEvent::Ended(ReceiverOutcome::Complete { confirmed: true, .. }))
    }

    fn answer(&mut self, now: Time, _object: ObjectId, answer: Answer) {
        match answer {
            Answer::Open(held) => self.accept(now, held),
            Answer::OpenEarlier(held, listed) => self.accept_comparing(now, held, listed),
            Answer::Declined(why) => self.decline(match why {
                Decline::Disk => DeclineReason::Disk,
                Decline::System | Decline::Busy => DeclineReason::System,
                Decline::AlreadyHave => DeclineReason::AlreadyHave,
                Decline::Unwanted => DeclineReason::UnwantedType,
            }),
            Answer::ListIs(segments) => self.list_is(segments),
            Answer::Listed => self.listed(),
            Answer::Held(segments) => self.held(&segments),
            Answer::Compared(held) => self.compared(now, &held),
            Answer::Lost(segments) => self.lost(segments),
            Answer::Decoded { block, rebuilt } => self.decoded(block, rebuilt),
            Answer::Verified => self.verified(now),
            Answer::Failed(cause, text) => self.fail(
                match cause {
                    Cause::Application => cancel::QUIT_APPLICATION,
                    Cause::System | Cause::SourceChanged | Cause::SourceRenewed => cancel::QUIT_SYSTEM,
                },
                text,
            ),
        }
    }

    fn stop(&mut self, now: Time) {
        Self::stop(self, now);
    }

    fn moved(&mut self, now: Time) {
        Self::moved(self, now);
    }

    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }

    fn is_busy_with(&self, source: SocketAddr) -> bool {
        Self::is_busy_with(self, source)
    }

    fn have(&self, _object: ObjectId) -> Option<&Bitmap> {
        Self::have(self)
    }

    fn unstored(&mut self, _from: &Arrival, message: &Message) {
        if let Body::Data(data) = &message.body {
            Self::unstored(self, data);
        }
    }

    fn received(&self, _object: ObjectId) -> Received {
        let stats = self.stats();
        Received {
            segments: stats.dtus,
            parity: stats.parity,
            duplicates: stats.duplicates,
            naks: stats.naks,
            lost: stats.lost,
            sent: stats.lost + stats.dtus + stats.parity,
        }
    }

    fn naks(&self) -> u64 {
        self.stats().naks
    }

    fn rejects(&self) -> &RejectCounts {
        Self::rejects(self)
    }
}

/// Returns the seam's outcome for the end of a transmission at a receiver.
fn meaning(outcome: &ReceiverOutcome) -> Outcome {
    match *outcome {
        ReceiverOutcome::Complete { at, .. } => Outcome::Complete(at),
        ReceiverOutcome::Aborted { reason: cancel::ABORT_SOURCE_CHANGED, .. } => Outcome::SourceChanged,
        ReceiverOutcome::Aborted { reason: cancel::ABORT_COLLISION, .. } => Outcome::Collision,
        ReceiverOutcome::Aborted { reason: cancel::ABORT_SOURCE_RENEWED, .. } => Outcome::SourceRenewed,
        ReceiverOutcome::SenderLost | ReceiverOutcome::NotAccepted => Outcome::Lost,
        _ => Outcome::Failed,
    }
}

impl Occupancy for Neighbourhood {
    type Message = Message;

    fn hear(&mut self, now: Time, source: SocketAddr, message: &Message) {
        Self::hear(self, now, source, message);
    }

    fn is_free(&self, now: Time) -> bool {
        Self::is_free(self, now)
    }

    fn heard(&self) -> Option<SocketAddr> {
        self.sender()
    }
}

impl farcast_delivery::Population for Population {
    type Message = Message;
    type Merged = Naks;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        Self::handle(self, now, from, message, channel)
    }

    fn handle_timeout(&mut self, now: Time) {
        Self::handle_timeout(self, now);
    }

    fn poll_timeout(&self) -> Time {
        Self::poll_timeout(self)
    }

    fn poll_feedback(&mut self) -> Option<(Time, Feedback)> {
        Self::poll_feedback(self)
    }

    fn completed(&self) -> &[Time] {
        Self::completed(self)
    }

    fn lacks(&self, receiver: u32) -> Option<u32> {
        Self::lacks(self, receiver)
    }

    fn counts(&self) -> &FeedbackCounts {
        self.stats()
    }
}
