//! Compressed files: the product holds the compressed content, which is shorter.
//!
//! The content is cut into groups of 4 MiB, of which the last may be shorter. Each group is a Zstandard frame (RFC
//! 8878) of its own, and the product holds these frames back to back. Neither side needs memory for more than one
//! group, and several groups can be compressed at once. A receiver accepts any frames whose windows have at most 4 MiB
//! and whose content adds up to the size of the file.
//!
//! A file is sent uncompressed unless compression saves one part in 32 of it, and also more bytes than it adds to the
//! manifest entry.

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
/// Compression level of zstd, chosen to be faster than the links that compression is for. Of 20 MB of source text,
/// level 3 makes 3.4 MB at 230 MB/s, level 9 makes 2.9 MB at 44 MB/s, and level 19 makes 2.6 MB at 1.8 MB/s.
const LEVEL: i32 = 9;
/// Reciprocal of the smallest saving that justifies the work of decompression at the receiver.
const LEAST_GAIN: u64 = 32;

/// Returns `true` if compressing a file of `size` bytes to `stored` bytes saves enough.
fn pays(size: u64, stored: u64) -> bool {
    stored + COMPRESSED_LEN as u64 <= size - size / LEAST_GAIN
}

/// Compressor of one group at a time.
struct Packer(Compressor<'static>);

impl Packer {
    fn new() -> io::Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// Compresses `group` into one frame and replaces the content of `frame` by it.
    fn pack(&mut self, group: &[u8], frame: &mut Vec<u8>) -> io::Result<()> {
        frame.clear();
        frame.reserve(compress_bound(group.len()));
        self.0.compress_to_buffer(group, frame).map(drop)
    }
}

/// Compresses `size` bytes in the same way as a sender. `read` fills a buffer from an offset; `each` gets the frames in
/// order.
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

/// Reason for which a file cannot be decompressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnpackError {
    /// The compressed file cannot be read.
    Read(Errno),
    /// The callback refused the decompressed bytes.
    Write(Errno),
    /// The frames are invalid or do not decompress to the expected number of bytes.
    Wrong,
}

/// Decompresses the first `stored` bytes of `file` to `size` bytes. `each` gets them in order with their offset, at
/// most one group at once, and never more than `size` bytes in all.
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

/// Maps an error of the decoder: one with an errno came from reading the file, any other means invalid frames.
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
