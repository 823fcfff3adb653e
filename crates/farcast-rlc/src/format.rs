//! Sizes of PDUs, and the content that fits into them.
//!
//! A data PDU has a fixed size: a header of two octets, length indicators, data, and padding or a piggybacked status
//! report. This module works out the consequences once, for the entities and for the codec ([`wire`](crate::wire)),
//! with or without octets at hand.
//!
//! # Ends of SDUs (TS 25.322 section 9.2.2.8)
//!
//! A length indicator gives the place behind the last octet of an SDU. It counts from the end of the header: if two
//! SDUs end in one PDU, the second counts the octets of both. An indicator takes 1 octet in PDUs of up to 126 octets,
//! else 2. Therefore the end of an SDU has more than one form, for `room` octets left and `len` octets of the SDU to go
//! ([`Format::place`]):
//!
//! | `len` | content of the PDU | indication of the end |
//! |---|---|---|
//! | above `room` | `room` octets | none: the SDU does not end here |
//! | `room` | all | indicator 0, first of the next PDU; or the header extension `10` |
//! | `room` - 1, indicators of 2 octets | all, and an unannounced octet of padding | 0x7FFB, first of the next PDU |
//! | less | its indicator and all | that indicator |
//!
//! So data never make way for the indicator of their own end. With indicators of one octet, an SDU that ends one octet
//! before the end has its indicator in that octet. With indicators of two octets, an SDU that ends three octets before
//! the end has its indicator in two of them, and the third is padding that nothing announces: the next SDU does not
//! begin there, and a status report does not fit.
//!
//! A last indicator marks the octets behind the last end as padding (0x7F, 0x7FFF) or as a piggybacked status report
//! (0x7E, 0x7FFE). There may be no octets behind this indicator.

use farcast_core::Payload;

use crate::pdu::{DataPdu, EndedBefore};

/// Octets of the header of a data PDU without length indicators.
pub const HEADER_LEN: u16 = 2;
/// The largest data PDU with length indicators of one octet (section 9.2.2.8).
pub const MAX_LEN_WITH_SHORT_INDICATORS: u16 = 126;
/// Limit of the ends of SDUs that a PDU may indicate if discards are signalled: `N_LENGTH` counts to 15 (section
/// 9.2.2.8).
pub const MAX_ENDS: usize = 15;
/// The smallest data PDU. Reports have the same size, and a report that names a missing PDU in any form must fit.
pub const MIN_PDU_LEN: u16 = 6;
/// The largest data PDU: 1503 octets behind the header (section 9.2.2.9).
pub const MAX_PDU_LEN: u16 = 1505;

/// The format of the PDUs of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    /// The size of a PDU in octets, [`MIN_PDU_LEN`] to [`MAX_PDU_LEN`]: 42 for the bearers of 320 bits of data.
    pub pdu_octets: u16,
    /// Use of the special value `10` of the header extension: the last octet of the PDU ends an SDU.
    pub header_extension: bool,
}

/// Reason for which a [`Format`] is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The size of a PDU is out of range.
    #[error("pdu_octets is {0}: it must be 6 to 1505")]
    PduOctets(u16),
}

/// Placement of the rest of an SDU in the room that is left in a PDU: the [module](self) has the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    /// The PDU takes `octets` of the SDU and is full; the SDU goes on in the next one.
    Part {
        /// All octets for which there is room.
        octets: u16,
    },
    /// The rest fills the PDU. The next PDU begins with [`EndedBefore::Exactly`], unless the header extension marks the
    /// end.
    Exactly,
    /// The rest leaves one octet, too few for an indicator. The PDU is full, and the next one begins with
    /// [`EndedBefore::OneOctetShort`].
    OneOctetShort,
    /// The rest fits with its indicator.
    Ends {
        /// Octets that are left for the next SDU, or for a piggybacked status report.
        left: u16,
    },
}

impl Format {
    /// Creates the format of PDUs of `pdu_octets` without the special header extension.
    pub const fn new(pdu_octets: u16) -> Self {
        Self { pdu_octets, header_extension: false }
    }

    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`FormatError::PduOctets`] if a PDU is smaller than [`MIN_PDU_LEN`] or larger than [`MAX_PDU_LEN`].
    pub const fn check(self) -> Result<(), FormatError> {
        match self.pdu_octets {
            MIN_PDU_LEN..=MAX_PDU_LEN => Ok(()),
            octets => Err(FormatError::PduOctets(octets)),
        }
    }

    /// Returns the octets of a length indicator: 1 or 2.
    pub const fn indicator_octets(self) -> u16 {
        if self.pdu_octets > MAX_LEN_WITH_SHORT_INDICATORS { 2 } else { 1 }
    }

    /// Returns the octets of a new PDU that are left for its first segment.
    pub const fn room(self, ended_before: Option<EndedBefore>) -> u16 {
        let indicators = if ended_before.is_some() { self.indicator_octets() } else { 0 };
        self.pdu_octets.saturating_sub(HEADER_LEN + indicators)
    }

    /// Returns the placement of the last `len` octets of an SDU if `room` octets are left.
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

    /// Returns the bits that a piggybacked status report may have if `left` octets are left behind the last SDU.
    pub fn piggyback_bits(self, left: u16) -> usize {
        usize::from(left.saturating_sub(self.indicator_octets())) * 8
    }

    /// Returns the bits that a status report in a PDU of its own may have.
    pub fn status_bits(self) -> usize {
        usize::from(self.pdu_octets) * 8
    }
}

impl<P> DataPdu<P> {
    /// Returns the number of its length indicators that mark the end of an SDU: the number that `N_LENGTH` counts to.
    pub fn indicated_ends(&self) -> usize {
        let ends = self.segments.iter().filter(|segment| segment.ends).count();
        let by_extension = usize::from(self.last_end == crate::pdu::LastEnd::HeaderExtension).min(ends);
        usize::from(self.ended_before.is_some()) + ends - by_extension
    }

    /// Returns `true` if more data can follow: the PDU has none, or it indicates the end of its last SDU.
    fn is_open(&self) -> bool {
        self.segments.last().is_none_or(|last| last.ends)
    }
}

impl<P: Payload> DataPdu<P> {
    /// Returns the octets of the SDUs in the PDU.
    pub fn data_octets(&self) -> usize {
        self.segments.iter().map(|segment| segment.data.len()).sum()
    }

    /// Returns the octets that are left behind the last SDU that ends in the PDU, for another SDU or a piggybacked
    /// status report; 0 if an SDU goes on in the next PDU. A report that the PDU already has is not counted.
    pub fn left(&self, format: Format) -> u16 {
        if !self.is_open() {
            return 0;
        }
        let indicators = self.indicated_ends() * usize::from(format.indicator_octets());
        let used = usize::from(HEADER_LEN) + indicators + self.data_octets();
        let left = usize::from(format.pdu_octets).saturating_sub(used) as u16;
        // A single octet is padding that nothing announces.
        if left == 1 && format.indicator_octets() == 2 { 0 } else { left }
    }

    /// Returns `true` if the last octet of data is padding in case the next PDU begins with
    /// [`EndedBefore::OneOctetShort`]. A decoded PDU has this octet, a typed PDU that was not encoded does not.
    pub fn is_full(&self, format: Format) -> bool {
        let indicators = self.indicated_ends() * usize::from(format.indicator_octets());
        usize::from(HEADER_LEN) + indicators + self.data_octets() >= usize::from(format.pdu_octets)
    }
}

#[cfg(test)]
mod tests;
