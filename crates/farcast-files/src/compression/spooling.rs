//! Compression at the sender. The compressed files wait in a spool file that has no name.

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

/// The largest number of groups that are compressed at once; each takes a thread and some 40 MB.
const MOST_THREADS: usize = 4;
/// Number and length in bytes of the samples that are compressed before a longer file is compressed as a whole.
const SAMPLES: u64 = 5;
const SAMPLE_LEN: u64 = 1 << 20;

/// File that holds the compressed content of all compressed files.
#[derive(Debug)]
pub(crate) struct Spool {
    /// Directory of the file, for messages.
    dir: PathBuf,
    file: File,
}

impl Spool {
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the typed error of a failure.
    pub(crate) fn error(&self, source: impl Into<io::Error>) -> SourceError {
        SourceError::Spool { path: self.dir.clone(), source: source.into() }
    }
}

/// Writer that compresses files into a spool.
pub(crate) struct Spooling {
    spool: Spool,
    /// Start of the current file in the spool, and end of the bytes written so far.
    start: u64,
    end: u64,
    slots: Vec<GroupSlot>,
    /// Number of slots whose groups are full and wait to be compressed.
    filled: usize,
}

/// Buffers and compressor of one group.
struct GroupSlot {
    packer: Packer,
    group: Vec<u8>,
    frame: Vec<u8>,
    packed: io::Result<()>,
}

impl GroupSlot {
    fn new() -> io::Result<Self> {
        Ok(Self { packer: Packer::new()?, group: Vec::new(), frame: Vec::new(), packed: Ok(()) })
    }

    fn run(&mut self) {
        self.packed = self.packer.pack(&self.group, &mut self.frame);
    }

    /// Empties the slot for another group, and returns the result of the last compression.
    fn take(&mut self) -> io::Result<()> {
        self.group.clear();
        core::mem::replace(&mut self.packed, Ok(()))
    }
}

impl Spooling {
    /// Creates an empty spool in `dir`.
    pub(crate) fn new(dir: &Path) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Spool { path: dir.to_owned(), source };
        let spool = Spool { dir: dir.to_owned(), file: nameless(dir).map_err(failed)? };
        let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
        let slots = (0..threads).map(|_| GroupSlot::new()).collect::<io::Result<_>>().map_err(failed)?;
        Ok(Self { spool, start: 0, end: 0, slots, filled: 0 })
    }

    /// Returns `true` if it is worth compressing a file of `size` bytes; `read` fills a buffer from an offset. A file
    /// longer than all samples is judged by the samples, so that a vain attempt costs little.
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

    /// Adds the next bytes of the current file.
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

    /// Compresses the waiting groups at once, and writes their frames.
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

    /// Ends the current file; all of its `size` bytes were pushed. Returns the start of its compressed content in the
    /// spool, the length, and the digests with parts of this `grain`. Returns `None` and keeps nothing of the file if
    /// compression saves too little.
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

    /// Returns the spool; `None` if no file was compressed.
    pub(crate) fn into_spool(self) -> Option<Spool> {
        (self.end > 0).then_some(self.spool)
    }
}
