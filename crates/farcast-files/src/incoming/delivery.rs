//! The files of a product whose manifest is known.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use farcast_core::Bitmap;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result as SystemResult};

use super::withheld::WithheldReason;
use super::{Durability, Options, Overwrite};
use crate::beneath::{Root, parent_of, size_of};
use crate::descriptors::Descriptors;
use crate::layout::{FilePart, Geometry, Layout};
use crate::manifest::{MAX_COMPONENT_LEN, PARTIAL_SUFFIX};
use crate::nicety::is_absent;
use crate::transfer::{Gather, Space, read_at, write_at};
use crate::tree::{GROUP_LEN, Tree};
use crate::{Entry, Manifest, ProductId, StoreError, system};

/// State of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No partial file exists, or none that can be used.
    Absent,
    /// A partial file exists.
    Partial(Space),
    /// The file is complete, under its final name or withheld.
    Done,
}

/// State and progress of one file.
#[derive(Debug)]
pub(super) struct FileState {
    pub(super) stage: Stage,
    /// Number of bytes that lie in segments not held.
    pub(super) missing: u64,
    /// BLAKE3 tree of its content. It is made when the first bytes arrive, because there may be a million files.
    pub(super) tree: Option<Box<Tree>>,
    /// `true` if the compressed content of a complete compressed file is known to be on disk too.
    pub(super) stored_known: bool,
}

/// Files and directories below the receiving directory, once the manifest is known.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(super) root: Arc<Root>,
    pub(super) manifest: Manifest,
    pub(super) layout: Layout,
    pub(super) files: Vec<FileState>,
    pub(super) options: Options,
    /// Files that have had all their bytes. They get their names once they are verified.
    pub(super) ready: VecDeque<usize>,
    /// Damaged parts that are to be discarded, by file and part.
    pub(super) damaged: BTreeSet<(usize, u32)>,
    /// Number of times that each part was found damaged.
    pub(super) damages: BTreeMap<(usize, u32), u32>,
    /// Files whose completion was reported.
    pub(super) told: BTreeSet<usize>,
    /// Files written since a checkpoint made them durable, with the generation of the last write.
    pub(super) dirty: BTreeMap<usize, u64>,
    pub(super) open: Descriptors,
    pub(super) scratch: Vec<u8>,
    pub(super) id: ProductId,
    /// Number of files and directories made since [`take_made`](Self::take_made).
    pub(super) made: u64,
    /// Open file with the list of directories that were made.
    pub(super) notes: Option<OwnedFd>,
    pub(super) undone: usize,
    /// Entries that cannot have their names here. `told_withheld` holds those that were reported.
    pub(super) withheld: BTreeMap<usize, WithheldReason>,
    pub(super) told_withheld: BTreeSet<usize>,
    /// Segments that are received again for these files alone; the bytes of other files in them are still valid.
    pub(super) lacking: BTreeMap<u32, BTreeSet<usize>>,
    /// Files that have their final names, by device and inode.
    pub(super) named: HashMap<(u64, u64), usize>,
    tag: String,
}

impl Delivery {
    pub(crate) fn new(root: Arc<Root>, id: ProductId, manifest: Manifest, options: Options) -> Self {
        let layout = Layout::new(&manifest);
        let state = |size| FileState { stage: Stage::Absent, missing: size, tree: None, stored_known: false };
        let files: Vec<_> = layout.spans().iter().map(|span| state(span.size)).collect();
        Self {
            root,
            manifest,
            layout,
            undone: files.len(),
            files,
            options,
            ready: VecDeque::new(),
            damaged: BTreeSet::new(),
            damages: BTreeMap::new(),
            told: BTreeSet::new(),
            dirty: BTreeMap::new(),
            open: Descriptors::default(),
            scratch: Vec::new(),
            id,
            made: 0,
            notes: None,
            withheld: BTreeMap::new(),
            told_withheld: BTreeSet::new(),
            lacking: BTreeMap::new(),
            named: HashMap::new(),
            tag: id.tag(),
        }
    }

    /// Returns the number of files and directories made since the last call, and resets it.
    pub(super) fn take_made(&mut self) -> u64 {
        core::mem::take(&mut self.made)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.undone == 0
    }

    /// Returns the manifest's entry of `file`.
    pub(super) fn entry(&self, file: usize) -> &Entry {
        &self.manifest.entries()[self.layout.spans()[file].entry]
    }

    /// Returns the path of the partial file of `file`, or of its withheld content.
    pub(super) fn partial_path(&self, file: usize) -> Vec<u8> {
        if self.is_withheld(file) {
            return self.withheld_path(file);
        }
        partial_path(&self.entry(file).path, &self.tag, file)
    }

    /// Returns the typed error of a failure with `file`.
    pub(super) fn error(&self, file: usize, action: &'static str, errno: Errno, needed: u64) -> StoreError {
        self.root.error(&self.entry(file).path, action, errno, needed)
    }

    /// Marks `file` as complete.
    pub(super) fn set_done(&mut self, file: usize) {
        self.files[file].stage = Stage::Done;
        self.files[file].tree = None;
        self.undone -= 1;
        self.open.close(file);
        self.dirty.remove(&file);
    }

    pub(super) fn is_done(&self, file: usize) -> bool {
        self.files[file].stage == Stage::Done
    }

    /// Returns the complete files, for the journal.
    pub(super) fn finished(&self) -> Bitmap {
        let mut map = Bitmap::new(self.files.len() as u32);
        for file in (0..self.files.len()).filter(|file| self.is_done(*file)) {
            map.insert(file as u32);
        }
        map
    }

    /// Writes `bytes` of the product, which come from `gather`, to the partial files.
    pub(super) fn write(
        &mut self,
        bytes: Range<u64>,
        gather: &mut Gather<'_>,
        generation: u64,
    ) -> Result<(), StoreError> {
        let mut at = bytes.start;
        while at < bytes.end
            && let Some(piece) = self.layout.first_piece(at..bytes.end)
        {
            let piece = self.within_part(piece);
            at += piece.len;
            self.write_piece(piece, gather, generation)?;
        }
        Ok(())
    }

    /// Writes the next `piece.len` bytes of `gather`. Skips them if they belong to the head, a complete file or a
    /// verified part.
    fn write_piece(
        &mut self,
        piece: FilePart,
        gather: &mut Gather<'_>,
        generation: u64,
    ) -> Result<(), StoreError> {
        let Some(file) = piece.file.filter(|file| !self.is_settled(*file, piece.offset)) else {
            gather.skip(piece.len);
            return Ok(());
        };
        let written = self
            .partial(file)
            .and_then(|(fd, space)| gather.write(fd.as_fd(), space, piece.offset, piece.len));
        written.map_err(|errno| self.error(file, "write", errno, piece.len))?;
        self.dirty.insert(file, generation);
        Ok(())
    }

    /// Opens the partial file of `file`, and creates it if necessary.
    pub(super) fn partial(&mut self, file: usize) -> SystemResult<(&OwnedFd, Space)> {
        let space = match self.files[file].stage {
            Stage::Partial(space) => space,
            _ => self.create_partial(file)?,
        };
        let elsewhere = self.is_withheld(file).then(|| self.withheld_path(file));
        let Self { open, root, manifest, layout, tag, .. } = self;
        let fd = open.get(file, || {
            let beside = || partial_path(&manifest.entries()[layout.spans()[file].entry].path, tag, file);
            let path = elsewhere.unwrap_or_else(beside);
            root.open_at(&path, OFlags::RDWR, Mode::empty())
        })?;
        Ok((fd, space))
    }

    fn create_partial(&mut self, file: usize) -> SystemResult<Space> {
        let fd = match self.create_beside(file) {
            Err(errno) => {
                // All directories exist now, so ENOENT means that the name itself is not possible.
                let missing = (errno == Errno::NOENT).then_some(WithheldReason::Impossible(errno));
                self.withhold(file, WithheldReason::of(errno).or(missing).ok_or(errno)?);
                self.create_fresh(&self.partial_path(file))?
            }
            Ok(fd) => fd,
        };
        self.made += 1;
        lengthen(&fd, self.layout.spans()[file].size)?;
        self.open.close(file);
        self.open.get(file, || Ok::<_, Errno>(fd))?;
        self.files[file].stage = Stage::Partial(Space::Fresh);
        Ok(Space::Fresh)
    }

    /// Creates an empty partial file of `file`, and the directories above it.
    fn create_beside(&mut self, file: usize) -> SystemResult<OwnedFd> {
        let path = self.partial_path(file);
        match self.create_fresh(&path) {
            Err(Errno::NOENT) => {
                self.make_directories_of(self.layout.spans()[file].entry)?;
                self.create_fresh(&path)
            }
            other => other,
        }
    }

    /// Creates an empty file at `path`; a leftover file is replaced.
    pub(super) fn create_fresh(&self, path: &[u8]) -> SystemResult<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let create = || self.root.open_at(path, flags, Mode::RUSR | Mode::WUSR);
        match create() {
            // A leftover is never written to: it could be a second name of someone else's file.
            Err(Errno::EXIST) => {
                self.root.regular(path)?;
                self.root.fresh(path)
            }
            other => other,
        }
    }

    /// Takes over the partial file from an earlier run. Returns `true` if it can be used.
    pub(super) fn adopt_partial(&mut self, file: usize) -> Result<bool, StoreError> {
        let stat = self.root.regular(&self.partial_path(file));
        let stat = stat.map_err(|errno| self.root.error(&self.partial_path(file), "examine", errno, 0))?;
        let size = self.layout.spans()[file].size;
        let usable = stat.is_some_and(|stat| size_of(&stat) == size && stat.st_nlink == 1);
        if usable {
            self.files[file].stage = Stage::Partial(Space::Unknown);
        }
        Ok(usable)
    }

    /// Reads a group of the partial file of `file` into `scratch`. Bytes past its end read as zeros.
    pub(super) fn read_group(
        &mut self,
        file: usize,
        group: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let offset = group * GROUP_LEN;
        let len = self.layout.spans()[file].size.saturating_sub(offset).min(GROUP_LEN);
        scratch.resize(len as usize, 0);
        let read = self.partial(file).and_then(|(fd, _)| read_at(fd, scratch, offset));
        let read = read.map_err(|errno| self.error(file, "read", errno, 0))?;
        scratch[read..].fill(0);
        Ok(())
    }

    /// Counts the missing bytes of each file: those in segments that are not held.
    pub(super) fn count_missing(&mut self, held: &Bitmap, geometry: &Geometry) {
        self.ready.clear();
        for file in 0..self.files.len() {
            self.count_missing_of(file, held, geometry);
        }
    }

    /// Counts the missing bytes of one file.
    pub(super) fn count_missing_of(&mut self, file: usize, held: &Bitmap, geometry: &Geometry) {
        if self.is_done(file) {
            return;
        }
        let bytes = self.layout.spans()[file].bytes();
        let missing: u64 = geometry
            .touching(&bytes)
            .map_or(0, |run| held.gaps_in(run).map(|gap| overlap(&geometry.bytes(gap), &bytes)).sum());
        let missing = missing - self.here_of(file, &bytes, geometry);
        self.files[file].missing = missing;
        if missing == 0 {
            self.ready.push_back(file);
        }
    }

    pub(super) fn syncs(&self) -> bool {
        self.options.durability == Durability::Sync
    }

    pub(super) fn overwrites(&self) -> bool {
        self.options.overwrite == Overwrite::Overwrite
    }
}

/// Extends the empty file `fd` to `size` bytes.
pub(super) fn lengthen(fd: &OwnedFd, size: u64) -> SystemResult<()> {
    match (size, system::ftruncate(fd, size)) {
        (0, _) => Ok(()),
        // Some FAT file systems only shorten files, so write the last byte.
        (size, Err(errno)) if is_absent(errno) || errno == Errno::PERM => write_at(fd, &[0], size - 1),
        (_, lengthened) => lengthened,
    }
}

pub(super) fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// Returns the path of the partial file beside `path`: `.<name>.<tag>.farcast-part`.
///
/// A name that is too long for that is cut, and the number of the file makes it unique.
pub(crate) fn partial_path(path: &[u8], tag: &str, file: usize) -> Vec<u8> {
    let (parent, name) = parent_of(path);
    let mut ending = [b".", tag.as_bytes(), PARTIAL_SUFFIX].concat();
    let mut kept = name;
    if 1 + name.len() + ending.len() > MAX_COMPONENT_LEN {
        ending = [b".", tag.as_bytes(), format!("-{file}").as_bytes(), PARTIAL_SUFFIX].concat();
        kept = &name[..MAX_COMPONENT_LEN - 1 - ending.len()];
    }
    let prefix = parent.map_or(Vec::new(), |parent| [parent, b"/"].concat());
    [&prefix, b".".as_slice(), kept, &ending].concat()
}

#[cfg(test)]
mod tests;
