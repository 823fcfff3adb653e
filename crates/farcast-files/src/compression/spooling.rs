//! The sender's side: what files are compressed to waits in a file that has no name.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::ftruncate;
use rustix::io::{Errno, Result as SystemResult};

use super::{GROUP_LEN, Packer, pays};
use crate::SourceError;
use crate::parts::{Digests, Grain, PartHasher};
use crate::scratch::nameless;
use crate::transfer::{read_at, write_at};

/// The most groups that are compressed at once: each takes a thread, and some 40 MB.
const MOST_THREADS: usize = 4;
/// So many pieces, of so many bytes, are tried of a longer file before all of it is compressed.
const SAMPLES: u64 = 5;
const SAMPLE_LEN: u64 = 1 << 20;

/// What files were compressed to.
#[derive(Debug)]
pub(crate) struct Spool {
    /// The directory that it is in.
    dir: PathBuf,
    file: File,
}

impl Spool {
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The typed error of a failure.
    pub(crate) fn error(&self, source: impl Into<io::Error>) -> SourceError {
        SourceError::Spool { path: self.dir.clone(), source: source.into() }
    }
}

/// A spool that files are being compressed into.
pub(crate) struct Spooling {
    spool: Spool,
    /// Where the file at hand begins in the spool, and how far it has got.
    start: u64,
    end: u64,
    slots: Vec<Slot>,
    /// The slots whose groups are whole, and wait for the others.
    filled: usize,
}

/// A group that is being compressed.
struct Slot {
    packer: Packer,
    group: Vec<u8>,
    frame: Vec<u8>,
    packed: io::Result<()>,
}

impl Slot {
    fn new() -> io::Result<Self> {
        Ok(Self { packer: Packer::new()?, group: Vec::new(), frame: Vec::new(), packed: Ok(()) })
    }

    fn run(&mut self) {
        self.packed = self.packer.pack(&self.group, &mut self.frame);
    }

    /// Whether that went well; there is a place for another group.
    fn take(&mut self) -> io::Result<()> {
        self.group.clear();
        core::mem::replace(&mut self.packed, Ok(()))
    }
}

impl Spooling {
    /// An empty one in `dir`.
    pub(crate) fn new(dir: &Path) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Spool { path: dir.to_owned(), source };
        let spool = Spool { dir: dir.to_owned(), file: nameless(dir).map_err(failed)? };
        let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
        let slots = (0..threads).map(|_| Slot::new()).collect::<io::Result<_>>().map_err(failed)?;
        Ok(Self { spool, start: 0, end: 0, slots, filled: 0 })
    }

    /// Whether a file of `size` bytes, which `read` reads at an offset, is worth being compressed, as far as a few of
    /// pieces of it tell: what is compressed in vain is little of one that is long.
    pub(crate) fn promises(
        &mut self,
        size: u64,
        mut read: impl FnMut(&mut [u8], u64) -> Result<(), SourceError>,
    ) -> Result<bool, SourceError> {
        if size <= SAMPLES * SAMPLE_LEN {
            return Ok(size > 0);
        }
        let slot = &mut self.slots[0];
        let mut stored = 0;
        for sample in 0..SAMPLES {
            slot.group.resize(SAMPLE_LEN as usize, 0);
            read(&mut slot.group, size / SAMPLES * sample)?;
            slot.run();
            slot.take().map_err(|error| self.spool.error(error))?;
            stored += slot.frame.len() as u64;
        }
        Ok(pays(SAMPLES * SAMPLE_LEN, stored))
    }

    /// Takes the next bytes of the file at hand.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<(), SourceError> {
        while !bytes.is_empty() {
            let group = &mut self.slots[self.filled].group;
            let (now, later) = bytes.split_at(bytes.len().min(GROUP_LEN - group.len()));
            group.extend_from_slice(now);
            bytes = later;
            if group.len() == GROUP_LEN {
                self.filled += 1;
            }
            if self.filled == self.slots.len() {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Compresses what waits, and writes it.
    fn flush(&mut self) -> Result<(), SourceError> {
        self.filled = 0;
        let waiting = self.slots.iter().take_while(|slot| !slot.group.is_empty()).count();
        let filled = &mut self.slots[..waiting];
        thread::scope(|scope| {
            let Some((own, others)) = filled.split_last_mut() else { return };
            for slot in others {
                scope.spawn(|| slot.run());
            }
            own.run();
        });
        for slot in filled {
            slot.take().map_err(|error| self.spool.error(error))?;
            write_at(&self.spool.file, &slot.frame, self.end).map_err(|errno| self.spool.error(errno))?;
            self.end += slot.frame.len() as u64;
        }
        Ok(())
    }

    /// The file at hand has `size` bytes, all of which were taken: where in the spool they begin, to how many they were
    /// compressed, and the digests of these, with parts of this `grain`. `None` if that does not pay; then nothing of
    /// the file is kept.
    pub(crate) fn finish(
        &mut self,
        size: u64,
        grain: Grain,
    ) -> Result<Option<(u64, u64, Digests)>, SourceError> {
        self.flush()?;
        let (start, stored) = (self.start, self.end - self.start);
        if !pays(size, stored) {
            ftruncate(&self.spool.file, start).map_err(|errno| self.spool.error(errno))?;
            self.end = start;
            return Ok(None);
        }
        self.start = self.end;
        let digests = self.digest(start, stored, grain).map_err(|errno| self.spool.error(errno))?;
        Ok(Some((start, stored, digests)))
    }

    fn digest(&mut self, start: u64, stored: u64, grain: Grain) -> SystemResult<Digests> {
        let mut hasher = PartHasher::new(stored, grain);
        let buffer = &mut self.slots[0].frame;
        buffer.resize(GROUP_LEN, 0);
        let mut at = 0;
        while at < stored {
            let want = &mut buffer[..(stored - at).min(GROUP_LEN as u64) as usize];
            let read = read_at(&self.spool.file, want, start + at)?;
            if read < want.len() {
                return Err(Errno::IO);
            }
            hasher.update(want);
            at += read as u64;
        }
        Ok(hasher.finish())
    }

    /// What was compressed; `None` if nothing was.
    pub(crate) fn into_spool(self) -> Option<Spool> {
        (self.end > 0).then_some(self.spool)
    }
}
