//! MDP behind the seam: the drivers know [`farcast_delivery`] and not MDP.

use alloc::vec::Vec;

use farcast_core::Run;
use farcast_delivery::{Content, Delivery, ObjectId, Packet, Protocol, Proved, Purpose};

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

#[cfg(test)]
mod tests {
    use farcast_delivery::KeyNumber;
    use farcast_delivery::nack::NodeId;

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
