//! Compressed files. The received content is decompressed into a file beside it, which gets the final name.
//!
//! The received content stays until the whole product is complete. A block that it shares with other files may still
//! have to be rebuilt from parity, which needs the octets that were sent. For a file that existed before, these octets
//! are made again by compressing its content when they are needed. Another version of zstd probably, but not certainly,
//! makes the same octets; if not, they are received.

use core::ops::ControlFlow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use farcast_core::Run;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result as SystemResult};

use super::delivery::{Delivery, Stage, lengthen, partial_path};
use super::{Happening, Incoming};
use crate::beneath::size_of;
use crate::compression::{UnpackError, pack, unpack};
use crate::transfer::{Gather, Space, read_at, write_at};
use crate::{Nicety, StoreError};

/// Length in bytes of the pieces in which zeros are looked for, so that they become holes.
const GRAIN: usize = 4096;

impl Incoming {
    /// Decompresses the compressed `file`, which is complete and verified, and gives it its final name.
    pub(super) fn complete_compressed(&mut self, file: usize) -> Result<(), StoreError> {
        let Some(delivery) = &mut self.delivery else { return Ok(()) };
        if delivery.is_withheld(file) {
            delivery.set_done(file);
            delivery.files[file].stored_known = true;
            return Ok(());
        }
        if delivery.free_target(file)?.is_break() {
            return Ok(());
        }
        // An earlier run may have given it its name and been killed before it noted that.
        if delivery.recognise(file)? {
            return Ok(());
        }
        let size = delivery.entry(file).size();
        self.make_aside(size)?;
        let unpacked = self.delivery.as_mut().map_or(Ok(()), |delivery| delivery.unpack(file));
        self.room.give_up_aside(size);
        unpacked
    }

    /// Makes the compressed content of `file` readable. Returns `false` if it has to be received again.
    pub(super) fn restore(&mut self, file: usize) -> Result<bool, StoreError> {
        let Some(delivery) = &mut self.delivery else { return Ok(true) };
        if !delivery.is_hollow(file) || delivery.keeps_stored(file)? {
            return Ok(true);
        }
        let stored = delivery.layout.spans()[file].size;
        self.make_room(stored)?;
        let Some(delivery) = &mut self.delivery else { return Ok(true) };
        let packed = delivery.pack(file);
        self.room.count_made(delivery.take_made());
        if !matches!(packed, Ok(true)) {
            self.room.give_up(stored, 1);
        }
        if packed? {
            return Ok(true);
        }
        if let Some(lost) = delivery.take_back(file, &self.geometry) {
            self.held.remove_run(lost);
            delivery.recount(&self.geometry.bytes(lost), &self.held, &self.geometry);
            self.changed = true;
            self.happenings.push(Happening::Dropped { lost });
        }
        Ok(false)
    }
}

impl Delivery {
    /// Returns the path at which the compressed `file` is decompressed.
    fn unpacked_path(&self, file: usize) -> Vec<u8> {
        unpacked_path(&self.entry(file).path, &self.id.tag(), file)
    }

    /// Returns the paths at which data of `file` may exist beside its final name.
    pub(super) fn partial_paths(&self, file: usize) -> Vec<Vec<u8>> {
        let unpacks = self.entry(file).is_compressed() && !self.is_withheld(file);
        let unpacked = unpacks.then(|| self.unpacked_path(file));
        [self.partial_path(file)].into_iter().chain(unpacked).collect()
    }

    /// Returns the size in bytes of all compressed files that are not complete yet.
    pub(super) fn unpacked_bytes(&self) -> u64 {
        let to_come = |file: &usize| !self.is_done(*file) && self.entry(*file).is_compressed();
        (0..self.files.len()).filter(to_come).map(|file| self.entry(file).size()).sum()
    }

    /// Decompresses `file` and gives it its name.
    fn unpack(&mut self, file: usize) -> Result<(), StoreError> {
        let path = self.unpacked_path(file);
        let unpacked = self.unpack_to(file, &path);
        if unpacked.is_err() {
            // If the removal fails, the file is removed with the product.
            let _ = self.root.remove_file(&path);
        }
        unpacked
    }

    fn unpack_to(&mut self, file: usize, path: &[u8]) -> Result<(), StoreError> {
        let ControlFlow::Continue(existing) = self.free_target(file)? else { return Ok(()) };
        let mode = existing.map_or_else(|| self.new_mode(file), |stat| super::complete::kept_mode(&stat));
        let size = self.entry(file).size();
        let created = self.create_fresh(path).and_then(|fd| lengthen(&fd, size).map(|()| fd));
        let fd = created.map_err(|errno| self.root.error(path, "create", errno, size))?;
        let mut hasher = blake3::Hasher::new();
        let write = |at: u64, bytes: &[u8]| {
            hasher.update(bytes);
            let slices: Vec<&[u8]> = bytes.chunks(GRAIN).collect();
            Gather::new(&slices).write(fd.as_fd(), Space::Fresh, at, bytes.len() as u64)
        };
        let stored = self.layout.spans()[file].size;
        let packed = self.root.open_at(&self.partial_path(file), OFlags::RDONLY, Mode::empty());
        let packed = packed.map_err(|errno| self.error(file, "read", errno, 0))?;
        match unpack(&packed, stored, size, write) {
            Ok(()) if self.entry(file).digest() == Some(*hasher.finalize().as_bytes()) => {}
            Ok(()) | Err(UnpackError::Wrong) => {
                return Err(StoreError::BadCompression { path: self.root.full(&self.entry(file).path) });
            }
            Err(UnpackError::Read(errno)) => return Err(self.error(file, "read", errno, 0)),
            Err(UnpackError::Write(errno)) => return Err(self.error(file, "write", errno, size)),
        }
        let dress = self.dress(file, mode);
        let finished = dress.put_on(&fd).and_then(|()| dress.sync(&fd));
        finished.map_err(|errno| self.error(file, "complete", errno, size))?;
        if let Err(errno) = self.name(file, path, &fd) {
            let why = self.why_unnamed(path, errno);
            let why = why.ok_or_else(|| self.error(file, "rename a complete file to", errno, 0))?;
            self.root.clear_away(path).map_err(|errno| self.root.error(path, "remove", errno, 0))?;
            return self.keep_withheld(file, why);
        }
        self.set_done(file);
        self.files[file].stored_known = true;
        Ok(())
    }

    /// Returns `true` if `file` is complete, but its compressed content may be missing.
    fn is_hollow(&self, file: usize) -> bool {
        self.is_done(file) && self.entry(file).is_compressed() && !self.files[file].stored_known
    }

    /// Tests whether an earlier run has left the compressed content of `file`.
    fn keeps_stored(&mut self, file: usize) -> Result<bool, StoreError> {
        let (path, stored) = (self.partial_path(file), self.layout.spans()[file].size);
        let look = || -> SystemResult<bool> {
            let there = self.root.regular(&path)?;
            if there.is_none_or(|stat| size_of(&stat) != stored || stat.st_nlink != 1) {
                return Ok(false);
            }
            let fd = self.root.open_at(&path, OFlags::RDONLY, Mode::empty())?;
            Ok(self.entry(file).stored_digest() == Some(digest(&fd)?))
        };
        let kept = look().map_err(|errno| self.root.error(&path, "read", errno, 0))?;
        self.files[file].stored_known = kept;
        Ok(kept)
    }

    /// Compresses the content of `file` again. Returns `false` and keeps nothing if the result is not the content that
    /// was sent.
    fn pack(&mut self, file: usize) -> Result<bool, StoreError> {
        let path = self.partial_path(file);
        let stored = self.layout.spans()[file].size;
        let packed = self.pack_to(file, &path);
        let same = packed.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            self.root.error(&path, "write", errno, stored)
        });
        if matches!(same, Ok(true)) {
            self.files[file].stored_known = true;
        } else {
            // If the removal fails, the file is removed with the product.
            let _ = self.root.remove_file(&path);
        }
        same
    }

    fn pack_to(&mut self, file: usize, path: &[u8]) -> io::Result<bool> {
        let Ok(target) = self.root.open_at(&self.entry(file).path, OFlags::RDONLY, Mode::empty()) else {
            // Somebody has removed the file meanwhile.
            return Ok(false);
        };
        let fd = self.create_fresh(path)?;
        self.made += 1;
        let (mut hasher, mut at, most) = (blake3::Hasher::new(), 0, self.layout.spans()[file].size);
        let mut shorter = false;
        let packed = pack(
            self.entry(file).size(),
            |group, from| {
                shorter |= read_at(&target, group, from)? < group.len();
                Ok::<_, io::Error>(())
            },
            |frame| {
                hasher.update(frame);
                // A longer result is wrong anyway, so it needs no room.
                if at + frame.len() as u64 <= most {
                    write_at(&fd, frame, at)?;
                }
                at += frame.len() as u64;
                Ok(())
            },
        );
        packed?;
        let digest = Some(*hasher.finalize().as_bytes());
        Ok(!shorter && at == most && self.entry(file).stored_digest() == digest)
    }

    /// Marks the complete `file` as absent. Returns its segments, which have to be received again.
    fn take_back(&mut self, file: usize, geometry: &crate::layout::Geometry) -> Option<Run> {
        self.files[file].stage = Stage::Absent;
        self.undone += 1;
        geometry.touching(&self.layout.spans()[file].bytes())
    }

    /// Removes the partial files of `file`.
    pub(super) fn remove_partials(&self, file: usize) -> Result<(), StoreError> {
        self.partial_paths(file).iter().try_for_each(|path| {
            self.root.clear_away(path).map_err(|errno| self.root.error(path, "remove", errno, 0))
        })
    }

    /// Removes the content of compressed files at the end, when a failure to remove it is tolerated.
    pub(super) fn remove_stored_at_end(&self) -> Result<(), StoreError> {
        for file in (0..self.files.len()).filter(|file| self.entry(*file).is_compressed()) {
            for path in self.partial_paths(file) {
                let removed = self.root.tolerate(Nicety::Removal, &path, self.root.remove_file(&path));
                removed.map_err(|errno| self.root.error(&path, "remove", errno, 0))?;
            }
        }
        Ok(())
    }

    /// Removes the content of compressed files, from which nothing has to be rebuilt any more.
    pub(super) fn remove_stored(&self) -> Result<(), StoreError> {
        let mut compressed = (0..self.files.len()).filter(|file| self.entry(*file).is_compressed());
        compressed.try_for_each(|file| self.remove_partials(file))
    }
}

/// Returns the path at which a compressed file is decompressed.
pub(crate) fn unpacked_path(path: &[u8], tag: &str, file: usize) -> Vec<u8> {
    partial_path(path, &format!("{tag}-unpacked"), file)
}

/// Computes the BLAKE3 digest of a whole file.
pub(super) fn digest(fd: &OwnedFd) -> SystemResult<[u8; 32]> {
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; crate::tree::GROUP_LEN as usize]);
    loop {
        match read_at(fd, &mut buffer, hasher.count())? {
            0 => return Ok(*hasher.finalize().as_bytes()),
            read => hasher.update(&buffer[..read]),
        };
    }
}
