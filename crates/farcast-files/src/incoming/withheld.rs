//! Entries that are withheld because they cannot have their names here, or because something is in their way. Only
//! these are not delivered; the rest of the product is.
//!
//! The content of a withheld file is received all the same, because other files may share a segment or a block with it.
//! It is kept in the state directory until that is removed.

use rustix::io::{Errno, Result as SystemResult};

use super::delivery::Delivery;
use super::state::path_of;
use crate::StoreError;
use crate::beneath::Root;
use crate::error::as_path;

/// Reason for which an entry is withheld.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WithheldReason {
    /// The file system takes the name for that of another entry.
    Meets {
        /// Path of the other entry.
        other: Vec<u8>,
    },
    /// The file system does not permit such a name.
    Impossible(Errno),
    /// Something exists at the path or on the way that is neither followed nor removed.
    Obstructed(Errno),
}

impl WithheldReason {
    /// Returns the reason for withholding an entry whose name has met with `errno`; `None` if this is an error of
    /// another kind.
    pub(super) fn of(errno: Errno) -> Option<Self> {
        match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::ISDIR => Some(Self::Obstructed(errno)),
            errno => is_impossible(errno).then_some(Self::Impossible(errno)),
        }
    }
}

/// Returns `true` if `errno` means that a name is not possible.
pub(super) fn is_impossible(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NAMETOOLONG | Errno::ILSEQ)
}

/// Returns `true` if `errno` of renaming `from` means that the new name is not possible. Some FAT file systems then
/// report `ENOENT`.
pub(super) fn is_missing_name(root: &Root, from: &[u8], errno: Errno) -> bool {
    errno == Errno::NOENT && matches!(root.regular(from), Ok(Some(_)))
}

impl Delivery {
    /// Returns `true` if `file` is withheld.
    pub(super) fn is_withheld(&self, file: usize) -> bool {
        !self.withheld.is_empty() && self.withheld.contains_key(&self.layout.spans()[file].entry)
    }

    /// Withholds the entry with the index `entry`.
    pub(super) fn withhold_entry(&mut self, entry: usize, why: WithheldReason) {
        self.withheld.entry(entry).or_insert(why);
    }

    /// Withholds `file`, which has no partial file yet.
    pub(super) fn withhold(&mut self, file: usize, why: WithheldReason) {
        self.withhold_entry(self.layout.spans()[file].entry, why);
    }

    /// Withholds `file`, which is complete and verified.
    pub(super) fn withhold_complete(&mut self, file: usize, why: WithheldReason) -> SystemResult<()> {
        let from = self.partial_path(file);
        self.withhold(file, why);
        self.root.rename(&from, &self.partial_path(file), true)?;
        self.set_done(file);
        self.files[file].stored_known = true;
        Ok(())
    }

    /// Returns the path at which the content of the withheld `file` is kept.
    pub(super) fn withheld_path(&self, file: usize) -> Vec<u8> {
        [&path_of(self.id), format!("/file-{file}").as_bytes()].concat()
    }

    /// Returns the entries that are withheld and were not yet reported, with the reasons.
    pub(super) fn tell_withheld(&mut self) -> Vec<(usize, StoreError)> {
        let fresh = self.withheld.iter().filter(|(entry, _)| !self.told_withheld.contains(entry));
        let told: Vec<_> = fresh.map(|(&entry, why)| (entry, self.withheld_error(entry, why))).collect();
        self.told_withheld.extend(told.iter().map(|(entry, _)| *entry));
        told
    }

    /// Refuses a product whose files are all obstructed, or whose directories all are if it has no files: nothing of it
    /// would be delivered.
    pub(super) fn check_obstructed(&self) -> Result<(), StoreError> {
        let entries = self.manifest.entries();
        let any_file = entries.iter().any(crate::Entry::is_file);
        let is_obstructed = |at: &usize| matches!(self.withheld.get(at), Some(WithheldReason::Obstructed(_)));
        let mut wanted = (0..entries.len()).filter(|at| entries[*at].is_file() == any_file);
        match self.withheld.iter().find(|(at, _)| is_obstructed(at)) {
            Some((&first, why)) if wanted.all(|at| is_obstructed(&at)) => {
                Err(self.withheld_error(first, why))
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for the end of a product with withheld entries; `None` if no entry is withheld.
    pub(super) fn lacks_withheld(&self) -> Option<StoreError> {
        let (&entry, why) = self.withheld.iter().next()?;
        let first = Box::new(self.withheld_error(entry, why));
        Some(StoreError::Withheld { first, others: self.withheld.len() - 1 })
    }

    fn withheld_error(&self, entry: usize, why: &WithheldReason) -> StoreError {
        let path = as_path(&self.manifest.entries()[entry].path).to_owned();
        let dir = self.root.full(b"");
        match why {
            WithheldReason::Meets { other } => {
                StoreError::NamesMeet { first: as_path(other).to_owned(), second: path, dir }
            }
            WithheldReason::Impossible(errno) => {
                StoreError::ImpossibleName { path, dir, source: (*errno).into() }
            }
            WithheldReason::Obstructed(errno) => {
                self.root.error(&self.manifest.entries()[entry].path, "write", *errno, 0)
            }
        }
    }
}
