//! Wire format of the data for which farcast vouches, behind the name in INFO.
//!
//! MDP has no header extensions, and the name in INFO is as long as the message. The vouched data follow the name
//! behind a zero octet, which ends the name for a program that opens a file under it. Their length and the mark
//! distinguish them from a name.
//!
//! ```text
//! | name | 0 | mark (4) | mode (2) | BLAKE3 of the content (32) | modification time, signed ns since 1970 (8) |
//! ```

use farcast_delivery::Vouched;
use farcast_delivery::octets::Sink;

const MARK: [u8; 5] = *b"\0fcst";
/// Octets of the vouched data.
pub const LEN: usize = MARK.len() + 2 + 32 + 8;

/// Returns the octets of INFO behind its header.
pub(crate) fn info_len(content: &[u8], vouched: Option<&Vouched>) -> usize {
    content.len() + vouched.map_or(0, |_| LEN)
}

pub(super) fn put_vouched<S: Sink>(vouched: Option<&Vouched>, out: &mut S) {
    let Some(Vouched { digest, mode, mtime_ns }) = vouched else { return };
    out.put(&MARK);
    out.u16(*mode);
    out.put(digest);
    out.put(&mtime_ns.to_be_bytes());
}

/// Divides `content` into the name and the vouched data. Vouched data that no file can have are part of the name.
pub(super) fn split(content: &[u8]) -> (&[u8], Option<Vouched>) {
    let found = content.split_last_chunk().and_then(|(name, said)| Some((name, Some(vouched(said)?))));
    found.unwrap_or((content, None))
}

fn vouched(said: &[u8; LEN]) -> Option<Vouched> {
    let (&mode, rest) = said.strip_prefix(&MARK)?.split_first_chunk::<2>()?;
    let (&digest, mtime) = rest.split_first_chunk::<32>()?;
    let mode = u16::from_be_bytes(mode);
    let mtime_ns = i64::from_be_bytes(mtime.try_into().ok()?);
    (mode <= 0o777).then_some(Vouched { digest, mode, mtime_ns })
}
