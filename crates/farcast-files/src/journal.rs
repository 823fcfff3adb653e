//! The journal: a record of the segments that are safely on disk, so that a receiver can continue after a restart.
//!
//! All integers are big-endian. The fields are: magic "FCJ2", product id (32 bytes), product size (u64), segment length
//! (u32), stage, segments held and files finished (each a map), BLAKE3 of all that precedes (32 bytes).
//!
//! The stage is a u8: 0 spooling, 1 placed, 2 an object without a manifest, 3 such an object with a description that
//! its sender vouches for. For 2 and 3 the length of the final name (u8) and the name follow. For 3 the description
//! follows the name: BLAKE3 (32 bytes), mode (u16), modification time (i64, ns since 1970).
//!
//! A map is its length in bits (u32), its form (u8), and the shorter one of these:
//!
//! | form | what follows |
//! |---|---|
//! | 0 | `ceil(bits / 64)` words u64, bit 0 least significant |
//! | 1 | a number of bytes (u32), and in these for each run of ones how many zeros precede it and how long it is, as LEB128 |

use farcast_core::{Bitmap, Run};
use thiserror::Error;

use crate::manifest::MAX_ENTRIES;
use crate::{ProductId, Vouched};

const MAGIC: [u8; 4] = *b"FCJ2";
const DIGEST_LEN: usize = 32;

/// Record of a reception that survives the end of the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Journal {
    /// Id of the product.
    pub id: ProductId,
    /// Size of the product in bytes.
    pub product_size: u64,
    /// Length of a segment in bytes, at least one.
    pub segment_len: u32,
    /// Place of the received bytes.
    pub stage: Stage,
    /// Segments that are safely on disk; the length of the map is the number of segments.
    pub held: Bitmap,
    /// Files that have their final name, counted among the files of the manifest; empty before the manifest is known.
    pub finished: Bitmap,
}

/// Place where the received bytes are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// In the spool file, until the head is complete.
    Spooling,
    /// In partial files, one for each file of the manifest.
    Placed,
    /// In the spool file, which becomes the delivered file: the object has no manifest.
    Plain {
        /// Final name, at most 255 bytes.
        name: Vec<u8>,
        /// Description that the sender vouches for, if there is one.
        vouched: Option<Vouched>,
    },
}

/// Reason for which a journal is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal does not begin with its magic.
    #[error("the journal does not begin with the magic FCJ2")]
    BadMagic,
    /// The journal ends inside a field.
    #[error("the journal ends inside a field")]
    Truncated,
    /// Bytes follow the last field.
    #[error("bytes follow the last field of the journal")]
    TrailingBytes,
    /// The digest does not match: the journal was torn or altered.
    #[error("the digest of the journal does not match its content")]
    BadDigest,
    /// A field has a value that makes no sense.
    #[error("the journal's {field} makes no sense")]
    BadField {
        /// Name of the field.
        field: &'static str,
    },
}

impl Journal {
    /// Encodes the journal.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.product_size.to_be_bytes());
        out.extend_from_slice(&self.segment_len.to_be_bytes());
        match &self.stage {
            Stage::Spooling => out.push(0),
            Stage::Placed => out.push(1),
            Stage::Plain { name, vouched } => {
                out.extend_from_slice(&[if vouched.is_some() { 3 } else { 2 }, name.len() as u8]);
                out.extend_from_slice(name);
                if let Some(Vouched { digest, mode, mtime_ns }) = vouched {
                    out.extend_from_slice(digest);
                    out.extend_from_slice(&mode.to_be_bytes());
                    out.extend_from_slice(&mtime_ns.to_be_bytes());
                }
            }
        }
        for map in [&self.held, &self.finished] {
            encode_map(map, &mut out);
        }
        let digest = blake3::hash(&out);
        out.extend_from_slice(digest.as_bytes());
        out
    }

    /// Decodes a journal. Memory is allocated only after the lengths are checked; a map takes a bit for each segment or
    /// file.
    ///
    /// # Errors
    /// One variant of [`JournalError`] for each thing that can be wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, JournalError> {
        let (body, digest) = bytes.split_last_chunk::<DIGEST_LEN>().ok_or(JournalError::Truncated)?;
        if !body.starts_with(&MAGIC) {
            return Err(JournalError::BadMagic);
        }
        if blake3::hash(body) != *digest {
            return Err(JournalError::BadDigest);
        }
        let rest = &mut &body[MAGIC.len()..];
        let id = ProductId::from_bytes(array(rest)?);
        let product_size = u64::from_be_bytes(array(rest)?);
        let segment_len = u32::from_be_bytes(array(rest)?);
        let stage = match array(rest)? {
            [0] => Stage::Spooling,
            [1] => Stage::Placed,
            [kind @ (2 | 3)] => {
                let [len] = array(rest)?;
                let name = take(rest, len.into())?.to_vec();
                Stage::Plain { name, vouched: if kind == 3 { Some(vouched(rest)?) } else { None } }
            }
            [_] => return Err(JournalError::BadField { field: "stage" }),
        };
        let segments = product_size.checked_div(u64::from(segment_len));
        let segments = segments.map(|_| product_size.div_ceil(u64::from(segment_len)));
        let held = decode_map(rest, "map of segments", |len| segments == Some(len.into()))?;
        let finished = decode_map(rest, "map of files", |len| len as usize <= MAX_ENTRIES)?;
        if !rest.is_empty() {
            return Err(JournalError::TrailingBytes);
        }
        Ok(Self { id, product_size, segment_len, stage, held, finished })
    }
}

fn vouched(rest: &mut &[u8]) -> Result<Vouched, JournalError> {
    let (digest, mode) = (array(rest)?, u16::from_be_bytes(array(rest)?));
    if mode > 0o777 {
        return Err(JournalError::BadField { field: "mode" });
    }
    Ok(Vouched { digest, mode, mtime_ns: i64::from_be_bytes(array(rest)?) })
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], JournalError> {
    let (taken, after) = rest.split_first_chunk::<N>().ok_or(JournalError::Truncated)?;
    *rest = after;
    Ok(*taken)
}

/// Form of a map: words u64, big-endian.
const WORDS: u8 = 0;
/// Form of a map: lengths of runs.
const RUNS: u8 = 1;

fn encode_map(map: &Bitmap, out: &mut Vec<u8>) {
    out.extend_from_slice(&map.len().to_be_bytes());
    // Runs are preceded by their length in bytes; the number of words follows from the map's length.
    if let Some(runs) = encode_runs(map, (map.words().len() * 8).saturating_sub(4)) {
        out.push(RUNS);
        out.extend_from_slice(&(runs.len() as u32).to_be_bytes());
        out.extend_from_slice(&runs);
    } else {
        out.push(WORDS);
        out.extend(map.words().iter().flat_map(|word| word.to_be_bytes()));
    }
}

/// Encodes `map` as runs; `None` if these take `limit` bytes or more.
fn encode_runs(map: &Bitmap, limit: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    for run in map.iter_runs() {
        for mut number in [run.first() - at, run.count()] {
            while number > 0x7f {
                out.push(number as u8 | 0x80);
                number >>= 7;
            }
            out.push(number as u8);
        }
        at = run.end();
        if out.len() >= limit {
            return None;
        }
    }
    (out.len() < limit).then_some(out)
}

fn decode_map(
    rest: &mut &[u8],
    field: &'static str,
    fits: impl FnOnce(u32) -> bool,
) -> Result<Bitmap, JournalError> {
    let bad = JournalError::BadField { field };
    let whole = *rest;
    let len = u32::from_be_bytes(array(rest)?);
    if !fits(len) {
        return Err(bad);
    }
    let map = match array(rest)? {
        [WORDS] => {
            let bytes = take(rest, len.div_ceil(u64::BITS) as usize * 8)?;
            let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word)).collect();
            Bitmap::from_words(words, len).ok_or(bad)?
        }
        [RUNS] => {
            let bytes = u32::from_be_bytes(array(rest)?) as usize;
            decode_runs(take(rest, bytes)?, len).ok_or(bad)?
        }
        [_] => return Err(bad),
    };
    // Each map has exactly one valid encoding.
    let mut again = Vec::new();
    encode_map(&map, &mut again);
    if again == whole[..whole.len() - rest.len()] { Ok(map) } else { Err(bad) }
}

fn decode_runs(mut bytes: &[u8], len: u32) -> Option<Bitmap> {
    let mut map = Bitmap::new(len);
    let mut at = 0_u32;
    while !bytes.is_empty() {
        let first = at.checked_add(number(&mut bytes)?)?;
        let run = Run::new(first, number(&mut bytes)?).filter(|run| run.end() <= len)?;
        map.insert_run(run);
        at = run.end();
    }
    Some(map)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(number).ok();
        }
    }
    None
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], JournalError> {
    let (taken, after) = rest.split_at_checked(len).ok_or(JournalError::Truncated)?;
    *rest = after;
    Ok(taken)
}

#[cfg(test)]
mod tests;
