//! Files of which the product has less than their content: what it was compressed to.
//!
//! The content is cut into groups of 4 MiB, of which the last may be shorter. Each is a Zstandard frame (RFC 8878) of its
//! own, and what the product has of the file are these frames, one behind the other: nobody needs memory for more than a
//! group, and several can be compressed at once. A receiver takes any frames whose windows have no more than 4 MiB and
//! whose content adds up to the size of the file.
//!
//! What does not become shorter by one part in 32, or by less than its entry in the manifest becomes longer, is not
//! compressed.

use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;
use zstd::zstd_safe::compress_bound;

use crate::manifest::COMPRESSED_LEN;
use crate::transfer::read_at;

mod spooling;

pub(crate) use spooling::{Spool, Spooling};

/// The bytes of a group, and of the longest window of a frame.
const GROUP_LEN: usize = 1 << WINDOW_LOG;
const WINDOW_LOG: u32 = 22;
/// How hard zstd tries, so that it is faster than the links that compression is for: of 20 MB of source text, 3 makes 3.4 MB
/// at 230 MB/s, 9 makes 2.9 MB at 44 MB/s, and 19 makes 2.6 MB at 1.8 MB/s.
const LEVEL: i32 = 9;
/// Less than one part in so many is not worth that a receiver has to decompress it.
const LEAST_GAIN: u64 = 32;

/// Whether it pays to compress a file of `size` bytes to `stored`.
fn pays(size: u64, stored: u64) -> bool {
    stored + COMPRESSED_LEN as u64 <= size - size / LEAST_GAIN
}

/// One group at a time.
struct Packer(Compressor<'static>);

impl Packer {
    fn new() -> io::Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// Makes a frame of `group`, in place of what is in `frame`.
    fn pack(&mut self, group: &[u8], frame: &mut Vec<u8>) -> io::Result<()> {
        frame.clear();
        frame.reserve(compress_bound(group.len()));
        self.0.compress_to_buffer(group, frame).map(drop)
    }
}

/// Compresses what `read` fills buffers with, `size` bytes, as a sender does; `each` gets one frame after the other.
pub(crate) fn pack<E: From<io::Error>>(
    size: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut packer = Packer::new()?;
    let (mut group, mut frame, mut at) = (vec![0; GROUP_LEN], Vec::new(), 0);
    while at < size {
        let want = &mut group[..(size - at).min(GROUP_LEN as u64) as usize];
        read(want, at)?;
        packer.pack(want, &mut frame)?;
        each(&frame)?;
        at += want.len() as u64;
    }
    Ok(())
}

/// Why nothing could be decompressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnpackError {
    /// It cannot be read.
    Read(Errno),
    /// What it was decompressed to was not taken.
    Write(Errno),
    /// It is not what so many bytes were compressed to.
    Wrong,
}

/// Decompresses the first `stored` bytes of `file` to `size` bytes; `each` gets them in order, at most a group at once,
/// and never more than there have to be.
pub(crate) fn unpack(
    file: &OwnedFd,
    stored: u64,
    size: u64,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), Errno>,
) -> Result<(), UnpackError> {
    let frames = BufReader::with_capacity(128 << 10, Stored { file, at: 0, end: stored });
    let mut decoder = Decoder::with_buffer(frames).map_err(|error| failure(&error))?;
    decoder.window_log_max(WINDOW_LOG).map_err(|error| failure(&error))?;
    let (mut group, mut at) = (vec![0; GROUP_LEN], 0);
    while at < size {
        let want = &mut group[..(size - at).min(GROUP_LEN as u64) as usize];
        decoder.read_exact(want).map_err(|error| failure(&error))?;
        each(at, want).map_err(UnpackError::Write)?;
        at += want.len() as u64;
    }
    match decoder.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(UnpackError::Wrong),
        Err(error) => Err(failure(&error)),
    }
}

/// What the system refused has its number; all else is the decoder's.
fn failure(error: &io::Error) -> UnpackError {
    Errno::from_io_error(error).map_or(UnpackError::Wrong, UnpackError::Read)
}

/// The bytes of a file from `at` to `end`.
struct Stored<'a, F> {
    file: &'a F,
    at: u64,
    end: u64,
}

impl<F: AsFd> Read for Stored<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let want = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = read_at(self.file, &mut buffer[..want], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
