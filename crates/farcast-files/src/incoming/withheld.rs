//! Files that cannot have their names here, or in whose way something stands: they cost themselves, and not the product.
//!
//! Their content is received like all other, so that whatever shares a segment or a block with it can be had, and waits
//! in the state directory, with which it goes.

use rustix::io::{Errno, Result as SystemResult};

use super::delivery::Delivery;
use super::state::path_of;
use crate::StoreError;
use crate::beneath::Root;
use crate::error::as_path;

/// Why an entry is not delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// The file system takes its name for that of another entry.
    Meets {
        /// Path of the other.
        other: Vec<u8>,
    },
    /// The file system has no such names.
    Impossible(Errno),
    /// Something stands there, or on the way, that is neither followed nor destroyed.
    Obstructed(Errno),
}

impl Why {
    /// The reason that `errno`, met with a name, is for withholding what was to have it; `None` if it is none.
    pub(super) fn of(errno: Errno) -> Option<Self> {
        match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::ISDIR => Some(Self::Obstructed(errno)),
            errno => is_impossible(errno).then_some(Self::Impossible(errno)),
        }
    }
}

/// Whether `errno` says that a name cannot be.
pub(super) fn is_impossible(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NAMETOOLONG | Errno::ILSEQ)
}

/// Tells whether `errno`, met when `from` was renamed, says that the new name cannot be: some FAT says that it is not found.
pub(super) fn is_missing_name(root: &Root, from: &[u8], errno: Errno) -> bool {
    errno == Errno::NOENT && matches!(root.regular(from), Ok(Some(_)))
}

impl Delivery {
    /// Whether `file` is not to have its name.
    pub(super) fn is_withheld(&self, file: usize) -> bool {
        !self.withheld.is_empty() && self.withheld.contains_key(&self.layout.spans()[file].entry)
    }

    /// Withholds an entry.
    pub(super) fn withhold_entry(&mut self, entry: usize, why: Why) {
        self.withheld.entry(entry).or_insert(why);
    }

    /// Withholds `file`, of which nothing was written yet.
    pub(super) fn withhold(&mut self, file: usize, why: Why) {
        self.withhold_entry(self.layout.spans()[file].entry, why);
    }

    /// Withholds `file`, of which everything is there and right.
    pub(super) fn withhold_complete(&mut self, file: usize, why: Why) -> SystemResult<()> {
        let from = self.partial_path(file);
        self.withhold(file, why);
        self.root.rename(&from, &self.partial_path(file), true)?;
        self.set_done(file);
        self.files[file].stored_known = true;
        Ok(())
    }

    /// Where the content of a withheld `file` waits.
    pub(super) fn withheld_path(&self, file: usize) -> Vec<u8> {
        [&path_of(self.id), format!("/file-{file}").as_bytes()].concat()
    }

    /// The entries that are newly withheld, and why.
    pub(super) fn tell_withheld(&mut self) -> Vec<(usize, StoreError)> {
        let fresh = self.withheld.iter().filter(|(entry, _)| !self.told_withheld.contains(entry));
        let told: Vec<_> = fresh.map(|(&entry, why)| (entry, self.withheld_error(entry, why))).collect();
        self.told_withheld.extend(told.iter().map(|(entry, _)| *entry));
        told
    }

    /// Refuses a product for which something stands in the way of all that it has: nothing would come of it.
    pub(super) fn check_obstructed(&self) -> Result<(), StoreError> {
        let entries = self.manifest.entries();
        let any_file = entries.iter().any(crate::Entry::is_file);
        let is_obstructed = |at: &usize| matches!(self.withheld.get(at), Some(Why::Obstructed(_)));
        let mut wanted = (0..entries.len()).filter(|at| entries[*at].is_file() == any_file);
        match self.withheld.iter().find(|(at, _)| is_obstructed(at)) {
            Some((&first, why)) if wanted.all(|at| is_obstructed(&at)) => {
                Err(self.withheld_error(first, why))
            }
            _ => Ok(()),
        }
    }

    /// The error with which a product ends of which something was withheld; `None` if nothing was.
    pub(super) fn lacks_withheld(&self) -> Option<StoreError> {
        let (&entry, why) = self.withheld.iter().next()?;
        let first = Box::new(self.withheld_error(entry, why));
        Some(StoreError::Withheld { first, others: self.withheld.len() - 1 })
    }

    fn withheld_error(&self, entry: usize, why: &Why) -> StoreError {
        let path = as_path(&self.manifest.entries()[entry].path).to_owned();
        let dir = self.root.full(b"");
        match why {
            Why::Meets { other } => {
                StoreError::NamesMeet { first: as_path(other).to_owned(), second: path, dir }
            }
            Why::Impossible(errno) => StoreError::ImpossibleName { path, dir, source: (*errno).into() },
            Why::Obstructed(errno) => {
                self.root.error(&self.manifest.entries()[entry].path, "write", *errno, 0)
            }
        }
    }
}
