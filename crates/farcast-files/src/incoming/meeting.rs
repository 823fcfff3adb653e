//! Detection of names in a product that the file system takes for the same, before anything is written under them.

use std::collections::BTreeMap;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, Result as SystemResult};

use super::Incoming;
use super::delivery::Delivery;
use super::withheld::WithheldReason;
use crate::beneath::Root;
use crate::delivered::Name;
use crate::names::likeness;
use crate::transfer::{read_at, write_at};
use crate::{StoreError, system};

/// The largest number of names of one likeness that are tried out; an honest sender has few.
const MOST_ALIKE: usize = 4096;
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Directory in which names are tried out.
pub(super) struct Trial<'r> {
    root: &'r Root,
    /// Path below the receiving directory, inside the state directory of the reception.
    path: Vec<u8>,
}

impl<'r> Trial<'r> {
    /// Creates a trial in the existing state directory `state`.
    pub(super) fn new(root: &'r Root, state: &[u8]) -> Self {
        Self { root, path: trial_path(state) }
    }

    /// Returns for each of `names` the index of the first name that the file system takes for the same; usually its own
    /// index. Names are single components.
    pub(super) fn classes(&self, names: &[&[u8]]) -> SystemResult<Vec<usize>> {
        self.root.make_directory(&self.path, Mode::RWXU)?;
        let classes = names.iter().enumerate().map(|(number, name)| self.class(number, name)).collect();
        clear(self.root, &self.path)?;
        classes
    }

    /// Returns `true` if the file system takes two paths for the same.
    fn are_one(&self, path: &[u8], other: &[u8]) -> SystemResult<bool> {
        let split = |path: &[u8]| path.split(|octet| *octet == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (path, other) = (split(path), split(other));
        for (one, other) in path.iter().zip(&other).filter(|(one, other)| one != other) {
            if self.classes(&[one, other])?[1] != 0 {
                return Ok(false);
            }
        }
        Ok(path.len() == other.len())
    }

    fn class(&self, number: usize, name: &[u8]) -> SystemResult<usize> {
        let path = [&self.path, b"/".as_slice(), name].concat();
        let made = self.root.open_at(&path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, OWNER_ONLY);
        match made {
            Ok(fd) => write_at(&fd, &number.to_be_bytes(), 0).map(|()| number),
            Err(Errno::EXIST) => {
                let mut first = number.to_be_bytes();
                let fd = self.root.open_at(&path, OFlags::RDONLY, Mode::empty())?;
                read_at(&fd, &mut first, 0)?;
                Ok(usize::from_be_bytes(first))
            }
            // An impossible name is no other name. The write to it will report that it is impossible.
            Err(errno) if super::withheld::is_impossible(errno) => Ok(number),
            Err(errno) => Err(errno),
        }
    }
}

/// Returns the path of the directory for trials in the state directory `state`.
pub(super) fn trial_path(state: &[u8]) -> Vec<u8> {
    [state, b"/names"].concat()
}

/// Removes the directory `path` and the files in it, if it is there.
pub(super) fn clear(root: &Root, path: &[u8]) -> SystemResult<()> {
    let fd = match root.open_directory(path) {
        Err(Errno::NOENT) => return Ok(()),
        fd => fd?,
    };
    for name in system::list(fd)? {
        root.remove_file(&[path, b"/", name.to_bytes()].concat())?;
    }
    root.in_parent(path, |dir, name| system::unlinkat(dir, name, AtFlags::REMOVEDIR))
}

impl Incoming {
    /// Records that `path` was delivered, from the file that the sender calls `said`.
    pub(super) fn note_delivered(&self, path: &[u8], said: &[u8]) {
        if let Some((delivered, session)) = &self.beside {
            delivered.note(Name { path: path.to_vec(), said: said.to_vec(), session: session.clone() });
        }
    }

    /// Records the delivered files that have their names.
    pub(super) fn note_recognised(&self) {
        let Some(delivery) = &self.delivery else { return };
        for file in (0..delivery.files.len()).filter(|file| delivery.has_name(*file)) {
            let path = &delivery.entry(file).path;
            self.note_delivered(path, path);
        }
    }

    /// Returns the path of a delivered file of another reception that the file system takes for `path`. Something
    /// exists at `path`.
    pub(super) fn meets_delivered(&self, path: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some((delivered, _)) = &self.beside else { return Ok(None) };
        for other in delivered.alike(path) {
            let trial = Trial::new(&self.root, self.state.path());
            let same = trial.are_one(path, &other);
            if same.map_err(|errno| self.root.error(&trial.path, "try out names in", errno, 0))? {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    /// Withholds those of `files` that would replace a file of another reception. Something exists under the name of
    /// each.
    pub(super) fn find_delivered(&self, delivery: &mut Delivery, files: &[usize]) -> Result<(), StoreError> {
        for &file in files {
            if let Some(other) = self.meets_delivered(&delivery.entry(file).path)? {
                delivery.withhold(file, WithheldReason::Meets { other });
            }
        }
        Ok(())
    }
}

impl Delivery {
    /// Returns `true` if `file` is complete under its final name.
    pub(super) fn has_name(&self, file: usize) -> bool {
        self.is_done(file) && !self.is_withheld(file)
    }

    /// Withholds files whose names this file system takes for those of other entries.
    pub(super) fn find_meetings(&mut self, state: &[u8]) -> Result<(), StoreError> {
        let alike = self.alike();
        if alike.is_empty() {
            return Ok(());
        }
        let root = std::sync::Arc::clone(&self.root);
        let trial = Trial::new(&root, state);
        for group in alike {
            let met = self.meetings_in(&group, &trial);
            let met = met.map_err(|errno| root.error(&trial.path, "try out names in", errno, 0))?;
            for (entry, other) in met {
                let other = self.manifest.entries()[other].path.clone();
                self.withhold_entry(entry, WithheldReason::Meets { other });
            }
        }
        Ok(())
    }

    /// Groups the entries that the file system may take for the same. In each group directories come first, then files,
    /// both in the order of the manifest.
    fn alike(&self) -> Vec<Vec<usize>> {
        let entries = self.manifest.entries();
        let mut keys: Vec<(u64, bool, usize)> = entries
            .iter()
            .enumerate()
            .map(|(at, entry)| (likeness(&entry.path), entry.is_file(), at))
            .collect();
        keys.sort_unstable();
        let groups = keys.chunk_by(|a, b| a.0 == b.0);
        // Two directories with the same name do no harm: it holds the content of both.
        let groups = groups.filter(|group| group.len() > 1 && group.iter().any(|(_, is_file, _)| *is_file));
        groups.map(|group| group.iter().take(MOST_ALIKE).map(|(.., at)| *at).collect()).collect()
    }

    /// Returns the files of `group` that the file system takes for an earlier entry, each with that entry.
    fn meetings_in(&self, group: &[usize], trial: &Trial<'_>) -> SystemResult<Vec<(usize, usize)>> {
        let entries = self.manifest.entries();
        let components = |at: usize| entries[at].path.split(|octet| *octet == b'/');
        let mut numbers: BTreeMap<&[u8], usize> = BTreeMap::new();
        group.iter().flat_map(|at| components(*at)).for_each(|name| {
            numbers.entry(name).or_default();
        });
        let names: Vec<&[u8]> = numbers.keys().copied().collect();
        let classes = trial.classes(&names)?;
        numbers.values_mut().zip(classes).for_each(|(number, class)| *number = class);
        let mut firsts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut met = Vec::new();
        for &at in group {
            let key = components(at).map(|name| numbers[name]).collect();
            match firsts.get(&key) {
                Some(&first) if entries[at].is_file() => met.push((at, first)),
                Some(_) => {}
                None => {
                    firsts.insert(key, at);
                }
            }
        }
        Ok(met)
    }
}
