//! Comparison with older versions of the files, whose content then need not be received.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Result as SystemResult;

use super::delivery::Delivery;
use super::{Happening, Incoming};
use crate::StoreError;
use crate::beneath::size_of;
use crate::chunks::{Chunk, Chunker};
use crate::manifest::check_path;
use crate::transfer::read_at;

/// Number of bytes that are read at once.
const READ_LEN: usize = 1 << 20;
/// Limits on the length of an older version: it is not read if it exceeds `MOST_TIMES` times the new length plus
/// `MOST_ABOVE` bytes. A short list of files must not make a receiver read everything that it has.
const MOST_TIMES: u64 = 4;
const MOST_ABOVE: u64 = 64 << 20;
/// Number of segments that are stored at once.
const STORE: u32 = 128;

/// Range of a new file that is also in an older version of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct KnownRange {
    /// Position in the product, in bytes.
    at: u64,
    len: u64,
    /// Position in the older version, in bytes.
    from: u64,
}

impl KnownRange {
    fn end(&self) -> u64 {
        self.at + self.len
    }
}

impl Incoming {
    /// Returns `true` if something exists under the `name` of the product. It may be an older version of the product or
    /// of one of its files, so a [comparison](Self::compare) is worthwhile.
    pub fn has_earlier(&self, name: &[u8]) -> bool {
        let single = self.plain.is_none() && check_path(name).is_ok() && !name.contains(&b'/');
        single && self.root.stat(name).is_ok_and(|found| found.is_some())
    }

    /// Copies the content that incomplete files have in common with the files that they will replace, as if it had
    /// arrived. Returns the events that follow. Reads all of those files, which takes time. Does nothing before the
    /// list of files is known.
    ///
    /// # Errors
    /// The errors of [`store`](Self::store); [`take_happenings`](Self::take_happenings) returns the events before it.
    pub fn compare(&mut self) -> Result<Vec<Happening>, StoreError> {
        let mut happenings = self.take_happenings();
        let compared = self.compare_files(&mut happenings);
        if let Err(error) = compared {
            happenings.append(&mut self.happenings);
            self.happenings = happenings;
            return Err(error);
        }
        Ok(happenings)
    }

    fn compare_files(&mut self, happenings: &mut Vec<Happening>) -> Result<(), StoreError> {
        for file in 0..self.delivery.as_ref().map_or(0, |delivery| delivery.files.len()) {
            let Some(delivery) = self.delivery.as_ref().filter(|delivery| !delivery.is_done(file)) else {
                continue;
            };
            if let Some((older, known)) = delivery.earlier(file) {
                self.take_over(&older, &known, happenings)?;
            }
        }
        Ok(())
    }

    /// Stores the segments that lie wholly within the `known` ranges, until the older version can no longer be read.
    fn take_over(
        &mut self,
        older: &OwnedFd,
        known: &[KnownRange],
        happenings: &mut Vec<Happening>,
    ) -> Result<(), StoreError> {
        let mut rest = known;
        while let Some(first) = rest.first() {
            let joined = rest.windows(2).take_while(|pair| pair[0].end() == pair[1].at).count() + 1;
            let (together, behind) = rest.split_at(joined);
            rest = behind;
            let end = together.last().map_or(first.at, KnownRange::end);
            let mut left = self.geometry.covered(&(first.at..end));
            while let Some(run) = left {
                let (now, later) = run.split(STORE.try_into().unwrap_or(core::num::NonZeroU32::MIN));
                left = later;
                let bytes = self.geometry.bytes(now);
                let mut buffer = vec![0; (bytes.end - bytes.start) as usize];
                let pieces = &together[together.partition_point(|k| k.end() <= bytes.start)..];
                for piece in pieces.iter().take_while(|k| k.at < bytes.end) {
                    let (from, to) = (piece.at.max(bytes.start), piece.end().min(bytes.end));
                    let slot = &mut buffer[(from - bytes.start) as usize..(to - bytes.start) as usize];
                    let read = read_at(older, slot, piece.from + (from - piece.at));
                    if read != Ok(slot.len()) {
                        return Ok(());
                    }
                }
                let payloads: Vec<&[u8]> = buffer.chunks(self.geometry.segment_len as usize).collect();
                happenings.extend(self.store(now.first(), &payloads)?);
            }
        }
        Ok(())
    }
}

impl Delivery {
    /// Finds the ranges that `file` has in common with the existing file of its name. `None` if there is no such file
    /// or no list of chunks.
    fn earlier(&self, file: usize) -> Option<(OwnedFd, Vec<KnownRange>)> {
        let (entry, span) = (self.entry(file), self.layout.spans()[file]);
        if entry.chunks.is_empty() {
            return None;
        }
        // A file that cannot be read has nothing in common.
        let size = size_of(&self.root.regular(&entry.path).ok()??);
        if size > span.size.saturating_mul(MOST_TIMES).saturating_add(MOST_ABOVE) {
            return None;
        }
        let older = self.root.open_at(&entry.path, OFlags::RDONLY, Mode::empty()).ok()?;
        let wanted: HashSet<Chunk> = entry.chunks.list().iter().copied().collect();
        let places = places(&older, size, entry.chunks.exponent(), &wanted).ok()?;
        let mut known: Vec<KnownRange> = Vec::new();
        let mut at = span.start;
        for chunk in entry.chunks.list() {
            let len = u64::from(chunk.len);
            if let Some(&from) = places.get(chunk) {
                match known.last_mut() {
                    Some(last) if last.end() == at && last.from + last.len == from => last.len += len,
                    _ => known.push(KnownRange { at, len, from }),
                }
            }
            at += len;
        }
        Some((older, known))
    }
}

/// Returns the positions in `file`, which has `size` bytes, of those of its chunks that are `wanted`.
fn places(
    file: &OwnedFd,
    size: u64,
    exponent: u8,
    wanted: &HashSet<Chunk>,
) -> SystemResult<HashMap<Chunk, u64>> {
    let (mut places, mut end) = (HashMap::new(), 0);
    let mut chunker = Chunker::new(exponent);
    let mut note = |chunk: Chunk| {
        if wanted.contains(&chunk) {
            places.entry(chunk).or_insert(end);
        }
        end += u64::from(chunk.len);
    };
    let (mut buffer, mut offset) = (vec![0; READ_LEN], 0);
    // Without the size as a limit, reading would never reach the end of a file that grows all the time.
    while offset < size {
        let read = read_at(file, &mut buffer, offset)?;
        if read == 0 {
            break;
        }
        offset += read as u64;
        chunker.update(&buffer[..read], &mut note);
    }
    chunker.finish(note);
    Ok(places)
}
