//! The receiver's side: segments in any order become files.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use farcast_core::{Bitmap, Run};

use crate::beneath::Root;
use crate::layout::Geometry;
use crate::manifest::PREFIX_LEN;
use crate::transfer::{Gather, Space, read_at};
use crate::{Manifest, ProductId, StoreError};

mod checkpoint;
mod complete;
mod delivery;
mod finish;
mod open;
mod place;
mod read;
mod state;

pub use checkpoint::Checkpoint;

use checkpoint::Gate;
use delivery::Delivery;
use state::StateDir;

/// Whether files are made durable before they are vouched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// What the journal or a final name vouches for survives a power loss.
    #[default]
    Sync,
    /// It survives the end of the process only; after a power loss the digests find out what is missing.
    NoSync,
}

/// What to do with a file that exists under the name of a received one, with other content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overwrite {
    /// Replace it once the new one is complete and its digest right.
    #[default]
    Overwrite,
    /// Keep it, and refuse the product with [`StoreError::AlreadyExists`].
    Keep,
}

/// How a product is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether files are made durable.
    pub durability: Durability,
    /// What to do with existing files.
    pub overwrite: Overwrite,
    /// The most bytes that files still to be received may have; `None`: as much as the file system has free.
    pub space_limit: Option<u64>,
}

/// What [`Incoming::store`] made happen.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// The list of files is complete; [`Incoming::manifest`] gives it.
    ManifestKnown {
        /// Segments that need not be received because files below the directory already have their content, in
        /// ascending order. They count as held.
        newly_held: Vec<Run>,
    },
    /// A file has its final name, content, mode and modification time.
    FileDone {
        /// Its index in [`Manifest::entries`].
        index: usize,
    },
}

/// A product that is being received into a directory.
///
/// Dropping it is like a crash: the next [`open`](Self::open) goes on from the last [`checkpoint`](Self::checkpoint).
/// Use [`finish`](Self::finish), [`abandon`](Self::abandon) or [`discard`](Self::discard). Keeps at most 64 partial
/// files open; memory is one bit a segment, about 100 bytes a file and the manifest.
#[derive(Debug)]
pub struct Incoming {
    root: Arc<Root>,
    state: StateDir,
    id: ProductId,
    geometry: Geometry,
    options: Options,
    held: Bitmap,
    spool: OwnedFd,
    spool_space: Space,
    /// The bytes of the head, once its first bytes are there.
    head_len: Option<u64>,
    /// Where bytes go once the head is known.
    delivery: Option<Delivery>,
    happenings: Vec<Happening>,
    /// Whether the journal would say something new.
    changed: bool,
    /// Counts checkpoints.
    generation: u64,
    gate: Arc<Gate>,
}

impl Incoming {
    /// Goes on with, or begins, receiving the product `id` of `product_size` bytes in segments of `segment_len` bytes
    /// into `dir`, which must exist.
    ///
    /// Files that an earlier run left complete are read to check their digests, which takes its time.
    ///
    /// # Errors
    /// [`StoreError::BadGeometry`] if there would be more than `u32::MAX` segments or the size passes `i64::MAX`,
    /// [`StoreError::InUse`], [`StoreError::UnsafePath`], and what the file system reports. If the head was already
    /// there, also the errors of [`store`](Self::store).
    pub fn open(
        dir: &Path,
        id: ProductId,
        product_size: u64,
        segment_len: u32,
        options: Options,
    ) -> Result<Self, StoreError> {
        open::open(dir, id, product_size, segment_len, options)
    }

    /// Stores consecutive segments, the first of them number `first`; what that made happen.
    ///
    /// Each payload is one segment. Segments that are held already are passed over.
    ///
    /// # Errors
    /// [`StoreError::BadSegment`], before anything is stored. Else what the file system reports; then the segments
    /// that are held (see [`held`](Self::held)) were stored all the same. When the head is complete:
    /// [`StoreError::CorruptHead`], [`StoreError::BadManifest`], [`StoreError::WrongSize`],
    /// [`StoreError::UnsafePath`], [`StoreError::AlreadyExists`], [`StoreError::DiskFull`]. When a file is complete:
    /// [`StoreError::DigestMismatch`]; its segments are then no longer held. After an error,
    /// [`take_happenings`](Self::take_happenings) gives what did happen before it.
    pub fn store(&mut self, first: u32, payloads: &[&[u8]]) -> Result<Vec<Happening>, StoreError> {
        let run = self.check_lengths(first, payloads)?;
        while let Some(gap) = self.held.next_gap_in(run) {
            let skip = (gap.first() - run.first()) as usize;
            self.store_gap(gap, &payloads[skip..skip + gap.count() as usize])?;
        }
        self.advance()?;
        Ok(self.take_happenings())
    }

    /// What happened and was not yet reported, such as files that [`open`](Self::open) found complete.
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        core::mem::take(&mut self.happenings)
    }

    /// The segments that need not be received any more.
    pub fn held(&self) -> &Bitmap {
        &self.held
    }

    /// The id of the product.
    pub fn id(&self) -> ProductId {
        self.id
    }

    /// What the product contains, once that is known.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.delivery.as_ref().map(|delivery| &delivery.manifest)
    }

    /// Whether every file has its final name. [`finish`](Self::finish) is still to be called.
    pub fn is_complete(&self) -> bool {
        self.delivery.as_ref().is_some_and(Delivery::is_complete)
    }

    fn check_lengths(&self, first: u32, payloads: &[&[u8]]) -> Result<Run, StoreError> {
        let mut expected_at = self.geometry.start(first);
        for (segment, payload) in (u64::from(first)..).zip(payloads) {
            let end = u32::try_from(segment + 1).map_or(self.geometry.size, |next| self.geometry.start(next));
            let (expected, actual) = (end - expected_at, payload.len() as u64);
            if expected != actual || expected == 0 {
                return Err(StoreError::BadSegment { segment, expected, actual });
            }
            expected_at = end;
        }
        let nothing = StoreError::BadSegment { segment: first.into(), expected: 0, actual: 0 };
        Run::new(first, payloads.len() as u32).ok_or(nothing)
    }

    /// Stores segments of which none is held.
    fn store_gap(&mut self, run: Run, payloads: &[&[u8]]) -> Result<(), StoreError> {
        let bytes = self.geometry.bytes(run);
        let mut gather = Gather::new(payloads);
        if let Some(delivery) = &mut self.delivery {
            delivery.write(bytes.clone(), &mut gather, self.generation)?;
        } else {
            let len = bytes.end - bytes.start;
            let written = gather.write(self.spool.as_fd(), self.spool_space, bytes.start, len);
            written.map_err(|errno| self.root.error(&self.state.spool_path(), "write", errno, len))?;
        }
        self.held.insert_run(run);
        self.changed = true;
        if let Some(delivery) = &mut self.delivery {
            delivery.arrived(bytes, &self.held, &self.geometry);
        }
        Ok(())
    }

    /// Does what has become possible: reads the head, gives files their names.
    fn advance(&mut self) -> Result<(), StoreError> {
        if self.delivery.is_none() && self.head_is_complete()? {
            self.place()?;
        }
        self.complete_files()
    }

    /// Whether every byte of the head is there.
    fn head_is_complete(&mut self) -> Result<bool, StoreError> {
        if self.head_len.is_none() && self.holds(PREFIX_LEN as u64) {
            let mut prefix = [0; PREFIX_LEN];
            let read = read_at(&self.spool, &mut prefix, 0);
            read.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
            match Manifest::head_len_of(&prefix) {
                Ok(len) if len <= self.geometry.size => self.head_len = Some(len),
                _ => return Err(self.refuse_head(PREFIX_LEN as u64)),
            }
        }
        Ok(self.head_len.is_some_and(|len| self.holds(len)))
    }

    /// Whether the first `len` bytes of the product are held.
    fn holds(&self, len: u64) -> bool {
        self.geometry.touching(&(0..len)).is_some_and(|run| self.held.count_in(run) == run.count())
    }

    /// Forgets the first `len` bytes, which are not those of the product.
    fn refuse_head(&mut self, len: u64) -> StoreError {
        if let Some(run) = self.geometry.touching(&(0..len)) {
            self.held.remove_run(run);
        }
        // What is written there now has to replace what was.
        self.spool_space = Space::Unknown;
        self.head_len = None;
        self.changed = true;
        match self.write_journal() {
            Ok(()) => StoreError::CorruptHead { id: self.id },
            Err(error) => error,
        }
    }
}
