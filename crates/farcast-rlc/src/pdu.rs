//! PDUs that two entities send each other: data PDUs, status reports, resets (TS 25.322 section 9.2).

use core::fmt;

use smallvec::SmallVec;

/// Number of sequence numbers, which have 12 bits (section 9.2.2.3).
pub const MODULUS: u16 = 4096;

/// The number of a data PDU, modulo [`MODULUS`]. The order of two numbers depends on the number from which one counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceNumber(u16);

impl SequenceNumber {
    /// Creates the number, modulo [`MODULUS`].
    pub const fn new(number: u16) -> Self {
        Self(number % MODULUS)
    }

    /// Returns the number, below [`MODULUS`].
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the number that is `steps` behind this one.
    #[must_use]
    pub const fn plus(self, steps: u16) -> Self {
        Self((self.0 + steps % MODULUS) % MODULUS)
    }

    /// Returns the number that is `steps` before this one.
    #[must_use]
    pub const fn minus(self, steps: u16) -> Self {
        self.plus(MODULUS - steps % MODULUS)
    }

    /// Returns the steps from `base` to this number: 0 to 4095.
    pub const fn since(self, base: Self) -> u16 {
        (self.0 + MODULUS - base.0) % MODULUS
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A PDU. `P` is a piece of an SDU: octets, or in simulation a reference to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pdu<P> {
    /// Data.
    Data(DataPdu<P>),
    /// A status report.
    Status(Status),
    /// A request to start anew, or its acknowledgment.
    Reset(Reset),
}

/// An Acknowledged Mode Data (AMD) PDU (section 9.2.1.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPdu<P> {
    /// Sequence number of the PDU.
    pub sn: SequenceNumber,
    /// The polling bit: a status report is asked for.
    pub poll: bool,
    /// Indication that an SDU ended in the PDU before, which had no room for its indicator.
    pub ended_before: Option<EndedBefore>,
    /// Parts of SDUs in the PDU, in order.
    pub segments: SmallVec<[Segment<P>; 2]>,
    /// Indication of the end of the last segment, if an SDU ends there and no octet follows it.
    pub last_end: LastEnd,
    /// A status report in place of padding.
    pub piggybacked: Option<Status>,
}

/// A part of an SDU in a data PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment<P> {
    /// The octets.
    pub data: P,
    /// `true` if the SDU ends with this segment, and this PDU indicates it.
    pub ends: bool,
}

/// Length indicators about the PDU before (section 9.2.2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndedBefore {
    /// 0: an SDU filled the PDU before to its last octet.
    Exactly,
    /// 0x7FFB, with indicators of 15 bits only: an SDU ended one octet before the end of that PDU.
    OneOctetShort,
}

/// Indication that an SDU ends with the last octet of data of a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LastEnd {
    /// A length indicator.
    #[default]
    Indicator,
    /// The special value `10` of the header extension, where it is configured: the last octet of the PDU ends an SDU.
    HeaderExtension,
}

/// A request to start anew, or its acknowledgment (section 9.2.1.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reset {
    /// `true` for an acknowledgment.
    pub acknowledges: bool,
    /// The reset sequence number: one bit that toggles with each reset procedure.
    pub rsn: bool,
    /// The hyper frame number indicator: 20 bits.
    pub hfni: u32,
}

/// A status report (section 9.2.1.5): super fields, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The super fields, without `NO_MORE`.
    pub fields: SmallVec<[SuperField; 2]>,
}

/// A super field (SUFI, section 9.2.2.11).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SuperField {
    /// WINDOW: the receiver sets the transmitter's window; 0 to 4095 PDUs.
    Window(u16),
    /// ACK: every PDU before this number has arrived, except those that the same report names as missing.
    Ack(SequenceNumber),
    /// LIST: 1 to 15 runs of missing PDUs: the first of each, and the number of PDUs that follow it (0 to 15).
    List(SmallVec<[(SequenceNumber, u8); 4]>),
    /// BITMAP: arrived and missing PDUs, from a number on.
    Bitmap(StatusBitmap),
    /// RLIST: missing PDUs, as distances in code words.
    RelativeList(RelativeList),
    /// MRW: request to move the receiving window.
    MoveWindow(MoveWindow),
    /// `MRW_ACK`: the window has been moved.
    MoveWindowAck {
        /// `SN_ACK`: the receiver's VR(R) now.
        sn: SequenceNumber,
        /// N: the `N_LENGTH` of the request if `sn` is its last number, else 0; 0 to 15.
        n: u8,
    },
    /// POLL, from Release 7 on: request for a status report up to a number, without data.
    Poll(SequenceNumber),
}

/// The BITMAP super field: 1 to 16 octets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusBitmap {
    /// FSN: the number of the first bit.
    pub first: SequenceNumber,
    /// A bit for each number, the most significant bit of the first octet first: 1 if the PDU has arrived.
    pub octets: SmallVec<[u8; 16]>,
}

/// The RLIST super field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelativeList {
    /// FSN: the first missing PDU.
    pub first: SequenceNumber,
    /// The code words, four bits each: 0 to 15 of them.
    pub words: SmallVec<[u8; 16]>,
}

/// The MRW super field (section 9.2.2.11.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveWindow {
    /// `SN_MRW`: for each discarded SDU that is listed, the PDU with the indicator of its end. The window moves to the
    /// last of these numbers. 1 to 15 of them.
    pub sns: SmallVec<[SequenceNumber; 1]>,
    /// `true` if LENGTH is 0: one number, and the SDU reaches beyond the transmitter's window.
    pub beyond_window: bool,
    /// `N_LENGTH`: number, from 1, of the length indicator that ends the last discarded SDU, in the PDU with the last
    /// sequence number; 0 if that SDU ended in the PDU before. 0 to 15.
    pub n_length: u8,
}

impl<P> Pdu<P> {
    /// Returns the same PDU with its pieces converted by `each`.
    pub fn map<Q>(self, mut each: impl FnMut(P) -> Q) -> Pdu<Q> {
        match self {
            Self::Data(pdu) => {
                let DataPdu { sn, poll, ended_before, segments, last_end, piggybacked } = pdu;
                let segment = |Segment { data, ends }| Segment { data: each(data), ends };
                let segments = segments.into_iter().map(segment).collect();
                Pdu::Data(DataPdu { sn, poll, ended_before, segments, last_end, piggybacked })
            }
            Self::Status(status) => Pdu::Status(status),
            Self::Reset(reset) => Pdu::Reset(reset),
        }
    }
}

impl StatusBitmap {
    /// Returns the number of PDUs that the bitmap reports on: 8 for each octet, at most 128.
    pub fn len(&self) -> u16 {
        self.octets.len().min(16) as u16 * 8
    }

    /// Returns `true` if the bitmap has no octets, which no report has.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Returns `true` if the bitmap reports the PDU `offset` behind the first as missing.
    pub fn is_missing(&self, offset: u16) -> bool {
        let octet = self.octets.get(usize::from(offset / 8));
        octet.is_some_and(|octet| octet & (0x80 >> (offset % 8)) == 0)
    }
}
