//! Files below a directory, and never outside of it: no symbolic link is followed.
//!
//! `openat2` resolves a path below a descriptor in one step that nobody can race with. Where the kernel lacks it (or a
//! sandbox refuses it), the path is walked one component at a time.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::{Errno, Result};

use crate::error::as_path;
use crate::nicety::{Nicety, Refusal, Refusals, is_absent};
use crate::{StoreError, Usage, system};

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// Number of names that are tried for a file that replaces another.
const FRESH_TRIES: u32 = 8;

/// The receiver's directory.
#[derive(Debug)]
pub(crate) struct Root {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    walks: AtomicBool,
    /// Niceties that the file system refuses.
    refusals: Mutex<Refusals>,
}

/// Returns a descriptor of the directory of `fd`. An open descriptor of the same directory is shared, because each of
/// many receptions has its own root.
fn shared(fd: OwnedFd) -> Result<Arc<OwnedFd>> {
    static OPEN: Mutex<Vec<(u64, u64, Weak<OwnedFd>)>> = Mutex::new(Vec::new());
    let stat = system::fstat(&fd)?;
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|(.., fd)| fd.strong_count() > 0);
    let same = open.iter().find(|(device, inode, _)| (*device, *inode) == (stat.st_dev, stat.st_ino));
    if let Some(earlier) = same.and_then(|(.., fd)| fd.upgrade()) {
        return Ok(earlier);
    }
    let fd = Arc::new(fd);
    open.push((stat.st_dev, stat.st_ino, Arc::downgrade(&fd)));
    Ok(fd)
}

impl Root {
    /// Opens the directory at `path`. Symbolic links in `path` are followed: the user has chosen the path.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let fd = system::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let fd = shared(fd)?;
        Ok(Self { fd, path: path.to_owned(), walks: AtomicBool::new(false), refusals: Mutex::default() })
    }

    /// Returns the full path of `path`, for messages.
    pub(crate) fn full(&self, path: &[u8]) -> PathBuf {
        if path.is_empty() { self.path.clone() } else { self.path.join(as_path(path)) }
    }

    /// Returns the typed error for `errno`.
    pub(crate) fn error(&self, path: &[u8], action: &'static str, errno: Errno, needed: u64) -> StoreError {
        StoreError::new(self.full(path), action, errno, needed, self.available().unwrap_or(0))
    }

    /// Returns the number of bytes that the file system can still take.
    pub(crate) fn available(&self) -> Result<u64> {
        Ok(self.free()?.octets)
    }

    /// Returns the bytes and inodes that the file system can still take.
    pub(crate) fn free(&self) -> Result<Usage> {
        let stat = match system::fstatvfs(&self.fd) {
            Err(errno) if is_absent(errno) => return Ok(Usage { octets: u64::MAX, inodes: u64::MAX }),
            stat => stat?,
        };
        // A total of zero means that the file system does not count (btrfs: inodes; some network file systems: blocks
        // too). Its room is then taken as unlimited.
        let inodes = if stat.f_files == 0 { u64::MAX } else { stat.f_favail };
        let octets = stat.f_bavail.saturating_mul(stat.f_frsize);
        Ok(Usage { octets: if stat.f_blocks == 0 { u64::MAX } else { octets }, inodes })
    }

    /// Tolerates the refusal of a nicety for `path`, and keeps it for a report.
    pub(crate) fn tolerate(&self, nicety: Nicety, path: &[u8], result: Result<()>) -> Result<()> {
        result.or_else(|errno| self.refusals().tolerate(nicety, self.full(path), Err(errno)))
    }

    /// Takes the refusals that were not reported yet.
    pub(crate) fn take_refusals(&self) -> Vec<Refusal> {
        self.refusals().take()
    }

    fn refusals(&self) -> std::sync::MutexGuard<'_, Refusals> {
        // A panic leaves no list half changed.
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens `path`; a symbolic link anywhere gives `ELOOP` or `ENOTDIR`.
    pub(crate) fn open_at(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        // Without O_NONBLOCK a planted named pipe would block; on regular files it does nothing. openat2 refuses it
        // together with O_PATH, which opens nothing.
        let waiting = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NONBLOCK };
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | waiting;
        if self.walks.load(Ordering::Relaxed) {
            return self.walk(path, flags, mode);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        loop {
            match system::openat2(&self.fd, path, flags, mode, resolve) {
                Err(Errno::NOSYS | Errno::PERM) => {
                    let opened = self.walk(path, flags, mode);
                    // A plain EPERM is about the file itself. If the walk succeeds, a sandbox refuses openat2: walk
                    // from now on.
                    self.walks.fetch_or(opened.is_ok(), Ordering::Relaxed);
                    return opened;
                }
                // The walk tells a symbolic link from a file that is not a directory.
                Err(Errno::NOTDIR) => return self.walk(path, flags, mode),
                // The kernel could not tell whether a concurrent rename led outside: try again.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
    }

    fn walk(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let mut at: Option<OwnedFd> = None;
        let mut components = path.split(|byte| *byte == b'/').peekable();
        while let Some(name) = components.next() {
            let parent = at.as_ref().unwrap_or(&self.fd);
            if matches!(name, b"" | b"..") {
                return Err(Errno::XDEV);
            }
            let opened = match components.peek() {
                Some(_) => system::openat(
                    parent,
                    name,
                    DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                ),
                None => system::openat(parent, name, flags, mode),
            };
            let fd = opened.map_err(|errno| told_apart(parent, name, errno))?;
            at = Some(fd);
        }
        at.ok_or(Errno::NOENT)
    }

    /// Calls `act` with the directory that holds `path`, and the last component of `path`.
    pub(crate) fn in_parent<'p, T>(
        &self,
        path: &'p [u8],
        act: impl FnOnce(&OwnedFd, &'p [u8]) -> Result<T>,
    ) -> Result<T> {
        match parent_of(path) {
            (None, name) => act(&self.fd, name),
            (Some(parent), name) => act(&self.open_at(parent, DIRECTORY, Mode::empty())?, name),
        }
    }

    /// Examines the entry at `path` without following a symbolic link; `None` if there is none.
    pub(crate) fn stat(&self, path: &[u8]) -> Result<Option<Stat>> {
        match self.in_parent(path, |dir, name| system::statat(dir, name)) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Examines the regular file at `path`; `None` if nothing is there.
    ///
    /// Anything else gives `ELOOP` (symbolic link) or `EISDIR` (directory, device, ...).
    pub(crate) fn regular(&self, path: &[u8]) -> Result<Option<Stat>> {
        regular(self.stat(path)?)
    }

    /// Refuses anything at `path` but a directory; a path without an entry is accepted.
    pub(crate) fn check_directory(&self, path: &[u8]) -> Result<()> {
        match self.stat(path)?.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            None | Some(FileType::Directory) => Ok(()),
            Some(FileType::Symlink) => Err(Errno::LOOP),
            Some(_) => Err(Errno::NOTDIR),
        }
    }

    /// Makes the directory `path` unless it exists; its parent must exist. Its mode is `mode` without the bits of the
    /// umask, and its owner always has all rights. Returns `true` if the directory was made.
    pub(crate) fn make_directory(&self, path: &[u8], mode: Mode) -> Result<bool> {
        let mode = (mode & !umask()) | Mode::RWXU;
        let result = self.in_parent(path, |dir, name| {
            system::mkdirat(dir, name, mode)?;
            let set = if umask().intersects(mode) { system::chmodat(dir, name, mode) } else { Ok(()) };
            self.tolerate(Nicety::Mode, path, set)
        });
        match result {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let Some(stat) = self.stat(path)? else { return Err(Errno::NOENT) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(false),
            FileType::Symlink => Err(Errno::LOOP),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Opens the directory `path`, to examine or sync it.
    pub(crate) fn open_directory(&self, path: &[u8]) -> Result<OwnedFd> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Removes the file at `path` if there is one.
    pub(crate) fn remove_file(&self, path: &[u8]) -> Result<()> {
        match self.in_parent(path, |dir, name| system::unlinkat(dir, name, AtFlags::empty())) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// Makes an empty file at `path` that only its owner may read and write. An older file of that name is removed and
    /// never written to: it may have a second name. If the directory does not permit removal, the new file is renamed
    /// over the old one.
    pub(crate) fn fresh(&self, path: &[u8]) -> Result<OwnedFd> {
        let create = |path: &[u8]| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            self.open_at(path, flags, Mode::RUSR | Mode::WUSR)
        };
        match self.remove_file(path) {
            Ok(()) => return create(path),
            Err(Errno::PERM | Errno::ACCESS) => {}
            Err(errno) => return Err(errno),
        }
        for number in 0..FRESH_TRIES {
            let beside = [path, format!(".{number}").as_bytes()].concat();
            match create(&beside) {
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
                Ok(fd) => return self.rename_beside(&beside, path, true).map(|()| fd),
            }
        }
        Err(Errno::EXIST)
    }

    /// Removes the file at `path`, or replaces it by an empty one if the directory does not permit removal.
    pub(crate) fn void(&self, path: &[u8]) -> Result<()> {
        match self.remove_file(path) {
            Err(Errno::PERM | Errno::ACCESS) => self.fresh(path).map(drop),
            removed => removed,
        }
    }

    /// Removes the file at `path`; a refusal of the removal is tolerated.
    pub(crate) fn clear_away(&self, path: &[u8]) -> Result<()> {
        match self.remove_file(path) {
            refused @ Err(Errno::PERM | Errno::ACCESS) => self.tolerate(Nicety::Removal, path, refused),
            removed => removed,
        }
    }

    /// Removes the directory at `path` if it is empty. Returns `true` if the directory is gone.
    pub(crate) fn remove_directory(&self, path: &[u8]) -> Result<bool> {
        match self.in_parent(path, |dir, name| system::unlinkat(dir, name, AtFlags::REMOVEDIR)) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Renames `from` to the last component of `to`, in the directory of `from`.
    pub(crate) fn rename_beside(&self, from: &[u8], to: &[u8], replace: bool) -> Result<()> {
        let (_, new) = parent_of(to);
        self.in_parent(from, |dir, old| {
            rename(DirEntry { dir, name: old }, DirEntry { dir, name: new }, replace)
        })
    }

    /// Renames `from` to `to`.
    pub(crate) fn rename(&self, from: &[u8], to: &[u8], replace: bool) -> Result<()> {
        self.in_parent(from, |dir, old| {
            let from = DirEntry { dir, name: old };
            self.in_parent(to, |into, new| rename(from, DirEntry { dir: into, name: new }, replace))
        })
    }

    /// Makes the names in the directory of `path` durable, if the file system can.
    pub(crate) fn sync_parent(&self, path: &[u8]) -> Result<()> {
        let (parent, _) = parent_of(path);
        let synced = match parent {
            None => system::fsync(&self.fd),
            // A directory that may be written but not read cannot be opened for syncing.
            Some(parent) => match self.open_directory(parent) {
                Ok(fd) => system::fsync(fd),
                Err(errno) => Err(errno),
            },
        };
        self.tolerate(Nicety::DurableNames, parent.unwrap_or_default(), synced)
    }

    /// Makes the content of the open file `path` durable, if the file system can.
    pub(crate) fn sync_content(&self, path: &[u8], fd: impl AsFd) -> Result<()> {
        self.tolerate(Nicety::DurableContent, path, system::fdatasync(fd))
    }

    /// Sets the mode of the open file `path`, if the file system can.
    pub(crate) fn set_mode(&self, path: &[u8], fd: impl AsFd, mode: Mode) -> Result<()> {
        self.tolerate(Nicety::Mode, path, system::fchmod(fd, mode))
    }

    /// Sets the times of the open file `path`, if the file system can.
    pub(crate) fn set_times(&self, path: &[u8], fd: impl AsFd, times: &fs::Timestamps) -> Result<()> {
        self.tolerate(Nicety::Time, path, system::futimens(fd, times))
    }
}

/// Name in an open directory.
#[derive(Clone, Copy)]
struct DirEntry<'a> {
    dir: &'a OwnedFd,
    name: &'a [u8],
}

fn rename(from: DirEntry<'_>, to: DirEntry<'_>, replace: bool) -> Result<()> {
    let (DirEntry { dir: from, name: old }, DirEntry { dir: to, name: new }) = (from, to);
    if replace {
        return system::renameat(from, old, to, new);
    }
    match system::rename_new(from, old, to, new) {
        // The file system lacks the atomic form (NFS), or a sandbox refuses the call: test for the new name first.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => match system::statat(to, new) {
            Err(Errno::NOENT) => system::renameat(from, old, to, new),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        },
        other => other,
    }
}

/// Examiner of many paths that opens a directory once for consecutive paths in it. Use it only while nothing is
/// written.
pub(crate) struct PathExaminer<'r> {
    root: &'r Root,
    /// Directory of the last path, and its descriptor if the directory exists.
    at: Option<(Vec<u8>, Option<OwnedFd>)>,
}

impl<'r> PathExaminer<'r> {
    pub(crate) fn new(root: &'r Root) -> Self {
        Self { root, at: None }
    }

    /// Examines the regular file at `path`, like [`Root::regular`].
    pub(crate) fn regular(&mut self, path: &[u8]) -> Result<Option<Stat>> {
        let (Some(parent), name) = parent_of(path) else { return self.root.regular(path) };
        let dir = match self.at.take() {
            Some((at, dir)) if at == parent => dir,
            _ => match self.root.open_at(parent, DIRECTORY, Mode::empty()) {
                Ok(dir) => Some(dir),
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(errno),
            },
        };
        let (_, dir) = self.at.insert((parent.to_vec(), dir));
        let Some(dir) = dir else { return Ok(None) };
        match system::statat(dir, name) {
            Ok(stat) => regular(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// Returns `stat` if it is `None` or of a regular file; `ELOOP` for a symbolic link, `EISDIR` for anything else.
fn regular(stat: Option<Stat>) -> Result<Option<Stat>> {
    match stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        None | Some(FileType::RegularFile) => Ok(stat),
        Some(FileType::Symlink) => Err(Errno::LOOP),
        Some(_) => Err(Errno::ISDIR),
    }
}

/// Turns `ENOTDIR` into `ELOOP` if `name` is a symbolic link: the kernel reports `ENOTDIR` for that too.
fn told_apart(parent: impl AsFd, name: &[u8], errno: Errno) -> Errno {
    if errno != Errno::NOTDIR {
        return errno;
    }
    match system::statat(parent, name) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Errno::LOOP,
        _ => errno,
    }
}

/// Returns the umask: the mode bits that files and directories made by this process do not get.
pub(crate) fn umask() -> Mode {
    static UMASK: OnceLock<Mode> = OnceLock::new();
    *UMASK.get_or_init(|| {
        // The umask can only be read by setting it. Files that another thread makes meanwhile are for their owner
        // alone.
        let mask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        rustix::process::umask(mask);
        mask
    })
}

/// Returns the directory part of `path`, if it has one, and the last component.
pub(crate) fn parent_of(path: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (Some(&path[..at]), &path[at + 1..]),
        None => (None, path),
    }
}

/// Returns the size of a file in bytes.
pub(crate) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Returns the modification time in nanoseconds since 1970; a time outside the range of 64 bits is clamped.
pub(crate) fn mtime_of(stat: &Stat) -> i64 {
    let seconds = i128::from(stat.st_mtime) * 1_000_000_000;
    let time = seconds + i128::from(stat.st_mtime_nsec);
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

/// Converts `time` to nanoseconds since 1970, as returned by [`mtime_of`].
pub(crate) fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
