//! One-way delivery behind the seam: its drivers know [`farcast_delivery`] and not this crate.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, RejectCounts};
use farcast_core::{Bitmap, Time};
use farcast_delivery::{
    Answer, Cause, Figure, Geometry, Gone, Milestone, Noun, ObjectId, Outcome, Packet, Phase, Protocol,
    Received, ReceiverEngine, Request, RequestCounts, RoundProgress, Routes, SenderEngine, Words,
};

use crate::message::Message;
use crate::population::Population;
use crate::receiver::{Receiver, ReceiverEvent};
use crate::sender::{Sender, SenderEvent};
use crate::wire;

/// One-way delivery protocol.
#[derive(Clone, Copy, Debug)]
pub enum OneWay {}

impl Protocol for OneWay {
    const WORDS: Words = Words { segment: Noun { one: "symbol", many: "symbols" }, ..Words::COMMON };

    type Message = Message;
    type Sender = Sender;
    type Receiver = Receiver;
    type Population = Population;
    type Codec = Codec;
}

/// Encoding of messages as bytes ([`wire`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Codec;

impl farcast_delivery::Codec for Codec {
    type Message = Message;
    type Error = wire::DecodeError;

    fn header_len(&self) -> usize {
        wire::HEADER_LEN
    }

    fn datagram_len(&self, payload: usize) -> usize {
        wire::HEADER_LEN + payload
    }

    fn encode(&self, message: &Message, segment: u32, out: &mut Vec<u8>) {
        wire::encode(message, segment, out);
    }

    fn decode(&self, datagram: &[u8]) -> Result<Packet<Message>, wire::DecodeError> {
        wire::decode(datagram)
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
        self.stop();
    }

    fn withdraw(&mut self, _now: Time, _object: ObjectId, gone: &Gone, why: &str) {
        Self::withdraw(self, gone, why);
    }

    fn moved(&mut self, _now: Time, source: SocketAddr) {
        Self::moved(self, source);
    }

    fn routes(&self) -> Routes {
        let config = self.config();
        // No receiver answers.
        Routes {
            source: config.source,
            announcements: config.group,
            content: config.group,
            answers: config.source,
        }
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        (object == ObjectId::FIRST).then(|| self.config().shape.geometry())
    }

    fn parity_symbols(&self, object: ObjectId) -> u32 {
        if object == ObjectId::FIRST { self.config().shape.parity() } else { 0 }
    }

    fn parity_of_all(&self, object: ObjectId) -> u32 {
        if object == ObjectId::FIRST { self.parity_planned() } else { 0 }
    }

    fn phase(&self) -> Phase {
        Self::phase(self)
    }

    fn progress(&self) -> RoundProgress {
        Self::progress(self)
    }

    fn figures(&self, _requests: &RequestCounts) -> Vec<Figure> {
        let sent: u64 = self.sent().iter().sum();
        let segments = u64::from(self.config().shape.geometry().segments() - self.withdrawn());
        let again = (sent > 0).then(|| 100.0 * (sent as f64 / segments as f64 - 1.0));
        vec![
            Figure::count("rounds", self.sent().len() as u64).labelled("rounds"),
            Figure::counts("symbols_per_round", self.sent().to_vec()).labelled("symbols sent"),
            Figure::number("overhead_percent", again).labelled("overhead"),
            Figure::count("head_repeated", self.repeated()),
        ]
    }

    fn milestone(event: &SenderEvent) -> Option<Milestone> {
        Some(match *event {
            // The sender never knows whether any receiver listens, nor whether all are complete.
            SenderEvent::Began => Milestone::Began { receivers: 0 },
            SenderEvent::Round { round, symbols } => Milestone::Round { round, segments: symbols },
            SenderEvent::Ended { .. } => Milestone::Ended { alone: false },
        })
    }

    fn quiet_until(&self) -> Time {
        Time::NEVER
    }
}

impl ReceiverEngine for Receiver {
    const KEEPS_PARITY: bool = true;
    const ANSWERS: bool = false;

    fn request(event: &ReceiverEvent) -> Option<Request<'_>> {
        Some(match *event {
            ReceiverEvent::Offered(ref offer) => Request::Open(offer),
            ReceiverEvent::Store { object, segments, offset } => Request::Store { object, segments, offset },
            ReceiverEvent::Parity { object, block, symbols, offset } => {
                Request::Parity { object, block, symbols, offset }
            }
            ReceiverEvent::Decode { object, block } => Request::Decode { object, block },
            ReceiverEvent::Complete(object) => Request::Verify(object),
            ReceiverEvent::Ended(object, outcome) | ReceiverEvent::Withdrawn { object, outcome, .. } => {
                Request::Ended(object, outcome)
            }
        })
    }

    /// Returns `true` for a complete object, because neither side ever has more to send.
    fn is_settled(event: &ReceiverEvent) -> bool {
        matches!(event, ReceiverEvent::Ended(_, Outcome::Complete(_)))
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer) {
        Self::answer(self, now, object, answer);
    }

    fn kept(&mut self, _now: Time, object: ObjectId, block: u32, symbols: &Bitmap) {
        Self::kept(self, object, block, symbols);
    }

    fn stop(&mut self, _now: Time) {
        Self::stop(self);
    }

    fn moved(&mut self, _now: Time) {}

    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }

    fn is_busy_with(&self, source: SocketAddr) -> bool {
        Self::is_busy_with(self, source)
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

    fn naks(&self) -> u64 {
        0
    }

    fn rejects(&self) -> &RejectCounts {
        Self::rejects(self)
    }
}
