//! What can go wrong, by who has to act.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

use crate::{Change, ManifestError, ProductId};

/// Why files cannot be sent.
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
    /// What was found does not fit in a manifest.
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
    /// Something that is no file stands where a file was scanned.
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
    /// A file has another length than the system says, as those of /proc and /sys.
    #[error("\"{}\" is said to have {size} bytes and has another length, as files of /proc and /sys do; send a copy of it", path.display())]
    Unsized {
        /// The file.
        path: PathBuf,
        /// Bytes that it is said to have.
        size: u64,
    },
    /// What files are compressed to cannot be kept while it waits to be sent.
    #[error("cannot keep what is compressed in \"{}\": {source}; TMPDIR says where there is room", path.display())]
    Spool {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A range was asked for that begins past the end of the product.
    #[error("byte {offset} is past the end of the product, which has {size} bytes")]
    OutOfRange {
        /// The first byte asked for.
        offset: u64,
        /// The bytes of the product.
        size: u64,
    },
    /// The operating system refused.
    #[error("cannot {action} \"{}\": {source}", path.display())]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl SourceError {
    /// The error that this became of the file at `path`.
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

/// Why a path below the receiver's directory is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum UnsafeReason {
    /// A symbolic link stands at the path or on the way to it.
    #[error("a symbolic link stands there or on the way")]
    SymbolicLink,
    /// The way leads out of the directory.
    #[error("it leads out of the receiving directory")]
    Escapes,
    /// A file stands where a directory is needed.
    #[error("something that is not a directory stands there or on the way")]
    NotADirectory,
    /// A directory, device, socket or named pipe stands where a file is to be.
    #[error("something that is not a regular file stands there")]
    NotARegularFile,
}

/// Why a product cannot be received.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// What is announced is more than the file system has room for, or than is allowed.
    #[error("{needed} bytes are needed below \"{}\" but only {available} are available; make room and start again", path.display())]
    TooLarge {
        /// Where.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// The file system had no room for something just now; it may have some later.
    #[error("{needed} bytes are needed below \"{}\" but only {available} are available; make room and start again", path.display())]
    DiskFull {
        /// Where.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// What is allowed for products that are not complete does not suffice.
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
        /// How many are needed.
        needed: u64,
        /// How many are allowed.
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
        /// How many are allowed.
        allowed: u32,
    },
    /// The list of files needs directories that it does not list.
    #[error(
        "the sender's list of files is refused: it needs {unlisted} directories that it does not list, and at most {allowed} would be made"
    )]
    UnlistedDirectories {
        /// How many.
        unlisted: u64,
        /// How many would be made.
        allowed: u64,
    },
    /// The file system is mounted read-only.
    #[error("\"{}\" is on a read-only file system; choose another directory", path.display())]
    ReadOnly {
        /// Where.
        path: PathBuf,
    },
    /// The process may not write there.
    #[error("no permission to {action} \"{}\"; check its owner and mode", path.display())]
    PermissionDenied {
        /// Where.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
    },
    /// A path is not used because it could lead elsewhere or destroy something.
    #[error("\"{}\" is not written: {reason}; remove it and start again", path.display())]
    UnsafePath {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: UnsafeReason,
    },
    /// A file with other content has the name, and it is to be kept.
    #[error("\"{}\" exists with other content; move it away, or allow overwriting", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// The file system takes the names of two files for one.
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
    /// The file system has no such names.
    #[error(
        "\"{}\" cannot be a name in \"{}\" ({source}): it is not delivered; rename it at the sender, or receive into another file system",
        path.display(), dir.display()
    )]
    ImpossibleName {
        /// The file or directory.
        path: PathBuf,
        /// The receiving directory.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Everything is there and right but what cannot have its name here.
    #[error("{first}{}; everything else is complete", and_others(*.others))]
    Withheld {
        /// Reason for which the first is not delivered.
        first: Box<StoreError>,
        /// Number of others that are not.
        others: usize,
    },
    /// A name begins with a dot, and such names are not asked for.
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
    /// A file, or a part of it, came damaged again and again.
    #[error("\"{}\" arrived damaged again and again: it changed at its sender while it was sent, or somebody alters it on the way; have it sent again", path.display())]
    DigestMismatch {
        /// Where the file would have been.
        path: PathBuf,
    },
    /// A compressed file came as it was sent, and is not what its sender says that it is.
    #[error(
        "\"{}\" came as it was sent, but does not decompress to what its sender lists, and is not delivered; have it sent without --compress",
        path.display()
    )]
    BadCompression {
        /// Where the file would have been.
        path: PathBuf,
    },
    /// The head of the product came damaged again and again: it does not have the product's id.
    #[error(
        "the list of files of product {id} arrived damaged again and again: it changed at its sender while it was sent, or somebody alters it on the way; have it sent again"
    )]
    CorruptHead {
        /// The product.
        id: ProductId,
    },
    /// The head is the one the sender made, but the manifest in it is refused.
    #[error("the sender's list of files is refused: {0}")]
    BadManifest(#[from] ManifestError),
    /// The manifest's files do not add up to the size that was announced.
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
        /// The bytes that it has to have; zero if there is no such segment.
        expected: u64,
        /// The bytes that were given.
        actual: u64,
    },
    /// [`Incoming::finish`](crate::Incoming::finish) was called too early.
    #[error("the product is not complete: {missing} segments are missing")]
    Incomplete {
        /// How many segments are missing.
        missing: u32,
    },
    /// The operating system refused for another reason.
    #[error("cannot {action} \"{}\": {source}", path.display())]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl StoreError {
    /// The error for `errno`, met when trying to `action` the path. A full disk is told with `needed` bytes.
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

/// `bytes` as a path.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
