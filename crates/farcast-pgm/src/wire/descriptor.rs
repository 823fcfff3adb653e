//! Wire format of a file's description, in a TSDU of its own.
//!
//! ```text
//! | number (4) | behind (2) | segment size (2) | size (8) | mode (2) | name length (2) |
//! | digest (32) | modification time (8) |      only where mode is neither 0xFFFF nor 0xFFFE
//! | name |
//! ```
//!
//! Of an object that is withdrawn, mode has 0x8000 added, or is 0xFFFE in place of 0xFFFF.

use farcast_delivery::Vouched;

use super::DecodeError;
use farcast_delivery::octets::{Counter, Reader, Sink};

use crate::message::{Descriptor, MOST_NAME};

/// Mode field of a descriptor whose sender vouches for nothing.
const NOTHING: u16 = 0xFFFF;
/// Mode field of a withdrawn object whose sender vouches for nothing.
const NOTHING_WITHDRAWN: u16 = 0xFFFE;
/// Bit of the mode field of a withdrawn object.
const WITHDRAWN: u16 = 0x8000;

pub(super) fn write<S: Sink>(said: &Descriptor, out: &mut S) {
    out.u32(said.number);
    out.u16(said.behind);
    out.u16(said.segment_size);
    out.put(&said.size.to_be_bytes());
    out.u16(match (said.vouched, said.withdrawn) {
        (None, false) => NOTHING,
        (None, true) => NOTHING_WITHDRAWN,
        (Some(vouched), false) => vouched.mode,
        (Some(vouched), true) => vouched.mode | WITHDRAWN,
    });
    out.u16(said.name.len() as u16);
    if let Some(vouched) = &said.vouched {
        out.put(&vouched.digest);
        out.put(&vouched.mtime_ns.to_be_bytes());
    }
    out.put(&said.name);
}

/// Returns the octets of the encoded descriptor.
pub(crate) fn len(said: &Descriptor) -> u16 {
    let mut counter = Counter(0);
    write(said, &mut counter);
    counter.0 as u16
}

/// Reads a descriptor, which is the rest of a datagram.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Descriptor, DecodeError> {
    let wrong = DecodeError::Descriptor;
    let (number, behind, segment_size) = (reader.u32()?, reader.u16()?, reader.u16()?);
    let size = u64::from_be_bytes(reader.array()?);
    let (mode, len) = (reader.u16()?, usize::from(reader.u16()?));
    let withdrawn = mode != NOTHING && mode & WITHDRAWN != 0;
    let vouched = match if withdrawn { mode & !WITHDRAWN } else { mode } {
        _ if [NOTHING, NOTHING_WITHDRAWN].contains(&mode) => None,
        mode @ 0..=0o777 => {
            Some(Vouched { digest: reader.array()?, mode, mtime_ns: i64::from_be_bytes(reader.array()?) })
        }
        _ => return Err(wrong),
    };
    let name = reader.take(len)?;
    if behind == 0 || segment_size == 0 || len > MOST_NAME || !reader.rest().is_empty() {
        return Err(wrong);
    }
    Ok(Descriptor { number, behind, segment_size, size, vouched, withdrawn, name: name.into() })
}
