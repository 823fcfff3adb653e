//! PGM behind the seam: the drivers know [`farcast_delivery`] and not PGM.

use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, RejectCounts};
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{
    Answer, Asked, Cause, Content, Delivery, Ending, ErasureCode, Figure, Geometry, Milestone, ObjectId,
    Outcome, Packet, Phase, Protocol, Proved, Purpose, Received, ReceiverEngine, Request, RequestCounts,
    RoundProgress, Routes, SenderEngine, Transport,
};

use crate::config::parity_of;
use crate::event::{ReceiverEvent, ReceiverOutcome, SenderEvent, SenderOutcome};
use crate::message::{Body, DataKind, Gsi, Message, NakKind, Opt, Origin};
use crate::population::Population;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::wire;

/// The number of PGM among IP's protocols (RFC 3208 §8).
pub const IP_PROTOCOL: u8 = 113;

/// The protocol PGM, a type without values.
#[derive(Clone, Copy, Debug)]
pub enum Pgm {}

impl Protocol for Pgm {
    type Message = Message;
    type Sender = Sender;
    type Receiver = Receiver;
    type Population = Population;
    type Codec = Codec;
}

/// PGM's messages as bytes, by [`wire`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Codec {
    /// IP carries the messages directly, not UDP.
    pub raw: bool,
}

impl farcast_delivery::Codec for Codec {
    type Message = Message;
    type Error = wire::DecodeError;

    fn transport(&self) -> Transport {
        if self.raw { Transport::Ip(IP_PROTOCOL) } else { Transport::Udp }
    }

    fn header_len(&self) -> usize {
        wire::DATA_HEADER
    }

    fn datagram_len(&self, payload: usize) -> usize {
        self.header_len() + payload
    }

    fn encode(&self, message: &Message, segment: u32, out: &mut Vec<u8>) {
        wire::encode(message, segment, out);
    }

    fn finish(&self, datagram: &mut [u8]) {
        wire::finish(datagram);
    }

    fn decode(&self, datagram: &[u8]) -> Result<Packet<Message>, wire::DecodeError> {
        wire::decode(datagram)
    }
}

impl Delivery for Message {
    fn content(&self) -> Content {
        let Some(data) = self.data().filter(|data| data.descriptor.is_none()) else { return Content::None };
        match data.origin {
            Origin(Content::None) => {
                // The wire does not name the object, so a decoder cannot know it; the receiver does.
                let segments = Run::new(0, data.count.get());
                let (object, block) = (ObjectId::FIRST, 0);
                segments.map_or(Content::None, |segments| Content::Source { object, block, segments })
            }
            Origin(content) => content,
        }
    }

    fn purpose(&self) -> Purpose {
        match &self.body {
            Body::Data(data) if data.descriptor.is_some() => Purpose::Announcement,
            // Rounds are not on the wire; only the first differs from later ones.
            Body::Data(data) => Purpose::Content { round: if data.kind == DataKind::Repair { 2 } else { 1 } },
            Body::Nak(nak) if nak.kind == NakKind::Nak => {
                Purpose::Nak { round: 0, block: 0, segments: nak.sqns().count() as u32 }
            }
            Body::Spm(_) => Purpose::Query,
            Body::Ack(ack) if ack.options.iter().any(|option| matches!(option, Opt::Has(_))) => {
                Purpose::Confirmation
            }
            _ => Purpose::Other,
        }
    }

    fn payload_len(&self, segment: u32) -> usize {
        let data = self.data().filter(|data| data.descriptor.is_none());
        data.map_or(0, |data| data.tsdu_len(segment))
    }

    fn join(&mut self, next: &Self) -> bool {
        let (Body::Data(run), Body::Data(data)) = (&mut self.body, &next.body) else { return false };
        if (self.tsi, self.port) != (next.tsi, next.port) || !run.continues(data) {
            return false;
        }
        run.count = run.count.saturating_add(data.count.get());
        run.last_len = data.last_len;
        true
    }

    fn is_for_one(&self) -> bool {
        false
    }

    fn may_be_said_by(&self, who: &Proved<'_>) -> bool {
        match &self.body {
            Body::Nak(nak) => nak.kind == NakKind::Nak,
            Body::Ack(ack) => ack.options.iter().all(|option| match option {
                Opt::Has(has) => has.node.0 == who.number.receiver(),
                _ => true,
            }),
            Body::Spmr => true,
            // Messages that network elements and neighbours exchange are not sealed.
            _ => false,
        }
    }

    fn may_be_sent_by(&self, who: &Proved<'_>) -> bool {
        let of_a_source = match &self.body {
            Body::Data(_) | Body::Spm(_) | Body::Poll(_) => true,
            Body::Nak(nak) => nak.kind == NakKind::Confirmation,
            _ => false,
        };
        of_a_source && self.tsi.gsi.0 == who.number.source()
    }

    fn is_urgent(&self) -> bool {
        matches!(&self.body, Body::Spm(spm) if spm.options.iter().any(|option| matches!(option, Opt::Ask(_))))
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
        Self::abort(self);
    }

    fn moved(&mut self, _now: Time, source: SocketAddr) {
        Self::moved(self, source);
    }

    fn routes(&self) -> Routes {
        let config = self.config();
        let (source, group) = (config.source, config.group);
        Routes { source, announcements: group, content: group, answers: source }
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        Self::geometry(self, object)
    }

    fn parity_symbols(&self, object: ObjectId) -> u32 {
        let parity = self.config().parity.filter(|_| Self::geometry(self, object).is_some());
        parity.map_or(0, |parity| parity_of(parity.size))
    }

    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::ReedSolomon8
    }

    fn phase(&self) -> Phase {
        Self::phase(self)
    }

    fn progress(&self) -> RoundProgress {
        Self::progress(self)
    }

    fn figures(&self, naks: &RequestCounts) -> Vec<Figure> {
        let (odata, rdata) = self.sent();
        let parity = Figure::count("parity", self.parity_sent()).labelled("parity packets sent");
        let mut figures = alloc::vec![
            Figure::count("odata", odata).labelled("ODATA sent"),
            Figure::count("rdata", rdata).labelled("RDATA sent"),
            Figure::counts("tpdus_per_round", self.sent_per_round().to_vec()),
            Figure::count("naks.sent", naks.sent).labelled("NAKs sent"),
            Figure::count("naks.collided", naks.collided),
            Figure::count("naks.late", naks.late),
            Figure::count("naks.used", naks.used),
        ];
        figures.extend(self.config().parity.map(|_| parity));
        figures
    }

    fn milestone(event: &SenderEvent) -> Option<Milestone> {
        Some(match *event {
            SenderEvent::Started { named } => Milestone::Began { receivers: named },
            SenderEvent::Round { round, segments } => Milestone::Round { round, segments },
            SenderEvent::Released(_) => return None,
            SenderEvent::Acknowledged(_) => Milestone::Done,
            SenderEvent::Lost(_) => Milestone::Left,
            SenderEvent::Delivered => Milestone::Delivered,
            // Receivers do not register, so it is not known whether there were any.
            SenderEvent::Ended(_) => Milestone::Ended { alone: false },
        })
    }

    fn ending(event: &SenderEvent) -> Option<Ending> {
        let SenderEvent::Ended(outcome) = event else { return None };
        Some(match outcome {
            SenderOutcome::Acknowledged | SenderOutcome::Unknown => Ending::Finished,
            SenderOutcome::Incomplete { .. } => Ending::Silence,
            // Only the time limit stops a simulated sender.
            SenderOutcome::Aborted => Ending::TimeLimit,
        })
    }

    fn asked(&self) -> Option<Asked> {
        Self::asked(self)
    }
}

impl ReceiverEngine for Receiver {
    fn request(event: &ReceiverEvent) -> Option<Request<'_>> {
        Some(match *event {
            ReceiverEvent::Offered(ref offer) => Request::Open(offer),
            ReceiverEvent::Store { object, segments, offset } => Request::Store { object, segments, offset },
            ReceiverEvent::StoreParity { object, block, symbol } => {
                Request::Parity { object, block, symbols: Run::one(symbol), offset: 0 }
            }
            ReceiverEvent::Decode { object, block } => Request::Decode { object, block },
            ReceiverEvent::Complete(object) => Request::Verify(object),
            ReceiverEvent::Ended(object, outcome) => {
                let outcome = match outcome {
                    ReceiverOutcome::Complete(at) => Outcome::Complete(at),
                    ReceiverOutcome::Lost => Outcome::Lost,
                    ReceiverOutcome::Missed => Outcome::Missed,
                    ReceiverOutcome::Stopped => Outcome::Failed,
                };
                Request::Ended(object, outcome)
            }
            // Messages are not objects.
            _ => return None,
        })
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer) {
        match answer {
            Answer::Open(held) | Answer::OpenEarlier(held, _) => self.accept(now, object, &held),
            Answer::Declined(_) | Answer::Failed(..) => self.decline(now, object),
            Answer::Held(held) | Answer::Compared(held) => self.held(now, object, &held),
            Answer::Lost(segments) => self.lost(now, object, segments),
            Answer::Verified => self.verified(now, object),
            Answer::Decoded { block, rebuilt } => self.decoded(now, object, block, rebuilt),
            Answer::ListIs(_) | Answer::Listed => {}
        }
    }

    fn stop(&mut self, now: Time) {
        Self::stop(self, now);
    }

    fn moved(&mut self, _now: Time) {}

    fn begins_anew(&mut self, _now: Time, who: &Proved<'_>) {
        Self::begins_anew(self, Gsi(who.number.source()));
    }

    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }

    fn is_busy_with(&self, source: SocketAddr) -> bool {
        Self::is_busy_with(self, source)
    }

    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::ReedSolomon8
    }

    fn have(&self, object: ObjectId) -> Option<&Bitmap> {
        Self::have(self, object)
    }

    fn unstored(&mut self, _from: &Arrival, message: &Message) {
        Self::unstored(self, message);
    }

    fn received(&self, object: ObjectId) -> Received {
        Self::received(self, object)
    }

    fn naks(&self) -> u64 {
        Self::naks(self)
    }

    fn rejects(&self) -> &RejectCounts {
        Self::rejects(self)
    }
}

#[cfg(test)]
mod tests {
    use farcast_delivery::KeyNumber;

    use super::*;
    use crate::message::{Ack, Gsi, Has, NodeId, Spm, Sqn, Tsi};

    #[test]
    fn a_receiver_speaks_for_itself_and_a_source_for_itself() {
        let (one, other) = (KeyNumber(0x0000_0007_1122_3344), KeyNumber(0x0000_0008_5566_7788));
        let who = |number| Proved { name: "bob", number };
        let message = |body| Message { tsi: Tsi { gsi: Gsi(one.source()), port: 1 }, port: 2, body };
        let has = Opt::Has(Has { upto: Sqn(9), node: NodeId(7) });
        let ack = message(Body::Ack(Ack { highest: Sqn(9), bitmap: 1, options: alloc::vec![has] }));
        assert!(ack.may_be_said_by(&who(one)) && !ack.may_be_said_by(&who(other)));
        assert!(message(Body::Spmr).may_be_said_by(&who(other)));
        let spm = Spm {
            sqn: Sqn(1),
            trail: Sqn(1),
            lead: Sqn(2),
            path: core::net::IpAddr::from([10, 0, 0, 1]),
            options: Vec::new(),
        };
        let spm = message(Body::Spm(spm));
        assert!(spm.may_be_sent_by(&who(one)) && !spm.may_be_sent_by(&who(other)));
        assert!(!spm.may_be_said_by(&who(one)) && !ack.may_be_sent_by(&who(one)));
    }
}
