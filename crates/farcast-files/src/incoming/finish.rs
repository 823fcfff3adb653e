//! The three ways in which a reception ends.

use rustix::fs;
use rustix::io::Result as SystemResult;

use super::Incoming;
use super::complete::{mode_of, times_of};
use super::delivery::Delivery;
use crate::StoreError;
use crate::beneath::parent_of;

impl Incoming {
    /// Sets modes and times of directories, and removes the state of the reception.
    ///
    /// # Errors
    /// [`StoreError::Incomplete`] if segments are missing, and what the file system reports. After an error the state is
    /// still there: open and finish again.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.advance()?;
        match &self.delivery {
            Some(delivery) if delivery.is_complete() => delivery.finish_directories()?,
            _ => return Err(StoreError::Incomplete { missing: self.held.len() - self.held.count() }),
        }
        self.gate.close();
        self.state.remove(&self.root)
    }

    /// Stops, and keeps what is there for a later [`open`](Self::open).
    ///
    /// # Errors
    /// What the file system reports; then a later run goes on from the last checkpoint.
    pub fn abandon(mut self) -> Result<(), StoreError> {
        self.write_journal()
    }

    /// Stops, and removes partial files and the state of the reception. Finished files and directories stay.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn discard(mut self) -> Result<(), StoreError> {
        self.gate.close();
        if let Some(delivery) = &mut self.delivery {
            for file in 0..delivery.files.len() {
                if !delivery.is_done(file) {
                    delivery.drop_partial(file)?;
                }
            }
        }
        self.state.remove(&self.root)
    }
}

impl Delivery {
    fn finish_directories(&self) -> Result<(), StoreError> {
        if self.syncs() {
            self.sync_names()?;
        }
        // What lies deeper comes later in the manifest; it has to be reached before the mode of what is above it
        // may forbid that.
        for entry in self.manifest.entries().iter().rev().filter(|entry| !entry.is_file()) {
            let set = || -> SystemResult<()> {
                let fd = self.root.open_directory(&entry.path)?;
                fs::fchmod(&fd, mode_of(entry))?;
                fs::futimens(&fd, &times_of(entry))?;
                if self.syncs() { fs::fsync(&fd) } else { Ok(()) }
            };
            set().map_err(|errno| self.root.error(&entry.path, "set the mode and time of", errno, 0))?;
        }
        Ok(())
    }

    /// Makes the final names durable.
    fn sync_names(&self) -> Result<(), StoreError> {
        let mut last = None;
        for entry in self.manifest.entries() {
            let parent = parent_of(&entry.path).0;
            if last != Some(parent) {
                let synced = self.root.sync_parent(&entry.path);
                synced.map_err(|errno| self.root.error(&entry.path, "make durable the name", errno, 0))?;
                last = Some(parent);
            }
        }
        Ok(())
    }
}
