//! What a later run may rely on.

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

/// Bytes that are written for a checkpoint besides the journal: blocks of the directory and of the file system's own
/// journal.
const OVERHEAD: u64 = 16 << 10;
/// A checkpoint is worth a quarter of its bytes at any time, and this much less after a while.
const WORTH: u64 = 4;
const WORTH_LATER: u64 = 64;
const LATER: Duration = Duration::from_secs(30);

/// Orders journals that are written by different threads: the newest stays.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<Written>);

/// The newest journal that was written.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    generation: u64,
    /// Its bytes.
    len: u64,
}

impl Gate {
    /// The generation of the newest journal that was written; all that it vouches for is safe.
    pub(super) fn written(&self) -> u64 {
        self.lock().generation
    }

    /// The bytes that the next journal may have, going by the last.
    fn expected_len(&self) -> u64 {
        self.lock().len
    }

    /// No journal is written from now on.
    pub(super) fn close(&self) {
        self.lock().generation = u64::MAX;
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        // Numbers cannot be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A snapshot of what is held, to be made safe by [`run`](Self::run), also on another thread.
#[derive(Debug)]
#[must_use = "nothing is safe before it was run"]
pub struct Checkpoint {
    root: Arc<Root>,
    state_dir: Vec<u8>,
    journal: Journal,
    /// What the journal vouches for and may not yet be on disk.
    unsafe_files: Vec<Vec<u8>>,
    sync: bool,
    generation: u64,
    gate: Arc<Gate>,
}

impl Checkpoint {
    /// The segments that are safe once this was run.
    pub fn held(&self) -> &Bitmap {
        &self.journal.held
    }

    /// Writes all data to disk, then the journal that vouches for it.
    ///
    /// Does nothing if a newer checkpoint was run, or the reception has finished. With [`Durability::NoSync`] only the
    /// journal is written.
    ///
    /// # Errors
    /// What the file system reports. The journal before stays valid, and the next checkpoint covers this one too.
    pub fn run(self) -> io::Result<()> {
        if self.sync {
            self.unsafe_files.iter().try_for_each(|path| sync_file(&self.root, path))?;
        }
        let mut newest = self.gate.lock();
        if newest.generation < self.generation {
            let len = state::replace_journal(&self.root, &self.state_dir, &self.journal, self.sync)?;
            *newest = Written { generation: self.generation, len };
        }
        Ok(())
    }
}

/// Syncs by name: there may be more files than may be open. A file that has lost its partial's name meanwhile was
/// completed, and synced before it was renamed, or was found damaged and removed.
fn sync_file(root: &Root, path: &[u8]) -> rustix::io::Result<()> {
    match root.open_at(path, OFlags::RDONLY, Mode::empty()) {
        Ok(fd) => root.sync_content(path, fd),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

impl Incoming {
    /// A snapshot of what is held; `None` if the journal on disk says it already.
    ///
    /// Takes no time that matters: syncing and writing is done by [`Checkpoint::run`].
    pub fn checkpoint(&mut self) -> Option<Checkpoint> {
        // What a later run will not go on with need not be known to it.
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
        // The head stays in the spool for good.
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

    /// The same if it is worth its own bytes, `elapsed` after the last: where a journal is large and little comes, it
    /// would be written over and over for nothing.
    pub fn checkpoint_if_worth(&mut self, elapsed: Duration) -> Option<Checkpoint> {
        let cost = self.gate.expected_len() + OVERHEAD;
        let late = elapsed >= LATER;
        // The last one could not be written.
        let behind = self.gate.written() + 1 < self.generation;
        let enough = cost / if late { WORTH_LATER } else { WORTH };
        if self.unsaved >= enough || (late && behind) { self.checkpoint() } else { None }
    }

    /// Checkpoints here and now.
    pub(super) fn write_journal(&mut self) -> Result<(), StoreError> {
        let Some(checkpoint) = self.checkpoint() else { return Ok(()) };
        let path = self.state.journal_path();
        checkpoint.run().map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            self.root.error(&path, "write", errno, self.held.len().div_ceil(8).into())
        })
    }
}
