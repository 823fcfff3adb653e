//! Directories of a product: creation when something goes into them, and removal of those that stay empty.

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Result as SystemResult;

use super::delivery::Delivery;
use super::state;
use super::withheld::WithheldReason;
use crate::StoreError;
use crate::beneath::{Root, parent_of, size_of};
use crate::manifest::{Entry, compare_paths};
use crate::transfer::{read_at, write_at};

/// Length in bytes of a note that a directory was made: index of an entry (u32), and number of bytes of its path that
/// name the directory (u16).
const NOTE_LEN: usize = 6;
/// Allowed number of directories that entries need but do not list: per entry, and in addition per product.
const UNLISTED: (u64, u64) = (4, 64);

impl Delivery {
    /// Returns the number of files and directories of the product. Refuses a list of files that needs too many unlisted
    /// directories: a short list of deep paths would cost the receiver far more than the sender.
    pub(super) fn count_inodes(&self) -> Result<u64, StoreError> {
        let entries = self.manifest.entries();
        let (count, unlisted) = (entries.len() as u64, unlisted_directories(entries));
        let allowed = count * UNLISTED.0 + UNLISTED.1;
        if unlisted > allowed {
            return Err(StoreError::UnlistedDirectories { unlisted, allowed });
        }
        // Compressed content stays beside its file until all files are complete.
        Ok(count + unlisted + entries.iter().filter(|entry| entry.is_compressed()).count() as u64)
    }

    /// Makes the directory that `entry` is, or in which its file lies, and all directories above it.
    pub(super) fn make_directories_of(&mut self, entry: usize) -> SystemResult<()> {
        let item = &self.manifest.entries()[entry];
        let path = if item.is_file() { parent_of(&item.path).0.unwrap_or(b"") } else { &item.path };
        let is_there = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if path.is_empty() || self.root.stat(path)?.is_some_and(is_there) {
            return Ok(());
        }
        let path = path.to_vec();
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let mode = self.listed_mode(&path[..end]);
            if self.root.make_directory(&path[..end], Mode::from_raw_mode(mode.into()))? {
                self.made += 1;
                self.note_directory(entry, end)?;
            }
        }
        Ok(())
    }

    /// Returns the mode of the directory `path`; 0o777 if it is not listed.
    fn listed_mode(&self, path: &[u8]) -> u16 {
        let entries = self.manifest.entries();
        let found = entries.binary_search_by(|entry| compare_paths(&entry.path, path));
        found.map_or(0o777, |at| entries[at].mode)
    }

    /// Makes every directory that an entry is or needs. Existing directories stay unchanged.
    pub(super) fn make_directories(&mut self) -> Result<(), StoreError> {
        for entry in 0..self.manifest.entries().len() {
            // The directory of a withheld file is made too.
            match self.make_directories_of(entry) {
                Ok(()) => {}
                Err(errno) => {
                    let path = &self.manifest.entries()[entry].path;
                    let error = || self.root.error(path, "make the directory for", errno, 0);
                    let why = WithheldReason::of(errno).ok_or_else(error)?;
                    self.withhold_entry(entry, why);
                }
            }
        }
        Ok(())
    }

    /// Notes that this reception has made a directory.
    fn note_directory(&mut self, entry: usize, end: usize) -> SystemResult<()> {
        let fd = if let Some(fd) = self.notes.take() {
            fd
        } else {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
            self.root.open_at(&self.notes_path(), flags, Mode::RUSR | Mode::WUSR)?
        };
        let mut note = [0; NOTE_LEN];
        note[..4].copy_from_slice(&(entry as u32).to_be_bytes());
        note[4..].copy_from_slice(&(end as u16).to_be_bytes());
        // The file is open for appending, so the offset does not matter.
        let written = write_at(&fd, &note, 0);
        self.notes = Some(fd);
        written
    }

    fn notes_path(&self) -> Vec<u8> {
        [&state::path_of(self.id), b"/made".as_slice()].concat()
    }

    /// Removes the directories that this reception has made, if they are empty.
    pub(super) fn remove_directories(&mut self) -> Result<(), StoreError> {
        self.notes = None;
        let path = self.notes_path();
        let notes = read_notes(&self.root, &path);
        let notes = notes.map_err(|errno| self.root.error(&path, "read", errno, 0))?;
        // Reverse order: deeper directories were made later.
        for note in notes.as_chunks::<NOTE_LEN>().0.iter().rev() {
            let [e0, e1, e2, e3, l0, l1] = *note;
            let (entry, len) = (u32::from_be_bytes([e0, e1, e2, e3]), u16::from_be_bytes([l0, l1]));
            let entry = self.manifest.entries().get(entry as usize);
            if let Some(directory) = entry.and_then(|entry| entry.path.get(..usize::from(len))) {
                let removed = self.root.remove_directory(directory);
                removed.map_err(|errno| self.root.error(directory, "remove", errno, 0))?;
            }
        }
        Ok(())
    }
}

fn read_notes(root: &Root, path: &[u8]) -> SystemResult<Vec<u8>> {
    let Some(stat) = root.regular(path)? else { return Ok(Vec::new()) };
    let mut notes = vec![0; size_of(&stat) as usize];
    let read = read_at(root.open_at(path, OFlags::RDONLY, Mode::empty())?, &mut notes, 0)?;
    notes.truncate(read);
    Ok(notes)
}

/// Counts the directories that entries need but that are not entries themselves.
fn unlisted_directories(entries: &[Entry]) -> u64 {
    let mut last: &[u8] = b"";
    let mut unlisted = 0;
    for entry in entries {
        let path = entry.path.as_slice();
        // The order puts entries of one directory side by side. A separator right behind the shared bytes follows the
        // previous entry, a listed directory, so it does not count.
        let shared = path.iter().zip(last).take_while(|(a, b)| a == b).count();
        unlisted += path[shared..].iter().skip(1).filter(|byte| **byte == b'/').count() as u64;
        last = path;
    }
    unlisted
}

#[cfg(test)]
mod tests {
    use super::unlisted_directories;
    use crate::{Entry, EntryKind};

    #[test]
    fn directories_are_counted_once() {
        let count = |paths: &[&str]| {
            let entry = |path: &&str| Entry {
                path: path.as_bytes().to_vec(),
                mode: 0o755,
                mtime_ns: 0,
                kind: EntryKind::Directory,
                parts: Box::default(),
                chunks: crate::chunks::Chunks::default(),
            };
            unlisted_directories(&paths.iter().map(entry).collect::<Vec<_>>())
        };
        assert_eq!(count(&["a", "a/b", "a/b/c"]), 0);
        assert_eq!(count(&["a/b/c"]), 2);
        assert_eq!(count(&["a/b/c", "a/b/d", "a/e/f"]), 3);
        assert_eq!(count(&["a/bc/d", "a/bd/e"]), 3);
        assert_eq!(count(&["a", "ab/c", "abc/d/e"]), 3);
        assert_eq!(count(&["a/b", "a/b/c", "ab"]), 1);
    }
}
