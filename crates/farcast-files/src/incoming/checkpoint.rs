//! Checkpoints: they make received data and a journal of it durable, so that a later run can continue.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farcast_core::Bitmap;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Durability, Incoming, state};
use crate::StoreError;
use crate::beneath::Root;
use crate::journal::{Journal, Stage};

/// Bytes written for a checkpoint besides the journal, for blocks of the directory and of the file system's own
/// journal.
const OVERHEAD: u64 = 16 << 10;
/// Reciprocals of the share of a checkpoint's cost that has to be new data: `WORTH` at any time, `WORTH_LATER` once
/// `LATER` has passed since the last checkpoint.
const WORTH: u64 = 4;
const WORTH_LATER: u64 = 64;
const LATER: Duration = Duration::from_secs(30);

/// Order of journals that different threads write: only a newer one replaces the last.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<WrittenJournal>);

/// The journal that was written last.
#[derive(Clone, Copy, Debug, Default)]
struct WrittenJournal {
    generation: u64,
    /// Length in bytes.
    len: u64,
}

impl Gate {
    /// Returns the generation of the last written journal; everything that it vouches for is on disk.
    pub(super) fn written(&self) -> u64 {
        self.lock().generation
    }

    /// Returns the expected length of the next journal in bytes, which is that of the last one.
    fn expected_len(&self) -> u64 {
        self.lock().len
    }

    /// Prevents that any journal is written from now on.
    pub(super) fn close(&self) {
        self.lock().generation = u64::MAX;
    }

    fn lock(&self) -> MutexGuard<'_, WrittenJournal> {
        // A panic leaves no number half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Snapshot of the held segments. [`run`](Self::run) makes it durable, on any thread.
#[derive(Debug)]
#[must_use = "nothing is safe before it was run"]
pub struct Checkpoint {
    root: Arc<Root>,
    state_dir: Vec<u8>,
    journal: Journal,
    /// Files that the journal vouches for and that may not be on disk yet.
    unsafe_files: Vec<Vec<u8>>,
    sync: bool,
    generation: u64,
    gate: Arc<Gate>,
}

impl Checkpoint {
    /// Returns the segments that are durable after [`run`](Self::run).
    pub fn held(&self) -> &Bitmap {
        &self.journal.held
    }

    /// Writes all data to disk, then the journal that vouches for it.
    ///
    /// Does nothing if a newer checkpoint was run, or the reception has finished. With [`Durability::NoSync`] only the
    /// journal is written.
    ///
    /// # Errors
    /// Errors of the file system. The previous journal stays valid, and the next checkpoint covers this one too.
    pub fn run(self) -> io::Result<()> {
        if self.sync {
            self.unsafe_files.iter().try_for_each(|path| sync_file(&self.root, path))?;
        }
        let mut newest = self.gate.lock();
        if newest.generation < self.generation {
            let len = state::replace_journal(&self.root, &self.state_dir, &self.journal, self.sync)?;
            *newest = WrittenJournal { generation: self.generation, len };
        }
        Ok(())
    }
}

/// Syncs the file at `path`, if it exists. Files are opened by name, because there may be more than may be open. A
/// partial file that is gone was either completed and synced before its renaming, or found damaged and removed.
fn sync_file(root: &Root, path: &[u8]) -> rustix::io::Result<()> {
    match root.open_at(path, OFlags::RDONLY, Mode::empty()) {
        Ok(fd) => root.sync_content(path, fd),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

impl Incoming {
    /// Takes a snapshot of the held segments; `None` if the journal on disk already says the same.
    ///
    /// Costs little time: [`Checkpoint::run`] does the syncing and writing.
    pub fn checkpoint(&mut self) -> Option<Checkpoint> {
        // A later run will not continue this object, so it needs no journal.
        if self.plain.as_ref().is_some_and(|plain| !plain.resumes(self.options)) {
            return None;
        }
        let written = self.gate.written();
        if !self.changed && written + 1 >= self.generation {
            return None;
        }
        let mut unsafe_files = Vec::new();
        let mut finished = Bitmap::default();
        if let Some(delivery) = &mut self.delivery {
            delivery.dirty.retain(|_, generation| *generation > written);
            unsafe_files.extend(delivery.dirty.keys().map(|file| delivery.partial_path(*file)));
            finished = delivery.finished();
        }
        // The head stays in the spool until the end.
        unsafe_files.push(self.state.spool_path());
        let checkpoint = Checkpoint {
            root: Arc::clone(&self.root),
            state_dir: self.state.path().to_vec(),
            journal: Journal {
                id: self.id,
                product_size: self.geometry.size,
                segment_len: self.geometry.segment_len,
                stage: self.stage(),
                held: self.held.clone(),
                finished,
            },
            unsafe_files,
            sync: self.options.durability == Durability::Sync,
            generation: self.generation,
            gate: Arc::clone(&self.gate),
        };
        self.generation += 1;
        self.changed = false;
        self.unsaved = 0;
        Some(checkpoint)
    }

    fn stage(&self) -> Stage {
        match (&self.plain, &self.delivery) {
            (Some(plain), _) => Stage::Plain { name: plain.name.clone(), vouched: plain.vouched },
            (None, Some(_)) => Stage::Placed,
            (None, None) => Stage::Spooling,
        }
    }

    /// Takes a [`checkpoint`](Self::checkpoint) if enough data came since the last one, which is `elapsed` ago.
    /// Otherwise a large journal would be written again and again for little data.
    pub fn checkpoint_if_worth(&mut self, elapsed: Duration) -> Option<Checkpoint> {
        let cost = self.gate.expected_len() + OVERHEAD;
        let late = elapsed >= LATER;
        // The last journal could not be written.
        let behind = self.gate.written() + 1 < self.generation;
        let enough = cost / if late { WORTH_LATER } else { WORTH };
        if self.unsaved >= enough || (late && behind) { self.checkpoint() } else { None }
    }

    /// Takes a checkpoint and runs it on this thread.
    pub(super) fn write_journal(&mut self) -> Result<(), StoreError> {
        let Some(checkpoint) = self.checkpoint() else { return Ok(()) };
        let path = self.state.journal_path();
        checkpoint.run().map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            self.root.error(&path, "write", errno, self.held.len().div_ceil(8).into())
        })
    }
}
