//! The journal: which segments are safely on disk, for a receiver that starts again.
//!
//! All integers are big-endian: magic "FCJ1", product id (32 bytes), product size (u64), segment length (u32), stage
//! (u8: 0 spooling, 1 placed), segments held and files finished (each a length u32 in bits, then
//! `ceil(bits / 64)` words u64, bit 0 least significant), BLAKE3 of all that precedes (32 bytes).

use farcast_core::Bitmap;
use thiserror::Error;

use crate::ProductId;

const MAGIC: [u8; 4] = *b"FCJ1";
const DIGEST_LEN: usize = 32;

/// What a receiver remembers of a reception.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Journal {
    /// Which product.
    pub id: ProductId,
    /// The bytes of the product.
    pub product_size: u64,
    /// The bytes of a segment, at least one.
    pub segment_len: u32,
    /// Whether the bytes are in partial files; before the head is known they are in the spool.
    pub placed: bool,
    /// The segments that are safely on disk; its length is the number of segments.
    pub held: Bitmap,
    /// The files that have their final name, counted among the files of the manifest; empty before it is known.
    pub finished: Bitmap,
}

/// Why a journal is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It does not begin with its magic.
    #[error("the journal does not begin with the magic FCJ1")]
    BadMagic,
    /// It ends inside a field.
    #[error("the journal ends inside a field")]
    Truncated,
    /// Bytes follow the last field.
    #[error("bytes follow the last field of the journal")]
    TrailingBytes,
    /// Its digest differs: it was torn or altered.
    #[error("the digest of the journal does not match its content")]
    BadDigest,
    /// A field has a value that makes no sense.
    #[error("the journal's {field} makes no sense")]
    BadField {
        /// Which field.
        field: &'static str,
    },
}

impl Journal {
    /// The journal in bytes.
    pub fn encode(&self) -> Vec<u8> {
        let words = self.held.words().len() + self.finished.words().len();
        let mut out = Vec::with_capacity(4 + 32 + 8 + 4 + 1 + 8 + words * 8 + DIGEST_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.product_size.to_be_bytes());
        out.extend_from_slice(&self.segment_len.to_be_bytes());
        out.push(u8::from(self.placed));
        for map in [&self.held, &self.finished] {
            out.extend_from_slice(&map.len().to_be_bytes());
            out.extend(map.words().iter().flat_map(|word| word.to_be_bytes()));
        }
        let digest = blake3::hash(&out);
        out.extend_from_slice(digest.as_bytes());
        out
    }

    /// Decodes a journal; memory grows with `bytes`, never with what a field claims.
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
        let placed = match array(rest)? {
            [0] => false,
            [1] => true,
            [_] => return Err(JournalError::BadField { field: "stage" }),
        };
        let held = bitmap(rest, "map of segments")?;
        let finished = bitmap(rest, "map of files")?;
        if !rest.is_empty() {
            return Err(JournalError::TrailingBytes);
        }
        if segment_len == 0 || product_size.div_ceil(u64::from(segment_len)) != u64::from(held.len()) {
            return Err(JournalError::BadField { field: "number of segments" });
        }
        Ok(Self { id, product_size, segment_len, placed, held, finished })
    }
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], JournalError> {
    let (taken, after) = rest.split_first_chunk::<N>().ok_or(JournalError::Truncated)?;
    *rest = after;
    Ok(*taken)
}

fn bitmap(rest: &mut &[u8], field: &'static str) -> Result<Bitmap, JournalError> {
    let len = u32::from_be_bytes(array(rest)?);
    let bytes = len.div_ceil(u64::BITS) as usize * 8;
    let (taken, after) = rest.split_at_checked(bytes).ok_or(JournalError::Truncated)?;
    *rest = after;
    let words = taken.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word)).collect();
    Bitmap::from_words(words, len).ok_or(JournalError::BadField { field })
}

#[cfg(test)]
mod tests;
