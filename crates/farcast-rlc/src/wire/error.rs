//! Reasons for which a PDU has no encoding, and for which octets are no PDU.

/// Reason for which a PDU has no encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The PDU does not fit the buffer.
    #[error("a PDU of {pdu} octets does not fit a buffer of {buffer}")]
    Buffer {
        /// Octets of the PDU.
        pdu: usize,
        /// Octets of the buffer.
        buffer: usize,
    },
    /// Header, data and piggybacked report, or the super fields, are longer than the PDU.
    #[error("it needs {needed} octets: a PDU has {pdu}")]
    TooLong {
        /// Octets that the content needs.
        needed: usize,
        /// Octets of the PDU.
        pdu: usize,
    },
    /// An SDU goes on in the next PDU although this one is not full.
    #[error("an SDU goes on in the next PDU: it must fill this one, but leaves {0} octets")]
    NotFull(usize),
    /// A segment has no octets.
    #[error("an empty segment: it must have an octet at least")]
    EmptySegment,
    /// A segment other than the last does not end its SDU.
    #[error("an SDU goes on within the PDU: only the last segment may have no end")]
    Order,
    /// The header extension cannot indicate the end of an SDU here: it is not configured, the last octet of the PDU
    /// ends no SDU, or the PDU has length indicators as well.
    #[error(
        "the header extension 10 may only be used where it is configured, by one segment that ends and fills the PDU"
    )]
    HeaderExtension,
    /// An SDU that ended one octet before the end of the PDU before: short indicators have no value for this.
    #[error("an SDU that ended one octet short: only length indicators of 15 bits can say so")]
    OneOctetShort,
    /// An ACK is not the last super field.
    #[error("a super field behind an ACK: it must be the last")]
    AckNotLast,
    /// A super field has too many parts, too few, or parts that are too large.
    #[error("a super field {0} that is out of its ranges")]
    SuperField(&'static str),
    /// The hyper frame number indicator is too large.
    #[error("a hyper frame number indicator of {0}: it must be below 1048576")]
    HyperFrameNumber(u32),
}

/// Reason for which octets are no PDU. A PDU with invalid or reserved values is dropped as a whole (TS 25.322 section
/// 10.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// There are no octets.
    #[error("a PDU without octets")]
    Empty,
    /// A data PDU does not have the size that is configured (section 11.3.4.10).
    #[error("a data PDU of {got} octets: it must have {expected}")]
    DataLength {
        /// Octets that arrived.
        got: usize,
        /// Octets of a PDU, as configured.
        expected: u16,
    },
    /// A control PDU is larger than the configured size.
    #[error("a control PDU of {got} octets: it may have {most}")]
    ControlLength {
        /// Octets that arrived.
        got: usize,
        /// Octets of a PDU, as configured.
        most: u16,
    },
    /// The PDU type is reserved.
    #[error("control PDU type {0}: it must be 0, 1 or 2")]
    ControlType(u8),
    /// The header extension type is reserved: 3, or 2 where that is not configured.
    #[error("header extension type {0} is reserved")]
    HeaderExtension(u8),
    /// The length indicators go on behind the end of the PDU.
    #[error("the length indicators go on behind the end of the PDU")]
    IndicatorsBeyondEnd,
    /// A length indicator is reserved in Acknowledged Mode.
    #[error("length indicator {0:#x} is reserved")]
    IndicatorReserved(u16),
    /// A length indicator points behind the end of the data.
    #[error("length indicator {value}: it leads behind the {data} octets of data")]
    IndicatorTooLarge {
        /// The indicator.
        value: u16,
        /// Octets behind the header.
        data: usize,
    },
    /// A length indicator is not above the one before.
    #[error("length indicator {value}: it must be above {previous}")]
    IndicatorOrder {
        /// The indicator.
        value: u16,
        /// End of the SDU before.
        previous: u16,
    },
    /// A length indicator about the PDU before does not come first.
    #[error("length indicator {0:#x} speaks of the PDU before: it must be the first")]
    IndicatorNotFirst(u16),
    /// A length indicator follows the one of the padding or of the piggybacked report.
    #[error("a length indicator behind that of padding or a piggybacked report")]
    IndicatorBehindPadding,
    /// The first four bits of a piggybacked status report are not 0.
    #[error("a piggybacked status report begins with {0:#x}: it must be 0")]
    PiggybackHeader(u8),
    /// A status report ends within a super field.
    #[error("a super field goes on behind the end of the status report")]
    SuperFieldBeyondEnd,
    /// A super field has a reserved type.
    #[error("super field type {0} is reserved")]
    SuperFieldType(u8),
    /// A LIST without runs.
    #[error("a LIST of length 0")]
    EmptyList,
    /// The code words of an RLIST make no numbers, or the numbers lead round to the first PDU.
    #[error("the code words of an RLIST make no list")]
    CodeWords,
    /// A reset PDU ends before its hyper frame number does.
    #[error("a reset PDU of {0} octets: it must have 4 at least")]
    ResetLength(usize),
    /// The reserved bits of a reset PDU are not 0.
    #[error("reserved bits {0:#05b} in a reset PDU: they must be 0")]
    ResetReserved(u8),
}
