//! Encoding of PDUs as octets (TS 25.322 section 9.2).
//!
//! [`encode`] writes a PDU of the configured size into the caller's buffer, padded with zeros; control PDUs are padded
//! to that size as well (sections 9.2.1.5 and 9.2.1.7, fixed size). [`decode`] reads one, and its segments are parts of
//! the input. Neither allocates, except for reports longer than they commonly are.
//!
//! # Refusals
//!
//! A PDU with a reserved or invalid value is dropped as a whole (section 10.3), and [`DecodeError`] has a variant for
//! each reason. Padding may have any value and is not looked at. Where the standard leaves something open:
//!
//! - A length indicator must be above the one before: an SDU has an octet at least (section 9.2.1.1), so none can end
//!   where another ended.
//! - A report needs no `NO_MORE` where its fields fill the space to the end.
//! - The code words of an RLIST must make numbers of 1 to 4 words that do not lead round to the first PDU.
//!
//! The last octet of a PDU with indicators of 15 bits is padding if the next PDU says so
//! ([`EndedBefore::OneOctetShort`](crate::pdu::EndedBefore::OneOctetShort)). A decoded PDU has this octet at the end of
//! its last segment, and [`DataPdu::is_full`](crate::pdu::DataPdu::is_full) is then `true`.

mod data;
mod error;
mod nibbles;
mod status;

pub use error::{DecodeError, EncodeError};

use crate::format::Format;
use crate::pdu::{Pdu, Reset};
use nibbles::{NibbleReader, NibbleWriter};

/// The PDU types of control PDUs (section 9.2.2.2).
const STATUS: u32 = 0;
const RESET: u32 = 1;
const RESET_ACK: u32 = 2;
/// Octets of a reset PDU without padding.
const RESET_LEN: usize = 4;

/// Returns the octets of a PDU: the configured size, whatever the content. Here and below, `format` has passed its
/// [`check`](Format::check).
pub fn wire_len(format: Format) -> usize {
    usize::from(format.pdu_octets)
}

/// Writes `pdu` to the front of `out`. Returns its length in octets.
///
/// # Errors
/// The reason for which the PDU has no encoding; the content of `out` is then of no use.
pub fn encode<P: AsRef<[u8]>>(pdu: &Pdu<P>, format: Format, out: &mut [u8]) -> Result<usize, EncodeError> {
    let len = wire_len(format);
    let buffer = out.len();
    let out = out.get_mut(..len).ok_or(EncodeError::Buffer { pdu: len, buffer })?;
    out.fill(0);
    match pdu {
        Pdu::Data(pdu) => data::encode(pdu, format, out)?,
        Pdu::Status(report) => {
            status::check(report, len)?;
            status::encode(report, out);
        }
        Pdu::Reset(reset) => put_reset(*reset, out)?,
    }
    Ok(len)
}

/// Reads a PDU.
///
/// # Errors
/// The reason for which the octets are no PDU.
pub fn decode(octets: &[u8], format: Format) -> Result<Pdu<&[u8]>, DecodeError> {
    let first = *octets.first().ok_or(DecodeError::Empty)?;
    if first & 0x80 != 0 {
        return data::decode(octets, format).map(Pdu::Data);
    }
    if octets.len() > wire_len(format) {
        return Err(DecodeError::ControlLength { got: octets.len(), most: format.pdu_octets });
    }
    match u32::from(first >> 4) {
        STATUS => status::decode(octets).map(Pdu::Status),
        kind @ (RESET | RESET_ACK) => take_reset(kind == RESET_ACK, octets).map(Pdu::Reset),
        kind => Err(DecodeError::ControlType(kind as u8)),
    }
}

fn put_reset(reset: Reset, out: &mut [u8]) -> Result<(), EncodeError> {
    if reset.hfni >> 20 != 0 {
        return Err(EncodeError::HyperFrameNumber(reset.hfni));
    }
    if out.len() < RESET_LEN {
        return Err(EncodeError::TooLong { needed: RESET_LEN, pdu: out.len() });
    }
    let mut out = NibbleWriter::new(out);
    out.put(if reset.acknowledges { RESET_ACK } else { RESET }, 1);
    // RSN is the first of four bits, R1 the others.
    out.put(u32::from(reset.rsn) << 3, 1);
    out.put(reset.hfni, 5);
    Ok(())
}

fn take_reset(acknowledges: bool, octets: &[u8]) -> Result<Reset, DecodeError> {
    let mut fields = NibbleReader::new(octets, 1);
    let (Some(flags), Some(hfni)) = (fields.take(1), fields.take(5)) else {
        return Err(DecodeError::ResetLength(octets.len()));
    };
    match flags & 7 {
        0 => Ok(Reset { acknowledges, rsn: flags & 8 != 0, hfni }),
        reserved => Err(DecodeError::ResetReserved(reserved as u8)),
    }
}

#[cfg(test)]
mod tests;
