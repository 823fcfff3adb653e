//! The directory that holds the state of one reception.

use std::os::fd::OwnedFd;

use rustix::fs::{self, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, Result as SystemResult};

use crate::beneath::{Root, size_of};
use crate::journal::Journal;
use crate::manifest::STATE_DIR;
use crate::transfer::read_at;
use crate::{ProductId, StoreError};

/// The longest journal that is read, in bytes: two bitmaps of 2^32 bits and the fixed fields.
const MAX_JOURNAL_LEN: u64 = 2 * (1 << 29) + 1024;
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// `.farcast/<id>` below the receiving directory, locked.
#[derive(Debug)]
pub(super) struct StateDir {
    /// Path below the receiving directory.
    path: Vec<u8>,
    _lock: OwnedFd,
}

impl StateDir {
    /// Makes the directory and locks it.
    pub(super) fn lock(root: &Root, id: ProductId) -> Result<Self, StoreError> {
        let path = [STATE_DIR, b"/", id.to_string().as_bytes()].concat();
        loop {
            for dir in [STATE_DIR, path.as_slice()] {
                root.make_directory(dir).map_err(|errno| root.error(dir, "make the directory", errno, 0))?;
            }
            let lock_path = [&path, b"/lock".as_slice()].concat();
            let lock = match root.open_at(&lock_path, OFlags::RDWR | OFlags::CREATE, OWNER_ONLY) {
                Ok(lock) => lock,
                // Another process finished and removed the directory just now.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(root.error(&lock_path, "open", errno, 0)),
            };
            match fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(StoreError::InUse { path: root.full(b"") }),
                Err(errno) => return Err(root.error(&lock_path, "lock", errno, 0)),
            }
            // A lock on a file that was removed meanwhile protects nothing.
            let links =
                fs::fstat(&lock).map_err(|errno| root.error(&lock_path, "examine", errno, 0))?.st_nlink;
            if links > 0 {
                return Ok(Self { path, _lock: lock });
            }
        }
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

    /// An empty spool of `size` bytes, and no journal.
    pub(super) fn new_spool(&self, root: &Root, size: u64) -> Result<OwnedFd, StoreError> {
        let path = self.spool_path();
        let create = || {
            root.regular(&path)?;
            // Before the spool: a journal must never vouch for bytes of a spool that is not its own.
            root.remove_file(&self.journal_path())?;
            root.remove_file(&path)?;
            let fd = root.open_at(&path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, OWNER_ONLY)?;
            fs::ftruncate(&fd, size)?;
            Ok(fd)
        };
        create().map_err(|errno| root.error(&path, "create", errno, size))
    }

    /// The spool of an earlier run, if it is there, and its size in bytes.
    pub(super) fn old_spool(&self, root: &Root) -> Result<Option<(OwnedFd, u64)>, StoreError> {
        let path = self.spool_path();
        let open = || {
            let Some(stat) = root.regular(&path)? else { return Ok(None) };
            Ok(Some((root.open_at(&path, OFlags::RDWR, Mode::empty())?, size_of(&stat))))
        };
        open().map_err(|errno| root.error(&path, "open", errno, 0))
    }

    /// The journal of an earlier run; `None` if there is none, or it is damaged.
    pub(super) fn journal(&self, root: &Root) -> Result<Option<Journal>, StoreError> {
        let path = self.journal_path();
        let read = || {
            let Some(stat) = root.regular(&path)? else { return Ok(None) };
            let len = size_of(&stat);
            if len > MAX_JOURNAL_LEN {
                return Ok(None);
            }
            let mut bytes = vec![0; len as usize];
            let fd = root.open_at(&path, OFlags::RDONLY, Mode::empty())?;
            let read = read_at(&fd, &mut bytes, 0)?;
            Ok(Journal::decode(&bytes[..read]).ok())
        };
        read().map_err(|errno| root.error(&path, "read", errno, 0))
    }

    /// Removes all of it; `.farcast` too if no other reception uses it.
    pub(super) fn remove(&self, root: &Root) -> Result<(), StoreError> {
        for name in [b"/journal.new".as_slice(), b"/journal", b"/spool", b"/lock"] {
            let path = [&self.path, name].concat();
            root.remove_file(&path).map_err(|errno| root.error(&path, "remove", errno, 0))?;
        }
        for dir in [&self.path, STATE_DIR] {
            let gone = root.remove_directory(dir).map_err(|errno| root.error(dir, "remove", errno, 0))?;
            if !gone {
                break;
            }
        }
        Ok(())
    }
}

/// Replaces the journal in the state directory `dir` by one that is complete on disk, if `sync`.
pub(super) fn replace_journal(root: &Root, dir: &[u8], journal: &Journal, sync: bool) -> SystemResult<()> {
    let (new, path) = ([dir, b"/journal.new"].concat(), [dir, b"/journal"].concat());
    root.remove_file(&new)?;
    let fd = root.open_at(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, OWNER_ONLY)?;
    let bytes = journal.encode();
    crate::transfer::write_at(&fd, &bytes, 0)?;
    if sync {
        fs::fdatasync(&fd)?;
    }
    root.rename_beside(&new, &path, true)?;
    if sync {
        root.sync_parent(&path)?;
    }
    Ok(())
}
