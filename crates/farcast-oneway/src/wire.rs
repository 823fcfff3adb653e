//! Encoding of messages as bytes. All numbers are big-endian.
//!
//! Symbols, 12 octets before the symbol itself:
//!
//! | octets | field |
//! |---|---|
//! | 1 | `0xF1` for source, `0xF2` for parity |
//! | 1 | number of the round, from 1; 255 from the 255th on |
//! | 2 | number of the symbol; source and parity are each counted from 0 |
//! | 4 | session number |
//! | 4 | number of the block |
//!
//! A description, 64 octets and the name:
//!
//! | octets | field |
//! |---|---|
//! | 1 | `0xF0` |
//! | 1 | version: 2 |
//! | 1 | flags: 1, replace an existing object; 2, nothing follows |
//! | 1 | octets of the name |
//! | 4 | session number |
//! | 8 | octets of the object |
//! | 2 | octets of a segment |
//! | 2 | segments of the largest block |
//! | 2 | parity symbols of a block |
//! | 2 | 0 |
//! | 4 | rate, kbit/s |
//! | 4 | time until nothing follows, ms; `0xFFFFFFFF` for 49 days or more |
//! | 32 | digest that commits to the object |
//! | rest | name |
//!
//! Withdrawn segments, 12 octets, 9 for each file, and a text:
//!
//! | octets | field |
//! |---|---|
//! | 1 | `0xF3` |
//! | 1 | number of files that follow, from 1 to 32 |
//! | 1 | octets of the text |
//! | 1 | 0 |
//! | 4 | session number |
//! | 4 | number of withdrawn files so far |
//! | 4 | of each file: number of its first segment, counted through the object |
//! | 4 | number of its segments, from 1 |
//! | 1 | 1, the first of these is gone only in part; 2, the last is |
//! | rest | reason for the first of these files, with its name, in UTF-8 |

use alloc::string::String;
use alloc::vec::Vec;

use farcast_core::Run;
use farcast_delivery::{Gone, Packet};

use crate::message::{Description, Kind, MAX_GONE, Message, Symbols, Withdrawn};

/// Octets of the header before a symbol.
pub const HEADER_LEN: usize = 12;
/// Octets of a description without the name.
pub const DESCRIPTION_LEN: usize = 64;

/// Octets of a withdrawn file.
pub const GONE_LEN: usize = 9;

const DESCRIPTION: u8 = 0xF0;
const SOURCE: u8 = 0xF1;
const PARITY: u8 = 0xF2;
const WITHDRAWN: u8 = 0xF3;
const VERSION: u8 = 2;
const OVERWRITE: u8 = 1;
const OVER: u8 = 2;
/// Flags of a withdrawn file whose first segment, or whose last, is gone only in part.
const FIRST_IN_PART: u8 = 1;
const LAST_IN_PART: u8 = 2;

/// Reason for which a datagram cannot be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The datagram ends before its header does, or has no symbol behind it.
    #[error("a datagram of {0} octets is too short")]
    Short(usize),
    /// The datagram is longer than its length field says.
    #[error("octets behind the end of a description")]
    Long,
    /// The kind is unknown.
    #[error("no message of kind {0:#04x}")]
    Kind(u8),
    /// The version is another one.
    #[error("version {0}; this is version 2")]
    Version(u8),
    /// A field has an invalid value.
    #[error("a field that must be 0 is not, or one that must not be is")]
    Field,
}

/// Appends datagram `segment` of `message` to `out`. Of a symbol, only the header is appended.
pub fn encode(message: &Message, segment: u32, out: &mut Vec<u8>) {
    match message {
        Message::Description(description) => put_description(description, out),
        Message::Symbols(symbols) => {
            out.push(match symbols.kind {
                Kind::Source => SOURCE,
                Kind::Parity => PARITY,
            });
            out.push(symbols.round);
            out.extend(((symbols.run.first() + segment) as u16).to_be_bytes());
            out.extend(symbols.session.to_be_bytes());
            out.extend(symbols.block.to_be_bytes());
        }
        Message::Withdrawn(withdrawn) => put_withdrawn(withdrawn, out),
    }
}

fn put_description(description: &Description, out: &mut Vec<u8>) {
    let flags = if description.overwrite { OVERWRITE } else { 0 } | if description.over { OVER } else { 0 };
    out.extend([DESCRIPTION, VERSION, flags, description.name.len() as u8]);
    out.extend(description.session.to_be_bytes());
    out.extend(description.size.to_be_bytes());
    out.extend(description.segment.to_be_bytes());
    out.extend(description.block.to_be_bytes());
    out.extend(description.parity.to_be_bytes());
    out.extend([0, 0]);
    out.extend(description.rate_kbps.to_be_bytes());
    out.extend(description.left_ms.to_be_bytes());
    out.extend(description.id);
    out.extend(&description.name);
}

fn put_withdrawn(withdrawn: &Withdrawn, out: &mut Vec<u8>) {
    let Withdrawn { session, files, gone, why } = withdrawn;
    out.extend([WITHDRAWN, gone.len() as u8, why.len() as u8, 0]);
    out.extend(session.to_be_bytes());
    out.extend(files.to_be_bytes());
    for Gone { whole, touched } in gone {
        out.extend(touched.first().to_be_bytes());
        out.extend(touched.count().to_be_bytes());
        out.push(match whole {
            None if touched.count() == 1 => FIRST_IN_PART,
            None => FIRST_IN_PART | LAST_IN_PART,
            Some(whole) => {
                let first = if whole.first() > touched.first() { FIRST_IN_PART } else { 0 };
                first | if whole.end() < touched.end() { LAST_IN_PART } else { 0 }
            }
        });
    }
    out.extend(why.as_bytes());
}

/// Decodes one datagram, which may come from anybody.
///
/// # Errors
/// Returns the reason if the datagram is malformed.
pub fn decode(datagram: &[u8]) -> Result<Packet<Message>, DecodeError> {
    let short = DecodeError::Short(datagram.len());
    match *datagram.first().ok_or(short)? {
        DESCRIPTION => Ok(Packet { message: Message::Description(description(datagram)?), payload: 0..0 }),
        SOURCE => symbol(datagram, Kind::Source),
        PARITY => symbol(datagram, Kind::Parity),
        WITHDRAWN => Ok(Packet { message: Message::Withdrawn(withdrawn(datagram)?), payload: 0..0 }),
        other => Err(DecodeError::Kind(other)),
    }
}

fn symbol(datagram: &[u8], kind: Kind) -> Result<Packet<Message>, DecodeError> {
    let header: &[u8; HEADER_LEN] = datagram.first_chunk().ok_or(DecodeError::Short(datagram.len()))?;
    let [_, round, high, low, s0, s1, s2, s3, b0, b1, b2, b3] = *header;
    let payload = HEADER_LEN..datagram.len();
    // The payload of a UDP datagram always fits.
    let len = u16::try_from(payload.len()).map_err(|_| DecodeError::Long)?;
    if len == 0 {
        return Err(DecodeError::Short(datagram.len()));
    }
    if round == 0 {
        return Err(DecodeError::Field);
    }
    let symbols = Symbols {
        session: u32::from_be_bytes([s0, s1, s2, s3]),
        round,
        kind,
        block: u32::from_be_bytes([b0, b1, b2, b3]),
        run: Run::one(u16::from_be_bytes([high, low]).into()),
        len,
        last: len,
    };
    Ok(Packet { message: Message::Symbols(symbols), payload })
}

fn withdrawn(datagram: &[u8]) -> Result<Withdrawn, DecodeError> {
    let short = DecodeError::Short(datagram.len());
    let (head, rest) = datagram.split_first_chunk::<HEADER_LEN>().ok_or(short)?;
    let [_, count, why_len, zero, s0, s1, s2, s3, f0, f1, f2, f3] = *head;
    let (gone, why) = rest.split_at_checked(usize::from(count) * GONE_LEN).ok_or(short)?;
    if why.len() < usize::from(why_len) {
        return Err(short);
    }
    if why.len() > usize::from(why_len) {
        return Err(DecodeError::Long);
    }
    if zero != 0 || !(1..=MAX_GONE).contains(&usize::from(count)) {
        return Err(DecodeError::Field);
    }
    let gone: Option<Vec<Gone>> = gone.as_chunks().0.iter().map(gone_from).collect();
    Ok(Withdrawn {
        session: u32::from_be_bytes([s0, s1, s2, s3]),
        files: u32::from_be_bytes([f0, f1, f2, f3]),
        gone: gone.ok_or(DecodeError::Field)?,
        why: String::from_utf8(why.to_vec()).map_err(|_| DecodeError::Field)?,
    })
}

fn gone_from(octets: &[u8; GONE_LEN]) -> Option<Gone> {
    let [f0, f1, f2, f3, n0, n1, n2, n3, flags] = *octets;
    let touched = Run::new(u32::from_be_bytes([f0, f1, f2, f3]), u32::from_be_bytes([n0, n1, n2, n3]))?;
    let (first, last) = (u32::from(flags & FIRST_IN_PART), u32::from(flags & LAST_IN_PART) / 2);
    let is_known = flags & !(FIRST_IN_PART | LAST_IN_PART) == 0;
    // A single segment is the first.
    let is_valid = is_known && !(touched.count() == 1 && last > 0);
    let count = touched.count().checked_sub(first + last).filter(|_| is_valid)?;
    Some(Gone { whole: Run::new(touched.first() + first, count), touched })
}

fn description(datagram: &[u8]) -> Result<Description, DecodeError> {
    let (fixed, name) =
        datagram.split_first_chunk::<DESCRIPTION_LEN>().ok_or(DecodeError::Short(datagram.len()))?;
    let [_, version, flags, name_len, rest @ ..] = *fixed;
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    if name.len() < usize::from(name_len) {
        return Err(DecodeError::Short(datagram.len()));
    }
    if name.len() > usize::from(name_len) {
        return Err(DecodeError::Long);
    }
    let octet = |at: usize| rest.get(at).copied().unwrap_or(0);
    let short = |at: usize| u16::from_be_bytes([octet(at), octet(at + 1)]);
    let long = |at: usize| (u64::from(short(at)) << 16) | u64::from(short(at + 2));
    let (session, size, rate, left) = (long(0), (long(4) << 32) | long(8), long(20), long(24));
    let id = rest.last_chunk().copied().unwrap_or_default();
    let (segment, block, parity) = (short(12), short(14), short(16));
    if flags & !(OVERWRITE | OVER) != 0 || short(18) != 0 || segment == 0 || block == 0 || size == 0 {
        return Err(DecodeError::Field);
    }
    Ok(Description {
        session: session as u32,
        id,
        size,
        segment,
        block,
        parity,
        rate_kbps: rate as u32,
        left_ms: left as u32,
        overwrite: flags & OVERWRITE != 0,
        over: flags & OVER != 0,
        name: name.to_vec(),
    })
}

#[cfg(test)]
mod tests;
