//! MDP's messages as the engines exchange them (draft §3.3).

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::Run;
use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::Stamp;
use farcast_delivery::nack::quantise::Rtt;
use farcast_delivery::{Geometry, GeometryError, Vouched};

use crate::wire;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Node that sends the message.
    pub source: NodeId,
    /// Content of the message.
    pub body: Body,
}

/// Content of a message, by the role of the node that sends it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A sender's message: the part common to all of them, and its own part.
    Sender(Head, FromSender),
    /// A receiver's message.
    Receiver(FromReceiver),
}

/// Fields that every message of a sender has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Sequence number of the message. In a run it belongs to the first datagram, and each further one adds 1.
    pub sequence: u16,
    /// The greatest round trip of the group.
    pub grtt: Rtt,
}

/// Own part of a sender's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromSender {
    /// Description of an object (INFO): the name of a file.
    Info(Info),
    /// Symbols of an object (DATA and PARITY).
    Data(Data),
    /// The sender has sent everything up to this object; receivers are to request what they miss (CMD(FLUSH)).
    Flush {
        /// The sender leaves.
        eot: bool,
        /// The last object that was sent.
        object: u32,
    },
    /// Objects that can no longer be repaired (CMD(SQUELCH)).
    Squelch {
        /// The first object that can be repaired.
        sync: u32,
        /// Further objects from there on that cannot be repaired.
        invalid: Vec<u32>,
    },
    /// Question to named receivers, which are to answer if they have the object (`CMD(ACK_REQ)`).
    AckReq {
        /// The object.
        object: u32,
        /// Receivers that are to acknowledge the object.
        nodes: Vec<NodeId>,
    },
    /// A probe of round trips (`CMD(GRTT_REQ)`).
    Probe(Probe),
    /// Requests that receivers have made by unicast (`CMD(NACK_ADV)`).
    NackAdv(Vec<ObjectNack>),
}

/// Properties of an object and of the message about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The message is sent again, or is parity on demand.
    pub const REPAIR: Self = Self(0x01);
    /// The symbol is the last of its block. Runs mark it for their last datagram by [`Data::ends_block`].
    pub const BLOCK_END: Self = Self(0x02);
    /// The segment is shorter than the others. This follows from the payload.
    pub const RUNT: Self = Self(0x04);
    /// The object has INFO.
    pub const INFO: Self = Self(0x10);
    /// The object is not repaired.
    pub const UNRELIABLE: Self = Self(0x20);
    /// The object is a file.
    pub const FILE: Self = Self(0x80);

    /// Returns `true` if all flags of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Description of an object in every message about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// Number of the object.
    pub object: u32,
    /// Octets of the object.
    pub size: u32,
    /// Segments of a block, at most.
    pub ndata: u8,
    /// Parity symbols of a block.
    pub nparity: u8,
    /// Properties of the object and the message.
    pub flags: Flags,
}

impl About {
    /// Returns the division of the object into segments of `segment_size` octets; `None` if there is none.
    pub fn geometry(&self, segment_size: u16) -> Option<Geometry> {
        geometry(self.size.into(), segment_size, self.ndata).ok()
    }

    /// Returns the segments of `block`, at segments of `segment_size` octets, which is not 0.
    pub(crate) fn block_len(&self, block: u32, segment_size: u16) -> u32 {
        let segments = self.size.div_ceil(u32::from(segment_size));
        let before = u64::from(block) * u64::from(self.ndata);
        (u64::from(segments).saturating_sub(before) as u32).min(self.ndata.into())
    }

    /// Returns `true` if both describe the same object, whatever the messages are.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let key = |about: &Self| {
            (about.object, about.size, about.ndata, about.nparity, about.flags.without(Flags::REPAIR))
        };
        key(self) == key(other)
    }
}

/// Returns the division of an object of `size` octets into blocks of at most `ndata` segments. An empty object has
/// none.
pub(crate) fn geometry(size: u64, segment_size: u16, ndata: u8) -> Result<Geometry, GeometryError> {
    let (segment_size, ndata) = (segment_size.into(), ndata.into());
    if size == 0 { Geometry::empty(segment_size, ndata) } else { Geometry::new(size, segment_size, ndata) }
}

/// An INFO message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// Description of the object.
    pub about: About,
    /// Octets of the object's segments.
    pub segment_size: u16,
    /// Content of INFO: the name of a file. With `vouched` it takes at most a segment.
    pub content: Vec<u8>,
    /// Digest, mode and time for which a sender of farcast vouches.
    pub vouched: Option<Vouched>,
}

/// DATA or PARITY: a run of symbols of one block, on the wire one message each.
///
/// A segment that is shorter than the others stands alone: its header is longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Description of the object. Its flags have neither [`Flags::BLOCK_END`] nor [`Flags::RUNT`].
    pub about: About,
    /// The block, from 0.
    pub block: u32,
    /// Symbols of the block, from 0: parity follows the block's segments.
    pub symbols: Run,
    /// The symbols are parity.
    pub parity: bool,
    /// Octets of the object's segments.
    pub segment_size: u16,
    /// Octets of each symbol in the run; fewer for a runt.
    pub len: u16,
    /// The last symbol of the run is the last of its block.
    pub ends_block: bool,
}

impl Data {
    /// Returns `true` if the run is a segment that is shorter than the others.
    pub const fn is_runt(&self) -> bool {
        self.len < self.segment_size
    }

    /// Returns the number of segments in the block.
    pub fn block_len(&self) -> u32 {
        self.about.block_len(self.block, self.segment_size)
    }

    /// Returns the parity symbols, counted from 0; `None` if the run is not parity.
    pub fn parity_run(&self) -> Option<Run> {
        let first = self.symbols.first().checked_sub(self.block_len())?;
        Run::new(first, self.symbols.count()).filter(|_| self.parity)
    }

    /// Returns `true` if `next` continues this run.
    pub fn continues(&self, next: &Self) -> bool {
        let same = (self.about, self.block, self.parity, self.segment_size)
            == (next.about, next.block, next.parity, next.segment_size);
        let whole = !self.ends_block && !self.is_runt() && !next.is_runt();
        same && whole && self.symbols.end() == next.symbols.first()
    }
}

/// A probe of round trips, `CMD(GRTT_REQ)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// All receivers are to answer, not only those in `nodes`.
    pub wildcard: bool,
    /// Sequence number of the probe.
    pub sequence: u8,
    /// Time at which the probe left.
    pub sent: Stamp,
    /// Time over which answers are to be spread.
    pub hold: Stamp,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Rate of the sender, in bytes per second.
    pub rate: u32,
    /// Round trip that congestion control uses.
    pub rtt: Rtt,
    /// Loss rate that congestion control uses: 65535 is everything.
    pub loss: u16,
    /// Receivers that are to answer.
    pub nodes: Vec<NodeId>,
}

/// A receiver's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromReceiver {
    /// Sender to which the message goes.
    pub server: NodeId,
    /// Time stamp of the last probe, plus the time since it came; `None` if none has come.
    pub response: Option<Stamp>,
    /// Share of packets that the receiver loses: 65535 is everything.
    pub loss: u16,
    /// Sequence number of the last probe.
    pub probe: u8,
    /// Kind of message, with its content.
    pub answer: Answer,
}

/// Kind of a receiver's message, with its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Requests for what the receiver misses.
    Nack(Vec<ObjectNack>),
    /// Acknowledgement: the receiver has this object.
    Object(u32),
    /// Answer to a probe.
    Probe,
}

/// Requests for the missing parts of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectNack {
    /// The object.
    pub object: u32,
    /// Missing parts of the object.
    pub requests: Vec<Request>,
}

/// A repair request. Offsets are octets in the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Symbols of a block.
    Segments {
        /// Number of symbols that are needed.
        erasures: u8,
        /// Octet at which the block begins.
        offset: u32,
        /// Symbols of the block that would serve.
        mask: Mask,
    },
    /// Whole blocks.
    Blocks {
        /// Octet at which the first block begins.
        offset: u32,
        /// Blocks that are needed, counted from the first.
        mask: Mask,
    },
    /// The object's INFO.
    Info,
    /// The whole object.
    Object,
}

/// Set of numbers from 0, one bit each; 0 is the highest bit of the first octet. (The draft leaves the order open; our
/// choice.)
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mask(pub Vec<u8>);

impl Mask {
    /// Returns an empty set with room for `bits` numbers.
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

    /// Returns the numbers in the set, from the lowest.
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
    /// Returns the symbols of the message, if it has any.
    pub fn data(&self) -> Option<&Data> {
        match &self.body {
            Body::Sender(_, FromSender::Data(data)) => Some(data),
            _ => None,
        }
    }
}
