//! Errors of manifests and of the paths in them.

use thiserror::Error;

use super::{MAX_COMPONENT_LEN, MAX_ENTRIES, MAX_MANIFEST_LEN, MAX_PATH_LEN};

/// Reason for which a manifest is refused. `entry` is the index of the entry, from zero.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The head does not begin with the magic "FCM1".
    #[error("the product does not begin with the magic FCM1; it is not a farcast product")]
    BadMagic,
    /// The bytes end inside a field.
    #[error("the manifest ends at byte {offset}, inside a field")]
    Truncated {
        /// Start of the field, in bytes from the start of the manifest.
        offset: usize,
    },
    /// Bytes follow the last entry.
    #[error("{count} bytes follow the last entry of the manifest")]
    TrailingBytes {
        /// Number of these bytes.
        count: usize,
    },
    /// The manifest is longer than [`MAX_MANIFEST_LEN`].
    #[error("the manifest has {len} bytes; at most {MAX_MANIFEST_LEN} are allowed, send fewer files at once")]
    TooLong {
        /// Length of the manifest in bytes.
        len: u64,
    },
    /// The manifest has more than [`MAX_ENTRIES`] entries.
    #[error("the manifest has {count} entries; at most {MAX_ENTRIES} are allowed, send fewer files at once")]
    TooManyEntries {
        /// Number of entries that it claims or was given.
        count: u64,
    },
    /// An entry is neither a file nor a directory.
    #[error("entry {entry} has the unknown kind {kind}")]
    UnknownKind {
        /// Index of the entry.
        entry: usize,
        /// The byte found.
        kind: u8,
    },
    /// An entry has bits outside `0o777`, such as set-user-id.
    #[error("entry {entry} has the mode {mode:#o}; only permission bits up to 0o777 are allowed")]
    BadMode {
        /// Index of the entry.
        entry: usize,
        /// The mode found.
        mode: u16,
    },
    /// A path cannot be used.
    #[error("entry {entry}: the path \"{}\" {problem}", path.escape_ascii())]
    BadPath {
        /// Index of the entry.
        entry: usize,
        /// The path.
        path: Vec<u8>,
        /// Rule that the path breaks.
        problem: PathProblem,
    },
    /// A path occurs twice.
    #[error("entry {entry}: the path \"{}\" occurs twice", path.escape_ascii())]
    Duplicate {
        /// The second entry.
        entry: usize,
        /// The path.
        path: Vec<u8>,
    },
    /// The entries are not in ascending order.
    #[error("entry {entry} is out of order")]
    OutOfOrder {
        /// The entry that should stand earlier.
        entry: usize,
    },
    /// A file stands where a later path needs a directory.
    #[error("entry {entry}: \"{}\" lies below a file of this manifest", path.escape_ascii())]
    BelowFile {
        /// The entry below the file.
        entry: usize,
        /// Path of the entry.
        path: Vec<u8>,
    },
    /// The number of a file's part values does not fit its size, or the values do not merge to its digest.
    #[error("entry {entry}: the values of its parts do not make its digest")]
    BadParts {
        /// Index of the file.
        entry: usize,
    },
    /// The chunks of a file have invalid lengths, or do not add up to its size.
    #[error("entry {entry}: its chunks do not make its size")]
    BadChunks {
        /// Index of the file.
        entry: usize,
    },
    /// The compressed content of a file is empty, or not shorter than the file.
    #[error("entry {entry}: it is compressed to nothing, or to no less than it has")]
    BadCompression {
        /// Index of the file.
        entry: usize,
    },
    /// The sizes add up to more than `i64::MAX` bytes.
    #[error("entry {entry}: the sizes add up to more than 2^63 - 1 bytes")]
    SizeOverflow {
        /// The entry that passes the limit.
        entry: usize,
    },
}

/// Rule that a path breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum PathProblem {
    /// The path has no bytes.
    #[error("is empty")]
    Empty,
    /// The path is longer than [`MAX_PATH_LEN`].
    #[error("is longer than {MAX_PATH_LEN} bytes")]
    TooLong,
    /// The path begins with `/`.
    #[error("is absolute")]
    Absolute,
    /// The path has two separators in a row, or one at the end.
    #[error("has an empty component")]
    EmptyComponent,
    /// A component is `.` or `..`.
    #[error("has the component \".\" or \"..\"")]
    Dots,
    /// The path holds a NUL byte.
    #[error("holds a NUL byte")]
    Nul,
    /// A component is longer than [`MAX_COMPONENT_LEN`].
    #[error("has a component longer than {MAX_COMPONENT_LEN} bytes")]
    ComponentTooLong,
    /// A component is `.farcast`, or ends in `.farcast-part`: names that a receiver uses itself.
    #[error("uses a name that farcast keeps for itself")]
    Reserved,
}
