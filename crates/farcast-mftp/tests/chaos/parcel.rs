//! Parcels: messages of MFTP with the truth about them, which only the world knows.

use core::num::NonZeroU32;
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_mftp::{Body, Message, wire};

/// Message and the truth about it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Parcel {
    /// It is shared by all receivers of a multicast.
    pub(crate) message: Rc<Message>,
    /// `true` if the payload of its DTUs differs from the product.
    pub(crate) spoiled: bool,
    /// Attacker that made the message, and its number among that attacker's messages.
    pub(crate) forged: Option<Forged>,
}

/// Identifier of a forged message: attacker and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Forged {
    pub(crate) attacker: u32,
    pub(crate) number: u32,
}

impl Parcel {
    pub(crate) fn honest(message: Message) -> Self {
        Self { message: Rc::new(message), spoiled: false, forged: None }
    }

    /// Returns the octets of all its datagrams.
    pub(crate) fn octets(&self) -> u64 {
        let last = farcast_core::Message::segments(self).get() - 1;
        let full = if last > 0 { wire::encoded_len(&self.message, 0) as u64 } else { 0 };
        full * u64::from(last) + wire::encoded_len(&self.message, last) as u64
    }
}

impl farcast_core::Message for Parcel {
    fn segments(&self) -> NonZeroU32 {
        self.message.segments()
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let (spoiled, forged) = (self.spoiled, self.forged);
        if count >= self.message.segments() {
            return (self, None);
        }
        let part = |message| Self { message: Rc::new(message), spoiled, forged };
        let (head, tail) = Rc::unwrap_or_clone(self.message).split(count);
        (part(head), tail.map(part))
    }

    fn wire_len(&self, segment: u32) -> usize {
        wire::encoded_len(&self.message, segment)
    }
}

/// Returns a message after encoding and decoding; `None` if it cannot be encoded, so that nobody can send it.
pub(crate) fn over_the_wire(message: &Message) -> Option<Message> {
    wire::decode(&datagram(message)).ok().map(|packet| packet.message)
}

/// Encodes a message of one segment, with a payload of zeros.
fn datagram(message: &Message) -> Vec<u8> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(wire::encoded_len(message, 0), 0);
    datagram
}

/// Divisor of damaged datagrams: one in this many passes UDP's checksum.
const PASSES_CHECKSUM: u64 = 8;

/// Encodes a parcel of one segment, flips one to eight bits, and decodes the result.
pub(crate) fn damage(parcel: &Parcel, random: &mut RandomStream) -> Option<Parcel> {
    let mut datagram = datagram(&parcel.message);
    let passes = random.below(PASSES_CHECKSUM) == 0;
    for _ in 0..=random.below(8) {
        // Half of the flips aim at the header, which would be a small target in a datagram of a thousand octets.
        let reach = if random.chance(0.5) { datagram.len().min(40) } else { datagram.len() };
        let bit = random.below(reach as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
    let message = wire::decode(&datagram).ok().filter(|_| passes)?.message;
    // Nothing in DATA vouches for its octets: either the payload is wrong, or it counts as another DTU.
    let spoiled = parcel.spoiled || matches!(message.body, Body::Data(_));
    Some(Parcel { message: Rc::new(message), spoiled, forged: parcel.forged })
}
