//! Complete files get their names.

use core::ops::Range;

use rustix::fs::{self, Mode, OFlags, Timespec, Timestamps};
use rustix::io::{Errno, Result as SystemResult};

use super::delivery::{Delivery, Stage};
use super::{Happening, Incoming};
use crate::beneath::{mtime_of, size_of};
use crate::transfer::{Space, read_at};
use crate::{Entry, EntryKind, StoreError};

/// Where [`Timespec`] says "leave it": what `UTIME_OMIT` is.
const OMIT: Timespec = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };

impl Incoming {
    /// Gives every file that has all its bytes its final name; those that are damaged are forgotten.
    pub(super) fn complete_files(&mut self) -> Result<(), StoreError> {
        let Some(delivery) = &mut self.delivery else { return Ok(()) };
        let mut damaged = Vec::new();
        let mut failure = None;
        while let Some(&file) = delivery.ready.front() {
            match delivery.complete(file) {
                Ok(true) => {
                    self.happenings.push(Happening::FileDone { index: delivery.layout.spans()[file].entry });
                }
                Ok(false) => damaged.push(file),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
            delivery.ready.pop_front();
            self.changed = true;
        }
        let forgotten = self.forget(&damaged);
        failure.map_or(Ok(()), Err).and(forgotten)
    }

    /// Drops all that is known of damaged files, here and in the journal, so that they can be received again.
    fn forget(&mut self, damaged: &[usize]) -> Result<(), StoreError> {
        let (Some(delivery), Some(first)) = (&mut self.delivery, damaged.first()) else { return Ok(()) };
        let path = delivery.root.full(&delivery.entry(*first).path);
        for file in damaged {
            delivery.drop_partial(*file)?;
            if let Some(run) = self.geometry.touching(&delivery.layout.spans()[*file].bytes()) {
                self.held.remove_run(run);
                delivery.distrust(self.geometry.bytes(run));
            }
        }
        delivery.count_missing(&self.held, &self.geometry);
        self.changed = true;
        self.write_journal()?;
        Err(StoreError::DigestMismatch { path })
    }
}

impl Delivery {
    /// Gives `file`, which has all its bytes, its name; `false` if its digest is wrong.
    fn complete(&mut self, file: usize) -> Result<bool, StoreError> {
        let tree = core::mem::take(&mut self.files[file].tree);
        let mut scratch = core::mem::take(&mut self.scratch);
        let found = tree.root(&mut scratch, |group, buffer| self.read_group(file, group, buffer));
        self.scratch = scratch;
        self.files[file].tree = tree;
        if digest_of(self.entry(file)) != Some(found?) {
            return Ok(false);
        }
        self.check_target(file)?;
        self.seal(file)
            .map_err(|errno| self.error(file, "complete", errno, self.layout.spans()[file].size))?;
        let (from, replace) = (self.partial_path(file), self.overwrites());
        let renamed = self.root.rename_beside(&from, &self.entry(file).path, replace);
        renamed.map_err(|errno| self.error(file, "rename a complete file to", errno, 0))?;
        self.set_done(file);
        Ok(true)
    }

    /// Sets mode and time of a partial, and makes it durable.
    fn seal(&mut self, file: usize) -> SystemResult<()> {
        let (mode, times) = (mode_of(self.entry(file)), times_of(self.entry(file)));
        let sync = self.syncs();
        let (fd, _) = self.partial(file)?;
        fs::fchmod(fd, mode)?;
        fs::futimens(fd, &times)?;
        if sync { fs::fdatasync(fd) } else { Ok(()) }
    }

    /// Refuses a target that is anything but a regular file, if there is one; its size.
    pub(super) fn check_target(&self, file: usize) -> Result<Option<u64>, StoreError> {
        let stat = self.root.regular(&self.entry(file).path);
        stat.map(|stat| stat.as_ref().map(size_of)).map_err(|errno| self.error(file, "examine", errno, 0))
    }

    /// Whether the target of `file` exists with the right content; if so, `file` is done.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if it has other content and is to be kept.
    pub(super) fn recognise(&mut self, file: usize) -> Result<bool, StoreError> {
        let Some(size) = self.check_target(file)? else { return Ok(false) };
        let same = size == self.layout.spans()[file].size && self.target_has_digest(file)?;
        if same {
            if self.overwrites() {
                self.correct_target(file)
                    .map_err(|errno| self.error(file, "set the mode and time of", errno, 0))?;
            }
            self.set_done(file);
        } else if !self.overwrites() {
            return Err(StoreError::AlreadyExists { path: self.root.full(&self.entry(file).path) });
        }
        Ok(same)
    }

    fn target_has_digest(&mut self, file: usize) -> Result<bool, StoreError> {
        let mut buffer = core::mem::take(&mut self.scratch);
        buffer.resize(crate::tree::GROUP_LEN as usize, 0);
        let digest = self.target_digest(file, &mut buffer);
        self.scratch = buffer;
        match digest {
            Ok(digest) => Ok(digest_of(self.entry(file)) == Some(digest)),
            // A file that may be replaced but not read is a file with other content.
            Err(Errno::ACCESS) => Ok(false),
            Err(errno) => Err(self.error(file, "read", errno, 0)),
        }
    }

    fn target_digest(&self, file: usize, buffer: &mut [u8]) -> SystemResult<[u8; 32]> {
        let fd = self.root.open_at(&self.entry(file).path, OFlags::RDONLY, Mode::empty())?;
        let mut hasher = blake3::Hasher::new();
        loop {
            match read_at(&fd, buffer, hasher.count())? {
                0 => return Ok(*hasher.finalize().as_bytes()),
                read => hasher.update(&buffer[..read]),
            };
        }
    }

    /// Sets mode and time of a target that has the right content already.
    fn correct_target(&self, file: usize) -> SystemResult<()> {
        let entry = self.entry(file);
        let fd = self.root.open_at(&entry.path, OFlags::RDONLY, Mode::empty())?;
        let stat = fs::fstat(&fd)?;
        if stat.st_mode & 0o777 != u32::from(entry.mode) {
            fs::fchmod(&fd, mode_of(entry))?;
        }
        if mtime_of(&stat) != entry.mtime_ns {
            fs::futimens(&fd, &times_of(entry))?;
        }
        Ok(())
    }

    /// Removes the partial of `file`.
    pub(super) fn drop_partial(&mut self, file: usize) -> Result<(), StoreError> {
        let path = self.partial_path(file);
        self.root.remove_file(&path).map_err(|errno| self.root.error(&path, "remove", errno, 0))?;
        self.open.close(file);
        self.dirty.remove(&file);
        self.files[file].stage = Stage::Absent;
        self.files[file].tree.clear();
        Ok(())
    }

    /// Files with a byte in `bytes`, which are to be received again, may have been damaged by what they had there.
    pub(super) fn distrust(&mut self, bytes: Range<u64>) {
        for file in self.layout.pieces(bytes).filter_map(|piece| piece.file) {
            let state = &mut self.files[file];
            if let Stage::Partial(space) = &mut state.stage {
                *space = Space::Unknown;
                state.tree.clear();
            }
        }
    }
}

fn digest_of(entry: &Entry) -> Option<[u8; 32]> {
    match entry.kind {
        EntryKind::File { digest, .. } => Some(digest),
        EntryKind::Directory => None,
    }
}

pub(super) fn mode_of(entry: &Entry) -> Mode {
    Mode::from_raw_mode(entry.mode.into())
}

pub(super) fn times_of(entry: &Entry) -> Timestamps {
    let whole = entry.mtime_ns.div_euclid(1_000_000_000);
    let rest = entry.mtime_ns.rem_euclid(1_000_000_000);
    Timestamps { last_access: OMIT, last_modification: Timespec { tv_sec: whole, tv_nsec: rest } }
}
