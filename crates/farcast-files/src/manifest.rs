//! The manifest: list of the files and directories in a product, and its encoding.
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
//! The length of a part is a power of two: the smallest that divides the stored bytes of the file into at most 256
//! parts, and at least 1 MiB. For fine parts it is at most 4096 parts and at least 128 KiB ([`Grain`]). The last part
//! may be shorter. A file of one part has no values, and a larger file may have none. The values have to merge to the
//! stored digest. The lengths of [chunks](crate::chunks) have to add up to the size. All chunks but the last have at
//! least a quarter of the average length, and none has more than four times the average.
//!
//! For a [compressed](crate::compression) file the product stores the compressed content, and the parts divide that
//! content. Damage is located, and sent again, as in any other file. A compressed file has no chunks: compressed bytes
//! have nothing in common with an older version.
//!
//! The order makes the encoding of a set of entries unique. The decoder compares neighbours only, and still finds
//! duplicates and files that are also used as directories.

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
/// The length in bytes of the magic and the length field, which precede the manifest in a product.
pub const PREFIX_LEN: usize = 8;

/// The name of the directory that holds the state of receptions; no entry may use it.
pub(crate) const STATE_DIR: &[u8] = b".farcast";
/// The suffix of the name of every partial file; no entry may end so.
pub(crate) const PARTIAL_SUFFIX: &[u8] = b".farcast-part";

/// Kind of an entry, with the sizes and digests of a file.
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
    /// A regular file whose content is stored [compressed](crate::compression) in the product.
    Compressed {
        /// Bytes of the content, at most `i64::MAX`.
        size: u64,
        /// BLAKE3 of the content.
        digest: [u8; 32],
        /// Bytes of the compressed content in the product: at least one, and fewer than `size`.
        stored: u64,
        /// BLAKE3 of the compressed content.
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
    /// Directory, file or compressed file.
    pub kind: EntryKind,
    /// The BLAKE3 subtree values of the parts of a large file, which merge to the digest of its stored content. Empty
    /// if the file has one part only or the values are left out.
    pub parts: Box<[[u8; 32]]>,
    /// The chunks of a file that is long enough to be worth a comparison with an older version; empty without a list.
    pub chunks: Chunks,
}

impl Entry {
    /// Returns the size of the content in bytes; zero for a directory.
    pub fn size(&self) -> u64 {
        match self.kind {
            EntryKind::File { size, .. } | EntryKind::Compressed { size, .. } => size,
            EntryKind::Directory => 0,
        }
    }

    /// Returns the bytes that the product stores for this entry: fewer than its [size](Self::size) if the file is
    /// compressed.
    pub fn stored(&self) -> u64 {
        match self.kind {
            EntryKind::Compressed { stored, .. } => stored,
            _ => self.size(),
        }
    }

    /// Returns the BLAKE3 digest of a file's content; `None` for a directory.
    pub fn digest(&self) -> Option<[u8; 32]> {
        match self.kind {
            EntryKind::File { digest, .. } | EntryKind::Compressed { digest, .. } => Some(digest),
            EntryKind::Directory => None,
        }
    }

    /// Returns the BLAKE3 digest of the bytes that the product stores for a file; `None` for a directory.
    pub fn stored_digest(&self) -> Option<[u8; 32]> {
        match self.kind {
            EntryKind::Compressed { stored_digest, .. } => Some(stored_digest),
            _ => self.digest(),
        }
    }

    /// Returns `true` for a regular file, compressed or not.
    pub fn is_file(&self) -> bool {
        self.kind != EntryKind::Directory
    }

    /// Returns `true` for a compressed file.
    pub fn is_compressed(&self) -> bool {
        matches!(self.kind, EntryKind::Compressed { .. })
    }
}

/// Result of compression: number of compressed files, and their size before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compressed {
    /// Number of compressed files.
    pub files: usize,
    /// Size of their content in bytes.
    pub size: u64,
    /// Bytes that the product stores for them.
    pub stored: u64,
}

/// A checked list of the files and directories in a product.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
    content_len: u64,
    files_len: u64,
    encoded_len: usize,
}

impl Manifest {
    /// Creates the manifest of `entries`, which it sorts.
    ///
    /// # Errors
    /// The same as [`decode`](Self::decode), except those that only an encoding can have.
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

    /// Returns the entries in ascending order of their paths. [`crate::Happening::FileDone`] holds an index into this
    /// list.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the bytes that the product stores for all files together.
    pub fn content_len(&self) -> u64 {
        self.content_len
    }

    /// Returns the size of all files together in bytes: more than [`content_len`](Self::content_len) if some are
    /// compressed.
    pub fn files_len(&self) -> u64 {
        self.files_len
    }

    /// Counts the compressed files, and adds up their sizes before and after compression.
    pub fn compressed(&self) -> Compressed {
        let compressed = self.entries.iter().filter(|entry| entry.is_compressed());
        compressed.fold(Compressed::default(), |sum, entry| Compressed {
            files: sum.files + 1,
            size: sum.size + entry.size(),
            stored: sum.stored + entry.stored(),
        })
    }

    /// Returns the length of the head in bytes, magic and length included.
    pub fn head_len(&self) -> u64 {
        (PREFIX_LEN + self.encoded_len) as u64
    }

    /// Returns the size of the product in bytes: head and content, at most `i64::MAX`.
    pub fn product_size(&self) -> u64 {
        self.head_len() + self.content_len
    }

    /// Encodes the manifest.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_len);
        self.encode_into(&mut out);
        out
    }

    /// Encodes the head of the product: magic, length of the manifest, manifest.
    pub fn head(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PREFIX_LEN + self.encoded_len);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&(self.encoded_len as u32).to_be_bytes());
        self.encode_into(&mut out);
        out
    }

    /// Computes the id of the product.
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

/// Compares paths component by component, so that everything below a directory follows it directly.
pub(crate) fn compare_paths(a: &[u8], b: &[u8]) -> Ordering {
    // A separator sorts before every other byte; paths hold no NUL.
    let key = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    a.iter().map(key).cmp(b.iter().map(key))
}

#[cfg(test)]
mod tests;
