//! A bounded number of open files.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};

/// Bounds of the number of files that one product keeps open: the lower one holds even if the process may open very
/// few.
const CAPACITY: (usize, usize) = (4, 64);
/// Reciprocal of one product's share of the files that this process may open.
const SHARE: u64 = 8;

/// Returns the number of files that one product may keep open. It is also the number of products that may keep files
/// open between two calls.
pub fn capacity() -> usize {
    static FOUND: OnceLock<usize> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        usize::try_from(limit / SHARE).unwrap_or(usize::MAX).clamp(CAPACITY.0, CAPACITY.1)
    })
}

/// Open files by number, the least recently used closed first.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// File number, descriptor, and the clock at its last use.
    open: Vec<(usize, OwnedFd, u64)>,
    /// Index of the last file asked for: consecutive calls want the same file.
    last: usize,
    clock: u64,
}

impl Descriptors {
    /// Returns the descriptor of `file`; opens the file with `open` if necessary.
    pub(crate) fn get<E>(
        &mut self,
        file: usize,
        open: impl FnOnce() -> Result<OwnedFd, E>,
    ) -> Result<&OwnedFd, E> {
        self.clock += 1;
        if self.open.get(self.last).is_none_or(|(other, ..)| *other != file) {
            self.last = match self.open.iter().position(|(other, ..)| *other == file) {
                Some(at) => at,
                None => self.insert(file, open()?),
            };
        }
        let (_, fd, used) = &mut self.open[self.last];
        *used = self.clock;
        Ok(fd)
    }

    fn insert(&mut self, file: usize, fd: OwnedFd) -> usize {
        if self.open.len() >= capacity() {
            let oldest =
                self.open.iter().enumerate().min_by_key(|(_, (.., used))| *used).map_or(0, |(at, _)| at);
            self.open.swap_remove(oldest);
        }
        self.open.push((file, fd, self.clock));
        self.open.len() - 1
    }

    /// Removes and returns the descriptor of `file`, if it is open.
    pub(crate) fn take(&mut self, file: usize) -> Option<OwnedFd> {
        let at = self.open.iter().position(|(other, ..)| *other == file)?;
        Some(self.open.swap_remove(at).1)
    }

    /// Closes all files.
    pub(crate) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Closes `file`.
    pub(crate) fn close(&mut self, file: usize) {
        self.open.retain(|(other, ..)| *other != file);
    }
}
