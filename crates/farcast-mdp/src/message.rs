//! MDP's messages as the engines speak them (draft §3.3).

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::Run;
use farcast_delivery::{Geometry, GeometryError, Vouched};
use farcast_norm::NodeId;
use farcast_norm::message::Stamp;
use farcast_norm::quantise::Rtt;

use crate::wire;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Who says it.
    pub source: NodeId,
    /// What it says.
    pub body: Body,
}

/// What a message says, by whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A sender's: what it says in each message, and what is its own.
    Sender(Head, FromSender),
    /// A receiver's.
    Receiver(FromReceiver),
}

/// What every message of a sender says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Counts what the sender says; of a run, its first datagram, and each of the others one more.
    pub sequence: u16,
    /// The greatest round trip of the group.
    pub grtt: Rtt,
}

/// What only a sender says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromSender {
    /// What is said of an object: of a file its name (INFO).
    Info(Info),
    /// Symbols of an object (DATA and PARITY).
    Data(Data),
    /// So far it has sent; what is missing is to be asked for (CMD(FLUSH)).
    Flush {
        /// It leaves.
        eot: bool,
        /// The last object that it has sent.
        object: u32,
    },
    /// What was asked for cannot be had (CMD(SQUELCH)).
    Squelch {
        /// The first object that it can repair.
        sync: u32,
        /// Objects behind that which cannot be repaired either.
        invalid: Vec<u32>,
    },
    /// Who is named and has the object is to say so (`CMD(ACK_REQ)`).
    AckReq {
        /// The object.
        object: u32,
        /// Who is to acknowledge it.
        nodes: Vec<NodeId>,
    },
    /// A probe of round trips (`CMD(GRTT_REQ)`).
    Probe(Probe),
    /// What receivers have asked for by unicast (`CMD(NACK_ADV)`).
    NackAdv(Vec<ObjectNack>),
}

/// What an object is, and what of it a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// What is sent again, or parity on demand.
    pub const REPAIR: Self = Self(0x01);
    /// The last of a block. Runs say it of their last datagram ([`Data::ends_block`]).
    pub const BLOCK_END: Self = Self(0x02);
    /// A segment that is shorter than the others. It follows from the payload.
    pub const RUNT: Self = Self(0x04);
    /// The object has INFO.
    pub const INFO: Self = Self(0x10);
    /// It is not repaired.
    pub const UNRELIABLE: Self = Self(0x20);
    /// The object is a file.
    pub const FILE: Self = Self(0x80);

    /// Whether all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What every message about an object says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// Its number.
    pub object: u32,
    /// Its octets.
    pub size: u32,
    /// Segments of a block, at most.
    pub ndata: u8,
    /// Parity symbols of a block.
    pub nparity: u8,
    /// What it is.
    pub flags: Flags,
}

impl About {
    /// How the object is cut into segments of `segment_size` octets; `None` if it cannot be.
    pub fn geometry(&self, segment_size: u16) -> Option<Geometry> {
        geometry(self.size.into(), segment_size, self.ndata).ok()
    }

    /// The segments of `block` in the object, at segments of `segment_size` octets, which is not 0.
    pub(crate) fn block_len(&self, block: u32, segment_size: u16) -> u32 {
        let segments = self.size.div_ceil(u32::from(segment_size));
        let before = u64::from(block) * u64::from(self.ndata);
        (u64::from(segments).saturating_sub(before) as u32).min(self.ndata.into())
    }

    /// The same object, whatever the message is.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let key = |about: &Self| {
            (about.object, about.size, about.ndata, about.nparity, about.flags.without(Flags::REPAIR))
        };
        key(self) == key(other)
    }
}

/// How an object of `size` octets is cut into blocks of at most `ndata` segments; one of none is not.
pub(crate) fn geometry(size: u64, segment_size: u16, ndata: u8) -> Result<Geometry, GeometryError> {
    let (segment_size, ndata) = (segment_size.into(), ndata.into());
    if size == 0 { Geometry::empty(segment_size, ndata) } else { Geometry::new(size, segment_size, ndata) }
}

/// INFO.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// Which object.
    pub about: About,
    /// Octets of its segments.
    pub segment_size: u16,
    /// What is said of the object: of a file its name. With what is vouched for at most a segment.
    pub content: Vec<u8>,
    /// What a sender of farcast vouches for.
    pub vouched: Option<Vouched>,
}

/// DATA or PARITY: a run of symbols of one block, on the wire one message each.
///
/// A segment that is shorter than the others stands alone: its header is longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Which object. Neither [`Flags::BLOCK_END`] nor [`Flags::RUNT`] is among its flags.
    pub about: About,
    /// The block, from 0.
    pub block: u32,
    /// Symbols of the block, from 0: parity follows the block's segments.
    pub symbols: Run,
    /// Whether they are parity.
    pub parity: bool,
    /// Octets of the object's segments.
    pub segment_size: u16,
    /// Octets of each symbol here: fewer for a runt.
    pub len: u16,
    /// Whether the last of them is the last of its block.
    pub ends_block: bool,
}

impl Data {
    /// Whether it is a segment that is shorter than the others.
    pub const fn is_runt(&self) -> bool {
        self.len < self.segment_size
    }

    /// Segments of its block.
    pub fn block_len(&self) -> u32 {
        self.about.block_len(self.block, self.segment_size)
    }

    /// Its parity symbols, counted from 0; `None` if it is no parity.
    pub fn parity_run(&self) -> Option<Run> {
        let first = self.symbols.first().checked_sub(self.block_len())?;
        Run::new(first, self.symbols.count()).filter(|_| self.parity)
    }

    /// Whether `next` continues this run.
    pub fn continues(&self, next: &Self) -> bool {
        let same = (self.about, self.block, self.parity, self.segment_size)
            == (next.about, next.block, next.parity, next.segment_size);
        let whole = !self.ends_block && !self.is_runt() && !next.is_runt();
        same && whole && self.symbols.end() == next.symbols.first()
    }
}

/// `CMD(GRTT_REQ)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Whether everybody is to answer, and not only who is listed.
    pub wildcard: bool,
    /// Counts probes.
    pub sequence: u8,
    /// When it left.
    pub sent: Stamp,
    /// Over what time answers are to be spread.
    pub hold: Stamp,
    /// Octets of a segment.
    pub segment_size: u16,
    /// How fast the sender sends, in bytes per second.
    pub rate: u32,
    /// The round trip that congestion control counts with.
    pub rtt: Rtt,
    /// The loss that it counts with: 65535 is everything.
    pub loss: u16,
    /// Who is to answer.
    pub nodes: Vec<NodeId>,
}

/// A receiver's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromReceiver {
    /// The sender that it is for.
    pub server: NodeId,
    /// The sender's time of the last probe, and what has passed since it came; `None` if none has come.
    pub response: Option<Stamp>,
    /// What part of packets it loses: 65535 is everything.
    pub loss: u16,
    /// The last probe.
    pub probe: u8,
    /// What it says.
    pub answer: Answer,
}

/// What a receiver says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// What it misses.
    Nack(Vec<ObjectNack>),
    /// It has this object.
    Object(u32),
    /// It answers a probe.
    Probe,
}

/// What is missed of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectNack {
    /// The object.
    pub object: u32,
    /// What of it.
    pub requests: Vec<Request>,
}

/// A repair request. Offsets are octets in the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Symbols of a block.
    Segments {
        /// How many.
        erasures: u8,
        /// Where the block begins.
        offset: u32,
        /// Which would do.
        mask: Mask,
    },
    /// Whole blocks.
    Blocks {
        /// Where the first begins.
        offset: u32,
        /// Which, that one first.
        mask: Mask,
    },
    /// The object's INFO.
    Info,
    /// All of it.
    Object,
}

/// Numbers from 0, each a bit: 0 the highest of the first octet. (The draft does not say which; our choice.)
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mask(pub Vec<u8>);

impl Mask {
    /// An empty one with room for `bits`.
    pub fn new(bits: u32) -> Self {
        Self(vec![0; bits.div_ceil(8) as usize])
    }

    /// Adds the numbers of `run`, as far as there is room.
    pub fn insert(&mut self, run: Run) {
        for n in run.segments() {
            if let Some(octet) = self.0.get_mut(n as usize / 8) {
                *octet |= 0x80 >> (n % 8);
            }
        }
    }

    /// The numbers in it, from the lowest.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let octets = (0u32..).step_by(8).zip(&self.0);
        octets.flat_map(|(first, octet)| {
            (0..8).filter(move |n| octet & (0x80 >> n) != 0).map(move |n| first + n)
        })
    }
}

impl farcast_core::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        match self.data() {
            Some(data) => NonZeroU32::new(data.symbols.count()).unwrap_or(NonZeroU32::MIN),
            None => NonZeroU32::MIN,
        }
    }

    fn split(mut self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Body::Sender(head, FromSender::Data(data)) = &mut self.body else { return (self, None) };
        let (first, Some(rest)) = data.symbols.split(count) else { return (self, None) };
        let tail = Data { symbols: rest, ..data.clone() };
        let sequence = head.sequence.wrapping_add(count.get() as u16);
        let body = Body::Sender(Head { sequence, ..*head }, FromSender::Data(tail));
        (data.symbols, data.ends_block) = (first, false);
        let tail = Self { source: self.source, body };
        (self, Some(tail))
    }

    fn wire_len(&self, segment: u32) -> usize {
        wire::encoded_len(self, segment)
    }
}

impl Message {
    /// Its symbols, if it has any.
    pub fn data(&self) -> Option<&Data> {
        match &self.body {
            Body::Sender(_, FromSender::Data(data)) => Some(data),
            _ => None,
        }
    }
}
