//! MDP behind the seam: the drivers know [`farcast_delivery`] and not MDP.

use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, RejectCounts};
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{
    Answer, Asked, Cause, Content, Decline, Delivery, Ending, Figure, Geometry, Gone, Milestone, ObjectId,
    Outcome, Packet, Phase, Protocol, Proved, Purpose, Received, ReceiverEngine, Request, RequestCounts,
    RoundProgress, Routes, SenderEngine,
};
use farcast_norm::NodeId;

use crate::event::{ReceiverEvent, ReceiverOutcome, SenderEvent, SenderOutcome};
use crate::message::{Answer as Said, Body, Flags, FromSender, Message, Request as Wanted};
use crate::population::Population;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::wire;

/// The protocol MDP, a type without values.
#[derive(Clone, Copy, Debug)]
pub enum Mdp {}

impl Protocol for Mdp {
    type Message = Message;
    type Sender = Sender;
    type Receiver = Receiver;
    type Population = Population;
    type Codec = Codec;
}

/// MDP's messages as bytes, by [`wire`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Codec;

impl farcast_delivery::Codec for Codec {
    type Message = Message;
    type Error = wire::DecodeError;

    fn header_len(&self) -> usize {
        wire::DATA_HEADER
    }

    fn datagram_len(&self, payload: usize) -> usize {
        self.header_len() + payload
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
        let Some(data) = self.data() else { return Content::None };
        let (object, block) = (ObjectId::new(data.about.object), data.block);
        match data.parity_run() {
            Some(symbols) => Content::Parity { object, block, symbols },
            None => Content::Source { object, block, segments: data.symbols },
        }
    }

    fn purpose(&self) -> Purpose {
        match &self.body {
            Body::Sender(_, said) => match said {
                // Rounds are not on the wire; only the first differs from later ones.
                FromSender::Data(data) => {
                    Purpose::Content { round: if data.about.flags.has(Flags::REPAIR) { 2 } else { 1 } }
                }
                FromSender::Info(_) => Purpose::Announcement,
                FromSender::Flush { eot: true, .. } => Purpose::Confirmation,
                FromSender::Flush { .. } | FromSender::AckReq { .. } | FromSender::Probe(_) => Purpose::Query,
                FromSender::Squelch { .. } | FromSender::NackAdv(_) => Purpose::Other,
            },
            Body::Receiver(said) => match &said.answer {
                Said::Nack(nacks) => {
                    let requests = nacks.iter().flat_map(|nack| &nack.requests);
                    let segments = requests.map(|request| match request {
                        Wanted::Segments { erasures, .. } => (*erasures).into(),
                        Wanted::Blocks { mask, .. } => mask.iter().count() as u32,
                        Wanted::Info | Wanted::Object => 1,
                    });
                    Purpose::Nak { round: 0, block: 0, segments: segments.fold(0, u32::saturating_add) }
                }
                Said::Object(_) => Purpose::Confirmation,
                Said::Probe => Purpose::Other,
            },
        }
    }

    fn payload_len(&self, _segment: u32) -> usize {
        self.data().map_or(0, |data| data.len.into())
    }

    fn join(&mut self, next: &Self) -> bool {
        let source = self.source;
        let Body::Sender(head, FromSender::Data(run)) = &mut self.body else { return false };
        let Body::Sender(other, FromSender::Data(data)) = &next.body else { return false };
        let follows = head.sequence.wrapping_add(run.symbols.count() as u16) == other.sequence;
        if source != next.source || head.grtt != other.grtt || !follows || !run.continues(data) {
            return false;
        }
        let Some(symbols) = Run::new(run.symbols.first(), run.symbols.count() + data.symbols.count()) else {
            return false;
        };
        (run.symbols, run.ends_block) = (symbols, data.ends_block);
        true
    }

    fn is_for_one(&self) -> bool {
        // A session may be between two hosts; the addresses tell which it is.
        true
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
        // MDP has no field for the cause.
        Self::abort(self);
    }

    fn withdraw(&mut self, _now: Time, object: ObjectId, _gone: &Gone, _why: &str) {
        // An object is a file.
        Self::withdraw(self, object.get());
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
        Self::geometry(self, object.get())
    }

    fn parity_symbols(&self, object: ObjectId) -> u32 {
        if Self::geometry(self, object.get()).is_some() { self.config().parity.into() } else { 0 }
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
            Figure::number("grtt_s", Some(self.grtt().as_secs_f64())).labelled("round trip, s"),
        ]
    }

    fn milestone(event: &SenderEvent) -> Option<Milestone> {
        Some(match *event {
            SenderEvent::Started { ackers } => Milestone::Began { receivers: ackers },
            SenderEvent::Object(_) => return None,
            SenderEvent::Round { round, segments } => Milestone::Round { round, segments },
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
        })
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer) {
        match answer {
            Answer::Open(held) | Answer::OpenEarlier(held, _) => {
                self.accept(object, &held);
                self.resume(now);
            }
            Answer::Declined(Decline::Busy) => self.postpone(now, object),
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

#[cfg(test)]
mod tests {
    use farcast_delivery::KeyNumber;
    use farcast_norm::NodeId;

    use super::*;
    use crate::message::FromReceiver;

    #[test]
    fn a_receiver_speaks_for_itself() {
        let (one, other) = (KeyNumber(0x0000_0007_1122_3344), KeyNumber(0x0000_0008_5566_7788));
        let who = |number| Proved { name: "bob", number };
        let said = FromReceiver {
            server: NodeId(one.sender()),
            response: None,
            loss: 0,
            probe: 0,
            answer: Said::Probe,
        };
        let message = |source| Message { source: NodeId(source), body: Body::Receiver(said.clone()) };
        assert!(message(7).may_be_said_by(&who(one)) && !message(7).may_be_said_by(&who(other)));
        assert!(!message(one.sender()).may_be_sent_by(&who(one)), "what receivers say no sender says");
    }
}
