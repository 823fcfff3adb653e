//! A bounded number of open files.

use std::os::fd::OwnedFd;

/// The most files that one product keeps open.
const CAPACITY: usize = 64;

/// Open files by number, the least recently used closed first.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// File, descriptor, and when it was last used.
    open: Vec<(usize, OwnedFd, u64)>,
    /// Where the last one asked for is: consecutive calls want the same file.
    last: usize,
    clock: u64,
}

impl Descriptors {
    /// The descriptor of `file`, opened with `open` if it is not.
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
        if self.open.len() == CAPACITY {
            let oldest =
                self.open.iter().enumerate().min_by_key(|(_, (.., used))| *used).map_or(0, |(at, _)| at);
            self.open.swap_remove(oldest);
        }
        self.open.push((file, fd, self.clock));
        self.open.len() - 1
    }

    /// Takes out the descriptor of `file`, if it is open.
    pub(crate) fn take(&mut self, file: usize) -> Option<OwnedFd> {
        let at = self.open.iter().position(|(other, ..)| *other == file)?;
        Some(self.open.swap_remove(at).1)
    }

    /// Closes all.
    pub(crate) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Closes `file`.
    pub(crate) fn close(&mut self, file: usize) {
        self.open.retain(|(other, ..)| *other != file);
    }
}
