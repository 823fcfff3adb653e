//! NORM as a protocol of [`farcast_delivery`]. Drivers know only that interface, and not NORM.

use alloc::vec::Vec;

use farcast_core::Run;
use farcast_delivery::{Content, Delivery, ObjectId, Packet, Protocol, Proved, Purpose};

use crate::message::{Answer as Said, Body, Fec, Flags, FromSender, Message};
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
