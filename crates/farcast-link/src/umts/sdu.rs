//! Payloads of a bearer's entities: pieces alone, or octets as well.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;

use farcast_core::engine::Message;
use farcast_core::stage::Frame;
use farcast_core::{Payload, Piece};
use farcast_rlc::format::Format;
use farcast_rlc::pdu::Pdu;
use farcast_rlc::wire;
use smallvec::SmallVec;

/// An SDU or a part of one, which knows its frame.
pub(super) trait Sdu: Payload {
    /// The PDUs of an interval as octets, if octets are carried.
    type Coded: Clone + Debug + Default;

    /// Creates the SDU of all of frame number `number`. If octets are carried, there are at most `most` + 1. They are
    /// zeros if the frame's octets are not at hand.
    fn of<M: Message>(number: u64, frame: &Frame<M>, most: u32) -> Self;

    /// Returns the frame's number and the range of its octets.
    fn piece(&self) -> &Piece;

    /// Gives the octets to the frame that leaves.
    fn put_into<M: Message>(&self, frame: &mut Frame<M>);

    /// Makes room for the next interval.
    fn clear(coded: &mut Self::Coded);

    /// Adds a PDU to its interval. Returns `true` if it could be encoded.
    fn encode(pdu: &Pdu<Self>, format: Format, coded: &mut Self::Coded) -> bool;

    /// Decodes PDU number `index` of an interval, which was sent as `sent`. Returns `None` if the two do not fit.
    fn decode(sent: Pdu<Self>, format: Format, coded: &Self::Coded, index: usize) -> Option<Pdu<Self>>;
}

/// SDUs of simulation: PDUs pass unchanged.
impl Sdu for Piece {
    type Coded = ();

    fn of<M: Message>(number: u64, frame: &Frame<M>, _most: u32) -> Self {
        Self::whole(number, octets_of(frame))
    }

    fn piece(&self) -> &Piece {
        self
    }

    fn put_into<M: Message>(&self, _frame: &mut Frame<M>) {}

    fn clear((): &mut ()) {}

    fn encode(_pdu: &Pdu<Self>, _format: Format, (): &mut ()) -> bool {
        true
    }

    fn decode(sent: Pdu<Self>, _format: Format, (): &(), _index: usize) -> Option<Pdu<Self>> {
        Some(sent)
    }
}

fn octets_of<M: Message>(frame: &Frame<M>) -> u32 {
    u32::try_from(frame.octets(0)).unwrap_or(u32::MAX)
}

/// A part of a frame with its octets. Before the channel it shares the frame's octets, behind the channel those of the
/// PDUs of an interval. Joined to another part, it has its own.
#[derive(Clone, Debug)]
pub(super) struct Octets {
    piece: Piece,
    buffer: Arc<Vec<u8>>,
    start: usize,
    len: usize,
}

impl AsRef<[u8]> for Octets {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl Payload for Octets {
    fn len(&self) -> usize {
        self.len
    }

    fn split_to(&mut self, count: usize) -> Self {
        let count = count.min(self.len);
        let head = Self { piece: self.piece.split_to(count), len: count, ..self.clone() };
        self.start += count;
        self.len -= count;
        head
    }

    fn join(&mut self, tail: Self) {
        let end = self.start + self.len;
        if let Some(own) = Arc::get_mut(&mut self.buffer) {
            own.truncate(end);
            own.extend_from_slice(tail.as_ref());
        } else {
            let own = [self.as_ref(), tail.as_ref()].concat();
            (self.buffer, self.start) = (Arc::new(own), 0);
        }
        self.len += tail.len;
        self.piece.join(tail.piece);
    }

    /// Returns `true` if no octet is missing or beyond the pieces: a decoded PDU may end with an octet of padding.
    fn is_whole(&self) -> bool {
        self.piece.is_whole() && self.piece.len() == self.len
    }

    fn octets(&self) -> Option<&[u8]> {
        Some(self.as_ref())
    }
}

impl Sdu for Octets {
    type Coded = Arc<Vec<u8>>;

    fn of<M: Message>(number: u64, frame: &Frame<M>, most: u32) -> Self {
        let len = octets_of(frame).min(most.saturating_add(1));
        let known = frame.message.octets(0).filter(|octets| octets.len() == len as usize);
        let buffer = known.map_or_else(|| alloc::vec![0; len as usize], <[u8]>::to_vec);
        Self { piece: Piece::whole(number, len), start: 0, len: buffer.len(), buffer: Arc::new(buffer) }
    }

    fn piece(&self) -> &Piece {
        &self.piece
    }

    fn put_into<M: Message>(&self, frame: &mut Frame<M>) {
        // The zeros of a frame whose octets were not at hand stay here.
        if frame.message.octets(0).is_some_and(|octets| octets.len() == self.len) {
            frame.message.put_octets(0, self.as_ref());
        }
    }

    fn clear(coded: &mut Self::Coded) {
        match Arc::get_mut(coded) {
            Some(octets) => octets.clear(),
            // The receiving entity still holds parts of it.
            None => *coded = Arc::default(),
        }
    }

    fn encode(pdu: &Pdu<Self>, format: Format, coded: &mut Self::Coded) -> bool {
        let Some(coded) = Arc::get_mut(coded) else { return false };
        let start = coded.len();
        coded.resize(start + wire::wire_len(format), 0);
        let encoded = wire::encode(pdu, format, &mut coded[start..]).is_ok();
        if !encoded {
            coded.truncate(start);
        }
        encoded
    }

    fn decode(sent: Pdu<Self>, format: Format, coded: &Self::Coded, index: usize) -> Option<Pdu<Self>> {
        let len = wire::wire_len(format);
        let pdu = wire::decode(coded.get(index * len..)?.get(..len)?, format).ok()?;
        let sent = if let Pdu::Data(data) = sent { data.segments } else { SmallVec::new() };
        let segments = if let Pdu::Data(data) = &pdu { data.segments.len() } else { 0 };
        if segments != sent.len() {
            return None;
        }
        let mut pieces = sent.into_iter().map(|segment| segment.data.piece);
        // Both slices are parts of one buffer.
        let place = |octets: &[u8]| octets.as_ptr().addr().wrapping_sub(coded.as_ptr().addr());
        Some(pdu.map(|octets| Self {
            piece: pieces.next().unwrap_or(Piece::whole(u64::MAX, 0)),
            buffer: Arc::clone(coded),
            start: place(octets),
            len: octets.len(),
        }))
    }
}

#[cfg(test)]
mod tests;
