//! Complete reads and writes of slices at offsets, with holes for zeros.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::SeekFrom;
use rustix::io::{Errno, Result};

use crate::system;

/// Shortest run of zeros within a piece that becomes a hole, in bytes: the block size of common file systems. A shorter
/// one would cost a system call and save nothing.
const MIN_HOLE: u64 = 4096;
/// The largest number of slices in one write. The kernel allows 1024; a GRO batch has 44 to 64.
const BATCH: usize = 128;

/// Writes all of `slices` at `offset`.
pub(crate) fn write_all(fd: BorrowedFd<'_>, mut slices: &mut [IoSlice<'_>], mut offset: u64) -> Result<()> {
    while !slices.is_empty() {
        match system::pwritev(fd, slices, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Fills all of `slices` from `offset`; returns `false` if the file ends before that.
pub(crate) fn read_all(fd: impl AsFd, mut slices: &mut [IoSliceMut<'_>], mut offset: u64) -> Result<bool> {
    while !slices.is_empty() {
        match system::preadv(&fd, slices, offset) {
            Ok(0) => return Ok(false),
            Ok(read) => {
                offset += read as u64;
                IoSliceMut::advance_slices(&mut slices, read);
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

/// Fills `buffer` from `offset`; returns the number of bytes read before the file ended.
pub(crate) fn read_at(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match system::pread(&fd, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

/// Returns `true` if every byte is zero. Stops at the first word that is not.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

/// State of the range that is written, before the write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Space {
    /// Nothing was ever written there, so zeros can be left out.
    Fresh,
    /// An earlier run may have written there: zeros can be left out only where the file system has a hole.
    Unknown,
}

/// Writer that gathers slices of one contiguous piece of a file and writes them with as few calls as possible. It
/// leaves out zeros that are already in the file.
pub(crate) struct PieceWriter<'fd, 'a> {
    fd: BorrowedFd<'fd>,
    space: Space,
    slices: [IoSlice<'a>; BATCH],
    used: usize,
    /// Position of the first gathered slice in the file.
    start: u64,
    /// Number of bytes gathered before the zeros at the end.
    solid: u64,
    /// Number of slices before the zeros at the end, and number of those zeros.
    solid_slices: usize,
    zeros: u64,
}

impl<'fd, 'a> PieceWriter<'fd, 'a> {
    pub(crate) fn new(fd: BorrowedFd<'fd>, space: Space, offset: u64) -> Self {
        let slices = [IoSlice::new(&[]); BATCH];
        Self { fd, space, slices, used: 0, start: offset, solid: 0, solid_slices: 0, zeros: 0 }
    }

    /// Appends `bytes`.
    pub(crate) fn push(&mut self, bytes: &'a [u8]) -> Result<()> {
        let zero = is_zero(bytes);
        if self.used == BATCH || (!zero && self.zeros >= MIN_HOLE) {
            self.flush()?;
        }
        self.slices[self.used] = IoSlice::new(bytes);
        self.used += 1;
        if zero {
            self.zeros += bytes.len() as u64;
        } else {
            self.solid += self.zeros + bytes.len() as u64;
            (self.solid_slices, self.zeros) = (self.used, 0);
        }
        Ok(())
    }

    /// Writes the gathered slices.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let zeros_at = self.start + self.solid;
        let skip = (self.zeros >= MIN_HOLE || self.solid_slices == 0) && self.is_hole(zeros_at);
        let wanted = if skip { self.solid_slices } else { self.used };
        write_all(self.fd, &mut self.slices[..wanted], self.start)?;
        self.start = zeros_at + self.zeros;
        (self.used, self.solid, self.solid_slices, self.zeros) = (0, 0, 0, 0);
        Ok(())
    }

    fn is_hole(&self, offset: u64) -> bool {
        if self.space == Space::Fresh || self.zeros == 0 {
            return true;
        }
        match system::seek(self.fd, SeekFrom::Data(offset)) {
            Ok(data) => data >= offset + self.zeros,
            Err(Errno::NXIO) => true,
            // Without SEEK_DATA in the file system nobody knows of holes: the zeros are written.
            Err(_) => false,
        }
    }
}

/// Consecutive payloads, taken from the front without copying.
pub(crate) struct Gather<'a> {
    payloads: &'a [&'a [u8]],
    taken: usize,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(payloads: &'a [&'a [u8]]) -> Self {
        Self { payloads, taken: 0 }
    }

    /// Skips `len` bytes.
    pub(crate) fn skip(&mut self, mut len: u64) {
        while len > 0
            && let Some(slice) = self.next(len)
        {
            len -= slice.len() as u64;
        }
    }

    /// Returns the next contiguous bytes, at most `limit`.
    pub(crate) fn next(&mut self, limit: u64) -> Option<&'a [u8]> {
        let (first, rest) = self.payloads.split_first()?;
        let left = &first[self.taken..];
        let len = left.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        if len == left.len() {
            (self.payloads, self.taken) = (rest, 0);
        } else {
            self.taken += len;
        }
        Some(&left[..len])
    }

    /// Writes the next `len` bytes at `offset` of `fd`.
    pub(crate) fn write(
        &mut self,
        fd: BorrowedFd<'_>,
        space: Space,
        offset: u64,
        mut len: u64,
    ) -> Result<()> {
        let mut writer = PieceWriter::new(fd, space, offset);
        while len > 0
            && let Some(slice) = self.next(len)
        {
            len -= slice.len() as u64;
            writer.push(slice)?;
        }
        writer.flush()
    }
}

/// Writes all of `bytes` at `offset`, zeros included.
pub(crate) fn write_at(fd: impl AsFd, bytes: &[u8], offset: u64) -> Result<()> {
    write_all(fd.as_fd(), &mut [IoSlice::new(bytes)], offset)
}
