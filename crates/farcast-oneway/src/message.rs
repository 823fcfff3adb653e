//! Messages of a sender.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::Run;
use farcast_delivery::{Content, Delivery, Gone, ObjectId, Purpose};

use crate::wire::{DESCRIPTION_LEN, GONE_LEN, HEADER_LEN};

/// Maximum length of an object's name in octets.
pub const MAX_NAME: usize = 255;
/// Maximum number of withdrawn files of which a message has the segments.
pub const MAX_GONE: usize = 32;

/// Message of a sender. Nobody sends anything to the sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Description of the object and its division; sent repeatedly.
    Description(Description),
    /// Symbols of a block, one in each datagram.
    Symbols(Symbols),
    /// Segments that are not sent any more; sent with each description once there are any.
    Withdrawn(Withdrawn),
}

/// Description of the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Number that distinguishes this transmission from the sender's other ones.
    pub session: u32,
    /// Digest that commits to the object.
    pub id: [u8; 32],
    /// Octets of the object.
    pub size: u64,
    /// Octets of a segment.
    pub segment: u16,
    /// Segments of the largest block, for which the code is made.
    pub block: u16,
    /// Parity symbols of a block.
    pub parity: u16,
    /// Rate of the sender in kbit/s.
    pub rate_kbps: u32,
    /// Approximate time until the end of the transmission, in milliseconds; [`u32::MAX`] for 49 days or more.
    pub left_ms: u32,
    /// `true` if receivers replace an object that exists already.
    pub overwrite: bool,
    /// `true` if nothing follows.
    pub over: bool,
    /// Name of the object, at most 255 octets.
    pub name: Vec<u8>,
}

/// Segments that are not sent any more, because files changed at their source or are gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Withdrawn {
    /// Session number of the transmission.
    pub session: u32,
    /// Number of withdrawn files so far.
    pub files: u32,
    /// Segments of some of these files, at most [`MAX_GONE`].
    pub gone: Vec<Gone>,
    /// Reason for which the first of these is withdrawn, with its name: at most 255 octets.
    pub why: String,
}

/// Kind of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Source symbols: segments of the block, unchanged.
    Source,
    /// Parity symbols.
    Parity,
}

/// Consecutive symbols of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbols {
    /// Session number of the transmission.
    pub session: u32,
    /// Number of the round, from 1; 255 for the 255th and all later ones.
    pub round: u8,
    /// Kind of the symbols; each kind is counted from 0.
    pub kind: Kind,
    /// Block that the symbols belong to.
    pub block: u32,
    /// Numbers of the symbols.
    pub run: Run,
    /// Octets of each symbol except the last.
    pub len: u16,
    /// Octets of the last symbol.
    pub last: u16,
}

impl farcast_core::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        match self {
            Self::Description(_) | Self::Withdrawn(_) => NonZeroU32::MIN,
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
            Self::Withdrawn(withdrawn) => HEADER_LEN + withdrawn.gone.len() * GONE_LEN + withdrawn.why.len(),
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
            Self::Description(_) | Self::Withdrawn(_) => Purpose::Announcement,
            Self::Symbols(symbols) => Purpose::Content { round: symbols.round.into() },
        }
    }

    fn payload_len(&self, segment: u32) -> usize {
        match self {
            Self::Description(_) | Self::Withdrawn(_) => 0,
            Self::Symbols(symbols) if segment + 1 == symbols.run.count() => symbols.last.into(),
            Self::Symbols(symbols) => symbols.len.into(),
        }
    }

    fn join(&mut self, next: &Self) -> bool {
        let (Self::Symbols(run), Self::Symbols(next)) = (self, next) else { return false };
        let of_one = (run.session, run.round, run.kind, run.block)
            == (next.session, next.round, next.kind, next.block);
        // Only the last symbol may be short.
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
