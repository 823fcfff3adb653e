//! PGM's messages as the engines speak them (RFC 3208 §8, §9, §13, §14; PGMCC's as OpenPGM has them).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::num::NonZeroU32;

use farcast_core::Run;
use farcast_core::engine::Reject;
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
    /// Of which session.
    pub tsi: Tsi,
    /// The session's data-destination port.
    pub port: u16,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// How far a source is, and where to ask for repair.
    Spm(Spm),
    /// A question to those below a network element.
    Poll(Poll),
    /// An answer to that.
    Polr(Polr),
    /// ODATA or RDATA: a run of consecutive sequence numbers, on the wire one message each.
    Data(Data),
    /// NAK, NNAK or NCF.
    Nak(Nak),
    /// A request for an SPM.
    Spmr,
    /// What has come, as PGMCC wants to know it.
    Ack(Ack),
}

/// A source path message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spm {
    /// Counts SPMs.
    pub sqn: Sqn,
    /// The oldest that can be repaired.
    pub trail: Sqn,
    /// The newest that was sent; the one before `trail` while there is none.
    pub lead: Sqn,
    /// Where requests for repair go.
    pub path: IpAddr,
    /// Its options.
    pub options: Vec<Opt>,
}

impl Spm {
    /// Whether it says nothing of the window (RFC 3208 §8.1).
    pub const fn is_windowless(&self) -> bool {
        self.trail.0 == 0 && self.lead.0 == 0x8000_0000
    }
}

/// POLL (RFC 3208 §14).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Poll {
    /// Counts polls.
    pub sqn: Sqn,
    /// Counts rounds of one.
    pub round: u16,
    /// 0: everybody; 1: who can repair.
    pub subtype: u16,
    /// Where answers go.
    pub path: IpAddr,
    /// Over how many microseconds they are spread.
    pub backoff_us: u32,
    /// Drawn for each.
    pub random: u32,
    /// Which bits of it decide who answers.
    pub mask: u32,
    /// Its options.
    pub options: Vec<Opt>,
}

impl Poll {
    /// Whether it is news to who has heard a poll of this number and round last: a round counts for who has heard the
    /// first of its poll.
    ///
    /// # Errors
    /// It was heard, or its first round was not.
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
    /// Which poll it answers.
    pub sqn: Sqn,
    /// Which round of it.
    pub round: u16,
    /// Whether who answers can repair with parity.
    pub parity: bool,
    /// Its options.
    pub options: Vec<Opt>,
}

/// Which of the data messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataKind {
    /// ODATA: sent for the first time.
    Original,
    /// RDATA: sent again.
    Repair,
}

/// ODATA or RDATA, a run of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Which.
    pub kind: DataKind,
    /// The first sequence number of the run.
    pub sqn: Sqn,
    /// How many there are.
    pub count: NonZeroU32,
    /// The oldest that can be repaired.
    pub trail: Sqn,
    /// What it is of parity; of data, nothing.
    pub parity: Option<Parity>,
    /// Its options.
    pub options: DataOptions,
    /// What its TSDU says, where it is no content: what is sent as an object.
    pub descriptor: Option<Box<Descriptor>>,
    /// Octets of each TSDU but the last.
    pub len: u16,
    /// Octets of the last; of a single one, `len`.
    pub last_len: u16,
    /// Where its content lies.
    pub origin: Origin,
}

impl Data {
    /// Octets of the TSDU `segment` places behind the first.
    pub fn tsdu_len(&self, segment: u32) -> usize {
        usize::from(if segment + 1 == self.count.get() { self.last_len } else { self.len })
    }

    /// The last sequence number.
    pub fn last(&self) -> Sqn {
        self.sqn.plus(self.count.get() - 1)
    }

    /// The fragment that datagram `segment` is.
    pub fn fragment(&self, segment: u32) -> Option<Fragment> {
        let behind = segment.wrapping_mul(self.len.into());
        self.options.fragment.map(|first| Fragment { offset: first.offset.wrapping_add(behind), ..first })
    }

    /// Whether `next` continues this run.
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

/// Where the content of a message that is sent lies at its sender. It is not on the wire, and two messages that differ
/// in nothing else are the same.
#[derive(Clone, Copy, Debug)]
pub struct Origin(pub Content);

impl Origin {
    /// Of a message that has come: its sender knows.
    pub const UNKNOWN: Self = Self(Content::None);
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

/// What a data message is of parity (RFC 3208 §11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parity {
    /// Of more parity than a group has data, in which part it lies: `OPT_PARITY_GRP`; 0 in the first, which has none.
    pub group: u32,
    /// Whether lengths of TSDUs are encoded with them.
    pub var_len: bool,
}

/// Options of ODATA and RDATA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataOptions {
    /// `OPT_FRAGMENT`.
    pub fragment: Option<Fragment>,
    /// `OPT_JOIN`: the oldest that who joins may ask for.
    pub join: Option<Sqn>,
    /// `OPT_CURR_TGSIZE`: how many data packets this transmission group has.
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
    /// Where in the APDU this one begins, in octets.
    pub offset: u32,
    /// Octets of the APDU.
    pub len: u32,
    /// In parity: none of what was encoded has the option.
    pub null: bool,
}

/// `OPT_PGMCC_DATA`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CcData {
    /// The source's clock in milliseconds, given back by receivers.
    pub stamp: u32,
    /// Who is to acknowledge; unspecified: somebody is sought.
    pub acker: IpAddr,
}

/// `OPT_PGMCC_FEEDBACK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// The source's clock in milliseconds as of the last data, and how long that was kept.
    pub stamp: u32,
    /// The share of packets that are lost, in parts of 65,536.
    pub loss: u16,
    /// Who says it.
    pub receiver: IpAddr,
    /// It leaves, and is not to be relied on any more: a bit that is ours.
    pub leaving: bool,
}

/// Which of the messages about repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakKind {
    /// Repair is asked for.
    Nak,
    /// It was asked for and is being repaired by another.
    NullNak,
    /// That was heard.
    Confirmation,
}

/// NAK, NNAK or NCF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nak {
    /// Which.
    pub kind: NakKind,
    /// Whether parity is meant; the low bits of numbers are counts then.
    pub parity: bool,
    /// The first number.
    pub sqn: Sqn,
    /// The source's address.
    pub source: IpAddr,
    /// The group's address.
    pub group: IpAddr,
    /// Further numbers (`OPT_NAK_LIST`), at most [`MOST_LISTED`].
    pub also: Vec<Sqn>,
    /// The third octet of that option, which means nothing to who knows the option: OpenPGM leaves there what was in
    /// its memory. It is given on as it came; 0 without a list.
    pub list_octet: u8,
    /// Other options.
    pub options: Vec<Opt>,
}

/// The most numbers in an `OPT_NAK_LIST`.
pub const MOST_LISTED: usize = 62;

impl Nak {
    /// All numbers that it names.
    pub fn sqns(&self) -> impl Iterator<Item = Sqn> + '_ {
        core::iter::once(self.sqn).chain(self.also.iter().copied())
    }
}

/// ACK of PGMCC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The highest number that came.
    pub highest: Sqn,
    /// Which of the 32 up to it came; the lowest bit is `highest`.
    pub bitmap: u32,
    /// Its options.
    pub options: Vec<Opt>,
}

/// An option of what is not data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opt {
    /// `OPT_JOIN`: the oldest that who joins may ask for.
    Join(Sqn),
    /// `OPT_NAK_BO_IVL`: over how many microseconds NAKs are spread, once poll `sqn` was seen; 0: at once.
    NakBackoff {
        /// The interval.
        interval_us: u32,
        /// The poll.
        sqn: Sqn,
    },
    /// `OPT_NAK_BO_RNG`.
    NakBackoffRange {
        /// The longest interval.
        max_us: u32,
        /// The shortest.
        min_us: u32,
    },
    /// `OPT_REDIRECT`: who repairs.
    Redirect(IpAddr),
    /// `OPT_PARITY_PRM`.
    ParityPrm {
        /// Parity can be asked for.
        on_demand: bool,
        /// It is sent unasked.
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
        /// Why, 6 bits; 0: not said.
        code: u8,
    },
    /// `OPT_CR`.
    Cr(Cr),
    /// `OPT_CRQST`: which fields of [`Cr`] are asked for, its bits.
    Crqst(u8),
    /// `OPT_PGMCC_FEEDBACK`.
    Feedback(Feedback),
    /// Ours: who of these has all up to a number, and is to say so.
    Ask(Ask),
    /// Ours: who says it has all up to a number, verified.
    Has(Has),
}

/// `OPT_CR`: how much is lost, in parts of 65,536.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cr {
    /// Which fields are there: 4 a network element's link, 2 its path, 1 a receiver's.
    pub fields: u8,
    /// The newest data that was seen.
    pub reference: Sqn,
    /// Of a network element: the worst link.
    pub link: u16,
    /// The worst path.
    pub path: u16,
    /// Of a receiver.
    pub receiver: u16,
    /// Who says it.
    pub node: IpAddr,
}

/// A receiver's number, unique in a session: ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// Ours: the source asks who has everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Up to this number.
    pub upto: Sqn,
    /// Who is to say so, at most [`MOST_ASKED`].
    pub nodes: Vec<NodeId>,
}

/// The most receivers that one [`Ask`] names.
pub const MOST_ASKED: usize = 60;

/// Ours: a receiver has everything, and its owner has verified it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Has {
    /// Up to this number.
    pub upto: Sqn,
    /// Who.
    pub node: NodeId,
}

/// Ours: the TSDU that comes before the segments of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Which of the session's objects, from 0.
    pub number: u32,
    /// How many numbers behind this message its first segment has, at least 1.
    pub behind: u16,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Octets of the object.
    pub size: u64,
    /// What its sender vouches for.
    pub vouched: Option<Vouched>,
    /// What it is called, at most [`MOST_NAME`] octets.
    pub name: Vec<u8>,
}

/// The most octets of a name.
pub const MOST_NAME: usize = 1024;
/// Octets of a TSDU that are not a name's, at least.
pub const NAME_OVERHEAD: usize = 64;

impl Message {
    /// Its data, if it is ODATA or RDATA.
    pub fn data(&self) -> Option<&Data> {
        match &self.body {
            Body::Data(data) => Some(data),
            _ => None,
        }
    }

    /// Whether it goes from a source towards receivers.
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
    /// Of segments of an object.
    pub(crate) fn segments(object: ObjectId, (geometry, segments): (&Geometry, Run)) -> Self {
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
