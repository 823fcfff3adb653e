//! Decoder of manifests; every field is checked before it is used.

use super::{
    Entry, EntryKind, MAGIC, MAX_COMPONENT_LEN, MAX_ENTRIES, MAX_MANIFEST_LEN, MAX_PATH_LEN, Manifest,
    ManifestError, PARTIAL_SUFFIX, PREFIX_LEN, PathProblem, STATE_DIR, compare_paths,
};
use crate::chunks::{Chunk, Chunks};
use crate::parts::{Grain, digest_of, part_count};

/// The encoded length of a chunk in bytes.
const CHUNK_LEN: usize = 12;
/// The additional length in bytes of a compressed file's entry.
pub(crate) const COMPRESSED_LEN: usize = 40;

impl Manifest {
    /// Decodes a manifest (without magic and length).
    ///
    /// Memory grows with the bytes that were read, never with the value of a field.
    ///
    /// # Errors
    /// One variant of [`ManifestError`] for each thing that can be wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_MANIFEST_LEN {
            return Err(ManifestError::TooLong { len: bytes.len() as u64 });
        }
        let mut reader = ManifestReader { bytes, offset: 0 };
        let count = u32::from_be_bytes(reader.array()?) as usize;
        if count > MAX_ENTRIES {
            return Err(ManifestError::TooManyEntries { count: count as u64 });
        }
        let mut manifest = Self { encoded_len: 4, ..Self::default() };
        for index in 0..count {
            manifest.push(reader.entry(index)?)?;
        }
        match bytes.len() - reader.offset {
            0 => Ok(manifest),
            count => Err(ManifestError::TrailingBytes { count }),
        }
    }

    /// Reads the length of the head in bytes from its first [`PREFIX_LEN`] bytes.
    ///
    /// # Errors
    /// [`ManifestError::BadMagic`], [`ManifestError::TooLong`].
    pub fn head_len_of(prefix: &[u8; PREFIX_LEN]) -> Result<u64, ManifestError> {
        let [m0, m1, m2, m3, l0, l1, l2, l3] = *prefix;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(ManifestError::BadMagic);
        }
        let len = u64::from(u32::from_be_bytes([l0, l1, l2, l3]));
        if len > MAX_MANIFEST_LEN as u64 {
            return Err(ManifestError::TooLong { len });
        }
        Ok(len + PREFIX_LEN as u64)
    }

    /// Appends `entry` after checking it and its order after the last entry.
    pub(super) fn push(&mut self, entry: Entry) -> Result<(), ManifestError> {
        let index = self.entries.len();
        if entry.mode > 0o777 {
            return Err(ManifestError::BadMode { entry: index, mode: entry.mode });
        }
        if let Err(problem) = check_path(&entry.path) {
            return Err(ManifestError::BadPath { entry: index, path: entry.path, problem });
        }
        if let Some(last) = self.entries.last() {
            check_neighbours(index, last, &entry)?;
        }
        if !entry.parts.is_empty() && !parts_fit(&entry) {
            return Err(ManifestError::BadParts { entry: index });
        }
        if !compression_fits(&entry) {
            return Err(ManifestError::BadCompression { entry: index });
        }
        let sum: u64 = entry.chunks.list().iter().map(|chunk| u64::from(chunk.len)).sum();
        let chunkable = matches!(entry.kind, EntryKind::File { .. });
        if !entry.chunks.is_empty() && (!chunkable || sum != entry.size()) {
            return Err(ManifestError::BadChunks { entry: index });
        }
        self.encoded_len += encoded_len(&entry);
        self.content_len = self.content_len.saturating_add(entry.stored());
        self.files_len = self.files_len.saturating_add(entry.size());
        // A file offset, which is signed, must reach every byte of the product. The sum of all file sizes must not
        // overflow either.
        if self.content_len.max(self.files_len)
            > i64::MAX.cast_unsigned() - (MAX_MANIFEST_LEN + PREFIX_LEN) as u64
        {
            return Err(ManifestError::SizeOverflow { entry: index });
        }
        self.entries.push(entry);
        Ok(())
    }
}

/// Returns the encoded length of `entry` in bytes.
pub(crate) fn encoded_len(entry: &Entry) -> usize {
    let chunks = if entry.chunks.is_empty() { 0 } else { 5 + CHUNK_LEN * entry.chunks.list().len() };
    let compressed = if entry.is_compressed() { COMPRESSED_LEN } else { 0 };
    13 + entry.path.len()
        + if entry.is_file() { 40 + compressed + 32 * entry.parts.len() + chunks } else { 0 }
}

/// Returns `true` if the values of the parts have the right number and merge to the digest of the stored content.
fn parts_fit(entry: &Entry) -> bool {
    Grain::of(entry.stored(), entry.parts.len()).is_some()
        && entry.is_file()
        && digest_of(&entry.parts) == entry.stored_digest()
}

/// Returns `true` unless a compressed file stores no bytes, or no fewer bytes than its content has.
fn compression_fits(entry: &Entry) -> bool {
    !entry.is_compressed() || (1..entry.size()).contains(&entry.stored())
}

fn check_neighbours(index: usize, last: &Entry, entry: &Entry) -> Result<(), ManifestError> {
    if last.path == entry.path {
        return Err(ManifestError::Duplicate { entry: index, path: entry.path.clone() });
    }
    if compare_paths(&last.path, &entry.path).is_gt() {
        return Err(ManifestError::OutOfOrder { entry: index });
    }
    // The order puts everything below a path directly behind it, so only the entry before can be a file above this one.
    let below = entry.path.strip_prefix(last.path.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'));
    if last.is_file() && below {
        return Err(ManifestError::BelowFile { entry: index, path: entry.path.clone() });
    }
    Ok(())
}

/// Checks that `path` may be used below the receiving directory.
pub(crate) fn check_path(path: &[u8]) -> Result<(), PathProblem> {
    match path {
        [] => return Err(PathProblem::Empty),
        [b'/', ..] => return Err(PathProblem::Absolute),
        _ if path.len() > MAX_PATH_LEN => return Err(PathProblem::TooLong),
        _ if path.contains(&0) => return Err(PathProblem::Nul),
        _ => {}
    }
    path.split(|byte| *byte == b'/').try_for_each(|component| match component {
        [] => Err(PathProblem::EmptyComponent),
        b"." | b".." => Err(PathProblem::Dots),
        _ if component.len() > MAX_COMPONENT_LEN => Err(PathProblem::ComponentTooLong),
        _ if component == STATE_DIR || component.ends_with(PARTIAL_SUFFIX) => Err(PathProblem::Reserved),
        _ => Ok(()),
    })
}

struct ManifestReader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> ManifestReader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], ManifestError> {
        let rest = &self.bytes[self.offset..];
        let taken = rest.get(..len).ok_or(ManifestError::Truncated { offset: self.offset })?;
        self.offset += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ManifestError> {
        let offset = self.offset;
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| ManifestError::Truncated { offset })
    }

    fn entry(&mut self, index: usize) -> Result<Entry, ManifestError> {
        let [kind] = self.array()?;
        if kind > 9 {
            return Err(ManifestError::UnknownKind { entry: index, kind });
        }
        let mode = u16::from_be_bytes(self.array()?);
        let mtime_ns = i64::from_be_bytes(self.array()?);
        let path_len = u16::from_be_bytes(self.array()?) as usize;
        let path = self.take(path_len)?;
        // Checked here as well as in `push`, so that a long path is refused before it is copied.
        if path_len > MAX_PATH_LEN {
            let path = path[..MAX_PATH_LEN].to_vec();
            return Err(ManifestError::BadPath { entry: index, path, problem: PathProblem::TooLong });
        }
        let path = path.to_vec();
        if kind == 0 {
            return Ok(Entry {
                path,
                mode,
                mtime_ns,
                kind: EntryKind::Directory,
                parts: Box::default(),
                chunks: Chunks::default(),
            });
        }
        let (size, digest) = (u64::from_be_bytes(self.array()?), self.array()?);
        let (kind_of_entry, stored) = if kind >= 7 {
            let (stored, stored_digest) = (u64::from_be_bytes(self.array()?), self.array()?);
            (EntryKind::Compressed { size, digest, stored, stored_digest }, stored)
        } else {
            (EntryKind::File { size, digest }, size)
        };
        let parts = match kind {
            2 | 4 | 8 => self.parts(index, stored, Grain::Coarse)?,
            5 | 6 | 9 => self.parts(index, stored, Grain::Fine)?,
            _ => Box::default(),
        };
        let chunks = if matches!(kind, 3 | 4 | 6) { self.chunks(index, size)? } else { Chunks::default() };
        Ok(Entry { path, mode, mtime_ns, kind: kind_of_entry, parts, chunks })
    }

    fn chunks(&mut self, index: usize, size: u64) -> Result<Chunks, ManifestError> {
        let [exponent] = self.array()?;
        let count = u32::from_be_bytes(self.array()?) as usize;
        let (records, _) = self.take(count.saturating_mul(CHUNK_LEN))?.as_chunks::<CHUNK_LEN>();
        let chunk = |&[l0, l1, l2, l3, ref digest @ ..]: &[u8; CHUNK_LEN]| Chunk {
            len: u32::from_be_bytes([l0, l1, l2, l3]),
            digest: *digest,
        };
        let list = records.iter().map(chunk).collect();
        Chunks::new(exponent, list, size).ok_or(ManifestError::BadChunks { entry: index })
    }

    fn parts(&mut self, index: usize, size: u64, grain: Grain) -> Result<Box<[[u8; 32]]>, ManifestError> {
        match part_count(size, grain) as usize {
            0 | 1 => Err(ManifestError::BadParts { entry: index }),
            count => Ok(self.take(count * 32)?.as_chunks().0.into()),
        }
    }
}
