//! The spool file of a reception. It need not stay open: many receptions at once would need more descriptors than a
//! process may have.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::io::Result as SystemResult;

use crate::beneath::Root;

/// Spool file, open or closed.
#[derive(Debug)]
pub(super) struct Spool(OnceLock<OwnedFd>);

impl Spool {
    /// Creates it from an open descriptor.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(OnceLock::from(fd))
    }

    /// Returns the descriptor; opens the file at `path` if it is closed.
    pub(super) fn fd(&self, root: &Root, path: &[u8]) -> SystemResult<&OwnedFd> {
        if let Some(fd) = self.0.get() {
            return Ok(fd);
        }
        let fd = root.open_at(path, OFlags::RDWR, Mode::empty())?;
        Ok(self.0.get_or_init(|| fd))
    }

    /// Closes the file until it is needed.
    pub(super) fn close(&mut self) {
        self.0.take();
    }
}
