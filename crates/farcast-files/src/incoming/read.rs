//! Reading back what was received, to rebuild the rest of a block from its parity.

use rustix::fs::{Mode, OFlags};

use super::Incoming;
use super::delivery::Delivery;
use crate::StoreError;
use crate::layout::Piece;
use crate::transfer::read_at;

impl Incoming {
    /// Reads `buffer.len()` bytes of the product from segment `first` on. What is not held reads as anything; bytes
    /// past the product's end read as zeros.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), StoreError> {
        let start = self.geometry.start(first);
        let len = (buffer.len() as u64).min(self.geometry.size.saturating_sub(start)) as usize;
        let (inside, past) = buffer.split_at_mut(len);
        past.fill(0);
        let Some(delivery) = &mut self.delivery else {
            return self.read_spool(inside, start);
        };
        let (mut at, end) = (start, start + len as u64);
        while at < end
            && let Some(piece) = delivery.layout.first_piece(at..end)
        {
            let slot = &mut inside[(at - start) as usize..][..piece.len as usize];
            if piece.file.is_some() {
                delivery.read_piece(piece, slot)?;
            } else {
                let read = self.spool.as_ref().map_or(Ok(0), |spool| read_at(spool, slot, at));
                read.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
            }
            at += piece.len;
        }
        Ok(())
    }
}

impl Delivery {
    fn read_piece(&mut self, piece: Piece, slot: &mut [u8]) -> Result<(), StoreError> {
        let Some(file) = piece.file else { return Ok(()) };
        let read = if self.is_done(file) {
            let opened = self.root.open_at(&self.entry(file).path, OFlags::RDONLY, Mode::empty());
            opened.and_then(|fd| read_at(fd, slot, piece.offset))
        } else {
            self.partial(file).and_then(|(fd, _)| read_at(fd, slot, piece.offset))
        };
        read.map(drop).map_err(|errno| self.error(file, "read", errno, 0))
    }
}
