//! Parcels: messages of NORM with the truth about them, which only the world knows.

use core::num::NonZeroU32;
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_delivery::Codec as _;
use farcast_norm::{Body, Codec, Fec, Message, wire};

const CODEC: Codec = Codec { fec: Fec::ReedSolomon8 };
/// Divisor of damaged datagrams: one in this many passes UDP's checksum.
const PASSES_CHECKSUM: u64 = 8;

/// Message and the truth about it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Parcel {
    /// Message, which all receivers of a multicast share.
    pub(crate) message: Rc<Message>,
    /// `true` if its payload differs from the product.
    pub(crate) spoiled: bool,
    /// `true` if an attacker made it.
    pub(crate) forged: bool,
}

impl Parcel {
    pub(crate) fn honest(message: Message) -> Self {
        Self { message: Rc::new(message), spoiled: false, forged: false }
    }

    /// Returns the octets of all its datagrams.
    pub(crate) fn octets(&self) -> u64 {
        let segments = farcast_core::Message::segments(self).get();
        (0..segments).map(|segment| wire::encoded_len(&self.message, segment) as u64).sum()
    }

    /// Returns `true` if a sender says this.
    pub(crate) fn is_of_sender(&self) -> bool {
        matches!(self.message.body, Body::Sender(..))
    }
}

impl farcast_core::Message for Parcel {
    fn segments(&self) -> NonZeroU32 {
        self.message.segments()
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        if count >= self.message.segments() {
            return (self, None);
        }
        let (spoiled, forged) = (self.spoiled, self.forged);
        let part = |message| Self { message: Rc::new(message), spoiled, forged };
        let (head, tail) = Rc::unwrap_or_clone(self.message).split(count);
        (part(head), tail.map(part))
    }

    fn wire_len(&self, segment: u32) -> usize {
        wire::encoded_len(&self.message, segment)
    }
}

fn datagram(message: &Message) -> Vec<u8> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(wire::encoded_len(message, 0), 0);
    CODEC.finish(&mut datagram);
    datagram
}

/// Returns a message after encoding and decoding; `None` if nobody can send it.
pub(crate) fn over_the_wire(message: &Message) -> Option<Message> {
    CODEC.decode(&datagram(message)).ok().map(|packet| packet.message)
}

/// Encodes a parcel of one segment, flips bits or cuts it short, and decodes the result.
pub(crate) fn damage(parcel: &Parcel, random: &mut RandomStream) -> Option<Parcel> {
    let mut datagram = datagram(&parcel.message);
    let passes = random.below(PASSES_CHECKSUM) == 0;
    if random.chance(0.2) {
        datagram.truncate(random.below(datagram.len() as u64) as usize);
    }
    for _ in 0..=random.below(8) {
        let reach = if random.chance(0.5) { datagram.len().min(40) } else { datagram.len() };
        if reach > 0 {
            let bit = random.below(reach as u64 * 8) as usize;
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
    }
    let message = CODEC.decode(&datagram).ok().filter(|_| passes)?.message;
    Some(Parcel { message: Rc::new(message), spoiled: true, forged: parcel.forged })
}
