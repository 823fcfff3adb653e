//! File-system calls of a reception. Each is defined here once, so that tests can make it fail at each place of use.
//!
//! In a test build a call asks [`crate::faults`] first; in any other build the wrappers are the calls of `rustix`.

use std::ffi::CString;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    self, AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, Stat, StatVfs,
    Timestamps,
};
use rustix::io::{self, Result};

/// Lets a test make this call fail.
macro_rules! may_fail {
    ($call:ident) => {
        #[cfg(test)]
        crate::faults::meet(crate::faults::Call::$call, core::panic::Location::caller())?;
    };
}

/// Defines wrappers with the signature and the name that the rest of the crate uses.
macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident: fn $name:ident($($arg:ident: $kind:ty),*) -> $result:ty = $body:expr;)*) => {
        $(
            $(#[$doc])*
            #[cfg_attr(test, track_caller)]
            pub(crate) fn $name($($arg: $kind),*) -> Result<$result> {
                may_fail!($call);
                $body
            }
        )*
    };
}

calls! {
    /// Opens the receiving directory.
    Open: fn open(path: &Path, flags: OFlags, mode: Mode) -> OwnedFd = fs::open(path, flags, mode);
    /// Opens or makes the file `name` in `dir`.
    Open: fn openat(dir: impl AsFd, name: &[u8], flags: OFlags, mode: Mode) -> OwnedFd
        = fs::openat(dir, name, flags, mode);
    /// Opens or makes the file at `path` below `dir`.
    Open: fn openat2(dir: impl AsFd, path: &[u8], flags: OFlags, mode: Mode, resolve: ResolveFlags) -> OwnedFd
        = fs::openat2(dir, path, flags, mode, resolve);
    /// Examines `name` in `dir` without following a symbolic link.
    Stat: fn statat(dir: impl AsFd, name: &[u8]) -> Stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    /// Examines an open file.
    Stat: fn fstat(fd: impl AsFd) -> Stat = fs::fstat(fd);
    /// Examines the file system.
    Statvfs: fn fstatvfs(fd: impl AsFd) -> StatVfs = fs::fstatvfs(fd);
    /// Makes a directory.
    MakeDirectory: fn mkdirat(dir: impl AsFd, name: &[u8], mode: Mode) -> () = fs::mkdirat(dir, name, mode);
    /// Sets the mode of `name` in `dir`.
    SetMode: fn chmodat(dir: impl AsFd, name: &[u8], mode: Mode) -> ()
        = fs::chmodat(dir, name, mode, AtFlags::empty());
    /// Sets the mode of an open file.
    SetMode: fn fchmod(fd: impl AsFd, mode: Mode) -> () = fs::fchmod(fd, mode);
    /// Sets the times of an open file.
    SetTime: fn futimens(fd: impl AsFd, times: &Timestamps) -> () = fs::futimens(fd, times);
    /// Removes a file, or with the flag for that an empty directory.
    Unlink: fn unlinkat(dir: impl AsFd, name: &[u8], flags: AtFlags) -> () = fs::unlinkat(dir, name, flags);
    /// Renames a file, replacing a file of the new name.
    Rename: fn renameat(from: impl AsFd, old: &[u8], to: impl AsFd, new: &[u8]) -> ()
        = fs::renameat(from, old, to, new);
    /// Renames a file, and fails if the new name exists.
    RenameNew: fn rename_new(from: impl AsFd, old: &[u8], to: impl AsFd, new: &[u8]) -> ()
        = fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE);
    /// Changes the length of an open file.
    Truncate: fn ftruncate(fd: impl AsFd, len: u64) -> () = fs::ftruncate(fd, len);
    /// Locks an open file.
    Lock: fn flock(fd: impl AsFd, operation: FlockOperation) -> () = fs::flock(fd, operation);
    /// Finds the next data or hole.
    Seek: fn seek(fd: impl AsFd, to: SeekFrom) -> u64 = fs::seek(fd, to);
    /// Reads from an offset.
    Read: fn pread(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> usize = io::pread(fd, buffer, offset);
    /// Reads from an offset into several slices.
    Read: fn preadv(fd: impl AsFd, slices: &mut [IoSliceMut<'_>], offset: u64) -> usize
        = io::preadv(fd, slices, offset);
    /// Writes several slices at an offset.
    Write: fn pwritev(fd: BorrowedFd<'_>, slices: &[IoSlice<'_>], offset: u64) -> usize
        = io::pwritev(fd, slices, offset);
    /// Makes the names in an open directory durable.
    SyncNames: fn fsync(fd: impl AsFd) -> () = durable(|| fs::fsync(fd));
    /// Makes the content of an open file durable.
    SyncContent: fn fdatasync(fd: impl AsFd) -> () = durable(|| fs::fdatasync(fd));
    /// Lists the names in an open directory, without `.` and `..`.
    List: fn list(fd: OwnedFd) -> Vec<CString> = names_in(fd);
}

/// Syncs, except in tests that draw faults: there nothing has to survive a power loss, and thousands of syncs would
/// take minutes.
fn durable(sync: impl FnOnce() -> Result<()>) -> Result<()> {
    #[cfg(test)]
    if crate::faults::are_drawn() {
        return Ok(());
    }
    sync()
}

fn names_in(fd: OwnedFd) -> Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::new(fd)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}
