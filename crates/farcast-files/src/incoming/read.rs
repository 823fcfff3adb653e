//! Reading back what was received, to rebuild the rest of a block from its parity.

use rustix::fs::{Mode, OFlags};

use super::Incoming;
use super::delivery::Delivery;
use crate::StoreError;
use crate::layout::FilePart;
use crate::transfer::read_at;

impl Incoming {
    /// Reads `buffer.len()` bytes of the product from segment `first` on. Bytes of segments that are not held are
    /// undefined; bytes past the product's end read as zeros. Returns `false` if held data is no longer available: its
    /// segments are not held from now on, and the buffer must not be used.
    ///
    /// # Errors
    /// Errors of the file system; [`StoreError::DiskFull`] and [`StoreError::OverQuota`], after which the same call may
    /// succeed later.
    pub fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<bool, StoreError> {
        let start = self.geometry.start(first);
        let len = (buffer.len() as u64).min(self.geometry.size.saturating_sub(start)) as usize;
        let (inside, past) = buffer.split_at_mut(len);
        past.fill(0);
        if self.delivery.is_none() {
            return self.read_spool(inside, start).map(|()| true);
        }
        let (mut at, end) = (start, start + len as u64);
        while at < end
            && let Some(piece) = self.delivery.as_ref().and_then(|one| one.layout.first_piece(at..end))
        {
            let slot = &mut inside[(at - start) as usize..][..piece.len as usize];
            if let Some(file) = piece.file {
                if !self.restore(file)? {
                    return Ok(false);
                }
                if let Some(delivery) = &mut self.delivery {
                    delivery.read_piece(file, piece, slot)?;
                }
            } else {
                let read = self.spool()?.map_or(Ok(0), |spool| read_at(spool, slot, at));
                read.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
            }
            at += piece.len;
        }
        Ok(true)
    }
}

impl Delivery {
    fn read_piece(&mut self, file: usize, piece: FilePart, slot: &mut [u8]) -> Result<(), StoreError> {
        let read = if self.is_done(file) && !self.is_withheld(file) {
            let compressed = self.entry(file).is_compressed();
            let path = if compressed { self.partial_path(file) } else { self.entry(file).path.clone() };
            let opened = self.root.open_at(&path, OFlags::RDONLY, Mode::empty());
            opened.and_then(|fd| read_at(fd, slot, piece.offset))
        } else if self.is_done(file) {
            let opened = self.root.open_at(&self.partial_path(file), OFlags::RDONLY, Mode::empty());
            opened.and_then(|fd| read_at(fd, slot, piece.offset))
        } else {
            self.partial(file).and_then(|(fd, _)| read_at(fd, slot, piece.offset))
        };
        read.map(drop).map_err(|errno| self.error(file, "read", errno, 0))
    }
}
