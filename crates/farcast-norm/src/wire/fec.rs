//! FEC payload ids and transmission information (RFC 5510 §4, §5; RFC 5445 §4).

use alloc::vec::Vec;

use farcast_delivery::octets::{Reader, Sink};

use super::DecodeError;
use super::extension::FTI;
use crate::message::{Fec, Fti, Point, Symbol};

/// Returns the code of an FEC Encoding ID; for 2 with m = `field_bits`.
pub(super) fn from_id(id: u8, field_bits: u8) -> Result<Fec, DecodeError> {
    match id {
        5 => Ok(Fec::ReedSolomon8),
        2 if (2..=16).contains(&field_bits) => Ok(Fec::ReedSolomon(field_bits)),
        2 => Err(DecodeError::FieldSize(field_bits)),
        129 => Ok(Fec::SmallBlock),
        other => Err(DecodeError::Fec(other)),
    }
}

/// Returns the code, and the transmission information if there is any, of an object whose message has `id` and perhaps
/// the extension `fti`.
pub(super) fn with_fti(
    id: u8,
    fti: Option<&[u8]>,
    field_bits: u8,
) -> Result<(Fec, Option<Fti>), DecodeError> {
    let Some(octets) = fti else { return Ok((from_id(id, field_bits)?, None)) };
    let wrong = DecodeError::ExtensionLength(FTI);
    let mut reader = Reader::new(octets.get(2..).ok_or(wrong)?);
    let size = u64::from(reader.u16()?) << 32 | u64::from(reader.u32()?);
    let expected = if id == 5 { 12 } else { 16 };
    // The extension of an unknown code has an unknown length.
    let plain = from_id(id, 8)?;
    if octets.len() != expected {
        return Err(wrong);
    }
    let (instance, group, mut fec) = (0, 1, plain);
    let mut fti = Fti { size, segment_size: 0, max_block_len: 0, last: 0, instance, group };
    match plain {
        Fec::ReedSolomon8 => {
            fti.segment_size = reader.u16()?;
            (fti.max_block_len, fti.last) = (reader.u8()?.into(), reader.u8()?.into());
            return Ok((fec, Some(fti)));
        }
        Fec::ReedSolomon(_) => (fec, fti.group) = (from_id(id, reader.u8()?)?, reader.u8()?),
        Fec::SmallBlock => fti.instance = reader.u16()?,
    }
    fti.segment_size = reader.u16()?;
    (fti.max_block_len, fti.last) = (reader.u16()?, reader.u16()?);
    Ok((fec, Some(fti)))
}

pub(super) fn put_fti<S: Sink>(fec: Fec, fti: Option<&Fti>, out: &mut S) {
    let Some(fti) = fti else { return };
    out.put(&[FTI, if fec == Fec::ReedSolomon8 { 3 } else { 4 }]);
    out.put(&fti.size.to_be_bytes()[2..]);
    match fec {
        Fec::ReedSolomon8 => {
            out.u16(fti.segment_size);
            // A number that does not fit eight bits is not valid in this code; a configuration does not have it.
            out.put(&[fti.max_block_len as u8, fti.last as u8]);
            return;
        }
        Fec::ReedSolomon(m) => out.put(&[m, fti.group]),
        Fec::SmallBlock => out.u16(fti.instance),
    }
    out.u16(fti.segment_size);
    out.u16(fti.max_block_len);
    out.u16(fti.last);
}

pub(super) fn symbol(fec: Fec, reader: &mut Reader<'_>) -> Result<Symbol, DecodeError> {
    let word = reader.u32()?;
    if fec == Fec::SmallBlock {
        let (block_len, symbol) = (Some(reader.u16()?), reader.u16()?);
        return Ok(Symbol { block: word, block_len, symbol });
    }
    let bits = fec.symbol_bits();
    Ok(Symbol { block: word >> bits, block_len: None, symbol: (word & ((1 << bits) - 1)) as u16 })
}

pub(super) fn put_symbol<S: Sink>(fec: Fec, symbol: &Symbol, out: &mut S) {
    if fec == Fec::SmallBlock {
        out.u32(symbol.block);
        out.u16(symbol.block_len.unwrap_or(0));
        out.u16(symbol.symbol);
    } else {
        let bits = fec.symbol_bits();
        out.u32(symbol.block << bits | u32::from(symbol.symbol) & ((1 << bits) - 1));
    }
}

/// Decodes an item of a repair request, or the point of a flush's acknowledgement.
pub(super) fn point(reader: &mut Reader<'_>, field_bits: u8) -> Result<Point, DecodeError> {
    let fec = from_id(reader.u8()?, field_bits)?;
    reader.u8()?;
    let object = reader.u16()?;
    Ok(Point { fec, object, symbol: symbol(fec, reader)? })
}

pub(super) fn put_point<S: Sink>(point: &Point, out: &mut S) {
    out.put(&[point.fec.id(), 0]);
    out.u16(point.object);
    put_symbol(point.fec, &point.symbol, out);
}

/// Decodes all integers of `octets`, each of `N` octets.
pub(super) fn list<const N: usize, T>(
    octets: &[u8],
    read: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, DecodeError> {
    match octets.as_chunks::<N>() {
        (entries, []) => Ok(entries.iter().map(|&entry| read(entry)).collect()),
        _ => Err(DecodeError::ListLength(octets.len())),
    }
}
