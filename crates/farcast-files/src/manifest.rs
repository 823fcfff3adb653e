//! The manifest: what a product contains, and its encoding.
//!
//! All integers are big-endian. A manifest is `count: u32`, then `count` entries in strictly ascending order of
//! their paths, compared component by component:
//!
//! | field | bytes | meaning |
//! |---|---|---|
//! | kind | 1 | 0 directory; 1 file, 2 file with parts, 3 file with chunks, 4 file with parts and chunks, 5 file with fine parts, 6 file with fine parts and chunks; 7 compressed file, 8 with parts, 9 with fine parts |
//! | mode | 2 | permission bits, at most `0o777` |
//! | mtime | 8 | modification time, signed nanoseconds since 1970-01-01 UTC |
//! | path length | 2 | 1 to 4096 |
//! | path | n | relative, `/` between components, no `.` and `..` |
//! | size | 8 | files only: bytes |
//! | digest | 32 | files only: BLAKE3 of the content |
//! | stored size | 8 | compressed files only: bytes in the product, at least one and fewer than the size |
//! | stored digest | 32 | compressed files only: BLAKE3 of these |
//! | parts | 32 each | files with parts only: the BLAKE3 subtree values of its parts |
//! | average | 1 | files with chunks only: the average length of its chunks in bytes, as a power of two, 16 to 22 |
//! | chunks | 4 | files with chunks only: how many there are |
//! | chunk | 12 each | length of the chunk, and the first 8 bytes of the BLAKE3 of its content |
//!
//! A part is the least power of two of bytes, 1 MiB or more, of which the file, as the product has it, has at most 256, and a fine one 128 KiB or
//! more, of which it has at most 4096 ([`Grain`]); the last may be shorter. A file of one part has none, and a larger one may have none, if nothing is known of its parts. The values
//! have to merge to the digest. The lengths of [chunks](crate::chunks) have to add up to the size; all but the last
//! have a quarter of the average at least, and none more than four times as much.
//!
//! Of a [compressed](crate::compression) file the product has what its content was compressed to; its parts are those of
//! that, so that what is damaged is found, and sent again, as of any other file. It has no chunks: what is compressed
//! has nothing in common with an older version.
//!
//! The order makes the encoding of a set of entries unique, and lets the decoder find duplicates, and files that
//! are also used as directories, by looking at neighbours only.

use core::cmp::Ordering;

use crate::ProductId;
use crate::chunks::Chunks;
use crate::parts::Grain;

mod decode;
mod error;

pub(crate) use decode::{COMPRESSED_LEN, check_path, encoded_len};
pub use error::{ManifestError, PathProblem};

/// The longest manifest, in bytes: 64 MiB.
pub const MAX_MANIFEST_LEN: usize = 64 << 20;
/// The most entries in a manifest.
pub const MAX_ENTRIES: usize = 1 << 20;
/// The longest path of an entry, in bytes.
pub const MAX_PATH_LEN: usize = 4096;
/// The longest component of a path, in bytes.
pub const MAX_COMPONENT_LEN: usize = 255;

/// The first four bytes of a product.
pub const MAGIC: [u8; 4] = *b"FCM1";
/// The length of what precedes the manifest in a product: magic and length, in bytes.
pub const PREFIX_LEN: usize = 8;

/// The name of the directory that holds the state of receptions; no entry may use it.
pub(crate) const STATE_DIR: &[u8] = b".farcast";
/// How the name of every partial file ends; no entry may end so.
pub(crate) const PARTIAL_SUFFIX: &[u8] = b".farcast-part";

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Bytes, at most `i64::MAX`.
        size: u64,
        /// BLAKE3 of the content.
        digest: [u8; 32],
    },
    /// A regular file of which the product has what its content was [compressed](crate::compression) to.
    Compressed {
        /// Bytes of the content, at most `i64::MAX`.
        size: u64,
        /// BLAKE3 of the content.
        digest: [u8; 32],
        /// Bytes that the product has of it: fewer, and at least one.
        stored: u64,
        /// BLAKE3 of what the product has of it.
        stored_digest: [u8; 32],
    },
}

/// One file or directory of a product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Relative path, `/` between components, 1 to 4096 bytes; not necessarily UTF-8.
    pub path: Vec<u8>,
    /// Permission bits, at most `0o777`.
    pub mode: u16,
    /// Modification time in nanoseconds since 1970-01-01 UTC; negative before.
    pub mtime_ns: i64,
    /// What it is.
    pub kind: EntryKind,
    /// The BLAKE3 subtree values of the parts of a large file, which merge to the digest of what the product has of it;
    /// empty where there is one part only, or nothing is known of them.
    pub parts: Box<[[u8; 32]]>,
    /// The chunks of a file that is long enough to be worth a comparison with an older version; empty where there is no
    /// list.
    pub chunks: Chunks,
}

impl Entry {
    /// The bytes of the content; zero for a directory.
    pub fn size(&self) -> u64 {
        match self.kind {
            EntryKind::File { size, .. } | EntryKind::Compressed { size, .. } => size,
            EntryKind::Directory => 0,
        }
    }

    /// The bytes that this entry has in the product: fewer than its [size](Self::size) where it is compressed.
    pub fn stored(&self) -> u64 {
        match self.kind {
            EntryKind::Compressed { stored, .. } => stored,
            _ => self.size(),
        }
    }

    /// BLAKE3 of the content of a file.
    pub fn digest(&self) -> Option<[u8; 32]> {
        match self.kind {
            EntryKind::File { digest, .. } | EntryKind::Compressed { digest, .. } => Some(digest),
            EntryKind::Directory => None,
        }
    }

    /// BLAKE3 of what the product has of a file.
    pub fn stored_digest(&self) -> Option<[u8; 32]> {
        match self.kind {
            EntryKind::Compressed { stored_digest, .. } => Some(stored_digest),
            _ => self.digest(),
        }
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind != EntryKind::Directory
    }

    /// Whether it is a file that is compressed.
    pub fn is_compressed(&self) -> bool {
        matches!(self.kind, EntryKind::Compressed { .. })
    }
}

/// What compression has brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compressed {
    /// The files that are compressed.
    pub files: usize,
    /// Their bytes.
    pub size: u64,
    /// The bytes that the product has of them.
    pub stored: u64,
}

/// A checked list of entries: what a product contains.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
    content_len: u64,
    files_len: u64,
    encoded_len: usize,
}

impl Manifest {
    /// The manifest of `entries`, which are put in order.
    ///
    /// # Errors
    /// The same as [`decode`](Self::decode), save those that only bytes can have.
    pub fn new(mut entries: Vec<Entry>) -> Result<Self, ManifestError> {
        entries.sort_by(|a, b| compare_paths(&a.path, &b.path));
        let mut manifest = Self { encoded_len: 4, ..Self::default() };
        if entries.len() > MAX_ENTRIES {
            return Err(ManifestError::TooManyEntries { count: entries.len() as u64 });
        }
        for entry in entries {
            manifest.push(entry)?;
        }
        match manifest.encoded_len {
            len if len > MAX_MANIFEST_LEN => Err(ManifestError::TooLong { len: len as u64 }),
            _ => Ok(manifest),
        }
    }

    /// The entries, in ascending order of their paths. [`crate::Happening::FileDone`] counts in this list.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The bytes that the product has of all files together.
    pub fn content_len(&self) -> u64 {
        self.content_len
    }

    /// The bytes of all files together: more than the product has of them where some are compressed.
    pub fn files_len(&self) -> u64 {
        self.files_len
    }

    /// How many files are compressed, and from how many bytes to how many.
    pub fn compressed(&self) -> Compressed {
        let compressed = self.entries.iter().filter(|entry| entry.is_compressed());
        compressed.fold(Compressed::default(), |sum, entry| Compressed {
            files: sum.files + 1,
            size: sum.size + entry.size(),
            stored: sum.stored + entry.stored(),
        })
    }

    /// The bytes of the head, magic and length included.
    pub fn head_len(&self) -> u64 {
        (PREFIX_LEN + self.encoded_len) as u64
    }

    /// The bytes of the product: head and content, at most `i64::MAX`.
    pub fn product_size(&self) -> u64 {
        self.head_len() + self.content_len
    }

    /// The manifest in bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_len);
        self.encode_into(&mut out);
        out
    }

    /// The head of the product: magic, length of the manifest, manifest.
    pub fn head(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PREFIX_LEN + self.encoded_len);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&(self.encoded_len as u32).to_be_bytes());
        self.encode_into(&mut out);
        out
    }

    /// The id of the product.
    pub fn id(&self) -> ProductId {
        ProductId::of_head(&self.head())
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
        for entry in &self.entries {
            out.push(kind_of(entry));
            out.extend_from_slice(&entry.mode.to_be_bytes());
            out.extend_from_slice(&entry.mtime_ns.to_be_bytes());
            out.extend_from_slice(&(entry.path.len() as u16).to_be_bytes());
            out.extend_from_slice(&entry.path);
            let (size, digest) = match &entry.kind {
                EntryKind::Directory => continue,
                EntryKind::File { size, digest } | EntryKind::Compressed { size, digest, .. } => {
                    (size, digest)
                }
            };
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(digest);
            if let EntryKind::Compressed { stored, stored_digest, .. } = &entry.kind {
                out.extend_from_slice(&stored.to_be_bytes());
                out.extend_from_slice(stored_digest);
            }
            out.extend_from_slice(entry.parts.as_flattened());
            encode_chunks(&entry.chunks, out);
        }
    }
}

fn kind_of(entry: &Entry) -> u8 {
    let chunked = u8::from(!entry.chunks.is_empty());
    match Grain::of(entry.stored(), entry.parts.len()) {
        _ if !entry.is_file() => 0,
        grain if entry.is_compressed() => match grain {
            _ if entry.parts.is_empty() => 7,
            Some(Grain::Fine) => 9,
            _ => 8,
        },
        _ if entry.parts.is_empty() => 1 + 2 * chunked,
        Some(Grain::Fine) => 5 + chunked,
        _ => 2 + 2 * chunked,
    }
}

fn encode_chunks(chunks: &Chunks, out: &mut Vec<u8>) {
    if chunks.is_empty() {
        return;
    }
    out.push(chunks.exponent());
    out.extend_from_slice(&(chunks.list().len() as u32).to_be_bytes());
    for chunk in chunks.list() {
        out.extend_from_slice(&chunk.len.to_be_bytes());
        out.extend_from_slice(&chunk.digest);
    }
}

/// Paths compared component by component, so that everything below a directory follows it directly.
pub(crate) fn compare_paths(a: &[u8], b: &[u8]) -> Ordering {
    // A separator sorts before every other byte; paths hold no NUL.
    let key = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    a.iter().map(key).cmp(b.iter().map(key))
}

#[cfg(test)]
mod tests;
