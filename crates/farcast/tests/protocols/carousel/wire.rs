//! Messages of a carousel, and their encoding.
//!
//! | octets | of an announcement | of data |
//! |---|---|---|
//! | 1 | 1 | 2 |
//! | 2 | octets of a segment | octets of a segment |
//! | 1 | 0 | 0 |
//! | 4 | the turn | the turn |
//! | 8 or 4 | the object's octets | the segment |
//! | 32 or rest | the object's digest | the content |

use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::Run;
use farcast_delivery::{Content, Delivery, ObjectId, Packet, Purpose};

/// Message of a carousel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// Start of a turn.
    Announcement { turn: u32, segment: u16, size: u64, id: [u8; 32] },
    /// Segments of `len` octets each, the last one of `last` octets.
    Data { turn: u32, run: Run, len: u16, last: u16 },
}

/// Octets before the content.
const HEADER: usize = 12;
/// Octets of an announcement.
const ANNOUNCEMENT: usize = 48;

impl farcast_core::engine::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        match self {
            Self::Announcement { .. } => NonZeroU32::MIN,
            Self::Data { run, .. } => NonZeroU32::new(run.count()).unwrap_or(NonZeroU32::MIN),
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self::Data { turn, run, len, last } = self else { return (self, None) };
        let (head, Some(tail)) = run.split(count) else { return (self, None) };
        (Self::Data { turn, run: head, len, last: len }, Some(Self::Data { turn, run: tail, len, last }))
    }

    fn wire_len(&self, segment: u32) -> usize {
        match self {
            Self::Announcement { .. } => ANNOUNCEMENT,
            Self::Data { .. } => HEADER + self.payload_len(segment),
        }
    }
}

impl Delivery for Message {
    fn content(&self) -> Content {
        match *self {
            Self::Announcement { .. } => Content::None,
            Self::Data { run, .. } => Content::Source { object: ObjectId::FIRST, block: 0, segments: run },
        }
    }

    fn purpose(&self) -> Purpose {
        match *self {
            Self::Announcement { .. } => Purpose::Announcement,
            Self::Data { turn, .. } => Purpose::Content { round: turn },
        }
    }

    fn payload_len(&self, segment: u32) -> usize {
        match *self {
            Self::Announcement { .. } => 0,
            Self::Data { run, len, last, .. } => {
                usize::from(if segment + 1 == run.count() { last } else { len })
            }
        }
    }

    fn join(&mut self, next: &Self) -> bool {
        let (Self::Data { turn, run, len, last }, Self::Data { turn: same, run: next, last: end, .. }) =
            (self, next)
        else {
            return false;
        };
        let follows = turn == same && run.end() == next.first() && len == last && end <= len;
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
        matches!(self, Self::Announcement { .. })
    }
}

/// Codec of the messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codec;

impl farcast_delivery::Codec for Codec {
    type Message = Message;
    type Error = &'static str;

    fn header_len(&self) -> usize {
        HEADER
    }

    fn datagram_len(&self, payload: usize) -> usize {
        HEADER + payload
    }

    fn encode(&self, message: &Message, segment: u32, out: &mut Vec<u8>) {
        match *message {
            Message::Announcement { turn, segment, size, id } => {
                out.push(1);
                out.extend(segment.to_be_bytes());
                out.push(0);
                out.extend(turn.to_be_bytes());
                out.extend(size.to_be_bytes());
                out.extend(id);
            }
            Message::Data { turn, run, len, .. } => {
                out.push(2);
                out.extend(len.to_be_bytes());
                out.push(0);
                out.extend(turn.to_be_bytes());
                out.extend((run.first() + segment).to_be_bytes());
            }
        }
    }

    fn decode(&self, datagram: &[u8]) -> Result<Packet<Message>, &'static str> {
        let (Some(&[kind, high, low, _]), Some(turn)) = (datagram.first_chunk(), word(datagram, 4)) else {
            return Err("too short");
        };
        let len = u16::from_be_bytes([high, low]);
        match kind {
            1 => {
                let rest: [u8; ANNOUNCEMENT] = datagram.try_into().map_err(|_| "no announcement")?;
                let size = u64::from_be_bytes(*rest[8..].first_chunk().ok_or("no size")?);
                let id = *rest[16..].first_chunk().ok_or("no digest")?;
                Ok(Packet { message: Message::Announcement { turn, segment: len, size, id }, payload: 0..0 })
            }
            2 => {
                let first = word(datagram, 8).filter(|&first| first < u32::MAX).ok_or("no segment")?;
                let payload = HEADER..datagram.len();
                let last = u16::try_from(payload.len()).map_err(|_| "too long")?;
                if last == 0 || last > len {
                    return Err("not a segment's length");
                }
                Ok(Packet { message: Message::Data { turn, run: Run::one(first), len, last }, payload })
            }
            _ => Err("no carousel says this"),
        }
    }
}

fn word(datagram: &[u8], at: usize) -> Option<u32> {
    datagram.get(at..at + 4).and_then(|octets| octets.try_into().ok()).map(u32::from_be_bytes)
}

/// Parses an IPv4 address and port.
pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}
