//! Errors of senders and receivers, by who has to act.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

use crate::{Change, ManifestError, ProductId};

/// Reason for which files cannot be sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Two of the given paths have the same base name.
    #[error("two of the paths to send are named \"{}\"; rename one, or send them one after the other", name.display())]
    DuplicateName {
        /// The name.
        name: PathBuf,
    },
    /// A path such as "/" has no base name that the receiver could use.
    #[error("\"{}\" has no name that a receiver could use; send what it contains instead", path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// Nothing that can be sent was found.
    #[error(
        "there is no file or directory to send; symbolic links, devices, sockets, named pipes and the state of receptions are not sent"
    )]
    Empty,
    /// There are only directories, for a protocol that sends files.
    #[error("there is no file to send: only empty directories, and this protocol sends files only")]
    OnlyDirectories,
    /// The files that were found do not fit in a manifest.
    #[error("these files cannot be sent as one product: {0}")]
    Manifest(#[from] ManifestError),
    /// A file changed after it was scanned.
    #[error("\"{}\" changed while it was being sent; send it again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file that was scanned is gone.
    #[error("\"{}\" was removed while it was being sent", path.display())]
    Removed {
        /// The file.
        path: PathBuf,
    },
    /// A file was scanned, but something else has its path now.
    #[error("\"{}\" is no file any more", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// A file that was scanned cannot be read any more.
    #[error("\"{}\" cannot be read any more; check its owner and mode, and the disk that it is on", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// A file has another length than the system reports, as do files of /proc and /sys.
    #[error("\"{}\" is said to have {size} bytes and has another length, as files of /proc and /sys do; send a copy of it", path.display())]
    Unsized {
        /// The file.
        path: PathBuf,
        /// Size that the system reports, in bytes.
        size: u64,
    },
    /// The spool for compressed files cannot be written or read.
    #[error("cannot keep what is compressed in \"{}\": {source}; TMPDIR says where there is room", path.display())]
    Spool {
        /// The directory of the spool.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A read begins past the end of the product.
    #[error("byte {offset} is past the end of the product, which has {size} bytes")]
    OutOfRange {
        /// The first byte to read.
        offset: u64,
        /// The bytes of the product.
        size: u64,
    },
    /// The operating system refused.
    #[error("cannot {action} \"{}\": {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Action that was attempted.
        action: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl SourceError {
    /// Returns the error for `change` of the file at `path`.
    pub fn of_change(change: Change, path: &Path) -> Self {
        let path = path.to_owned();
        match change {
            Change::Changed => Self::Changed { path },
            Change::Removed => Self::Removed { path },
            Change::Replaced => Self::Replaced { path },
            Change::Unreadable => Self::Unreadable { path },
        }
    }

    pub(crate) fn io(path: &Path, action: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), action, source: source.into() }
    }
}

/// Reason for which a path below the receiving directory is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum UnsafeReason {
    /// A symbolic link stands at the path or on the way to it.
    #[error("a symbolic link stands there or on the way")]
    SymbolicLink,
    /// The path leads out of the directory.
    #[error("it leads out of the receiving directory")]
    Escapes,
    /// A file stands where a directory is needed.
    #[error("something that is not a directory stands there or on the way")]
    NotADirectory,
    /// A directory, device, socket or named pipe stands where a file is to be.
    #[error("something that is not a regular file stands there")]
    NotARegularFile,
}

/// Reason for which a product cannot be received.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The announced product is larger than the room that the file system has or the limits allow.
    #[error("{needed} bytes are needed below \"{}\" but only {available} are available; make room and start again", path.display())]
    TooLarge {
        /// The receiving directory.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// The file system has no room at this moment; it may have some later.
    #[error("{needed} bytes are needed below \"{}\" but only {available} are available; make room and start again", path.display())]
    DiskFull {
        /// The file or directory.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// The quota for incomplete products leaves too little room.
    #[error(
        "{needed} bytes are needed below \"{}\" but the quota leaves {available}; raise it, or see `farcast partials` for what could go",
        path.display()
    )]
    OverQuota {
        /// The receiving directory.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that the quota leaves.
        available: u64,
    },
    /// The product has more files and directories than are allowed.
    #[error(
        "{needed} files and directories are needed below \"{}\" but only {available} are allowed; receive into a file system that has more, or have less sent at once",
        path.display()
    )]
    TooManyFiles {
        /// The receiving directory.
        path: PathBuf,
        /// Number that the product needs.
        needed: u64,
        /// Number that is allowed.
        available: u64,
    },
    /// Too many products are being received at once.
    #[error(
        "{allowed} other products are being received into \"{}\", and no more are allowed; wait for one of them",
        path.display()
    )]
    TooManyProducts {
        /// The receiving directory.
        path: PathBuf,
        /// Number that is allowed.
        allowed: u32,
    },
    /// The list of files needs directories that it does not list.
    #[error(
        "the sender's list of files is refused: it needs {unlisted} directories that it does not list, and at most {allowed} would be made"
    )]
    UnlistedDirectories {
        /// Number of unlisted directories that are needed.
        unlisted: u64,
        /// Number of unlisted directories that would be made.
        allowed: u64,
    },
    /// The file system is mounted read-only.
    #[error("\"{}\" is on a read-only file system; choose another directory", path.display())]
    ReadOnly {
        /// The file or directory.
        path: PathBuf,
    },
    /// The process may not write there.
    #[error("no permission to {action} \"{}\"; check its owner and mode", path.display())]
    PermissionDenied {
        /// The file or directory.
        path: PathBuf,
        /// Action that was attempted.
        action: &'static str,
    },
    /// A path is not used because it could lead elsewhere or destroy something.
    #[error("\"{}\" is not written: {reason}; remove it and start again", path.display())]
    UnsafePath {
        /// The path.
        path: PathBuf,
        /// Reason for which the path is refused.
        reason: UnsafeReason,
    },
    /// A file with other content has the name, and existing files are to be kept.
    #[error("\"{}\" exists with other content; move it away, or allow overwriting", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// The names of two files are the same name for the file system.
    #[error(
        "\"{}\" and \"{}\" are one name in \"{}\": the second is not delivered; rename it at the sender, or receive into another file system",
        first.display(), second.display(), dir.display()
    )]
    NamesMeet {
        /// The file that has the name.
        first: PathBuf,
        /// The file that is not delivered.
        second: PathBuf,
        /// The receiving directory.
        dir: PathBuf,
    },
    /// The file system does not permit such a name.
    #[error(
        "\"{}\" cannot be a name in \"{}\" ({source}): it is not delivered; rename it at the sender, or receive into another file system",
        path.display(), dir.display()
    )]
    ImpossibleName {
        /// The file or directory.
        path: PathBuf,
        /// The receiving directory.
        dir: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The product is complete except for entries that cannot have their names here.
    #[error("{first}{}; everything else is complete", and_others(*.others))]
    Withheld {
        /// Reason for which the first entry is withheld.
        first: Box<StoreError>,
        /// Number of other entries that are withheld.
        others: usize,
    },
    /// A name begins with a dot, and hidden names are not allowed.
    #[error("\"{}\" has a name with a leading dot, which is refused; receive with --hidden, or send it under another name", path.display())]
    HiddenName {
        /// The path, below the receiving directory.
        path: PathBuf,
    },
    /// Another process receives the same product into the same directory.
    #[error("another process is receiving this product into \"{}\"; wait for it, or choose another directory", path.display())]
    InUse {
        /// The receiving directory.
        path: PathBuf,
    },
    /// A file, or a part of it, arrived damaged again and again.
    #[error("\"{}\" arrived damaged again and again: it changed at its sender while it was sent, or somebody alters it on the way; have it sent again", path.display())]
    DigestMismatch {
        /// Final path of the file.
        path: PathBuf,
    },
    /// A compressed file arrived intact, but does not decompress to the content that its sender lists.
    #[error(
        "\"{}\" came as it was sent, but does not decompress to what its sender lists, and is not delivered; have it sent without --compress",
        path.display()
    )]
    BadCompression {
        /// Final path of the file.
        path: PathBuf,
    },
    /// The head of the product arrived damaged again and again: its digest is not the product's id.
    #[error(
        "the list of files of product {id} arrived damaged again and again: it changed at its sender while it was sent, or somebody alters it on the way; have it sent again"
    )]
    CorruptHead {
        /// The product.
        id: ProductId,
    },
    /// The head is intact, but its manifest is refused.
    #[error("the sender's list of files is refused: {0}")]
    BadManifest(#[from] ManifestError),
    /// The files of the manifest do not add up to the announced size.
    #[error(
        "the product was announced with {announced} bytes, but its files make {actual}; check the sender"
    )]
    WrongSize {
        /// Bytes announced.
        announced: u64,
        /// Bytes by the manifest.
        actual: u64,
    },
    /// The product cannot be cut into segments of this length.
    #[error("{product_size} bytes cannot be cut into segments of {segment_len} bytes; use a larger segment")]
    BadGeometry {
        /// Bytes of the product.
        product_size: u64,
        /// Bytes of a segment.
        segment_len: u32,
    },
    /// A payload does not have the length of its segment, or there is no such segment.
    #[error(
        "segment {segment} has {actual} bytes where {expected} are expected; the segment length is wrong"
    )]
    BadSegment {
        /// The segment, counted from zero.
        segment: u64,
        /// Length in bytes that the segment has; zero if there is no such segment.
        expected: u64,
        /// Length in bytes of the payload.
        actual: u64,
    },
    /// [`Incoming::finish`](crate::Incoming::finish) was called too early.
    #[error("the product is not complete: {missing} segments are missing")]
    Incomplete {
        /// Number of missing segments.
        missing: u32,
    },
    /// The operating system refused for another reason.
    #[error("cannot {action} \"{}\": {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Action that was attempted.
        action: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl StoreError {
    /// Returns the error for `errno` from an attempt to `action` the path. `needed` and `available` are bytes, for a
    /// full disk.
    pub(crate) fn new(
        path: PathBuf,
        action: &'static str,
        errno: Errno,
        needed: u64,
        available: u64,
    ) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT => Self::DiskFull { path, needed, available },
            Errno::ROFS => Self::ReadOnly { path },
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied { path, action },
            Errno::LOOP => Self::UnsafePath { path, reason: UnsafeReason::SymbolicLink },
            Errno::XDEV => Self::UnsafePath { path, reason: UnsafeReason::Escapes },
            Errno::NOTDIR => Self::UnsafePath { path, reason: UnsafeReason::NotADirectory },
            Errno::ISDIR => Self::UnsafePath { path, reason: UnsafeReason::NotARegularFile },
            Errno::EXIST => Self::AlreadyExists { path },
            _ => Self::Io { path, action, source: errno.into() },
        }
    }
}

fn and_others(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => "; nor is another".into(),
        others => format!("; nor are {others} others"),
    }
}

/// Returns `bytes` as a path.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
