//! Ends of a reception: finish, abandon and discard.

use std::sync::Arc;

use rustix::io::Result as SystemResult;

use super::Incoming;
use super::complete::{times_of, unless_not_ours};
use super::delivery::Delivery;
use crate::beneath::parent_of;
use crate::{Nicety, Refusal, StoreError, system};

impl Incoming {
    /// Sets the times of directories, and removes the state of the reception.
    ///
    /// # Errors
    /// [`StoreError::Incomplete`] if segments are missing. [`StoreError::Withheld`] if the product is complete except
    /// for entries that cannot have their names here. Errors of the file system; the state then still exists, so open
    /// the product again and finish it.
    pub fn finish(mut self) -> Result<Vec<Refusal>, StoreError> {
        self.release_all();
        self.advance()?;
        match &mut self.delivery {
            _ if self.plain.as_ref().is_some_and(|plain| plain.done) => {}
            Some(delivery) if delivery.is_complete() => {
                delivery.make_directories()?;
                // Removing files changes the times of directories, which are set afterwards.
                delivery.remove_stored_at_end()?;
                delivery.finish_directories()?;
            }
            _ => return Err(StoreError::Incomplete { missing: self.held.len() - self.held.count() }),
        }
        self.gate.close();
        let withheld = self.delivery.as_ref().and_then(Delivery::lacks_withheld);
        self.close_files();
        self.state.remove_complete(&self.root);
        withheld.map_or_else(|| Ok(self.root.take_refusals()), Err)
    }

    /// Closes the open files of the state, because some file systems keep a removed file while it is open.
    fn close_files(&mut self) {
        (self.spool, self.symbols) = (None, None);
        if let Some(delivery) = &mut self.delivery {
            delivery.open.close_all();
            delivery.notes = None;
        }
    }

    /// Stops the reception. If [`is_worth_keeping`](Self::is_worth_keeping), keeps the received data for a later
    /// [`open`](Self::open); otherwise discards it. Returns `true` if it was kept.
    ///
    /// # Errors
    /// Errors of the file system; a later run then continues from the last checkpoint.
    pub fn abandon(mut self) -> Result<bool, StoreError> {
        if !self.is_worth_keeping() {
            return self.discard().map(|()| false);
        }
        self.write_journal()?;
        self.settle()?;
        Ok(true)
    }

    /// Returns `true` if the list of files is known, and some content of the files or parity is held. Before the list
    /// is known, anybody could have made up the data. An object without a manifest is worth keeping if some of it is
    /// held and a later run would recognise it.
    pub fn is_worth_keeping(&self) -> bool {
        if let Some(plain) = &self.plain {
            return plain.resumes(self.options) && !plain.done && !self.held.is_empty();
        }
        self.delivery.as_ref().is_some_and(|delivery| {
            let head = self.geometry.touching(&(0..delivery.layout.head_len()));
            let in_files = self.held.count() - head.map_or(0, |run| self.held.count_in(run));
            in_files > 0
                || self.keeps_parity()
                || (0..delivery.files.len()).any(|file| delivery.is_done(file))
        })
    }

    /// Stops the reception. Removes partial files, directories that were made for them, and the state of the reception.
    /// Finished files stay.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn discard(mut self) -> Result<(), StoreError> {
        self.gate.close();
        if let Some(delivery) = &mut self.delivery {
            delivery.remove()?;
        } else if self.head_len.is_some_and(|len| self.holds(len))
            && let Ok(Some(manifest)) = self.placed_head()
        {
            // Making the partial files has failed.
            Delivery::new(Arc::clone(&self.root), self.id, manifest, self.options).remove()?;
        }
        self.close_files();
        self.state.remove(&self.root)
    }
}

impl Delivery {
    /// Removes all partial files and empty directories of the product.
    pub(crate) fn remove(&mut self) -> Result<(), StoreError> {
        for file in 0..self.files.len() {
            if !self.is_done(file) || self.is_withheld(file) {
                self.drop_partial(file)?;
            }
        }
        self.remove_stored()?;
        self.remove_directories()
    }

    fn finish_directories(&self) -> Result<(), StoreError> {
        if self.syncs() {
            self.sync_names()?;
        }
        for (at, entry) in self.manifest.entries().iter().enumerate() {
            if entry.is_file() || self.withheld.contains_key(&at) {
                continue;
            }
            let set = || -> SystemResult<()> {
                let fd = self.root.open_directory(&entry.path)?;
                let set = unless_not_ours(system::futimens(&fd, &times_of(entry)));
                self.root.tolerate(Nicety::Time, &entry.path, set)?;
                let synced = if self.syncs() { system::fsync(&fd) } else { Ok(()) };
                self.root.tolerate(Nicety::DurableNames, &entry.path, synced)
            };
            // A directory of another user, or one that may not be read, keeps its time.
            unless_not_ours(set())
                .map_err(|errno| self.root.error(&entry.path, "set the time of", errno, 0))?;
        }
        Ok(())
    }

    /// Makes the final names durable.
    fn sync_names(&self) -> Result<(), StoreError> {
        let mut last = None;
        for (_, entry) in
            self.manifest.entries().iter().enumerate().filter(|(at, _)| !self.withheld.contains_key(at))
        {
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
