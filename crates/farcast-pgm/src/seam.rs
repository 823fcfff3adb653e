//! PGM behind the seam: the drivers know [`farcast_delivery`] and not PGM.

use alloc::vec::Vec;

use farcast_core::Run;
use farcast_delivery::{Content, Delivery, ObjectId, Packet, Protocol, Proved, Purpose, Transport};

use crate::message::{Body, DataKind, Message, NakKind, Opt, Origin};
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
