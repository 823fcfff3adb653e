//! Verification of the parts of files, and recovery from damage.

use core::ops::Range;

use farcast_core::{Bitmap, Run};

use super::delivery::{Delivery, Stage, overlap};
use super::{Happening, Incoming};
use crate::StoreError;
use crate::layout::{FilePart, Geometry};
use crate::transfer::Space;
use crate::tree::{GROUP_LEN, Tree};

/// Number of times that the same part, or the head, may be found damaged. Noise on the link does not hit one place so
/// often.
pub(super) const MOST_DAMAGES: u32 = 10;

impl Incoming {
    /// Discards the damaged parts, so that they can be received again.
    pub(super) fn forget_damaged(&mut self) -> Result<(), StoreError> {
        let Some(delivery) = &mut self.delivery else { return Ok(()) };
        let mut hopeless = None;
        for (file, part) in core::mem::take(&mut delivery.damaged) {
            let times = delivery.damages.entry((file, part)).or_default();
            *times = times.saturating_add(1);
            let again = self.options.enduring || *times < MOST_DAMAGES;
            let lost = delivery.forget(file, part, &self.geometry);
            if let Some(lost) = lost {
                delivery.note_lacking(file, lost, &self.held);
                self.held.remove_run(lost);
                delivery.recount(&self.geometry.bytes(lost), &self.held, &self.geometry);
                let index = Some(delivery.layout.spans()[file].entry);
                self.happenings.push(Happening::Damaged { index, lost });
                self.changed = true;
            }
            // An empty file with a wrong digest has no segment that could be received again.
            if lost.is_none() || !again {
                hopeless.get_or_insert(file);
            }
        }
        match hopeless {
            Some(file) => {
                Err(StoreError::DigestMismatch { path: delivery.root.full(&delivery.entry(file).path) })
            }
            None => Ok(()),
        }
    }
}

impl Delivery {
    /// Returns the BLAKE3 tree of `file`; makes it if necessary.
    pub(super) fn tree(&mut self, file: usize) -> &mut Tree {
        let Self { files, layout, manifest, .. } = self;
        let span = &layout.spans()[file];
        let known = manifest.entries()[span.entry].parts.len();
        files[file].tree.get_or_insert_with(|| Box::new(Tree::new(span.size, known)))
    }

    /// Returns `true` if the byte at `offset` of `file` is in a complete file or a verified part.
    pub(super) fn is_settled(&self, file: usize, offset: u64) -> bool {
        let verified = |tree: &Tree| tree.is_verified(tree.part_at(offset));
        self.is_done(file) || self.files[file].tree.as_deref().is_some_and(verified)
    }

    /// Cuts `piece` at the end of the part in which it begins.
    pub(super) fn within_part(&self, piece: FilePart) -> FilePart {
        let Some(tree) = piece.file.and_then(|file| self.files[file].tree.as_deref()) else { return piece };
        let end = tree.part_bytes(tree.part_at(piece.offset)).end;
        FilePart { len: piece.len.min(end - piece.offset), ..piece }
    }

    /// Handles `bytes` of the product that have been written and are held. Hashes groups that are now complete, and
    /// checks parts that are.
    pub(super) fn arrived(&mut self, bytes: Range<u64>, held: &Bitmap, geometry: &Geometry) {
        let mut at = bytes.start;
        while at < bytes.end
            && let Some(piece) = self.layout.first_piece(at..bytes.end)
        {
            at += piece.len;
            let Some(file) = piece.file.filter(|file| !self.is_done(*file)) else { continue };
            for group in piece.offset / GROUP_LEN..=(piece.offset + piece.len - 1) / GROUP_LEN {
                self.check_group(file, group, held, geometry);
            }
            let span = self.layout.spans()[file].start;
            let of_product = span + piece.offset..span + piece.offset + piece.len;
            self.files[file].missing -= piece.len - self.here_of(file, &of_product, geometry);
            if self.files[file].missing == 0 {
                self.ready.push_back(file);
            }
        }
        if !self.lacking.is_empty()
            && let Some(run) = geometry.touching(&bytes)
        {
            self.lacking.retain(|segment, _| !run.contains(*segment));
        }
    }

    /// Notes that the segments `lost` are received again for `file` alone. The files beside it keep their bytes of the
    /// first and last segment. Without the note, they would never be complete if the receiver cannot request data
    /// again.
    fn note_lacking(&mut self, file: usize, lost: Run, held: &Bitmap) {
        for segment in [lost.first(), lost.last()] {
            if held.contains(segment) || self.lacking.contains_key(&segment) {
                self.lacking.entry(segment).or_default().insert(file);
            }
        }
    }

    /// Returns the number of those `bytes`, all of them of `file`, that are valid although their segment is to be
    /// received again.
    pub(super) fn here_of(&self, file: usize, bytes: &Range<u64>, geometry: &Geometry) -> u64 {
        if self.lacking.is_empty() {
            return 0;
        }
        let Some(run) = geometry.touching(bytes) else { return 0 };
        let shared = self.lacking.range(run.first()..run.end()).filter(|(_, files)| !files.contains(&file));
        let runs = shared.filter_map(|(segment, _)| Run::new(*segment, 1));
        runs.map(|run| overlap(&geometry.bytes(run), bytes)).sum()
    }

    fn check_group(&mut self, file: usize, group: u64, held: &Bitmap, geometry: &Geometry) {
        let span = self.layout.spans()[file];
        let is_held = |bytes: Range<u64>| {
            let run = geometry.touching(&(span.start + bytes.start..span.start + bytes.end));
            run.is_some_and(|run| held.count_in(run) == run.count())
        };
        let start = group * GROUP_LEN;
        if self.is_settled(file, start) || !is_held(start..span.size.min(start + GROUP_LEN)) {
            return;
        }
        self.hash_group(file, group);
        let tree = self.tree(file);
        let part = tree.part_at(start);
        // A file without part values is checked when it gets its name.
        if tree.parts() > 1 && is_held(tree.part_bytes(part)) {
            // A part that cannot be read now is read again when the file is complete, which reports the error.
            if let Ok(false) = self.check_part(file, part) {
                self.damaged.insert((file, part));
            }
        }
    }

    fn hash_group(&mut self, file: usize, group: u64) {
        let mut scratch = core::mem::take(&mut self.scratch);
        // A group that cannot be read now is read again when its part is complete, which reports the error.
        if self.read_group(file, group, &mut scratch).is_ok() {
            self.tree(file).insert(group, &scratch);
        }
        self.scratch = scratch;
    }

    /// Checks `part` of `file`, which has all its bytes. Returns `true` if it is right.
    pub(super) fn check_part(&mut self, file: usize, part: u32) -> Result<bool, StoreError> {
        if self.tree(file).is_verified(part) {
            return Ok(true);
        }
        let Some(tree) = self.files[file].tree.take() else { return Ok(false) };
        let mut scratch = core::mem::take(&mut self.scratch);
        let found = tree.value(part, &mut scratch, |group, buffer| self.read_group(file, group, buffer));
        self.scratch = scratch;
        self.files[file].tree = Some(tree);
        let right = found? == self.expected(file, part);
        if right {
            self.tree(file).set_verified(part);
        }
        Ok(right)
    }

    /// Returns the value that `part` of `file` must have.
    fn expected(&self, file: usize, part: u32) -> [u8; 32] {
        let entry = self.entry(file);
        entry.parts.get(part as usize).copied().or(entry.stored_digest()).unwrap_or_default()
    }

    /// Checks every part of `file`, which has all its bytes. Returns `true` if all are right.
    pub(super) fn check_parts(&mut self, file: usize) -> Result<bool, StoreError> {
        let mut right = true;
        for part in 0..self.tree(file).parts() {
            if !self.check_part(file, part)? {
                self.damaged.insert((file, part));
                right = false;
            }
        }
        Ok(right)
    }

    /// Marks all parts of `file` as damaged.
    pub(super) fn doubt(&mut self, file: usize) {
        let parts = self.tree(file).parts();
        self.damaged.extend((0..parts).map(|part| (file, part)));
    }

    /// Discards `part` of `file` and the content that shares a segment with it. Returns these segments; `None` if the
    /// part has no bytes.
    fn forget(&mut self, file: usize, part: u32, geometry: &Geometry) -> Option<Run> {
        let start = self.layout.spans()[file].start;
        let bytes = self.tree(file).part_bytes(part);
        let run = geometry.touching(&(start + bytes.start..start + bytes.end))?;
        self.tree(file).clear(part);
        self.distrust(geometry.bytes(run));
        Some(run)
    }

    /// Treats the present content of `bytes`, which are to be received again, as damaged, except for verified parts.
    fn distrust(&mut self, bytes: Range<u64>) {
        let mut at = bytes.start;
        while at < bytes.end
            && let Some(piece) = self.layout.first_piece(at..bytes.end)
        {
            let piece = self.within_part(piece);
            at += piece.len;
            let Some(file) = piece.file.filter(|file| !self.is_settled(*file, piece.offset)) else {
                continue;
            };
            let state = &mut self.files[file];
            if let Stage::Partial(space) = &mut state.stage {
                *space = Space::Unknown;
            }
            if let Some(tree) = &mut state.tree {
                tree.clear(tree.part_at(piece.offset));
            }
        }
    }

    /// Counts again the missing bytes of the files that have any of `bytes`.
    pub(super) fn recount(&mut self, bytes: &Range<u64>, held: &Bitmap, geometry: &Geometry) {
        let files: Vec<usize> = self.layout.pieces(bytes.clone()).filter_map(|piece| piece.file).collect();
        for file in files {
            self.count_missing_of(file, held, geometry);
        }
    }
}
