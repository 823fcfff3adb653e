//! Messages of NORM as the engines exchange them (RFC 5740 §4).

use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::Run;
pub use farcast_delivery::nack::{NodeId, Stamp};
use farcast_delivery::{ErasureCode, Geometry, Vouched};

use crate::quantise::{GroupSize, Loss, Rate, Rtt};
use crate::wire;

/// Message of a sender or a receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Node that sends the message.
    pub source: NodeId,
    /// Sequence number of the source's datagrams. In a run, the first datagram has it, and each of the others one more.
    pub sequence: u16,
    /// Content of the message.
    pub body: Body,
}

/// Content of a message, by the role of its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Message of a sender: the terms that every message has, and the content of this one.
    Sender(Terms, FromSender),
    /// Message of a receiver.
    Receiver(FromReceiver),
}

/// Terms that every message of a sender carries (RFC 5740 §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Instance number, a new one for each start of the sender.
    pub instance: u16,
    /// Greatest round trip of the group (GRTT).
    pub grtt: Rtt,
    /// Number of GRTTs over which receivers spread their answers, 0 to 15; 0 where they are not to wait.
    pub backoff: u8,
    /// Maximum number of receivers.
    pub group: GroupSize,
}

/// Content of a sender's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromSender {
    /// Symbols of an object.
    Data(Data),
    /// Information of an application about an object.
    Info(Info),
    /// Point up to which the sender has sent (CMD(FLUSH)). Receivers ask for what they miss before it, and the named
    /// receivers acknowledge it.
    Flush {
        /// Last symbol that the sender has sent.
        point: Point,
        /// Receivers that are to acknowledge the point.
        ackers: Vec<NodeId>,
    },
    /// End of the transmission: the sender leaves (CMD(EOT)).
    Eot,
    /// Refusal of a request for something that cannot be repaired (CMD(SQUELCH)).
    Squelch {
        /// First symbol that the sender can repair.
        point: Point,
        /// Objects behind that point that cannot be repaired either.
        invalid: Vec<u16>,
    },
    /// A probe of round trips, and of congestion (CMD(CC)).
    Probe(Probe),
    /// Requests that receivers have sent by unicast (`CMD(REPAIR_ADV)`).
    RepairAdv {
        /// Flags; 1 if there were more requests than fit.
        flags: u8,
        /// Congestion feedback that other receivers need not repeat. Its sequence number is not reliable.
        feedback: Option<Feedback>,
        /// Requests.
        requests: Vec<Request>,
    },
    /// Request for an acknowledgement (`CMD(ACK_REQ)`).
    AckReq {
        /// Type of the acknowledgement: 1 of a probe, 2 of a flush, from 16 on as the application decides.
        kind: u8,
        /// Id to be repeated in the acknowledgement.
        id: u8,
        /// Receivers that are to acknowledge.
        ackers: Vec<NodeId>,
    },
    /// Command of an application (CMD(APPLICATION)).
    Application(Vec<u8>),
}

/// Flags of an object, and of a message of it (RFC 5740 §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The message repeats something, or is parity on demand.
    pub const REPAIR: Self = Self(0x01);
    /// The message is exactly what was asked for.
    pub const EXPLICIT: Self = Self(0x02);
    /// The object has INFO.
    pub const INFO: Self = Self(0x04);
    /// The object is not repaired.
    pub const UNRELIABLE: Self = Self(0x08);
    /// The object is a file.
    pub const FILE: Self = Self(0x10);
    /// The object is a stream.
    pub const STREAM: Self = Self(0x20);

    /// Returns `true` if all flags of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Numbering of symbols, and erasure code (FEC Encoding ID).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fec {
    /// 5: Reed-Solomon over GF(2^8) (RFC 5510).
    ReedSolomon8,
    /// 2: Reed-Solomon over GF(2^m), with m of 2 to 16 (RFC 5510). The payload id does not contain m.
    ReedSolomon(u8),
    /// 129: small block, systematic; the instance id selects the code (RFC 5445).
    SmallBlock,
}

impl Fec {
    /// Returns the erasure code, as in NRL's library.
    pub(crate) const fn erasure_code(self) -> ErasureCode {
        match self {
            Self::ReedSolomon8 | Self::SmallBlock | Self::ReedSolomon(8) => ErasureCode::ReedSolomon8,
            Self::ReedSolomon(16) => ErasureCode::ReedSolomon16,
            Self::ReedSolomon(_) => ErasureCode::Unknown,
        }
    }

    /// Returns the FEC Encoding ID.
    pub const fn id(self) -> u8 {
        match self {
            Self::ReedSolomon8 => 5,
            Self::ReedSolomon(_) => 2,
            Self::SmallBlock => 129,
        }
    }

    /// Returns the number of bits of a symbol's number.
    pub const fn symbol_bits(self) -> u32 {
        match self {
            Self::ReedSolomon8 => 8,
            Self::ReedSolomon(m) => m as u32,
            Self::SmallBlock => 16,
        }
    }

    /// Returns the m with which to read FEC Encoding ID 2 where a datagram does not tell it: that of this code, or 16 if
    /// this is another one.
    pub const fn field_bits(self) -> u8 {
        if let Self::ReedSolomon(m) = self { m } else { 16 }
    }

    /// Returns the number of bits of a block's number.
    pub const fn block_bits(self) -> u32 {
        match self {
            Self::SmallBlock => 32,
            other => 32 - other.symbol_bits(),
        }
    }

    /// Returns the number of octets of a payload id.
    pub const fn payload_id_len(self) -> usize {
        if matches!(self, Self::SmallBlock) { 8 } else { 4 }
    }
}

/// Symbol of an object, or the place of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Symbol {
    /// Block, from 0.
    pub block: u32,
    /// Number of the block's source symbols, where the payload id has it (129 alone).
    pub block_len: Option<u16>,
    /// Encoding symbol, from 0: parity follows the block's source symbols.
    pub symbol: u16,
}

/// Symbol of a numbered object: progress of a sender, or an item that a receiver asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Numbering of the symbols.
    pub fec: Fec,
    /// Object.
    pub object: u16,
    /// Symbol.
    pub symbol: Symbol,
}

/// Size of an object and its division into symbols (FEC Object Transmission Information, `EXT_FTI`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fti {
    /// Octets of the object, below 2^48; of a stream, the octets that its sender keeps.
    pub size: u64,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Maximum number of source symbols of a block; 8 bits in FEC id 5.
    pub max_block_len: u16,
    /// Maximum number of symbols of a block, including parity, by RFC 5510. In NRL's library, and in FEC id 129, the
    /// number of parity symbols. 8 bits in FEC id 5. [`parity_symbols`](Self::parity_symbols) reads either.
    pub last: u16,
    /// Code instance of FEC id 129; 0 for others.
    pub instance: u16,
    /// Symbols in a datagram of FEC id 2; 1 for others.
    pub group: u8,
}

/// Meaning of the last field of an [`Fti`] of FEC ids 5 and 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FtiStyle {
    /// Number of parity symbols. DEVIATION: this is how NRL's library does it.
    #[default]
    Parity,
    /// Maximum number of symbols of a block (RFC 5510).
    MaxN,
}

impl Fti {
    /// Returns the number of parity symbols of a block, for a sender that writes in `style`. A number smaller than a
    /// block's can only be that of parity.
    pub fn parity_symbols(&self, fec: Fec, style: FtiStyle) -> u16 {
        match style {
            FtiStyle::MaxN if fec != Fec::SmallBlock => {
                self.last.checked_sub(self.max_block_len).unwrap_or(self.last)
            }
            _ => self.last,
        }
    }

    /// Returns the object's geometry (RFC 5052 §9.1); `None` if the object cannot be cut so.
    pub fn geometry(&self) -> Option<Geometry> {
        crate::config::geometry(self.size, self.segment_size, self.max_block_len).ok()
    }
}

/// DATA: run of symbols of one block, each of which is a message on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Flags of the object and the message.
    pub flags: Flags,
    /// Numbering of the symbols.
    pub fec: Fec,
    /// Object.
    pub object: u16,
    /// Block, from 0.
    pub block: u32,
    /// Number of the block's source symbols, where the payload id has it (129 alone).
    pub block_len: Option<u16>,
    /// Encoding symbols, from 0: all of them source symbols, or all of them parity.
    pub symbols: Run,
    /// Size and division of the object, if the message has them.
    pub fti: Option<Fti>,
    /// Octets of each symbol but the last.
    pub len: u16,
    /// Octets of the last symbol, which is shorter at the object's end; equal to `len` for a single symbol.
    pub last_len: u16,
}

impl Data {
    /// Returns the octets of the symbol `segment` places behind the first.
    pub fn payload_len(&self, segment: u32) -> usize {
        usize::from(if segment + 1 == self.symbols.count() { self.last_len } else { self.len })
    }

    /// Returns the number of the block's source symbols, if the message tells it.
    pub fn source_symbols(&self) -> Option<u32> {
        match (self.block_len, &self.fti) {
            (Some(len), _) => Some(len.into()),
            (None, Some(fti)) => fti.geometry().map(|geometry| geometry.block_len(self.block)),
            (None, None) => None,
        }
    }

    /// Returns `true` if `next` continues this run: it has the next symbol of the same kind, and all symbols so far are
    /// full.
    pub fn continues(&self, next: &Self) -> bool {
        let same = (self.flags, self.fec, self.object, self.block, self.block_len, self.fti)
            == (next.flags, next.fec, next.object, next.block, next.block_len, next.fti);
        same && self.symbols.end() == next.symbols.first()
            && self.len == self.last_len
            && next.len <= self.len
            && self.source_symbols() != Some(next.symbols.first())
    }
}

/// INFO: information of an application about an object; for a file mostly its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// Flags of the object.
    pub flags: Flags,
    /// Numbering of the object's symbols.
    pub fec: Fec,
    /// Object.
    pub object: u16,
    /// Size and division of the object, if the message has them.
    pub fti: Option<Fti>,
    /// Metadata that a farcast sender vouches for. Other senders do not have it, and other receivers skip it.
    pub vouched: Option<Vouched>,
    /// Content, at most a segment.
    pub content: Vec<u8>,
}

/// Probe of round trips and congestion (CMD(CC)).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Flags: 0, but NRL's library marks the first probe of a sender with 1.
    pub flags: u8,
    /// Sequence number of probes.
    pub sequence: u16,
    /// Departure time.
    pub sent: Stamp,
    /// Current rate of the sender (`EXT_RATE`). Receivers answer a probe with a rate by congestion feedback.
    pub rate: Option<Rate>,
    /// State of some receivers.
    pub nodes: Vec<ProbedNode>,
}

/// State of a receiver in a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbedNode {
    /// Node id of the receiver.
    pub node: NodeId,
    /// Role of the receiver in congestion control ([`cc`]).
    pub flags: u8,
    /// Round trip of the receiver.
    pub rtt: Rtt,
    /// Rate that the receiver can bear.
    pub rate: Rate,
}

/// Flags of congestion control (RFC 5740 §4.2.3.4).
pub mod cc {
    /// Current limiting receiver: it limits the rate.
    pub const CLR: u8 = 0x01;
    /// Potential limiting receiver: it may come to limit the rate.
    pub const PLR: u8 = 0x02;
    /// The receiver's round trip is measured.
    pub const RTT: u8 = 0x04;
    /// The receiver is in slow start: it has not lost anything yet.
    pub const START: u8 = 0x08;
    /// The receiver leaves.
    pub const LEAVE: u8 = 0x10;
}

/// Congestion feedback of a receiver (`EXT_CC`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// Sequence number of the probe that is answered.
    pub sequence: u16,
    /// Flags of congestion control ([`cc`]).
    pub flags: u8,
    /// Round trip of the receiver.
    pub rtt: Rtt,
    /// Loss of the receiver.
    pub loss: Loss,
    /// Rate that the receiver can bear.
    pub rate: Rate,
}

/// Message of a receiver (RFC 5740 §4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromReceiver {
    /// Sender that the message is for.
    pub sender: NodeId,
    /// Instance of that sender.
    pub instance: u16,
    /// Time stamp of the last probe, plus the time since its arrival; `None` if none has come.
    pub response: Option<Stamp>,
    /// Congestion feedback.
    pub feedback: Option<Feedback>,
    /// Content.
    pub answer: Answer,
}

/// Content of a receiver's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Requests for what the receiver misses.
    Nack(Vec<Request>),
    /// Acknowledgement that the receiver has everything up to a point.
    Flushed {
        /// Id of the request; 0 where a flush asked for it.
        id: u8,
        /// Point.
        point: Point,
    },
    /// Acknowledgement of a probe (1), or of a request of the application.
    Ack {
        /// Type of the acknowledgement; not 2.
        kind: u8,
        /// Id of the request.
        id: u8,
        /// Content of the application.
        content: Vec<u8>,
    },
}

/// Form of the items of a repair request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Single items.
    Items,
    /// Ranges from one item to another, both included: an even number of points.
    Ranges,
    /// Counts of symbols of a block. The number takes the place of a symbol's number.
    Erasures,
}

/// Kind of the items of a repair request: a set of bits.
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

    /// Returns `true` if all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Request for a part of what a receiver misses (RFC 5740 §4.3.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Form of the items.
    pub form: Form,
    /// Kind of the items.
    pub level: Level,
    /// Items.
    pub points: Vec<Point>,
}

/// Range of a request, from its first point to its last; a single item is both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointRange<'a> {
    pub(crate) first: &'a Point,
    pub(crate) last: &'a Point,
}

impl Request {
    /// Returns the ranges of the request.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = PointRange<'_>> {
        let step = if self.form == Form::Ranges { 2 } else { 1 };
        self.points.chunks_exact(step).map(move |pair| PointRange { first: &pair[0], last: &pair[step - 1] })
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
    /// Returns the symbols, if the message is DATA.
    pub fn data(&self) -> Option<&Data> {
        match &self.body {
            Body::Sender(_, FromSender::Data(data)) => Some(data),
            _ => None,
        }
    }
}
