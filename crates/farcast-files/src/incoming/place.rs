//! From the spool to partial files, once the head is known.

use core::ops::Range;

use farcast_core::{Bitmap, Run};
use rustix::fs;

use super::delivery::Delivery;
use super::{Happening, Incoming};
use crate::beneath::parent_of;
use crate::layout::Geometry;
use crate::manifest::PREFIX_LEN;
use crate::transfer::{Gather, read_at};
use crate::{Manifest, ProductId, StoreError};

/// Bytes that are moved at once, and the grain in which zeros among them are found.
const MOVE_LEN: usize = 256 << 10;
const MOVE_GRAIN: usize = 4096;

impl Incoming {
    /// Checks the head, then makes ready for what it announces: nothing is written below the directory before
    /// everything was checked.
    pub(super) fn place(&mut self) -> Result<(), StoreError> {
        let manifest = self.read_head()?;
        let mut delivery = Delivery::new(self.root.clone(), self.id, manifest, self.options);
        delivery.check_paths()?;
        for file in 0..delivery.files.len() {
            delivery.recognise(file)?;
        }
        delivery.check_space()?;
        delivery.make_directories()?;
        self.move_spool(&mut delivery)?;
        let newly_held = hold_done(&delivery, &mut self.held, &self.geometry);
        delivery.count_missing(&self.held, &self.geometry);
        self.happenings.push(Happening::ManifestKnown { newly_held });
        let done = (0..delivery.files.len()).filter(|file| delivery.is_done(*file));
        self.happenings
            .extend(done.map(|file| Happening::FileDone { index: delivery.layout.spans()[file].entry }));
        let head_len = delivery.layout.head_len();
        self.delivery = Some(delivery);
        self.changed = true;
        // Only when the journal says that the bytes are in the partials may the spool lose them.
        self.write_journal()?;
        fs::ftruncate(&self.spool, head_len)
            .map_err(|errno| self.root.error(&self.state.spool_path(), "shorten", errno, 0))
    }

    /// Reads the complete head from the spool.
    fn read_head(&mut self) -> Result<Manifest, StoreError> {
        let mut head = vec![0; self.head_len.unwrap_or(0) as usize];
        let read = read_at(&self.spool, &mut head, 0);
        read.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
        if ProductId::of_head(&head) != self.id {
            return Err(self.refuse_head(head.len() as u64));
        }
        let manifest = Manifest::decode(&head[PREFIX_LEN..])?;
        match manifest.product_size() {
            actual if actual != self.geometry.size => {
                Err(StoreError::WrongSize { announced: self.geometry.size, actual })
            }
            _ => Ok(manifest),
        }
    }

    /// Copies what the spool holds of files into their partials.
    fn move_spool(&mut self, delivery: &mut Delivery) -> Result<(), StoreError> {
        let mut buffer = vec![0; MOVE_LEN];
        let mut run = self.held.next_run(0);
        while let Some(now) = run {
            let bytes = self.geometry.bytes(now);
            let mut at = bytes.start.max(delivery.layout.head_len());
            while at < bytes.end {
                let end = bytes.end.min(at + MOVE_LEN as u64);
                let part = &mut buffer[..(end - at) as usize];
                let read = read_at(&self.spool, part, at);
                read.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
                let slices: Vec<&[u8]> = part.chunks(MOVE_GRAIN).collect();
                delivery.write(at..end, &mut Gather::new(&slices), self.generation)?;
                at = end;
            }
            run = self.held.next_run(now.end());
        }
        Ok(())
    }
}

/// Marks segments as held that lie wholly in the head and in finished files; which of them were not before.
pub(super) fn hold_done(delivery: &Delivery, held: &mut Bitmap, geometry: &Geometry) -> Vec<Run> {
    let mut newly = Vec::new();
    let mut known = 0..delivery.layout.head_len();
    let mut add = |bytes: &Range<u64>| {
        let Some(run) = geometry.covered(bytes) else { return };
        while let Some(gap) = held.next_gap_in(run) {
            held.insert_run(gap);
            newly.push(gap);
        }
    };
    for (file, span) in delivery.layout.spans().iter().enumerate() {
        if delivery.is_done(file) {
            known.end = span.bytes().end;
        } else if span.size > 0 {
            add(&known);
            known = span.bytes().end..span.bytes().end;
        }
    }
    add(&known);
    newly
}

impl Delivery {
    /// Refuses whatever stands in the way of entries and could lead elsewhere or be destroyed.
    pub(super) fn check_paths(&self) -> Result<(), StoreError> {
        for file in 0..self.files.len() {
            self.check_target(file)?;
            let partial = self.partial_path(file);
            self.root.regular(&partial).map_err(|errno| self.root.error(&partial, "examine", errno, 0))?;
        }
        for entry in self.manifest.entries().iter().filter(|entry| !entry.is_file()) {
            self.root
                .check_directory(&entry.path)
                .map_err(|errno| self.root.error(&entry.path, "examine", errno, 0))?;
        }
        Ok(())
    }

    /// Whether there is room for what is missing.
    pub(super) fn check_space(&self) -> Result<(), StoreError> {
        let missing = |file: &usize| if self.is_done(*file) { 0 } else { self.files[*file].missing };
        let needed = (0..self.files.len()).map(|file| missing(&file)).sum();
        let free = self.root.available().map_err(|errno| self.root.error(b"", "examine", errno, 0))?;
        let available = self.options.space_limit.map_or(free, |limit| limit.min(free));
        if needed > available {
            return Err(StoreError::DiskFull { path: self.root.full(b""), needed, available });
        }
        Ok(())
    }

    /// Makes every directory that an entry is or needs.
    pub(super) fn make_directories(&self) -> Result<(), StoreError> {
        let mut last: &[u8] = b"";
        for entry in self.manifest.entries() {
            let wanted = if entry.is_file() { parent_of(&entry.path).0.unwrap_or(b"") } else { &entry.path };
            if wanted != last && !wanted.is_empty() {
                let made = self.root.make_directories(wanted);
                made.map_err(|errno| self.root.error(wanted, "make the directory", errno, 0))?;
                last = wanted;
            }
        }
        Ok(())
    }
}
