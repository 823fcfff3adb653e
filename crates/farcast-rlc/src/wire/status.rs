//! Status reports: super fields in groups of four bits (TS 25.322 section 9.2.2.11).

use smallvec::SmallVec;

use super::nibbles::{NibbleReader, NibbleWriter};
use super::{DecodeError, EncodeError};
use crate::pdu::{MODULUS, MoveWindow, RelativeList, SequenceNumber, Status, StatusBitmap, SuperField};

const NO_MORE: u32 = 0;
const WINDOW: u32 = 1;
const ACK: u32 = 2;
const LIST: u32 = 3;
const BITMAP: u32 = 4;
const RLIST: u32 = 5;
const MRW: u32 = 6;
const MRW_ACK: u32 = 7;
const POLL: u32 = 8;

/// Checks that `status` can be written into `room` octets.
pub(super) fn check(status: &Status, room: usize) -> Result<(), EncodeError> {
    let behind = status.fields.split_last().map_or(&[][..], |(_, before)| before);
    if behind.iter().any(|field| matches!(field, SuperField::Ack(_))) {
        return Err(EncodeError::AckNotLast);
    }
    status.fields.iter().try_for_each(check_field)?;
    let needed = status.octets();
    if needed > room { Err(EncodeError::TooLong { needed, pdu: room }) } else { Ok(()) }
}

fn check_field(field: &SuperField) -> Result<(), EncodeError> {
    let (name, valid) = match field {
        SuperField::Ack(_) | SuperField::Poll(_) => return Ok(()),
        SuperField::Window(size) => ("WINDOW", *size < MODULUS),
        SuperField::List(pairs) => {
            ("LIST", matches!(pairs.len(), 1..=15) && pairs.iter().all(|&(_, more)| more < 16))
        }
        SuperField::Bitmap(bitmap) => ("BITMAP", matches!(bitmap.octets.len(), 1..=16)),
        SuperField::RelativeList(list) => {
            ("RLIST", list.words.len() < 16 && list.words.iter().all(|&word| word < 16) && list.is_valid())
        }
        SuperField::MoveWindow(MoveWindow { sns, beyond_window, n_length }) => {
            let most = if *beyond_window { 1 } else { 15 };
            ("MRW", (1..=most).contains(&sns.len()) && *n_length < 16)
        }
        SuperField::MoveWindowAck { n, .. } => ("MRW_ACK", *n < 16),
    };
    if valid { Ok(()) } else { Err(EncodeError::SuperField(name)) }
}

/// Writes a report that has been checked over `out`, which is zero. The first group is the PDU type, which is 0 for a
/// report of its own and for a piggybacked one. Groups behind the fields are `NO_MORE`, which is 0, and padding.
pub(super) fn encode(status: &Status, out: &mut [u8]) {
    let mut out = NibbleWriter::new(out);
    out.put(0u32, 1);
    for field in &status.fields {
        put_field(field, &mut out);
    }
}

fn put_field(field: &SuperField, out: &mut NibbleWriter<'_>) {
    match field {
        SuperField::Window(size) => put_number(out, WINDOW, *size),
        SuperField::Ack(sn) => put_number(out, ACK, sn.get()),
        SuperField::Poll(sn) => put_number(out, POLL, sn.get()),
        SuperField::List(pairs) => {
            put_length(out, LIST, pairs.len());
            pairs.iter().for_each(|&(first, more)| {
                out.put(first.get(), 3);
                out.put(more, 1);
            });
        }
        SuperField::Bitmap(StatusBitmap { first, octets }) => {
            put_length(out, BITMAP, octets.len() - 1);
            out.put(first.get(), 3);
            octets.iter().for_each(|&octet| out.put(octet, 2));
        }
        SuperField::RelativeList(RelativeList { first, words }) => {
            put_length(out, RLIST, words.len());
            out.put(first.get(), 3);
            words.iter().for_each(|&word| out.put(word, 1));
        }
        SuperField::MoveWindow(MoveWindow { sns, beyond_window, n_length }) => {
            put_length(out, MRW, if *beyond_window { 0 } else { sns.len() });
            sns.iter().for_each(|sn| out.put(sn.get(), 3));
            out.put(*n_length, 1);
        }
        SuperField::MoveWindowAck { sn, n } => {
            put_length(out, MRW_ACK, usize::from(*n));
            out.put(sn.get(), 3);
        }
    }
}

/// Writes a type and a number of 12 bits.
fn put_number(out: &mut NibbleWriter<'_>, kind: u32, number: u16) {
    out.put(kind, 1);
    out.put(number, 3);
}

/// Writes a type and a number of 4 bits.
fn put_length(out: &mut NibbleWriter<'_>, kind: u32, length: usize) {
    out.put(kind, 1);
    out.put(length as u32, 1);
}

/// Reads the super fields of a report whose first four bits have been checked: up to an ACK, a `NO_MORE`, or the end.
pub(super) fn decode(octets: &[u8]) -> Result<Status, DecodeError> {
    let mut octets = NibbleReader::new(octets, 1);
    let mut status = Status::default();
    while !octets.is_at_end() {
        let kind = take(&mut octets, 1)?;
        if kind == NO_MORE {
            break;
        }
        status.fields.push(take_field(kind, &mut octets)?);
        if kind == ACK {
            break;
        }
    }
    Ok(status)
}

fn take_field(kind: u32, from: &mut NibbleReader<'_>) -> Result<SuperField, DecodeError> {
    Ok(match kind {
        WINDOW => SuperField::Window(take(from, 3)? as u16),
        ACK => SuperField::Ack(take_sn(from)?),
        LIST => {
            let pairs: SmallVec<_> = (0..take(from, 1)?)
                .map(|_| Ok((take_sn(from)?, take(from, 1)? as u8)))
                .collect::<Result<_, _>>()?;
            if pairs.is_empty() {
                return Err(DecodeError::EmptyList);
            }
            SuperField::List(pairs)
        }
        BITMAP => {
            let (length, first) = (take(from, 1)? + 1, take_sn(from)?);
            SuperField::Bitmap(StatusBitmap { first, octets: take_octets(from, length, 2)? })
        }
        RLIST => {
            let (length, first) = (take(from, 1)?, take_sn(from)?);
            let list = RelativeList { first, words: take_octets(from, length, 1)? };
            if !list.is_valid() {
                return Err(DecodeError::CodeWords);
            }
            SuperField::RelativeList(list)
        }
        MRW => {
            let length = take(from, 1)?;
            let sns = (0..length.max(1)).map(|_| take_sn(from)).collect::<Result<_, _>>()?;
            let n_length = take(from, 1)? as u8;
            SuperField::MoveWindow(MoveWindow { sns, beyond_window: length == 0, n_length })
        }
        MRW_ACK => {
            let n = take(from, 1)? as u8;
            SuperField::MoveWindowAck { sn: take_sn(from)?, n }
        }
        POLL => SuperField::Poll(take_sn(from)?),
        other => return Err(DecodeError::SuperFieldType(other as u8)),
    })
}

fn take(from: &mut NibbleReader<'_>, groups: usize) -> Result<u32, DecodeError> {
    from.take(groups).ok_or(DecodeError::SuperFieldBeyondEnd)
}

fn take_sn(from: &mut NibbleReader<'_>) -> Result<SequenceNumber, DecodeError> {
    take(from, 3).map(|number| SequenceNumber::new(number as u16))
}

fn take_octets(
    from: &mut NibbleReader<'_>,
    count: u32,
    groups: usize,
) -> Result<SmallVec<[u8; 16]>, DecodeError> {
    (0..count).map(|_| take(from, groups).map(|octet| octet as u8)).collect()
}
