//! NORM's messages as the engines speak them (RFC 5740 §4).

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use farcast_core::{Run, Span, Time};
use farcast_delivery::{Geometry, Vouched};

use crate::quantise::{GroupSize, Loss, Rate, Rtt};
use crate::wire;

/// Who speaks: chosen by the user, unique in a session (`NormNodeId`). 0 and 2^32 - 1 are nobody.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// `NORM_NODE_NONE`.
    pub const NONE: Self = Self(0);
    /// `NORM_NODE_ANY`.
    pub const ANY: Self = Self(u32::MAX);

    /// Whether a node may have it.
    pub const fn is_somebody(self) -> bool {
        self.0 != Self::NONE.0 && self.0 != Self::ANY.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Who says it.
    pub source: NodeId,
    /// Counts what the source says; of a run, its first datagram, and each of the others one more.
    pub sequence: u16,
    /// What it says.
    pub body: Body,
}

/// What a message says, by whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A sender's: what it says of itself in each message, and what is its own.
    Sender(Terms, FromSender),
    /// A receiver's.
    Receiver(FromReceiver),
}

/// What every message of a sender says of it (RFC 5740 §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Another number for each time that the sender was started.
    pub instance: u16,
    /// The greatest round trip of the group.
    pub grtt: Rtt,
    /// How many of them receivers spread their answers over, 0 to 15; 0 where they are not to wait.
    pub backoff: u8,
    /// How many receivers there may be.
    pub group: GroupSize,
}

/// What only a sender says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromSender {
    /// Symbols of an object.
    Data(Data),
    /// What an application says of an object.
    Info(Info),
    /// So far it has sent; what is missing before is to be asked for, and who is named acknowledges (CMD(FLUSH)).
    Flush {
        /// The last symbol that it has sent.
        point: Point,
        /// Who is to acknowledge it.
        ackers: Vec<NodeId>,
    },
    /// It leaves (CMD(EOT)).
    Eot,
    /// What was asked for cannot be had (CMD(SQUELCH)).
    Squelch {
        /// Where what it can repair begins.
        point: Point,
        /// Objects behind that which cannot be repaired either.
        invalid: Vec<u16>,
    },
    /// A probe of round trips, and of congestion (CMD(CC)).
    Probe(Probe),
    /// What receivers have asked for by unicast (`CMD(REPAIR_ADV)`).
    RepairAdv {
        /// 1: there was more than this.
        flags: u8,
        /// Of whose answers on congestion others need not repeat. What it says of the sequence is not to be relied on.
        feedback: Option<Feedback>,
        /// What was asked for.
        requests: Vec<Request>,
    },
    /// Acknowledgement is asked for (`CMD(ACK_REQ)`).
    AckReq {
        /// Of what: 1 of a probe, 2 of a flush, from 16 on of what the application decides.
        kind: u8,
        /// To be repeated in the acknowledgement.
        id: u8,
        /// By whom.
        ackers: Vec<NodeId>,
    },
    /// An application's own command (CMD(APPLICATION)).
    Application(Vec<u8>),
}

/// What an object is, and what of it a message is (RFC 5740 §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// What is sent again, or parity on demand.
    pub const REPAIR: Self = Self(0x01);
    /// Exactly what was asked for.
    pub const EXPLICIT: Self = Self(0x02);
    /// The object has INFO.
    pub const INFO: Self = Self(0x04);
    /// It is not repaired.
    pub const UNRELIABLE: Self = Self(0x08);
    /// The object is a file.
    pub const FILE: Self = Self(0x10);
    /// The object is a stream.
    pub const STREAM: Self = Self(0x20);

    /// Whether all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How symbols are numbered and parity is computed (FEC Encoding ID).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fec {
    /// 5: Reed-Solomon over GF(2^8) (RFC 5510).
    ReedSolomon8,
    /// 2: Reed-Solomon over GF(2^m), with m of 2 to 16 (RFC 5510). A payload id does not say m.
    ReedSolomon(u8),
    /// 129: small block, systematic; which code is a matter of its instance (RFC 5445).
    SmallBlock,
}

impl Fec {
    /// Its number.
    pub const fn id(self) -> u8 {
        match self {
            Self::ReedSolomon8 => 5,
            Self::ReedSolomon(_) => 2,
            Self::SmallBlock => 129,
        }
    }

    /// Bits of a symbol's number.
    pub const fn symbol_bits(self) -> u32 {
        match self {
            Self::ReedSolomon8 => 8,
            Self::ReedSolomon(m) => m as u32,
            Self::SmallBlock => 16,
        }
    }

    /// Bits of a block's number.
    pub const fn block_bits(self) -> u32 {
        match self {
            Self::SmallBlock => 32,
            other => 32 - other.symbol_bits(),
        }
    }

    /// Octets of a payload id.
    pub const fn payload_id_len(self) -> usize {
        if matches!(self, Self::SmallBlock) { 8 } else { 4 }
    }
}

/// A symbol of an object, or the place of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Symbol {
    /// The block, from 0.
    pub block: u32,
    /// Its source symbols, where the payload id says so (129 alone).
    pub block_len: Option<u16>,
    /// The encoding symbol, from 0: parity follows the block's source symbols.
    pub symbol: u16,
}

/// A symbol of an object: to where a sender has come, or what a receiver asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// How its symbols are numbered.
    pub fec: Fec,
    /// The object.
    pub object: u16,
    /// Which of its symbols.
    pub symbol: Symbol,
}

/// How an object is cut and coded (FEC Object Transmission Information, `EXT_FTI`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fti {
    /// Octets of the object, below 2^48; of a stream, those that its sender keeps.
    pub size: u64,
    /// Octets of a segment.
    pub segment_size: u16,
    /// The most source symbols of a block; 8 bits in FEC id 5.
    pub max_block_len: u16,
    /// RFC 5510: the most symbols of a block, parity included. NRL's library, and FEC id 129: the parity symbols. 8
    /// bits in FEC id 5. [`parity_symbols`](Self::parity_symbols) reads either.
    pub last: u16,
    /// Which code, of FEC id 129; 0 else.
    pub instance: u16,
    /// Symbols in a datagram, of FEC id 2; 1 else.
    pub group: u8,
}

/// What the last field of an [`Fti`] of FEC ids 5 and 2 is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FtiStyle {
    /// The number of parity symbols. DEVIATION: as NRL's library has it.
    #[default]
    Parity,
    /// The most symbols of a block (RFC 5510).
    MaxN,
}

impl Fti {
    /// The parity symbols of a block, by whoever writes in `style`. What is less than a block can only be parity.
    pub fn parity_symbols(&self, fec: Fec, style: FtiStyle) -> u16 {
        match style {
            FtiStyle::MaxN if fec != Fec::SmallBlock => {
                self.last.checked_sub(self.max_block_len).unwrap_or(self.last)
            }
            _ => self.last,
        }
    }

    /// How the object is cut (RFC 5052 §9.1); `None` if it cannot be.
    pub fn geometry(&self) -> Option<Geometry> {
        crate::config::geometry(self.size, self.segment_size, self.max_block_len).ok()
    }
}

/// DATA: a run of symbols of one block, on the wire one message each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// What it is.
    pub flags: Flags,
    /// How symbols are numbered.
    pub fec: Fec,
    /// The object.
    pub object: u16,
    /// The block, from 0.
    pub block: u32,
    /// The block's source symbols, where the payload id says so (129 alone).
    pub block_len: Option<u16>,
    /// The encoding symbols, from 0: all of them source symbols, or all parity.
    pub symbols: Run,
    /// How the object is cut.
    pub fti: Option<Fti>,
    /// Octets of each symbol but the last.
    pub len: u16,
    /// Octets of the last, which is shorter at the object's end; of a single one, `len`.
    pub last_len: u16,
}

impl Data {
    /// Octets of the symbol `segment` places behind the first.
    pub fn payload_len(&self, segment: u32) -> usize {
        usize::from(if segment + 1 == self.symbols.count() { self.last_len } else { self.len })
    }

    /// The block's source symbols, as far as the message says.
    pub fn source_symbols(&self) -> Option<u32> {
        match (self.block_len, &self.fti) {
            (Some(len), _) => Some(len.into()),
            (None, Some(fti)) => fti.geometry().map(|geometry| geometry.block_len(self.block)),
            (None, None) => None,
        }
    }

    /// Whether `next` continues this run: the next symbol of the same kind, and full ones so far.
    pub fn continues(&self, next: &Self) -> bool {
        let same = (self.flags, self.fec, self.object, self.block, self.block_len, self.fti)
            == (next.flags, next.fec, next.object, next.block, next.block_len, next.fti);
        same && self.symbols.end() == next.symbols.first()
            && self.len == self.last_len
            && next.len <= self.len
            && self.source_symbols() != Some(next.symbols.first())
    }
}

/// INFO: what an application says of an object; of a file mostly its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// What the object is.
    pub flags: Flags,
    /// How its symbols are numbered.
    pub fec: Fec,
    /// The object.
    pub object: u16,
    /// How it is cut.
    pub fti: Option<Fti>,
    /// What a sender of farcast vouches for; others say nothing of this, and pass over it.
    pub vouched: Option<Vouched>,
    /// At most a segment.
    pub content: Vec<u8>,
}

/// A sender's time of its own clock, given back by receivers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp {
    /// Seconds.
    pub seconds: u32,
    /// Microseconds of the second, below 1,000,000.
    pub micros: u32,
}

impl Stamp {
    /// An instant to the microsecond, of seconds modulo 2^32.
    pub const fn of(time: Time) -> Self {
        let micros = time.as_nanos() / 1000;
        Self { seconds: (micros / 1_000_000) as u32, micros: (micros % 1_000_000) as u32 }
    }

    /// The same, `span` later.
    #[must_use]
    pub fn later(self, span: Span) -> Self {
        let micros = u64::from(self.micros) + span.as_nanos() / 1000;
        let seconds = self.seconds.wrapping_add((micros / 1_000_000) as u32);
        Self { seconds, micros: (micros % 1_000_000) as u32 }
    }

    /// How long ago `earlier` was; `None` if it lies ahead, by half of the seconds that there are.
    pub fn since(self, earlier: Self) -> Option<Span> {
        let seconds = self.seconds.wrapping_sub(earlier.seconds).cast_signed();
        let micros = i64::from(seconds) * 1_000_000 + i64::from(self.micros) - i64::from(earlier.micros);
        u64::try_from(micros).ok().map(Span::from_micros)
    }
}

/// CMD(CC).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// 0; NRL's library marks the first of a sender with 1.
    pub flags: u8,
    /// Counts probes.
    pub sequence: u16,
    /// When it left.
    pub sent: Stamp,
    /// How fast it sends (`EXT_RATE`). Receivers answer a probe that has it with what they think of the rate.
    pub rate: Option<Rate>,
    /// What it knows of some receivers.
    pub nodes: Vec<ProbedNode>,
}

/// What a probe says of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbedNode {
    /// Which.
    pub node: NodeId,
    /// What it is for congestion control ([`cc`]).
    pub flags: u8,
    /// Its round trip.
    pub rtt: Rtt,
    /// What it would bear.
    pub rate: Rate,
}

/// Flags of congestion control (RFC 5740 §4.2.3.4).
pub mod cc {
    /// It limits the rate.
    pub const CLR: u8 = 0x01;
    /// It may come to.
    pub const PLR: u8 = 0x02;
    /// Its round trip is measured.
    pub const RTT: u8 = 0x04;
    /// It has not lost anything yet.
    pub const START: u8 = 0x08;
    /// It leaves.
    pub const LEAVE: u8 = 0x10;
}

/// What a receiver says of congestion (`EXT_CC`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// The probe that it answers.
    pub sequence: u16,
    /// What it is ([`cc`]).
    pub flags: u8,
    /// Its round trip.
    pub rtt: Rtt,
    /// What it loses.
    pub loss: Loss,
    /// What it would bear.
    pub rate: Rate,
}

/// A receiver's message (RFC 5740 §4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromReceiver {
    /// The sender that it is for.
    pub sender: NodeId,
    /// That sender's instance.
    pub instance: u16,
    /// The sender's time of the last probe, and what has passed since it came; `None` if none has come.
    pub response: Option<Stamp>,
    /// On congestion.
    pub feedback: Option<Feedback>,
    /// What it says.
    pub answer: Answer,
}

/// What a receiver says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// What it misses.
    Nack(Vec<Request>),
    /// It has all up to a point.
    Flushed {
        /// 0 where a flush asked for it.
        id: u8,
        /// The point.
        point: Point,
    },
    /// Another acknowledgement: of a probe (1), or what an application has asked for.
    Ack {
        /// Of what; not 2.
        kind: u8,
        /// What the request said.
        id: u8,
        /// The application's.
        content: Vec<u8>,
    },
}

/// How a repair request lists what it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// One by one.
    Items,
    /// From one to another, both included: an even number of points.
    Ranges,
    /// How many symbols of a block, the number standing in a symbol's place.
    Erasures,
}

/// What the items of a repair request are: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level(pub u8);

impl Level {
    /// Symbols.
    pub const SEGMENT: Self = Self(0x01);
    /// Whole blocks.
    pub const BLOCK: Self = Self(0x02);
    /// The object's INFO.
    pub const INFO: Self = Self(0x04);
    /// Whole objects.
    pub const OBJECT: Self = Self(0x08);

    /// Whether all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A part of what a receiver misses (RFC 5740 §4.3.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// How it lists them.
    pub form: Form,
    /// What they are.
    pub level: Level,
    /// Which.
    pub points: Vec<Point>,
}

impl farcast_core::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        match self.data() {
            Some(data) => NonZeroU32::new(data.symbols.count()).unwrap_or(NonZeroU32::MIN),
            None => NonZeroU32::MIN,
        }
    }

    fn split(mut self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Body::Sender(terms, FromSender::Data(data)) = &mut self.body else { return (self, None) };
        let (head, Some(tail)) = data.symbols.split(count) else { return (self, None) };
        let mut rest = Data { symbols: tail, ..data.clone() };
        if tail.count() == 1 {
            rest.len = rest.last_len;
        }
        (data.symbols, data.last_len) = (head, data.len);
        let sequence = self.sequence.wrapping_add(count.get() as u16);
        let body = Body::Sender(*terms, FromSender::Data(rest));
        let tail = Self { source: self.source, sequence, body };
        (self, Some(tail))
    }

    fn wire_len(&self, segment: u32) -> usize {
        wire::encoded_len(self, segment)
    }
}

impl Message {
    /// Its symbols, if it is DATA.
    pub fn data(&self) -> Option<&Data> {
        match &self.body {
            Body::Sender(_, FromSender::Data(data)) => Some(data),
            _ => None,
        }
    }
}
