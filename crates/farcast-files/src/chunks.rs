//! Content-defined chunks of a file. An older version of the file has most of them too, even if their bytes have moved.
//!
//! Chunk boundaries depend on the bytes around them alone (`FastCDC`, W. Xia and others, "The design of fast
//! content-defined chunking for data deduplication based storage systems", IEEE TPDS 31(9), 2020). The sender lists the
//! chunks of a file; the receiver lists the chunks of its own file of the same name. Chunks that are in both lists need
//! not be sent.

use fastcdc::v2020::{Normalization, cut, select_masks};

/// Size in bytes of the shortest file that gets a list; a comparison would save little of a shorter one.
pub(crate) const LEAST_SIZE: u64 = 256 << 10;
/// Approximate number of chunks in a list above which longer chunks are chosen.
const ENOUGH: u64 = 1 << 16;
/// Valid average lengths of chunks, as powers of two.
const EXPONENTS: core::ops::RangeInclusive<u8> = 16..=22;
/// Ratio of the longest chunk to the average, and of the average to the shortest one; only the last chunk of a file may
/// be shorter.
const SPREAD: u32 = 4;

/// A chunk of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Chunk {
    /// Length in bytes.
    pub len: u32,
    /// First eight bytes of the BLAKE3 digest of its content. These can collide, so the file's own digest is checked
    /// afterwards.
    pub digest: [u8; 8],
}

/// The chunks that make up a file, in order; empty where there is no list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chunks {
    /// Average length of the chunks, as a power of two; 0 without a list.
    exponent: u8,
    list: Box<[Chunk]>,
}

impl Chunks {
    /// Creates the list of a file of `size` bytes, made with chunks of 2^`exponent` bytes on average; `None` if the
    /// lengths do not fit that.
    pub fn new(exponent: u8, list: Box<[Chunk]>, size: u64) -> Option<Self> {
        let average = 1 << u32::from(exponent).min(31);
        let (end, others) = list.split_last()?;
        let sound = |least: u32, chunk: &Chunk| chunk.len >= least && chunk.len <= average * SPREAD;
        let sum: u64 = list.iter().map(|chunk| u64::from(chunk.len)).sum();
        let fits = EXPONENTS.contains(&exponent)
            && size >= LEAST_SIZE
            && sum == size
            && sound(1, end)
            && others.iter().all(|chunk| sound(average / SPREAD, chunk));
        fits.then_some(Self { exponent, list })
    }

    /// Returns the average length of the chunks, as a power of two; 0 without a list.
    pub fn exponent(&self) -> u8 {
        self.exponent
    }

    /// Returns the chunks in order.
    pub fn list(&self) -> &[Chunk] {
        &self.list
    }

    /// Returns `true` if there is no list.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Returns the average length of the chunks of a file of `size` bytes, as a power of two; `None` if the file is too
/// short for a list.
fn exponent_for(size: u64) -> Option<u8> {
    let (least, most) = (*EXPONENTS.start(), *EXPONENTS.end());
    let fitting = (least..most).find(|exponent| size >> exponent <= ENOUGH).unwrap_or(most);
    (size >= LEAST_SIZE).then_some(fitting)
}

/// Cutter of bytes into chunks; the bytes come in order.
#[derive(Debug)]
pub(crate) struct Chunker {
    average: usize,
    masks: [u64; 2],
    /// Bytes that are not cut yet.
    pending: Vec<u8>,
}

impl Chunker {
    /// Creates a chunker for chunks of 2^`exponent` bytes on average.
    pub(crate) fn new(exponent: u8) -> Self {
        let average = 1 << exponent;
        // Level 2 keeps most chunks near the average. Few then end at the largest length, which is no boundary of the
        // content.
        let (strict, loose) = select_masks(average, Normalization::Level2);
        Self { average, masks: [strict, loose], pending: Vec::new() }
    }

    fn next(&self, at: usize) -> usize {
        let [strict, loose] = self.masks;
        let (least, most) = (self.average / SPREAD as usize, self.average * SPREAD as usize);
        let rest = &self.pending[at..];
        let (_, len) = cut(rest, least, self.average, most, strict, loose, strict << 1, loose << 1);
        len.clamp(1, rest.len())
    }

    /// Adds the next `bytes`; `each` gets the chunks that are complete.
    pub(crate) fn update(&mut self, bytes: &[u8], mut each: impl FnMut(Chunk)) {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while self.pending.len() - at >= self.average * SPREAD as usize {
            let len = self.next(at);
            each(chunk(&self.pending[at..at + len]));
            at += len;
        }
        self.pending.drain(..at);
    }

    /// Ends the file; `each` gets the remaining chunks.
    pub(crate) fn finish(self, mut each: impl FnMut(Chunk)) {
        let mut at = 0;
        while at < self.pending.len() {
            let len = self.next(at);
            each(chunk(&self.pending[at..at + len]));
            at += len;
        }
    }
}

fn chunk(bytes: &[u8]) -> Chunk {
    let hash = blake3::hash(bytes);
    let digest = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    Chunk { len: bytes.len() as u32, digest }
}

/// Builder of the chunk list of a file whose size is known.
#[derive(Debug)]
pub(crate) struct Lister {
    size: u64,
    cutting: Option<(u8, Chunker)>,
    list: Vec<Chunk>,
}

impl Lister {
    /// Creates a lister for a file of `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        let cutting = exponent_for(size).map(|exponent| (exponent, Chunker::new(exponent)));
        Self { size, cutting, list: Vec::new() }
    }

    /// Adds the next `bytes` of the file.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some((_, chunker)) = &mut self.cutting {
            chunker.update(bytes, |chunk| self.list.push(chunk));
        }
    }

    /// Returns the list; empty if the file is too short for one.
    pub(crate) fn finish(mut self) -> Chunks {
        let Some((exponent, chunker)) = self.cutting else { return Chunks::default() };
        chunker.finish(|chunk| self.list.push(chunk));
        Chunks::new(exponent, self.list.into_boxed_slice(), self.size).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
