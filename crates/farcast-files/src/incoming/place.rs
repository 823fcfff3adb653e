//! Move from the spool to partial files, once the head is known.

use core::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use farcast_core::{Bitmap, Run};
use rustix::io::{Errno, Result as SystemResult};

use super::delivery::Delivery;
use super::withheld::WithheldReason;
use super::{Happening, Incoming};
use crate::beneath::PathExaminer;
use crate::error::as_path;
use crate::layout::Geometry;
use crate::manifest::PREFIX_LEN;
use crate::nicety::is_absent;
use crate::transfer::Gather;
use crate::{Entry, Manifest, ProductId, StoreError, Usage, system};

/// Number of bytes that are moved at once. Zeros are looked for in pieces of `MOVE_GRAIN` bytes.
const MOVE_LEN: usize = 256 << 10;
const MOVE_GRAIN: usize = 4096;

impl Incoming {
    /// Checks the head and prepares the delivery of its files. Nothing is written below the directory before everything
    /// is checked.
    pub(super) fn place(&mut self) -> Result<(), StoreError> {
        let Some(manifest) = self.read_head()? else { return Ok(()) };
        let mut delivery = Delivery::new(self.root.clone(), self.id, manifest, self.options);
        let taken = delivery.check_paths()?;
        delivery.find_meetings(self.state.path())?;
        self.find_delivered(&mut delivery, &taken)?;
        for file in taken {
            delivery.recognise(file)?;
        }
        let needed = delivery.missing_bytes() + delivery.unpacked_bytes() + delivery.layout.head_len();
        self.check_room(Usage { octets: needed, inodes: delivery.count_inodes()? }, Usage::default())?;
        let room = self.room;
        let moved = self.move_spool(&mut delivery);
        if moved.is_err() {
            // The move is repeated when there is room, so its bytes must not count twice.
            self.room = room;
        }
        let spooled = moved?;
        let newly_held = hold_done(&delivery, &mut self.held, &self.geometry);
        delivery.count_missing(&self.held, &self.geometry);
        self.happenings.push(Happening::ManifestKnown { newly_held });
        self.happenings.extend(delivery.tell_done());
        let head_len = delivery.layout.head_len();
        self.delivery = Some(delivery);
        self.note_recognised();
        self.changed = true;
        self.spool_excess = Some((head_len, spooled));
        self.shorten_spool()
    }

    /// Shortens the spool to the head, once its other bytes are in partial files.
    pub(super) fn shorten_spool(&mut self) -> Result<(), StoreError> {
        let Some((head_len, spooled)) = self.spool_excess else { return Ok(()) };
        // The journal must first say that the bytes are in partial files.
        self.write_journal()?;
        let shortened = self.spool()?.map_or(Ok(()), |spool| shorten(spool, head_len));
        shortened.map_err(|errno| self.root.error(&self.state.spool_path(), "shorten", errno, 0))?;
        self.room.give_up(spooled, 0);
        self.spool_excess = None;
        Ok(())
    }

    /// Reads the complete head from the spool. Discards a damaged one and returns `None`.
    fn read_head(&mut self) -> Result<Option<Manifest>, StoreError> {
        let mut head = vec![0; self.head_len.unwrap_or(0) as usize];
        self.read_spool(&mut head, 0)?;
        if ProductId::of_head(&head) != self.id {
            self.refuse_head(head.len() as u64)?;
            return Ok(None);
        }
        let manifest = Manifest::decode(&head[PREFIX_LEN..])?;
        match manifest.product_size() {
            actual if actual != self.geometry.size => {
                Err(StoreError::WrongSize { announced: self.geometry.size, actual })
            }
            _ => Ok(Some(manifest)),
        }
    }

    /// Copies file content from the spool to the partial files. Returns the number of bytes.
    fn move_spool(&mut self, delivery: &mut Delivery) -> Result<u64, StoreError> {
        let mut buffer = vec![0; MOVE_LEN];
        let mut moved = 0;
        let mut run = self.held.next_run(0);
        while let Some(now) = run {
            let bytes = self.geometry.bytes(now);
            let mut at = bytes.start.max(delivery.layout.head_len());
            while at < bytes.end {
                let end = bytes.end.min(at + MOVE_LEN as u64);
                let part = &mut buffer[..(end - at) as usize];
                self.make_room(end - at)?;
                self.read_spool(part, at)?;
                let slices: Vec<&[u8]> = part.chunks(MOVE_GRAIN).collect();
                let written = delivery.write(at..end, &mut Gather::new(&slices), self.generation);
                self.room.count_made(delivery.take_made());
                written?;
                moved += end - at;
                at = end;
            }
            run = self.held.next_run(now.end());
        }
        Ok(moved)
    }
}

/// Marks the segments as held that lie wholly in the head and in complete files. Returns those that were not held
/// before.
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

/// Shortens a file, if the file system can; the bytes behind `len` do no harm.
fn shorten(fd: &OwnedFd, len: u64) -> SystemResult<()> {
    match system::ftruncate(fd, len) {
        Err(errno) if is_absent(errno) || errno == Errno::PERM => Ok(()),
        shortened => shortened,
    }
}

impl Delivery {
    /// Refuses a product with hidden names unless they are allowed. Withholds entries at whose paths something exists
    /// that could lead elsewhere or be destroyed. Returns the files whose names exist already.
    pub(super) fn check_paths(&mut self) -> Result<Vec<usize>, StoreError> {
        let hidden =
            |entry: &&Entry| entry.path.split(|byte| *byte == b'/').any(|name| name.starts_with(b"."));
        if let Some(entry) = self.manifest.entries().iter().find(hidden).filter(|_| !self.options.hidden) {
            return Err(StoreError::HiddenName { path: as_path(&entry.path).to_owned() });
        }
        let root = Arc::clone(&self.root);
        let mut look = PathExaminer::new(&root);
        let mut taken = Vec::new();
        for file in 0..self.files.len() {
            let paths = [self.entry(file).path.clone()].into_iter().chain(self.partial_paths(file));
            for (number, path) in paths.enumerate() {
                match look.regular(&path) {
                    Ok(there) if number == 0 && there.is_some() => taken.push(file),
                    Ok(_) => {}
                    Err(errno) => {
                        let why = WithheldReason::of(errno)
                            .ok_or_else(|| root.error(&path, "examine", errno, 0))?;
                        self.withhold(file, why);
                    }
                }
            }
        }
        for at in 0..self.manifest.entries().len() {
            let entry = &self.manifest.entries()[at];
            match if entry.is_file() { Ok(()) } else { root.check_directory(&entry.path) } {
                Ok(()) => {}
                Err(errno) => {
                    let why = WithheldReason::of(errno)
                        .ok_or_else(|| root.error(&entry.path, "examine", errno, 0))?;
                    self.withhold_entry(at, why);
                }
            }
        }
        self.check_obstructed()?;
        Ok(taken)
    }

    /// Marks the complete files as reported, and returns their events.
    pub(super) fn tell_done(&mut self) -> Vec<Happening> {
        self.told = (0..self.files.len()).filter(|file| self.is_done(*file)).collect();
        self.told.retain(|file| !self.withheld.contains_key(&self.layout.spans()[*file].entry));
        self.told.iter().map(|file| Happening::FileDone { index: self.layout.spans()[*file].entry }).collect()
    }

    /// Returns the number of bytes that are still missing in all files.
    pub(super) fn missing_bytes(&self) -> u64 {
        let missing = |file: &usize| if self.is_done(*file) { 0 } else { self.files[*file].missing };
        (0..self.files.len()).map(|file| missing(&file)).sum()
    }
}
