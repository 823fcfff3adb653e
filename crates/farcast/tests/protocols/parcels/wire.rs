//! Messages about parcels, and their encoding.
//!
//! | octets | of a label | of data |
//! |---|---|---|
//! | 1 | 1 | 2 |
//! | 2 | the parcel's number | the parcel's number |
//! | 2 | octets of a segment | octets of a segment |
//! | 8 or 4 | the parcel's octets | the segment |
//! | rest | its name | the content |

use std::num::NonZeroU32;

use farcast_core::Run;
use farcast_delivery::{Content, Delivery, ObjectId, Packet, Purpose, Transport};

/// Message about a parcel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// Description of a parcel.
    Label { number: u16, segment: u16, size: u64, name: Vec<u8> },
    /// Segments of `len` octets each, the last one of `last` octets.
    Data { number: u16, run: Run, len: u16, last: u16 },
}

/// Octets before the content, and before a name.
const HEADER: usize = 9;
const LABEL: usize = 13;

impl farcast_core::engine::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        match self {
            Self::Label { .. } => NonZeroU32::MIN,
            Self::Data { run, .. } => NonZeroU32::new(run.count()).unwrap_or(NonZeroU32::MIN),
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self::Data { number, run, len, last } = self else { return (self, None) };
        let part = |run, last| Self::Data { number, run, len, last };
        match run.split(count) {
            (head, Some(tail)) => (part(head, len), Some(part(tail, last))),
            (head, None) => (part(head, last), None),
        }
    }

    fn wire_len(&self, segment: u32) -> usize {
        match self {
            Self::Label { name, .. } => LABEL + name.len(),
            Self::Data { .. } => HEADER + self.payload_len(segment),
        }
    }
}

impl Delivery for Message {
    fn content(&self) -> Content {
        match *self {
            Self::Label { .. } => Content::None,
            Self::Data { number, run, .. } => {
                Content::Source { object: ObjectId::new(number.into()), block: 0, segments: run }
            }
        }
    }

    fn purpose(&self) -> Purpose {
        if self.content().is_some() { Purpose::Content { round: 1 } } else { Purpose::Announcement }
    }

    fn payload_len(&self, segment: u32) -> usize {
        match *self {
            Self::Label { .. } => 0,
            Self::Data { run, len, last, .. } => {
                usize::from(if segment + 1 == run.count() { last } else { len })
            }
        }
    }

    fn join(&mut self, next: &Self) -> bool {
        let (Self::Data { number, run, len, last }, Self::Data { number: same, run: next, last: end, .. }) =
            (self, next)
        else {
            return false;
        };
        let follows = number == same && run.end() == next.first() && len == last && end <= len;
        let joined = Run::new(run.first(), run.count() + next.count()).filter(|_| follows);
        if let Some(joined) = joined {
            (*run, *last) = (joined, *end);
        }
        joined.is_some()
    }

    fn is_for_one(&self) -> bool {
        false
    }

    fn is_urgent(&self) -> bool {
        false
    }

    fn is_set_up(&self) -> bool {
        false
    }
}

/// Codec of messages over this transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codec(pub(crate) Transport);

impl farcast_delivery::Codec for Codec {
    type Message = Message;
    type Error = &'static str;

    fn transport(&self) -> Transport {
        self.0
    }

    fn header_len(&self) -> usize {
        HEADER
    }

    fn datagram_len(&self, payload: usize) -> usize {
        HEADER + payload
    }

    fn encode(&self, message: &Message, segment: u32, out: &mut Vec<u8>) {
        match message {
            Message::Label { number, segment, size, name } => {
                out.push(1);
                out.extend(number.to_be_bytes());
                out.extend(segment.to_be_bytes());
                out.extend(size.to_be_bytes());
                out.extend(name);
            }
            Message::Data { number, run, len, .. } => {
                out.push(2);
                out.extend(number.to_be_bytes());
                out.extend(len.to_be_bytes());
                out.extend((run.first() + segment).to_be_bytes());
            }
        }
    }

    fn decode(&self, datagram: &[u8]) -> Result<Packet<Message>, &'static str> {
        let &[kind, n0, n1, l0, l1] = datagram.first_chunk().ok_or("too short")?;
        let (number, len) = (u16::from_be_bytes([n0, n1]), u16::from_be_bytes([l0, l1]));
        match kind {
            1 => {
                let size = datagram[5..].first_chunk().ok_or("no size")?;
                let (size, name) = (u64::from_be_bytes(*size), datagram[LABEL..].to_vec());
                Ok(Packet { message: Message::Label { number, segment: len, size, name }, payload: 0..0 })
            }
            2 => {
                let first = u32::from_be_bytes(*datagram[5..].first_chunk().ok_or("no segment")?);
                let last = u16::try_from(datagram.len() - HEADER).map_err(|_| "too long")?;
                if last == 0 || last > len || first == u32::MAX {
                    return Err("not a segment");
                }
                let message = Message::Data { number, run: Run::one(first), len, last };
                Ok(Packet { message, payload: HEADER..datagram.len() })
            }
            _ => Err("no parcel's"),
        }
    }
}
