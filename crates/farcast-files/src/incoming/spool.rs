//! The spool of a reception, which need not stay open: many receptions at once would take more descriptors than a process
//! may have.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::io::Result as SystemResult;

use crate::beneath::Root;

/// The spool, open or not.
#[derive(Debug)]
pub(super) struct Spool(OnceLock<OwnedFd>);

impl Spool {
    /// One that is open.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(OnceLock::from(fd))
    }

    /// Returns its descriptor; it lies at `path` and is opened there if it is not open.
    pub(super) fn fd(&self, root: &Root, path: &[u8]) -> SystemResult<&OwnedFd> {
        if let Some(fd) = self.0.get() {
            return Ok(fd);
        }
        let fd = root.open_at(path, OFlags::RDWR, Mode::empty())?;
        Ok(self.0.get_or_init(|| fd))
    }

    /// Closes it until it is needed.
    pub(super) fn close(&mut self) {
        self.0.take();
    }
}
