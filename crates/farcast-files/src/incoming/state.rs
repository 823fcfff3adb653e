//! State directory of one reception.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, Result as SystemResult};

use super::delivery::lengthen;
use super::meeting::{clear, trial_path};
use super::owner::OwnerFile;
use crate::beneath::{Root, parent_of, size_of};
use crate::journal::Journal;
use crate::manifest::STATE_DIR;
use crate::transfer::{read_at, write_at};
use crate::{Nicety, ProductId, StoreError, Usage, system};

/// The length of the longest journal that is read, in bytes: two bitmaps of 2^32 bits and the fixed fields.
const MAX_JOURNAL_LEN: u64 = 2 * (1 << 29) + 1024;
/// Name of the lock file while it is being removed.
const GONE: &[u8] = b"/lock.gone";
/// Files in a state directory; the lock is removed last.
pub(crate) const STATE_FILES: [&[u8]; 7] =
    [b"/journal.new", b"/journal", b"/spool", b"/made", b"/parity.index", b"/parity", b"/lock"];
/// Number of times that others may remove the directory while it is being made.
const TRIES: usize = 32;
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// The directory `.farcast/<id>` below the receiving directory. It is made when there is something to keep, and locked
/// as long as it exists.
#[derive(Debug)]
pub(crate) struct StateDir {
    /// Path below the receiving directory.
    path: Vec<u8>,
    lock: Option<Lock>,
}

/// A locked file.
#[derive(Debug)]
struct Lock {
    fd: OwnedFd,
    /// Owner file that keeps other processes away if the file system has no locks.
    _owner: Option<OwnerFile>,
}

impl StateDir {
    /// Locks the directory if an earlier run has left one. Makes nothing.
    pub(crate) fn find(root: &Arc<Root>, id: ProductId) -> Result<Self, StoreError> {
        let path = path_of(id);
        let lock_path = [&path, b"/lock".as_slice()].concat();
        let lock = match root.open_at(&lock_path, OFlags::RDWR, Mode::empty()) {
            Ok(lock) => lock_once(root, &lock_path, lock)?,
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(root.error(&lock_path, "open", errno, 0)),
        };
        Ok(Self { path, lock })
    }

    /// Makes the directory and locks it.
    pub(super) fn make(&mut self, root: &Arc<Root>) -> Result<(), StoreError> {
        let lock_path = [&self.path, b"/lock".as_slice()].concat();
        for _ in 0..TRIES {
            if self.lock.is_some() {
                return Ok(());
            }
            for dir in [STATE_DIR, self.path.as_slice()] {
                root.make_directory(dir, Mode::RWXU)
                    .map_err(|errno| root.error(dir, "make the directory", errno, 0))?;
            }
            self.lock = match root.open_at(&lock_path, OFlags::RDWR | OFlags::CREATE, OWNER_ONLY) {
                Ok(lock) => lock_once(root, &lock_path, lock)?,
                // Another process has just finished and removed the directory.
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(root.error(&lock_path, "open", errno, 0)),
            };
        }
        if self.is_made() { Ok(()) } else { Err(root.error(&lock_path, "make", Errno::NOENT, 0)) }
    }

    /// Returns `true` if the directory exists and is locked by this process.
    pub(crate) fn is_made(&self) -> bool {
        self.lock.is_some()
    }

    /// Records the disk space of the product for other receptions. This happens before the space is used, so that the
    /// space of a killed process is known too.
    pub(super) fn record(&self, root: &Root, usage: Usage) -> Result<(), StoreError> {
        let Some(Lock { fd: lock, .. }) = self.lock.as_ref().filter(|_| self.recorded() != Some(usage))
        else {
            return Ok(());
        };
        let bytes = [usage.octets.to_be_bytes(), usage.inodes.to_be_bytes()].concat();
        write_at(lock, &bytes, 0)
            .map_err(|errno| root.error(&[&self.path, b"/lock".as_slice()].concat(), "write", errno, 0))
    }

    /// Returns the recorded upper bound of the product's disk space; `None` if it was never recorded.
    pub(super) fn recorded(&self) -> Option<Usage> {
        self.lock.as_ref().and_then(|lock| usage_in(&lock.fd))
    }

    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    pub(super) fn spool_path(&self) -> Vec<u8> {
        [&self.path, b"/spool".as_slice()].concat()
    }

    pub(super) fn journal_path(&self) -> Vec<u8> {
        [&self.path, b"/journal".as_slice()].concat()
    }

    /// Creates an empty spool of `size` bytes, and removes the journal.
    pub(super) fn new_spool(&self, root: &Root, size: u64) -> Result<OwnedFd, StoreError> {
        let path = self.spool_path();
        let create = || {
            root.regular(&path)?;
            // Before the spool: a journal must never vouch for bytes of a spool that is not its own.
            root.void(&self.journal_path())?;
            let fd = root.fresh(&path)?;
            lengthen(&fd, size)?;
            Ok(fd)
        };
        create().map_err(|errno| root.error(&path, "create", errno, size))
    }

    /// Opens the spool of an earlier run, if it exists. Also returns its size in bytes.
    pub(super) fn old_spool(&self, root: &Root) -> Result<Option<(OwnedFd, u64)>, StoreError> {
        let path = self.spool_path();
        let open = || {
            let Some(stat) = root.regular(&path)? else { return Ok(None) };
            Ok(Some((root.open_at(&path, OFlags::RDWR, Mode::empty())?, size_of(&stat))))
        };
        open().map_err(|errno| root.error(&path, "open", errno, 0))
    }

    /// Reads the journal of an earlier run; `None` if it is missing or damaged.
    pub(super) fn journal(&self, root: &Root) -> Result<Option<Journal>, StoreError> {
        let path = self.journal_path();
        read_journal(root, &path).map_err(|errno| root.error(&path, "read", errno, 0))
    }

    /// Removes the directory with everything in it, and `.farcast` if no other reception uses it.
    pub(crate) fn remove(&mut self, root: &Root) -> Result<(), StoreError> {
        self.try_remove(root).map_err(|errno| root.error(&self.path, "remove", errno, 0))
    }

    /// Removes the directory after the reception is complete; a failure is tolerated.
    pub(super) fn remove_complete(&mut self, root: &Root) {
        let removed = self.try_remove(root);
        // A refused removal is never an error.
        let _ = root.tolerate(Nicety::Removal, &self.path, removed);
    }

    fn try_remove(&mut self, root: &Root) -> SystemResult<()> {
        if self.lock.is_none() {
            return Ok(());
        }
        let at = |name: &[u8]| [&self.path, name].concat();
        let files = STATE_FILES.iter().filter(|name| **name != b"/lock");
        files.clone().try_for_each(|name| root.remove_file(&at(name)))?;
        clear(root, &trial_path(&self.path))?;
        // Withheld content, and files that somebody else has put here.
        for name in system::list(root.open_directory(&self.path)?)? {
            if name.as_bytes() != b"lock" {
                root.remove_file(&at(&[b"/", name.as_bytes()].concat()))?;
            }
        }
        // Under its own name the lock keeps others away until it is renamed. It is closed before its removal: some file
        // systems keep a removed file while it is open, and then the directory would not be empty.
        root.rename_beside(&at(b"/lock"), &at(GONE), true)?;
        self.lock = None;
        remove_unlocked(root, &self.path)
    }
}

/// Removes the state directory `path`, whose lock is gone, unless somebody has begun to use it again.
pub(crate) fn remove_unlocked(root: &Root, path: &[u8]) -> SystemResult<()> {
    root.remove_file(&[path, GONE].concat())?;
    for dir in [path, STATE_DIR] {
        if !root.remove_directory(dir)? {
            break;
        }
    }
    Ok(())
}

/// Returns the path of the state directory of the product `id`.
pub(crate) fn path_of(id: ProductId) -> Vec<u8> {
    [STATE_DIR, b"/", id.to_string().as_bytes()].concat()
}

/// Reads the recorded disk space from a lock file.
pub(crate) fn usage_in(lock: &OwnedFd) -> Option<Usage> {
    let mut bytes = [0; 16];
    let whole = read_at(lock, &mut bytes, 0).is_ok_and(|read| read == bytes.len());
    let number = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    whole.then(|| Usage { octets: number(0), inodes: number(8) })
}

/// Reads the journal at `path`; `None` if it is missing or damaged.
pub(crate) fn read_journal(root: &Root, path: &[u8]) -> SystemResult<Option<Journal>> {
    let Some(stat) = root.regular(path)? else { return Ok(None) };
    let len = size_of(&stat);
    if len > MAX_JOURNAL_LEN {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    let fd = root.open_at(path, OFlags::RDONLY, Mode::empty())?;
    let read = read_at(&fd, &mut bytes, 0)?;
    Ok(Journal::decode(&bytes[..read]).ok())
}

/// Locks the file `lock`. Returns `None` if the file was removed meanwhile, so that the lock protects nothing.
fn lock_once(root: &Arc<Root>, path: &[u8], lock: OwnedFd) -> Result<Option<Lock>, StoreError> {
    let failed = |action| move |errno| root.error(path, action, errno, 0);
    let in_use = || StoreError::InUse { path: root.full(b"") };
    let owner = match system::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => None,
        Err(Errno::WOULDBLOCK) => return Err(in_use()),
        Err(errno) => {
            root.tolerate(Nicety::Lock, path, Err(errno)).map_err(failed("lock"))?;
            let state = parent_of(path).0.unwrap_or_default();
            Some(OwnerFile::take(root, state).map_err(failed("lock"))?.ok_or_else(in_use)?)
        }
    };
    // The file may have been removed, or renamed for removal, before it was locked.
    let there = root.stat(path).map_err(failed("examine"))?;
    let ours = system::fstat(&lock).map_err(failed("examine"))?;
    let same = there.is_some_and(|there| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino));
    Ok(same.then_some(Lock { fd: lock, _owner: owner }))
}

/// Replaces the journal in the state directory `dir` after the new one is complete; with `sync`, durable. Returns its
/// length in bytes.
pub(super) fn replace_journal(root: &Root, dir: &[u8], journal: &Journal, sync: bool) -> SystemResult<u64> {
    let (new, path) = ([dir, b"/journal.new"].concat(), [dir, b"/journal"].concat());
    let fd = root.fresh(&new)?;
    let bytes = journal.encode();
    write_at(&fd, &bytes, 0)?;
    if sync {
        root.sync_content(&new, &fd)?;
    }
    root.rename_beside(&new, &path, true)?;
    if sync {
        root.sync_parent(&path)?;
    }
    Ok(bytes.len() as u64)
}
