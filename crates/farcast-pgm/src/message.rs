//! PGM's messages as the engines exchange them (RFC 3208 §8, §9, §13, §14; those of PGMCC as OpenPGM has them).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::num::NonZeroU32;

use farcast_core::Run;
use farcast_core::engine::Reject;
pub use farcast_delivery::nack::NodeId;
use farcast_delivery::{Content, Geometry, ObjectId, Vouched};

pub use crate::sqn::Sqn;
use crate::wire;

/// A globally unique source identifier: by RFC 3208 §8 the low 48 bits of the MD5 of the source's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gsi(pub [u8; 6]);

impl fmt::Debug for Gsi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// A transport session: every message names it (RFC 3208 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tsi {
    /// The source.
    pub gsi: Gsi,
    /// Its data-source port.
    pub port: u16,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Session that the message belongs to.
    pub tsi: Tsi,
    /// The session's data-destination port.
    pub port: u16,
    /// Content of the message, by its type.
    pub body: Body,
}

/// Content of a message, by its type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Path and transmit window of a source, and the address for repair requests.
    Spm(Spm),
    /// A question to the nodes below a network element.
    Poll(Poll),
    /// An answer to a [`Poll`].
    Polr(Polr),
    /// ODATA or RDATA: a run of consecutive sequence numbers, on the wire one message each.
    Data(Data),
    /// NAK, NNAK or NCF.
    Nak(Nak),
    /// A request for an SPM.
    Spmr,
    /// Acknowledgement of received data, as PGMCC needs it.
    Ack(Ack),
}

/// A source path message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spm {
    /// Sequence number of the SPM.
    pub sqn: Sqn,
    /// The oldest data sequence number that can be repaired.
    pub trail: Sqn,
    /// The newest data sequence number that was sent; `trail` minus one while nothing was sent.
    pub lead: Sqn,
    /// Address to which requests for repair go.
    pub path: IpAddr,
    /// Options of the message.
    pub options: Vec<Opt>,
}

impl Spm {
    /// Returns `true` if the message says nothing of the window (RFC 3208 §8.1).
    pub const fn is_windowless(&self) -> bool {
        self.trail.0 == 0 && self.lead.0 == 0x8000_0000
    }
}

/// POLL (RFC 3208 §14).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Poll {
    /// Sequence number of the poll.
    pub sqn: Sqn,
    /// Round within the poll, from 0.
    pub round: u16,
    /// Nodes that are asked; 0: all; 1: those that can repair.
    pub subtype: u16,
    /// Address to which answers go.
    pub path: IpAddr,
    /// Interval over which answers are spread, in microseconds.
    pub backoff_us: u32,
    /// Random value, drawn anew for each poll.
    pub random: u32,
    /// Bits of the random value that decide which nodes answer: those whose own value has the same bits.
    pub mask: u32,
    /// Options of the message.
    pub options: Vec<Opt>,
}

impl Poll {
    /// Checks that this poll is new to a node that last heard the poll and round `heard`. A round counts only for a
    /// node that has heard the first round of the same poll.
    ///
    /// # Errors
    /// [`Reject::Duplicate`] if this round was heard, [`Reject::OutOfRange`] if the poll's first round was not.
    pub(crate) fn follows(&self, heard: Option<(Sqn, u16)>) -> Result<(), Reject> {
        match heard.filter(|&(sqn, _)| sqn == self.sqn) {
            Some((_, round)) if round >= self.round => Err(Reject::Duplicate),
            None if self.round > 0 => Err(Reject::OutOfRange),
            _ => Ok(()),
        }
    }
}

/// POLR (RFC 3208 §14).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Polr {
    /// Sequence number of the poll that is answered.
    pub sqn: Sqn,
    /// Round of that poll.
    pub round: u16,
    /// The answering node can repair with parity.
    pub parity: bool,
    /// Options of the message.
    pub options: Vec<Opt>,
}

/// Type of a data message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataKind {
    /// ODATA: sent for the first time.
    Original,
    /// RDATA: sent again.
    Repair,
}

/// A run of ODATA or RDATA with consecutive sequence numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Type of all messages of the run.
    pub kind: DataKind,
    /// The first sequence number of the run.
    pub sqn: Sqn,
    /// Number of messages in the run.
    pub count: NonZeroU32,
    /// The oldest sequence number that can be repaired.
    pub trail: Sqn,
    /// Parity that the message carries; `None` for data.
    pub parity: Option<Parity>,
    /// Options of the message.
    pub options: DataOptions,
    /// Description of an object that is sent, where the TSDU carries that instead of content.
    pub descriptor: Option<Box<Descriptor>>,
    /// Octets of each TSDU except the last.
    pub len: u16,
    /// Octets of the last TSDU; equals `len` in a run of one.
    pub last_len: u16,
    /// Place of the content at the sender.
    pub origin: Origin,
}

impl Data {
    /// Returns the octets of the TSDU `segment` places behind the first.
    pub fn tsdu_len(&self, segment: u32) -> usize {
        usize::from(if segment + 1 == self.count.get() { self.last_len } else { self.len })
    }

    /// Returns the last sequence number of the run.
    pub fn last(&self) -> Sqn {
        self.sqn.plus(self.count.get() - 1)
    }

    /// Returns the fragment that datagram `segment` of the run carries.
    pub fn fragment(&self, segment: u32) -> Option<Fragment> {
        let behind = segment.wrapping_mul(self.len.into());
        self.options.fragment.map(|first| Fragment { offset: first.offset.wrapping_add(behind), ..first })
    }

    /// Returns `true` if `next` continues this run.
    pub fn continues(&self, next: &Self) -> bool {
        let plain =
            |data: &Self| data.parity.is_none() && data.descriptor.is_none() && data.options.cc.is_none();
        let count = self.count.get();
        let options = DataOptions { fragment: self.fragment(count), ..self.options };
        plain(self)
            && plain(next)
            && (self.kind, self.sqn.plus(count), self.trail) == (next.kind, next.sqn, next.trail)
            && options == next.options
            && self.len == self.last_len
            && next.len <= self.len
    }
}

/// Place of a message's content at its sender. The place is not on the wire, so two messages that differ only in it are
/// equal.
#[derive(Clone, Copy, Debug)]
pub struct Origin(pub Content);

impl Origin {
    /// Origin of a received message: only its sender knows the place.
    pub const UNKNOWN: Self = Self(Content::None);
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

/// Kind of parity that a data message carries (RFC 3208 §11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parity {
    /// Part of the group's parity, `OPT_PARITY_GRP`, where a group has more parity than data packets. 0 stands for the
    /// first part, whose messages bear no option.
    pub group: u32,
    /// The parity also encodes the lengths of the TSDUs.
    pub var_len: bool,
}

/// Options of ODATA and RDATA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataOptions {
    /// `OPT_FRAGMENT`.
    pub fragment: Option<Fragment>,
    /// `OPT_JOIN`: the oldest number that a late joiner may ask for.
    pub join: Option<Sqn>,
    /// `OPT_CURR_TGSIZE`: number of data packets in this transmission group.
    pub group_size: Option<u32>,
    /// `OPT_SYN`: the session begins.
    pub syn: bool,
    /// `OPT_FIN`: the session ends.
    pub fin: bool,
    /// `OPT_PGMCC_DATA`.
    pub cc: Option<CcData>,
}

/// `OPT_FRAGMENT`: a piece of an APDU. In parity it is encoded as the payload is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// The sequence number of the APDU's first piece.
    pub first: Sqn,
    /// Octet of the APDU at which this piece begins.
    pub offset: u32,
    /// Octets of the APDU.
    pub len: u32,
    /// In parity: none of the encoded packets has the option.
    pub null: bool,
}

/// `OPT_PGMCC_DATA`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CcData {
    /// The source's clock in milliseconds, given back by receivers.
    pub stamp: u32,
    /// Receiver that is to acknowledge (the acker); the unspecified address while the source seeks one.
    pub acker: IpAddr,
}

/// `OPT_PGMCC_FEEDBACK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// The source's clock in milliseconds from the newest data, plus the time that the receiver kept it.
    pub stamp: u32,
    /// Share of lost packets, in parts of 65,536.
    pub loss: u16,
    /// Address of the receiver that reports.
    pub receiver: IpAddr,
    /// The receiver leaves and is no longer to be relied on: a bit that only farcast uses.
    pub leaving: bool,
}

/// Type of a message about repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakKind {
    /// A request for repair.
    Nak,
    /// A request for repair that another node answers already.
    NullNak,
    /// A confirmation that a request was heard.
    Confirmation,
}

/// NAK, NNAK or NCF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nak {
    /// Type of the message.
    pub kind: NakKind,
    /// The message concerns parity: the low bits of its numbers are then counts.
    pub parity: bool,
    /// First number that the message names.
    pub sqn: Sqn,
    /// Address of the source.
    pub source: IpAddr,
    /// Address of the multicast group.
    pub group: IpAddr,
    /// Further numbers (`OPT_NAK_LIST`), at most [`MOST_LISTED`].
    pub also: Vec<Sqn>,
    /// Third octet of that option, passed on as received; 0 without a list. It has no meaning for a node that knows the
    /// option: OpenPGM leaves uninitialised memory there.
    pub list_octet: u8,
    /// Other options.
    pub options: Vec<Opt>,
}

/// The most numbers in an `OPT_NAK_LIST`.
pub const MOST_LISTED: usize = 62;

impl Nak {
    /// Returns all numbers that the message names.
    pub fn sqns(&self) -> impl Iterator<Item = Sqn> + '_ {
        core::iter::once(self.sqn).chain(self.also.iter().copied())
    }
}

/// ACK of PGMCC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The highest data number received.
    pub highest: Sqn,
    /// Receipt of the 32 numbers up to `highest`: bit 0 is `highest`, a set bit means received.
    pub bitmap: u32,
    /// Options of the message.
    pub options: Vec<Opt>,
}

/// An option of a message other than ODATA and RDATA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opt {
    /// `OPT_JOIN`: the oldest number that a late joiner may ask for.
    Join(Sqn),
    /// `OPT_NAK_BO_IVL`: the interval over which NAKs are spread, once poll `sqn` was seen.
    NakBackoff {
        /// The interval in microseconds; 0: NAKs leave at once.
        interval_us: u32,
        /// Sequence number of the poll.
        sqn: Sqn,
    },
    /// `OPT_NAK_BO_RNG`.
    NakBackoffRange {
        /// The longest interval, in microseconds.
        max_us: u32,
        /// The shortest interval, in microseconds.
        min_us: u32,
    },
    /// `OPT_REDIRECT`: address of the node that repairs.
    Redirect(IpAddr),
    /// `OPT_PARITY_PRM`.
    ParityPrm {
        /// Parity can be asked for.
        on_demand: bool,
        /// Parity is sent unasked.
        proactive: bool,
        /// The most data packets of a transmission group, a power of two.
        size: u32,
        /// The option's third octet, as [`Nak::list_octet`].
        octet: u8,
    },
    /// `OPT_CURR_TGSIZE`.
    GroupSize(u32),
    /// `OPT_NBR_UNREACH`.
    Unreachable,
    /// `OPT_PATH_NLA`.
    PathNla(IpAddr),
    /// `OPT_FIN`: the session has ended.
    Fin,
    /// `OPT_RST`: the session was given up.
    Rst {
        /// NAKs are not answered any more.
        no_naks: bool,
        /// Reason, 6 bits; 0: not given.
        code: u8,
    },
    /// `OPT_CR`.
    Cr(Cr),
    /// `OPT_CRQST`: the fields of [`Cr`] that are asked for, as in [`Cr::fields`].
    Crqst(u8),
    /// `OPT_PGMCC_FEEDBACK`.
    Feedback(Feedback),
    /// Option of farcast: the nodes that are asked to confirm that they have everything up to a number.
    Ask(Ask),
    /// Option of farcast: a node has everything up to a number, verified.
    Has(Has),
}

/// `OPT_CR`: report of loss rates, each in parts of 65,536.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cr {
    /// Bits of the fields that are present: 4 a network element's link, 2 its path, 1 a receiver's.
    pub fields: u8,
    /// The newest data number that the reporting node has seen.
    pub reference: Sqn,
    /// Loss on the worst link of a network element.
    pub link: u16,
    /// Loss on the worst path of a network element.
    pub path: u16,
    /// Loss at a receiver.
    pub receiver: u16,
    /// Address of the node that reports.
    pub node: IpAddr,
}

/// Option of farcast: the source asks named receivers whether they have everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// The last sequence number that the question covers.
    pub upto: Sqn,
    /// Receivers that are to answer, at most [`MOST_ASKED`].
    pub nodes: Vec<NodeId>,
}

/// The most receivers that one [`Ask`] names.
pub const MOST_ASKED: usize = 60;

/// Option of farcast: a receiver has everything, and its owner has verified it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Has {
    /// The last sequence number that the statement covers.
    pub upto: Sqn,
    /// The receiver.
    pub node: NodeId,
}

/// Description of a file, in a TSDU before the file's segments; not part of RFC 3208.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Index of the object in the session, from 0.
    pub number: u32,
    /// Distance in sequence numbers from this message to the file's first segment, at least 1.
    pub behind: u16,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Octets of the object.
    pub size: u64,
    /// Digest, mode and time for which the sender vouches.
    pub vouched: Option<Vouched>,
    /// The source of the object is gone: nothing of it is sent or repaired any more.
    pub withdrawn: bool,
    /// Name of the object, at most [`MOST_NAME`] octets.
    pub name: Vec<u8>,
}

/// The most octets of a name.
pub const MOST_NAME: usize = 1024;
/// Octets of a descriptor's TSDU that are reserved for its other fields.
pub const NAME_OVERHEAD: usize = 64;

impl Message {
    /// Returns the data of the message if it is ODATA or RDATA.
    pub fn data(&self) -> Option<&Data> {
        match &self.body {
            Body::Data(data) => Some(data),
            _ => None,
        }
    }

    /// Returns `true` if the message goes from a source towards receivers.
    pub fn is_downstream(&self) -> bool {
        match &self.body {
            Body::Spm(_) | Body::Poll(_) | Body::Data(_) => true,
            Body::Nak(nak) => nak.kind == NakKind::Confirmation,
            Body::Polr(_) | Body::Spmr | Body::Ack(_) => false,
        }
    }
}

impl farcast_core::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        self.data().map_or(NonZeroU32::MIN, |data| data.count)
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self { tsi, port, body: Body::Data(data) } = self else { return (self, None) };
        let Some(left) = NonZeroU32::new(data.count.get().saturating_sub(count.get())) else {
            return (Self { tsi, port, body: Body::Data(data) }, None);
        };
        let tail = Data {
            sqn: data.sqn.plus(count.get()),
            count: left,
            options: DataOptions { fragment: data.fragment(count.get()), ..data.options },
            len: if left.get() == 1 { data.last_len } else { data.len },
            origin: data.origin.behind(count.get()),
            ..data.clone()
        };
        let head = Data { count, last_len: data.len, origin: data.origin.first(count.get()), ..data };
        let whole = |data| Self { tsi, port, body: Body::Data(data) };
        (whole(head), Some(whole(tail)))
    }

    fn wire_len(&self, segment: u32) -> usize {
        wire::encoded_len(self, segment)
    }
}

impl Origin {
    /// Returns the origin of a run of segments of an object.
    pub(crate) fn segments(object: ObjectId, geometry: &Geometry, segments: Run) -> Self {
        let block = geometry.block_of(segments.first());
        let first = segments.first() - geometry.first_of(block);
        let within = Run::new(first, segments.count());
        Self(within.map_or(Content::None, |segments| Content::Source { object, block, segments }))
    }

    fn with(self, cut: impl Fn(Run) -> Option<Run>) -> Self {
        Self(match self.0 {
            Content::Source { object, block, segments } => {
                cut(segments).map_or(Content::None, |segments| Content::Source { object, block, segments })
            }
            Content::Parity { object, block, symbols } => {
                cut(symbols).map_or(Content::None, |symbols| Content::Parity { object, block, symbols })
            }
            Content::None | Content::Passing { .. } | Content::Kept { .. } => self.0,
        })
    }

    fn first(self, count: u32) -> Self {
        self.with(|run| Run::new(run.first(), count.min(run.count())))
    }

    fn behind(self, count: u32) -> Self {
        self.with(|run| Run::new(run.first() + count, run.count().saturating_sub(count)))
    }
}
