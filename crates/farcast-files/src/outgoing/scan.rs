//! Walk over the files and directories to send, and computation of their digests.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FileType, Stat};

use super::{Change, ScanProgress, Scanning, SkipReason, Skipped, SourceFile, State, open_source};
use crate::beneath::mtime_of;
use crate::chunks::{Chunks, Lister};
use crate::compression::{Spool, Spooling};
use crate::manifest::{MAX_ENTRIES, MAX_MANIFEST_LEN, PARTIAL_SUFFIX, STATE_DIR, compare_paths, encoded_len};
use crate::parts::{Digests, Grain, PartHasher};
use crate::transfer::read_at;
use crate::{Entry, EntryKind, Manifest, ManifestError, SourceError};

const READ_LEN: usize = 1 << 20;

/// Files and directories that a walk has found.
#[derive(Default)]
pub(super) struct FoundEntries {
    items: Vec<Item>,
    names: BTreeSet<OsString>,
    pub(super) skipped: Vec<Skipped>,
}

/// Manifest of the product, and the files and spool from which its content is read.
pub(super) struct Hashed {
    pub(super) manifest: Manifest,
    pub(super) sources: Vec<SourceFile>,
    pub(super) spool: Option<Spool>,
}

/// Description of a file's content in its entry: kind, values of its parts, chunks.
type Described = (EntryKind, Box<[[u8; 32]]>, Chunks);

struct Item {
    /// Path in the manifest, made of octets.
    relative: Vec<u8>,
    source: PathBuf,
    stat: Stat,
}

impl Item {
    fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::RegularFile
    }
}

impl FoundEntries {
    /// Walks `path`, which is one of the paths to send.
    pub(super) fn argument(&mut self, path: &Path) -> Result<(), SourceError> {
        let name = match path.file_name() {
            Some(name) => name.to_owned(),
            // Only the target of "." and ".." has a name.
            None => match path.canonicalize().map_err(|e| SourceError::io(path, "find", e))?.file_name() {
                Some(name) => name.to_owned(),
                None => return Err(SourceError::NoName { path: path.to_owned() }),
            },
        };
        if self.names.contains(&name) {
            return Err(SourceError::DuplicateName { name: name.into() });
        }
        // A list, not recursion: a deep tree must not use up the stack.
        let mut waiting = vec![(path.to_owned(), name.as_bytes().to_vec())];
        self.names.insert(name);
        while let Some((source, relative)) = waiting.pop() {
            if self.visit(&source, &relative)? {
                list(&source, &relative, &mut waiting)?;
            }
        }
        Ok(())
    }

    /// Adds the entry at `source`, or lists it as skipped. Returns `true` for a directory that is to be walked.
    fn visit(&mut self, source: &Path, relative: &[u8]) -> Result<bool, SourceError> {
        let stat = fs::lstat(source).map_err(|e| SourceError::io(source, "examine", e))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if let Some(reason) = reason_to_skip(kind, relative) {
            self.skipped.push(Skipped { path: source.to_owned(), reason });
            return Ok(false);
        }
        if self.items.len() == MAX_ENTRIES {
            return Err(ManifestError::TooManyEntries { count: MAX_ENTRIES as u64 + 1 }.into());
        }
        self.items.push(Item { relative: relative.to_vec(), source: source.to_owned(), stat });
        Ok(kind == FileType::Directory)
    }

    /// Returns the directories below which there is no file.
    pub(super) fn empty_directories(&self) -> Vec<Skipped> {
        let mut full = BTreeSet::new();
        for file in self.items.iter().filter(|item| item.is_file()) {
            let ends = file.relative.iter().enumerate().filter(|(_, octet)| **octet == b'/');
            full.extend(ends.map(|(end, _)| &file.relative[..end]));
        }
        let empty = |item: &&Item| !item.is_file() && !full.contains(item.relative.as_slice());
        let skipped = |item: &Item| Skipped { path: item.source.clone(), reason: SkipReason::EmptyDirectory };
        self.items.iter().filter(empty).map(skipped).collect()
    }

    /// Computes the digests. With compression, also compresses the files that become shorter.
    pub(super) fn hash(
        mut self,
        scanning: &Scanning,
        mut progress: impl FnMut(ScanProgress),
    ) -> Result<Hashed, SourceError> {
        if self.items.is_empty() {
            return Err(SourceError::Empty);
        }
        self.items.sort_by(|a, b| compare_paths(&a.relative, &b.relative));
        let total =
            self.items.iter().filter(|item| item.is_file()).map(|item| State::of(&item.stat).size).sum();
        let mut now = ScanProgress { hashed: 0, total };
        progress(now);
        let mut buffer = vec![0; READ_LEN];
        let mut entries = Vec::with_capacity(self.items.len());
        let mut sources = Vec::new();
        let mut spooling = scanning.compress.as_deref().map(Spooling::new).transpose()?;
        for item in self.items {
            let (mut kind, mut parts, mut chunks) = (EntryKind::Directory, Box::default(), Chunks::default());
            if item.is_file() {
                let mut source =
                    SourceFile { state: State::of(&item.stat), path: item.source, spooled: None };
                (kind, parts, chunks) =
                    source.describe(scanning.grain, spooling.as_mut(), &mut buffer, |read| {
                        now.hashed += read;
                        progress(now);
                    })?;
                sources.push(source);
            }
            let mode = (item.stat.st_mode & 0o777) as u16;
            entries.push(Entry {
                path: item.relative,
                mode,
                mtime_ns: mtime_of(&item.stat),
                kind,
                parts,
                chunks,
            });
        }
        // Each list only saves octets: without chunks a change costs a whole file, without part values damage does. A
        // manifest that is too long, however, could not be sent at all.
        let too_long =
            |entries: &[Entry]| entries.iter().map(encoded_len).sum::<usize>() > MAX_MANIFEST_LEN - 4;
        if too_long(&entries) {
            for entry in &mut entries {
                entry.chunks = Chunks::default();
            }
        }
        if too_long(&entries) {
            for entry in &mut entries {
                entry.parts = Box::default();
            }
        }
        let spool = spooling.and_then(Spooling::into_spool);
        Ok(Hashed { manifest: Manifest::new(entries)?, sources, spool })
    }
}

impl SourceFile {
    /// Computes the description of the content, and compresses it if there is a spool and compression saves enough.
    /// Fails if the file has become shorter since the walk. The description is right only if the file is otherwise
    /// unchanged.
    fn describe(
        &mut self,
        grain: Grain,
        mut spooling: Option<&mut Spooling>,
        buffer: &mut [u8],
        progress: impl FnMut(u64),
    ) -> Result<Described, SourceError> {
        let fd = open_source(&self.path).map_err(|errno| SourceError::io(&self.path, "open", errno))?;
        let size = self.state.size;
        if let Some(trying) = &mut spooling
            && !trying.promises(size, |bytes, at| self.fill(&fd, bytes, at))?
        {
            spooling = None;
        }
        let ((digest, values), list) = self.digest(&fd, grain, spooling.as_deref_mut(), buffer, progress)?;
        let compressed = spooling.map(|spooling| spooling.finish(size, grain)).transpose()?.flatten();
        let Some((start, stored, (stored_digest, values))) = compressed else {
            return Ok((EntryKind::File { size, digest }, values, list));
        };
        self.spooled = Some(start);
        Ok((EntryKind::Compressed { size, digest, stored, stored_digest }, values, Chunks::default()))
    }

    fn unsized_(&self) -> SourceError {
        SourceError::Unsized { path: self.path.clone(), size: self.state.size }
    }

    /// Fills `buffer` with the content from `at` on.
    fn fill(&self, fd: &OwnedFd, buffer: &mut [u8], at: u64) -> Result<(), SourceError> {
        match read_at(fd, buffer, at) {
            Ok(read) if read == buffer.len() => Ok(()),
            // The file is unchanged, so its reported size was never true.
            Ok(_) if fs::fstat(fd).is_ok_and(|stat| State::of(&stat) == self.state) => Err(self.unsized_()),
            Ok(_) => Err(SourceError::of_change(Change::Changed, &self.path)),
            Err(errno) => Err(SourceError::io(&self.path, "read", errno)),
        }
    }

    /// Computes the digest of the content, the values of its parts and its chunks. Copies the content into the spool,
    /// if there is one.
    fn digest(
        &self,
        fd: &OwnedFd,
        grain: Grain,
        mut spooling: Option<&mut Spooling>,
        buffer: &mut [u8],
        mut progress: impl FnMut(u64),
    ) -> Result<(Digests, Chunks), SourceError> {
        let (mut hasher, mut lister) =
            (PartHasher::new(self.state.size, grain), Lister::new(self.state.size));
        let mut at = 0;
        while at < self.state.size {
            // Read no more than the size: the end of a file that grows all the time is never reached.
            let bytes = &mut buffer[..(self.state.size - at).min(READ_LEN as u64) as usize];
            self.fill(fd, bytes, at)?;
            hasher.update(bytes);
            lister.update(bytes);
            if let Some(spooling) = &mut spooling {
                spooling.push(bytes)?;
            }
            at += bytes.len() as u64;
            progress(bytes.len() as u64);
        }
        // Files of /proc report size zero and produce their content when read.
        if self.state.size == 0
            && fs::fstat(fd).is_ok_and(|stat| State::of(&stat) == self.state)
            && read_at(fd, &mut buffer[..1], 0).map_err(|errno| SourceError::io(&self.path, "read", errno))?
                > 0
        {
            return Err(self.unsized_());
        }
        Ok((hasher.finish(), lister.finish()))
    }
}

fn list(source: &Path, relative: &[u8], waiting: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<(), SourceError> {
    let failed = |e| SourceError::io(source, "list", e);
    for child in std::fs::read_dir(source).map_err(failed)? {
        let name = child.map_err(failed)?.file_name();
        let relative = [relative, b"/", name.as_bytes()].concat();
        waiting.push((source.join(name), relative));
    }
    Ok(())
}

fn reason_to_skip(kind: FileType, relative: &[u8]) -> Option<SkipReason> {
    let name = relative.rsplit(|byte| *byte == b'/').next().unwrap_or(relative);
    match kind {
        _ if name == STATE_DIR || name.ends_with(PARTIAL_SUFFIX) => Some(SkipReason::Reserved),
        FileType::RegularFile | FileType::Directory => None,
        FileType::Symlink => Some(SkipReason::SymbolicLink),
        FileType::Socket => Some(SkipReason::Socket),
        FileType::Fifo => Some(SkipReason::Fifo),
        FileType::BlockDevice | FileType::CharacterDevice | FileType::Unknown => Some(SkipReason::Device),
    }
}
