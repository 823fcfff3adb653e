//! Verification of complete files, and the step that gives them their final names.

use core::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{self, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::{Errno, Result as SystemResult};

use super::delivery::{Delivery, Stage};
use super::unpack::digest;
use super::withheld::{WithheldReason, is_missing_name};
use super::{Happening, Incoming};
use crate::beneath::{Root, mtime_of, size_of, umask};
use crate::{Entry, Nicety, StoreError, system};

/// Value of [`Timespec`] that leaves a time unchanged, by `UTIME_OMIT`.
const OMIT: Timespec = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };

impl Incoming {
    /// Gives every file that has all its bytes its final name. Damaged parts are discarded.
    pub(super) fn complete_files(&mut self) -> Result<(), StoreError> {
        let mut failure = None;
        let mut left = if self.holds_back() { self.released } else { usize::MAX };
        while left > 0
            && let Some(delivery) = &mut self.delivery
            && let Some(&file) = delivery.ready.front()
        {
            // Data that shares a segment with this file may have been discarded since.
            if !delivery.is_done(file) && delivery.files[file].missing == 0 {
                if let Err(error) = self.complete_file(file) {
                    failure = Some(error);
                    break;
                }
                self.changed = true;
            }
            if let Some(delivery) = &mut self.delivery {
                delivery.ready.pop_front();
            }
            left -= 1;
        }
        let forgotten = self.forget_damaged();
        failure.map_or(Ok(()), Err).and(forgotten)
    }

    /// Gives `file`, which has all its bytes, its name unless some of its parts are damaged.
    fn complete_file(&mut self, file: usize) -> Result<(), StoreError> {
        let Some(delivery) = &mut self.delivery else { return Ok(()) };
        if !delivery.check_parts(file)? {
            return Ok(());
        }
        if delivery.entry(file).is_compressed() {
            self.complete_compressed(file)?;
        } else if delivery.is_withheld(file) {
            delivery.set_done(file);
        } else {
            delivery.complete(file)?;
            if !delivery.is_withheld(file) {
                self.room.give_up(delivery.layout.spans()[file].size, 1);
            }
        }
        if let Some(delivery) = &mut self.delivery
            && !delivery.is_withheld(file)
            && delivery.told.insert(file)
        {
            let index = delivery.layout.spans()[file].entry;
            self.happenings.push(Happening::FileDone { index });
            if let Some(delivery) = &self.delivery {
                let path = &delivery.entry(file).path;
                self.note_delivered(path, path);
            }
        }
        Ok(())
    }
}

impl Delivery {
    /// Gives `file`, which is complete and verified, its name.
    fn complete(&mut self, file: usize) -> Result<(), StoreError> {
        let ControlFlow::Continue(existing) = self.free_target(file)? else { return Ok(()) };
        let mode = existing.map_or_else(|| self.new_mode(file), |stat| kept_mode(&stat));
        self.seal(file, mode)
            .map_err(|errno| self.error(file, "complete", errno, self.layout.spans()[file].size))?;
        let from = self.partial_path(file);
        let fd = self.open.take(file);
        if let Err(errno) = fd.map_or(Ok(()), |fd| self.name(file, &from, &fd)) {
            let error = || self.error(file, "rename a complete file to", errno, 0);
            let why = self.why_unnamed(&from, errno).ok_or_else(error)?;
            return self.keep_withheld(file, why);
        }
        self.set_done(file);
        Ok(())
    }

    /// Examines the target of `file`, which is complete. Continues with the existing file that may be replaced, if
    /// there is one. Breaks if the target may not be replaced; the file is then withheld.
    pub(super) fn free_target(&mut self, file: usize) -> Result<ControlFlow<(), Option<Stat>>, StoreError> {
        let why = match self.root.regular(&self.entry(file).path) {
            Ok(there) => match there.and_then(|stat| self.meets_named(file, &stat)) {
                None => return Ok(ControlFlow::Continue(there)),
                Some(why) => why,
            },
            Err(errno) => WithheldReason::of(errno).ok_or_else(|| self.error(file, "examine", errno, 0))?,
        };
        self.keep_withheld(file, why).map(ControlFlow::Break)
    }

    /// Withholds `file`, which is complete and verified.
    pub(super) fn keep_withheld(&mut self, file: usize, why: WithheldReason) -> Result<(), StoreError> {
        self.withhold_complete(file, why).map_err(|errno| self.error(file, "keep", errno, 0))
    }

    /// Returns the reason for withholding a file that could not be renamed from `from`; `None` if `errno` is an error
    /// of another kind.
    pub(super) fn why_unnamed(&self, from: &[u8], errno: Errno) -> Option<WithheldReason> {
        WithheldReason::of(errno)
            .or_else(|| is_missing_name(&self.root, from, errno).then_some(WithheldReason::Impossible(errno)))
    }

    /// Renames the open file at `from`, which has the content of `file`, to its final name.
    pub(super) fn name(&mut self, file: usize, from: &[u8], fd: &OwnedFd) -> SystemResult<()> {
        let stat = system::fstat(fd)?;
        self.root.rename_beside(from, &self.entry(file).path, self.overwrites())?;
        self.named.insert((stat.st_dev, stat.st_ino), file);
        Ok(())
    }

    /// Returns the reason for withholding `file` if its target is another file of this product, because the names are
    /// the same here.
    pub(super) fn meets_named(&self, file: usize, there: &Stat) -> Option<WithheldReason> {
        // A file with several hard links may have two names that differ.
        let other = *self.named.get(&(there.st_dev, there.st_ino)).filter(|_| there.st_nlink == 1)?;
        (other != file).then(|| WithheldReason::Meets { other: self.entry(other).path.clone() })
    }

    /// Returns the mode of a file that did not exist: the sender's mode without the bits of the umask. The owner keeps
    /// the rights that the sender's mode has, and may always read.
    pub(super) fn new_mode(&self, file: usize) -> Mode {
        let wanted = Mode::from_raw_mode(self.entry(file).mode.into());
        (wanted & !umask()) | (wanted & Mode::RWXU) | Mode::RUSR
    }

    /// Sets the mode and time of a partial file, and makes it durable.
    fn seal(&mut self, file: usize, mode: Mode) -> SystemResult<()> {
        let dress = self.dress(file, mode);
        let (fd, _) = self.partial(file)?;
        dress.put_on(fd)?;
        let synced = dress.sync(fd);
        if synced.is_err() {
            // The kernel may have dropped data that it could not write, and reports that only once.
            self.doubt(file);
        }
        synced
    }

    /// Returns the final metadata of `file`, whose content is complete, with the given `mode`.
    pub(super) fn dress(&self, file: usize, mode: Mode) -> Dress {
        let entry = self.entry(file);
        let (root, path) = (Arc::clone(&self.root), entry.path.clone());
        Dress { root, path, mode, times: times_of(entry), sync: self.syncs() }
    }

    /// Examines the target of `file`, and refuses anything but a regular file.
    pub(super) fn check_target(&self, file: usize) -> Result<Option<Stat>, StoreError> {
        self.root.regular(&self.entry(file).path).map_err(|errno| self.error(file, "examine", errno, 0))
    }

    /// Tests whether the target of `file` exists with the right content. Returns `true` and marks `file` as done if so.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if the target has other content and is to be kept.
    pub(super) fn recognise(&mut self, file: usize) -> Result<bool, StoreError> {
        if self.is_withheld(file) {
            return Ok(false);
        }
        let Some(stat) = self.check_target(file)? else { return Ok(false) };
        let same = size_of(&stat) == self.entry(file).size() && self.target_has_digest(file)?;
        if same {
            if self.overwrites() {
                self.correct_target(file).map_err(|errno| self.error(file, "set the time of", errno, 0))?;
            }
            self.named.insert((stat.st_dev, stat.st_ino), file);
            self.set_done(file);
        } else if !self.overwrites() {
            return Err(StoreError::AlreadyExists { path: self.root.full(&self.entry(file).path) });
        }
        Ok(same)
    }

    fn target_has_digest(&mut self, file: usize) -> Result<bool, StoreError> {
        let target = self.root.open_at(&self.entry(file).path, OFlags::RDONLY, Mode::empty());
        match target.and_then(|fd| digest(&fd)) {
            Ok(digest) => Ok(self.entry(file).digest() == Some(digest)),
            // A file that may be replaced but not read counts as one with other content.
            Err(Errno::ACCESS) => Ok(false),
            Err(errno) => Err(self.error(file, "read", errno, 0)),
        }
    }

    /// Sets the time of a target that already has the right content. Its mode stays as its owner has set it.
    fn correct_target(&self, file: usize) -> SystemResult<()> {
        let entry = self.entry(file);
        let fd = self.root.open_at(&entry.path, OFlags::RDONLY, Mode::empty())?;
        if mtime_of(&system::fstat(&fd)?) == entry.mtime_ns {
            return Ok(());
        }
        self.root.tolerate(
            Nicety::Time,
            &entry.path,
            unless_not_ours(system::futimens(&fd, &times_of(entry))),
        )
    }

    /// Removes the partial files of `file`.
    pub(super) fn drop_partial(&mut self, file: usize) -> Result<(), StoreError> {
        self.remove_partials(file)?;
        self.open.close(file);
        self.dirty.remove(&file);
        self.files[file].stage = Stage::Absent;
        self.files[file].tree = None;
        Ok(())
    }
}

/// Final metadata of a complete file, and the choice whether it is synced.
pub(super) struct Dress {
    root: Arc<Root>,
    path: Vec<u8>,
    mode: Mode,
    times: Timestamps,
    sync: bool,
}

impl Dress {
    /// Sets mode and time, as far as the file system can.
    pub(super) fn put_on(&self, fd: &OwnedFd) -> SystemResult<()> {
        self.root.set_mode(&self.path, fd, self.mode)?;
        self.root.set_times(&self.path, fd, &self.times)
    }

    /// Makes the content durable if [`Durability::Sync`](super::Durability::Sync) is set.
    pub(super) fn sync(&self, fd: &OwnedFd) -> SystemResult<()> {
        if self.sync { self.root.sync_content(&self.path, fd) } else { Ok(()) }
    }
}

/// Returns the mode that a file keeps when its content is replaced. Set-user-id and the like are removed: content from
/// a sender must not run with the owner's rights.
pub(super) fn kept_mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO)
}

/// Tolerates a refusal: files of other users stay as they are.
pub(super) fn unless_not_ours(result: SystemResult<()>) -> SystemResult<()> {
    match result {
        Err(Errno::PERM | Errno::ACCESS) => Ok(()),
        other => other,
    }
}

pub(super) fn times_of(entry: &Entry) -> Timestamps {
    times_at(entry.mtime_ns)
}

/// Returns the modification time `mtime_ns`, in nanoseconds since 1970, for a call that leaves the access time
/// unchanged.
pub(super) fn times_at(mtime_ns: i64) -> Timestamps {
    let (whole, rest) = (mtime_ns.div_euclid(1_000_000_000), mtime_ns.rem_euclid(1_000_000_000));
    Timestamps { last_access: OMIT, last_modification: Timespec { tv_sec: whole, tv_nsec: rest } }
}
