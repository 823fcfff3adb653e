//! The sender's side: files and directories become one product.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, Advice, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, Result as SystemResult};
use thiserror::Error;

use crate::beneath::{mtime_of, size_of};
use crate::compression::Spool;
use crate::descriptors::Descriptors;
use crate::layout::{Geometry, Layout};
use crate::parts::Grain;
use crate::transfer::read_all;
use crate::{Entry, Manifest, ProductId, SourceError};

mod scan;
mod watch;

pub use watch::{Change, ChangedFile};
use watch::{Fates, ctime_of};

/// Files and directories to be sent as one product.
///
/// It keeps the head in memory and at most 64 files open, fewer if the process may open few. A clone shares the content
/// and the known changes, and opens the files by itself, so that another thread can read them too.
#[derive(Debug)]
pub struct Outgoing {
    content: Arc<Content>,
    open: Descriptors,
    /// `true` if a changed file ends the reading with an error; else zeros take its place.
    is_strict: bool,
}

impl Clone for Outgoing {
    fn clone(&self) -> Self {
        Self { content: Arc::clone(&self.content), open: Descriptors::default(), is_strict: self.is_strict }
    }
}

/// Content of a product, shared by all clones.
#[derive(Debug)]
struct Content {
    manifest: Manifest,
    id: ProductId,
    head: Vec<u8>,
    layout: Layout,
    sources: Vec<SourceFile>,
    /// The compressed content of files, if any file is compressed.
    spool: Option<Spool>,
    skipped: Vec<Skipped>,
    fates: Fates,
}

/// Options of a scan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scanning {
    /// Size of the parts into which large files are divided.
    pub grain: Grain,
    /// Directory for the file without a name that holds the compressed content; `None` turns compression off. Files
    /// that do not become shorter stay as they are ([details](crate::compression)).
    pub compress: Option<PathBuf>,
}

/// Progress of [`Outgoing::scan`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanProgress {
    /// Bytes of content whose digest has been computed.
    pub hashed: u64,
    /// Bytes of content in all; at least `hashed`.
    pub total: u64,
}

/// File or directory that was found but is not sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// Path on the sender's side.
    pub path: PathBuf,
    /// Reason for which it is not sent.
    pub reason: SkipReason,
}

/// Reason for which something is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// A symbolic link: its target on the receiver's side is unknown.
    #[error("symbolic links are not sent")]
    SymbolicLink,
    /// A block or character device.
    #[error("devices are not sent")]
    Device,
    /// A socket.
    #[error("sockets are not sent")]
    Socket,
    /// A named pipe.
    #[error("named pipes are not sent")]
    Fifo,
    /// A directory without files, for a protocol that sends files only.
    #[error("it holds no file, and this protocol sends files only")]
    EmptyDirectory,
    /// `.farcast` and partial files, which belong to receptions.
    #[error("the state of receptions is not sent")]
    Reserved,
}

/// A file at the time when its digest was computed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SourceFile {
    path: PathBuf,
    state: State,
    /// Start of its compressed content in the spool; `None` if the file is not compressed.
    spooled: Option<u64>,
}

/// Metadata that reveals a change of a file. Some of it changes when the file is written or replaced. The time of the
/// last status change does so even if somebody resets the modification time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
    device_and_inode: (u64, u64),
}

impl State {
    fn of(stat: &Stat) -> Self {
        let device_and_inode = (stat.st_dev, stat.st_ino);
        Self { size: size_of(stat), mtime_ns: mtime_of(stat), ctime_ns: ctime_of(stat), device_and_inode }
    }
}

impl Outgoing {
    /// Walks `paths` and computes the digest of every regular file.
    ///
    /// Each path is sent under its base name, directories with everything below them. Anything but regular files and
    /// directories is left out and listed in [`skipped`](Self::skipped). The result does not depend on the order of
    /// `paths` or of directory entries. `progress` is called at the start and after each mebibyte or file read.
    ///
    /// # Errors
    /// [`SourceError::DuplicateName`], [`SourceError::NoName`], [`SourceError::Empty`],
    /// [`SourceError::Manifest`] if there are too many files, [`SourceError::Changed`] if one changes meanwhile,
    /// [`SourceError::Unsized`], and [`SourceError::Io`].
    pub fn scan<P: AsRef<Path>>(
        paths: &[P],
        progress: impl FnMut(ScanProgress),
    ) -> Result<Self, SourceError> {
        Self::scanned(paths, true, &Scanning::default(), progress)
    }

    /// Scans like [`scan`](Self::scan), with options.
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan); [`SourceError::Spool`] if files are compressed.
    pub fn scan_by<P: AsRef<Path>>(
        scanning: &Scanning,
        paths: &[P],
        progress: impl FnMut(ScanProgress),
    ) -> Result<Self, SourceError> {
        Self::scanned(paths, true, scanning, progress)
    }

    /// Scans the file at `path` for receivers that know nothing of manifests: the product is the content alone, without
    /// a head. The [`manifest`](Self::manifest) and the [`id`](Self::id) are for the sender's use only.
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan).
    pub fn plain(path: impl AsRef<Path>, progress: impl FnMut(ScanProgress)) -> Result<Self, SourceError> {
        Self::scanned(&[path], false, &Scanning::default(), progress)
    }

    /// Scans the same files as [`scan`](Self::scan), for protocols that deliver several objects. Each regular file
    /// becomes a product of its own without a head, in the order of their paths. Also returns the files and directories
    /// that are not sent.
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan); [`SourceError::OnlyDirectories`].
    pub fn each<P: AsRef<Path>>(
        paths: &[P],
        progress: impl FnMut(ScanProgress),
    ) -> Result<(Vec<Self>, Vec<Skipped>), SourceError> {
        let mut found = scan::FoundEntries::default();
        for path in paths {
            found.argument(path.as_ref())?;
        }
        let mut skipped = core::mem::take(&mut found.skipped);
        skipped.extend(found.empty_directories());
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        let scan::Hashed { manifest, sources, .. } = found.hash(&Scanning::default(), progress)?;
        let files = manifest.entries().iter().filter(|entry| entry.is_file());
        let all = files.zip(sources).map(|(entry, source)| Self::alone(entry.clone(), source));
        let all: Vec<Self> = all.collect::<Result<_, _>>()?;
        if all.is_empty() { Err(SourceError::OnlyDirectories) } else { Ok((all, skipped)) }
    }

    /// Creates the product of one file without a head.
    fn alone(entry: Entry, source: SourceFile) -> Result<Self, SourceError> {
        let manifest = Manifest::new(vec![entry])?;
        let (id, layout) = (ProductId::of_head(&manifest.head()), Layout::of_content(&manifest));
        let content = Content {
            manifest,
            id,
            head: Vec::new(),
            layout,
            sources: vec![source],
            spool: None,
            skipped: Vec::new(),
            fates: Fates::new(1),
        };
        Ok(Self::of(content))
    }

    fn scanned<P: AsRef<Path>>(
        paths: &[P],
        with_head: bool,
        scanning: &Scanning,
        progress: impl FnMut(ScanProgress),
    ) -> Result<Self, SourceError> {
        let mut found = scan::FoundEntries::default();
        for path in paths {
            found.argument(path.as_ref())?;
        }
        let mut skipped = core::mem::take(&mut found.skipped);
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        let scan::Hashed { manifest, sources, spool } = found.hash(scanning, progress)?;
        let mut head = manifest.head();
        let id = ProductId::of_head(&head);
        let layout = if with_head { Layout::new(&manifest) } else { Layout::of_content(&manifest) };
        head.truncate(layout.head_len() as usize);
        let fates = Fates::new(sources.len());
        Ok(Self::of(Content { manifest, id, head, layout, sources, spool, skipped, fates }))
    }

    fn of(content: Content) -> Self {
        Self { content: Arc::new(content), open: Descriptors::default(), is_strict: true }
    }

    /// Turns on lenient reading: a file that is gone, has become shorter or cannot be read is no error. Zeros take its
    /// place, and [`changed`](Self::changed) reports the file.
    #[must_use]
    pub fn leniently(self) -> Self {
        Self { is_strict: false, ..self }
    }

    /// Returns the size of the product in bytes: head, if it has one, and content.
    pub fn size(&self) -> u64 {
        self.content.layout.size()
    }

    /// Returns the id of the product.
    pub fn id(&self) -> ProductId {
        self.content.id
    }

    /// Returns the list of files and directories in the product.
    pub fn manifest(&self) -> &Manifest {
        &self.content.manifest
    }

    /// Returns the files and directories that were found but are not sent.
    pub fn skipped(&self) -> &[Skipped] {
        &self.content.skipped
    }

    /// Returns the number of segments of `segment_len` bytes in the product. `None` if the length is zero or the number
    /// would exceed `u32::MAX`.
    pub fn segment_count(&self, segment_len: u32) -> Option<u32> {
        Geometry::new(self.size(), segment_len).map(|geometry| geometry.count)
    }

    /// Fills `slots` in order with the product's bytes from `offset`. Returns the number of bytes.
    ///
    /// The slots are filled completely except at the end of the product. Files are read straight into the slots, with
    /// one system call for each contiguous piece of a file.
    ///
    /// # Errors
    /// [`SourceError::Changed`], [`SourceError::Removed`], [`SourceError::Replaced`] and [`SourceError::Unreadable`] if
    /// a file is shorter than when it was scanned, gone, something else or out of reach; [`SourceError::OutOfRange`] if
    /// `offset` is past the end; [`SourceError::Spool`] and [`SourceError::Io`].
    pub fn read_segments(&mut self, offset: u64, slots: &mut [IoSliceMut<'_>]) -> Result<u64, SourceError> {
        let Self { content, open, is_strict } = self;
        let Content { layout, head, sources, spool, fates, .. } = &**content;
        let size = layout.size();
        if offset > size {
            return Err(SourceError::OutOfRange { offset, size });
        }
        let room: u64 = slots.iter().map(|slot| slot.len() as u64).sum();
        let end = size.min(offset.saturating_add(room));
        let mut batch = Vec::with_capacity(slots.len());
        let mut scatter = Scatter { rest: &mut [], slots: slots.iter_mut() };
        for piece in layout.pieces(offset..end) {
            let Some(file) = piece.file else {
                scatter.copy(&head[piece.offset as usize..(piece.offset + piece.len) as usize]);
                continue;
            };
            let source = &sources[file];
            scatter.take(piece.len, &mut batch);
            if let (Some(start), Some(spool)) = (source.spooled, spool) {
                match read_all(spool.file(), &mut batch, start + piece.offset) {
                    Ok(true) => batch.clear(),
                    Ok(false) => return Err(spool.error(Errno::IO)),
                    Err(errno) => return Err(spool.error(errno)),
                }
                continue;
            }
            fates.note_read(file);
            if let Some(change) = source.read(file, open, &mut batch, piece.offset)? {
                fates.spoil(file, change, 0);
                if *is_strict {
                    return Err(SourceError::of_change(change, &source.path));
                }
                for slot in &mut batch {
                    slot.fill(0);
                }
            }
            batch.clear();
        }
        Ok(end - offset)
    }

    /// Closes the open files; later reads open them again.
    pub fn rest(&mut self) {
        self.open.close_all();
    }
}

/// Opens a path on the sender's side, without following a symbolic link at its end.
fn open_source(path: &Path) -> SystemResult<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    fs::openat(CWD, path, flags, Mode::empty())
}

/// Returns `true` if `stat` is of a regular file.
fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

impl SourceFile {
    /// Fills `batch` with the content from `offset`. Returns the change of the file if that fails; the slots that could
    /// not be filled are then still in `batch`.
    fn read(
        &self,
        file: usize,
        open: &mut Descriptors,
        batch: &mut Vec<IoSliceMut<'_>>,
        offset: u64,
    ) -> Result<Option<Change>, SourceError> {
        let fd = match open.get(file, || self.open()) {
            Ok(fd) => fd,
            Err(errno) => return self.became(errno, "open").map(Some),
        };
        match read_all(fd, batch, offset) {
            Ok(whole) => Ok((!whole).then_some(Change::Changed)),
            Err(errno) => {
                open.close(file);
                self.became(errno, "read").map(Some)
            }
        }
    }

    /// Finds the change of the file for which it cannot be opened or read any more. Returns an error if this process
    /// lacks descriptors or memory instead.
    fn became(&self, errno: Errno, action: &'static str) -> Result<Change, SourceError> {
        if matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM) {
            return Err(SourceError::io(&self.path, action, errno));
        }
        Ok(match fs::lstat(&self.path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Change::Removed,
            Ok(stat) if !is_file(&stat) => Change::Replaced,
            Ok(_) | Err(_) => Change::Unreadable,
        })
    }

    fn open(&self) -> SystemResult<OwnedFd> {
        let fd = open_source(&self.path)?;
        // The call is advice only: its result does not matter.
        let _ = fs::fadvise(&fd, 0, None, Advice::Sequential);
        Ok(fd)
    }
}

/// Buffers that are used up from the front.
struct Scatter<'s, 'b> {
    rest: &'s mut [u8],
    slots: core::slice::IterMut<'s, IoSliceMut<'b>>,
}

impl<'s> Scatter<'s, '_> {
    /// Returns the next contiguous room, at most `limit` bytes.
    fn next(&mut self, limit: u64) -> Option<&'s mut [u8]> {
        while self.rest.is_empty() {
            self.rest = self.slots.next()?;
        }
        let len = self.rest.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        let (taken, rest) = core::mem::take(&mut self.rest).split_at_mut(len);
        self.rest = rest;
        Some(taken)
    }

    fn take(&mut self, mut len: u64, batch: &mut Vec<IoSliceMut<'s>>) {
        while len > 0
            && let Some(room) = self.next(len)
        {
            len -= room.len() as u64;
            batch.push(IoSliceMut::new(room));
        }
    }

    fn copy(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty()
            && let Some(room) = self.next(bytes.len() as u64)
        {
            let (now, later) = bytes.split_at(room.len());
            room.copy_from_slice(now);
            bytes = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{AtFlags, CWD, statat};
    use rustix::io::Errno;

    use super::{Change, SourceFile, State, is_file};

    #[test]
    fn what_the_system_refuses_to_read_costs_that_file_and_what_this_process_lacks_does_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stat = statat(CWD, file.path(), AtFlags::empty()).unwrap();
        assert!(is_file(&stat));
        let source = SourceFile { path: file.path().to_owned(), state: State::of(&stat), spooled: None };
        for errno in [Errno::ACCESS, Errno::PERM, Errno::IO, Errno::STALE, Errno::NODATA] {
            assert_eq!(source.became(errno, "read").unwrap(), Change::Unreadable);
        }
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(source.became(errno, "open").is_err());
        }
        let path = file.path().to_owned();
        drop(file);
        assert_eq!(source.became(Errno::NOENT, "open").unwrap(), Change::Removed, "{}", path.display());
    }
}
