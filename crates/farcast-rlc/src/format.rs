//! How large PDUs are, and what fits into them.
//!
//! A data PDU has a fixed size: a header of two octets, length indicators, data, and padding or a piggybacked status
//! report. What follows from that, whether octets are at hand or not, is decided here once, for the entities and for
//! the codec ([`wire`](crate::wire)).
//!
//! # Where SDUs end (TS 25.322 section 9.2.2.8)
//!
//! A length indicator gives the place behind the last octet of an SDU, counted from the end of the header: where two
//! SDUs end in one PDU, the second counts the octets of both. It takes 1 octet in PDUs of up to 126 octets, else 2, and
//! that is why the end of an SDU has more than one form. With `room` octets left and `len` octets of the SDU to go
//! ([`Format::place`]):
//!
//! | `len` | what the PDU carries | how the end is said |
//! |---|---|---|
//! | above `room` | `room` octets | not at all: it does not end here |
//! | `room` | all | indicator 0, the first of the next PDU; or the header extension `10` |
//! | `room` - 1, indicators of 2 octets | all, and an octet of padding that nothing announces | 0x7FFB, the first of the next PDU |
//! | less | its indicator and all | that indicator |
//!
//! So data never make way for the indicator of their own end. With indicators of one octet, an SDU that ends one octet
//! before the end has its indicator in that octet. With indicators of two octets, an SDU that ends three octets before
//! the end has its indicator in two of them, and the third is padding that nothing announces: the next SDU does not
//! begin there, and a status report does not fit.
//!
//! What is left behind the last end is said to be padding (0x7F, 0x7FFF) or a piggybacked status report (0x7E, 0x7FFE)
//! by a last indicator; what is left behind that may be nothing.

use farcast_core::Payload;

use crate::pdu::{DataPdu, EndedBefore};

/// Octets of the header of a data PDU without length indicators.
pub const HEADER_LEN: u16 = 2;
/// The largest data PDU with length indicators of one octet (section 9.2.2.8).
pub const MAX_LEN_WITH_SHORT_INDICATORS: u16 = 126;
/// Ends of SDUs that a PDU may speak of where discards are signalled: `N_LENGTH` counts to 15 (section 9.2.2.8).
pub const MAX_ENDS: usize = 15;
/// The smallest data PDU: its size is also that of the reports, and one that names a missing PDU in any form must fit.
pub const MIN_PDU_LEN: u16 = 6;
/// The largest data PDU: 1503 octets behind the header (section 9.2.2.9).
pub const MAX_PDU_LEN: u16 = 1505;

/// The format of the PDUs of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    /// The size of a PDU in octets, [`MIN_PDU_LEN`] to [`MAX_PDU_LEN`]: 42 for the bearers of 320 bits of data.
    pub pdu_octets: u16,
    /// Whether the header extension has its special value `10`: the last octet of the PDU ends an SDU.
    pub header_extension: bool,
}

/// Why a [`Format`] is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The size of a PDU is out of range.
    #[error("pdu_octets is {0}: it must be 6 to 1505")]
    PduOctets(u16),
}

/// How the rest of an SDU fits into what is left of a PDU: the [module](self) has the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    /// The PDU takes `octets` of it and is full; the SDU goes on in the next one.
    Part {
        /// As many as there is room for.
        octets: u16,
    },
    /// It fills the PDU: the next one begins with [`EndedBefore::Exactly`], unless the header extension says so.
    Exactly,
    /// It leaves one octet, too few for an indicator: the PDU is full, and the next one begins with
    /// [`EndedBefore::OneOctetShort`].
    OneOctetShort,
    /// It fits with its indicator.
    Ends {
        /// Octets that are left for the next SDU, or for a piggybacked status report.
        left: u16,
    },
}

impl Format {
    /// The format of PDUs of `pdu_octets` without the special header extension.
    pub const fn new(pdu_octets: u16) -> Self {
        Self { pdu_octets, header_extension: false }
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`FormatError::PduOctets`] if a PDU is smaller than [`MIN_PDU_LEN`] or larger than [`MAX_PDU_LEN`].
    pub const fn check(self) -> Result<(), FormatError> {
        match self.pdu_octets {
            MIN_PDU_LEN..=MAX_PDU_LEN => Ok(()),
            octets => Err(FormatError::PduOctets(octets)),
        }
    }

    /// Octets of a length indicator: 1 or 2.
    pub const fn indicator_octets(self) -> u16 {
        if self.pdu_octets > MAX_LEN_WITH_SHORT_INDICATORS { 2 } else { 1 }
    }

    /// Octets of a new PDU that are left for its first segment.
    pub const fn room(self, ended_before: Option<EndedBefore>) -> u16 {
        let indicators = if ended_before.is_some() { self.indicator_octets() } else { 0 };
        self.pdu_octets.saturating_sub(HEADER_LEN + indicators)
    }

    /// How the last `len` octets of an SDU fit where `room` octets are left.
    pub fn place(self, room: u16, len: usize) -> Placement {
        let Some(beside) = usize::from(room).checked_sub(len) else {
            return Placement::Part { octets: room };
        };
        match (beside as u16, self.indicator_octets()) {
            (0, _) => Placement::Exactly,
            (1, 2) => Placement::OneOctetShort,
            // No SDU may begin in the one octet that is left (section 9.2.2.8).
            (3, 2) => Placement::Ends { left: 0 },
            (beside, indicator) => Placement::Ends { left: beside - indicator },
        }
    }

    /// The bits that a piggybacked status report may have where `left` octets are left behind the last SDU.
    pub fn piggyback_bits(self, left: u16) -> usize {
        usize::from(left.saturating_sub(self.indicator_octets())) * 8
    }

    /// The bits that a status report of its own may have.
    pub fn status_bits(self) -> usize {
        usize::from(self.pdu_octets) * 8
    }
}

impl<P> DataPdu<P> {
    /// How many of its length indicators say that an SDU ends: the number that `N_LENGTH` counts to.
    pub fn indicated_ends(&self) -> usize {
        let ends = self.segments.iter().filter(|segment| segment.ends).count();
        let by_extension = usize::from(self.last_end == crate::pdu::LastEnd::HeaderExtension).min(ends);
        usize::from(self.ended_before.is_some()) + ends - by_extension
    }

    /// Whether more can follow what it carries: nothing, or an SDU that this PDU says has ended.
    fn is_open(&self) -> bool {
        self.segments.last().is_none_or(|last| last.ends)
    }
}

impl<P: Payload> DataPdu<P> {
    /// Octets of the SDUs that it carries.
    pub fn data_octets(&self) -> usize {
        self.segments.iter().map(|segment| segment.data.len()).sum()
    }

    /// Octets that are left behind the last SDU that ends in it, for another SDU or a piggybacked status report; 0 if
    /// an SDU goes on in the next PDU. A report that it already has is not counted.
    pub fn left(&self, format: Format) -> u16 {
        if !self.is_open() {
            return 0;
        }
        let indicators = self.indicated_ends() * usize::from(format.indicator_octets());
        let used = usize::from(HEADER_LEN) + indicators + self.data_octets();
        let left = usize::from(format.pdu_octets).saturating_sub(used) as u16;
        // The one octet that nothing announces as padding.
        if left == 1 && format.indicator_octets() == 2 { 0 } else { left }
    }

    /// Whether its last octet of data is padding if the next PDU begins with [`EndedBefore::OneOctetShort`]: octets
    /// that were decoded have it, a typed PDU that was not encoded does not.
    pub fn is_full(&self, format: Format) -> bool {
        let indicators = self.indicated_ends() * usize::from(format.indicator_octets());
        usize::from(HEADER_LEN) + indicators + self.data_octets() >= usize::from(format.pdu_octets)
    }
}

#[cfg(test)]
mod tests;
