//! What a sender says.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::Run;
use farcast_delivery::{Content, Delivery, ObjectId, Purpose};

use crate::wire::{DESCRIPTION_LEN, HEADER_LEN};

/// The longest name of an object, octets.
pub const MAX_NAME: usize = 255;

/// What a sender says. Nobody says anything to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// What is sent, and how it is cut; said again and again.
    Description(Description),
    /// Symbols of a block, one in each datagram.
    Symbols(Symbols),
}

/// What is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// By which the sender tells this transmission from its others.
    pub session: u32,
    /// The digest that commits to the object.
    pub id: [u8; 32],
    /// Octets of the object.
    pub size: u64,
    /// Octets of a segment.
    pub segment: u16,
    /// Segments of the largest block, which the code is made for.
    pub block: u16,
    /// Parity symbols of a block.
    pub parity: u16,
    /// The sender's rate, kbit/s.
    pub rate_kbps: u32,
    /// How long until nothing follows, in milliseconds, as far as the sender can tell; [`u32::MAX`] for 49 days or more.
    pub left_ms: u32,
    /// Whether an object that is there already is replaced.
    pub overwrite: bool,
    /// Nothing follows.
    pub over: bool,
    /// What the object is called: at most 255 octets.
    pub name: Vec<u8>,
}

/// Of which kind symbols are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Segments of the block as they are.
    Source,
    /// Parity.
    Parity,
}

/// Consecutive symbols of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbols {
    /// The transmission.
    pub session: u32,
    /// The round of it, from 1; from the 255th on 255.
    pub round: u8,
    /// Source or parity, each counted from 0.
    pub kind: Kind,
    /// The block.
    pub block: u32,
    /// Which symbols.
    pub run: Run,
    /// Octets of each but the last.
    pub len: u16,
    /// Octets of the last.
    pub last: u16,
}

impl farcast_core::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        match self {
            Self::Description(_) => NonZeroU32::MIN,
            Self::Symbols(symbols) => NonZeroU32::new(symbols.run.count()).unwrap_or(NonZeroU32::MIN),
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self::Symbols(symbols) = self else { return (self, None) };
        let (head, tail) = symbols.run.split(count);
        let Some(tail) = tail else { return (self, None) };
        let head = Symbols { run: head, last: symbols.len, ..symbols };
        (Self::Symbols(head), Some(Self::Symbols(Symbols { run: tail, ..symbols })))
    }

    fn wire_len(&self, segment: u32) -> usize {
        match self {
            Self::Description(description) => DESCRIPTION_LEN + description.name.len(),
            Self::Symbols(_) => HEADER_LEN + self.payload_len(segment),
        }
    }
}

impl Delivery for Message {
    fn content(&self) -> Content {
        let Self::Symbols(symbols) = self else { return Content::None };
        let (object, block, run) = (ObjectId::FIRST, symbols.block, symbols.run);
        match symbols.kind {
            Kind::Source => Content::Source { object, block, segments: run },
            Kind::Parity => Content::Parity { object, block, symbols: run },
        }
    }

    fn purpose(&self) -> Purpose {
        match self {
            Self::Description(description) if description.over => Purpose::Confirmation,
            Self::Description(_) => Purpose::Announcement,
            Self::Symbols(symbols) => Purpose::Content { round: symbols.round.into() },
        }
    }

    fn payload_len(&self, segment: u32) -> usize {
        match self {
            Self::Description(_) => 0,
            Self::Symbols(symbols) if segment + 1 == symbols.run.count() => symbols.last.into(),
            Self::Symbols(symbols) => symbols.len.into(),
        }
    }

    fn join(&mut self, next: &Self) -> bool {
        let (Self::Symbols(run), Self::Symbols(next)) = (self, next) else { return false };
        let of_one = (run.session, run.round, run.kind, run.block)
            == (next.session, next.round, next.kind, next.block);
        // Only the last may be short.
        let follows = run.run.end() == next.run.first() && run.last == run.len && next.len <= run.len;
        let whole = next.run.count() == 1 || next.len == run.len;
        if !of_one || !follows || !whole {
            return false;
        }
        let Some(joined) = Run::new(run.run.first(), run.run.count() + next.run.count()) else {
            return false;
        };
        (run.run, run.last) = (joined, next.last);
        true
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
