//! The sender's side of parity that leaves in turns over all blocks.
//!
//! A thread computes the parity of each block once, in order, while source symbols leave. The parity waits in a file
//! without a name.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use farcast_delivery::Geometry;
use farcast_fec::BlockCode;
use farcast_files::{Outgoing, nameless};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, preadv, pwrite};

use super::encoder::load_block;
use super::{BlockParity, code};
use crate::error::NetError;

/// Returns the directory for temporary files that may be larger than memory: `TMPDIR`, or else `/var/tmp`.
pub fn scratch_dir() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty()).map_or("/var/tmp".into(), PathBuf::from)
}

/// Parity of an object, as far as it is sent. Takes memory to code one block, and disk space for the symbols it keeps.
pub(crate) struct WholeParity {
    shared: Arc<SharedEncoding>,
    /// Number of symbols of each block that are kept.
    keep: u32,
    symbol_len: usize,
}

struct SharedEncoding {
    file: File,
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of blocks whose parity is in the file.
    done: u32,
    /// The thread has ended; `error` says why.
    ended: bool,
    error: Option<NetError>,
    /// The owner has gone, so no more parity is needed.
    unwanted: bool,
}

/// Reports on drop that the thread has ended, in whatever way.
struct Ending(Arc<SharedEncoding>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.news.notify_all();
    }
}

impl SharedEncoding {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No holder of the lock leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WholeParity {
    /// Begins to compute the first `keep` of `symbols` parity symbols of each block. The thread reads `outgoing`, a
    /// clone of the object that is sent.
    ///
    /// # Errors
    /// If the code cannot do these numbers, or there is no room for the parity.
    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    pub(crate) fn start(
        geometry: Geometry,
        BlockParity { symbols, kind }: BlockParity,
        keep: u32,
        mut outgoing: Outgoing,
    ) -> Result<Self, NetError> {
        let code = code(&geometry, symbols, kind)?;
        let dir = scratch_dir();
        let scratch = |source| NetError::Scratch { path: dir.clone(), source };
        let file = nameless(&dir).map_err(scratch)?;
        let (keep, symbol_len) = (keep.min(symbols), code.symbol_len());
        reserve(&file, u64::from(geometry.blocks()) * u64::from(keep) * symbol_len as u64)
            .map_err(scratch)?;
        let shared = Arc::new(SharedEncoding { file, state: Mutex::default(), news: Condvar::new() });
        let ours = Ending(Arc::clone(&shared));
        std::thread::spawn(move || {
            let made = make(&code, &geometry, keep, &mut outgoing, &ours.0, &dir);
            ours.0.lock().error = made.err();
        });
        Ok(Self { shared, keep, symbol_len })
    }

    /// Fills `slots` with consecutive symbols of `block` from `first` on. Waits for symbols that are not computed yet.
    pub(crate) fn read(
        &mut self,
        block: u32,
        first: u32,
        slots: &mut [IoSliceMut<'_>],
    ) -> Result<(), NetError> {
        let failed = |reason: String| NetError::Parity { block, parity: first, reason };
        if u64::from(first) + slots.len() as u64 > u64::from(self.keep) {
            return Err(failed("the sender has not said that it sends it".into()));
        }
        let mut state = self.shared.lock();
        while state.done <= block {
            if state.ended {
                return Err(state
                    .error
                    .take()
                    .unwrap_or_else(|| failed("nobody computes it any more".into())));
            }
            state = self.shared.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let mut at = (u64::from(block) * u64::from(self.keep) + u64::from(first)) * self.symbol_len as u64;
        let mut slots = slots;
        while !slots.is_empty() {
            match preadv(&self.shared.file, slots, at) {
                Ok(0) => return Err(failed("its file has become shorter".into())),
                Ok(read) => {
                    at += read as u64;
                    IoSliceMut::advance_slices(&mut slots, read);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno.to_string())),
            }
        }
        Ok(())
    }
}

impl Drop for WholeParity {
    fn drop(&mut self) {
        self.shared.lock().unwanted = true;
    }
}

/// Allocates the disk space, so that a full disk is found before anything is sent. On a file system that cannot
/// allocate ahead, a full disk is found when symbols are written.
fn reserve(file: &File, len: u64) -> std::io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, len) {
        Err(Errno::NOSPC) => Err(Errno::NOSPC.into()),
        _ => Ok(()),
    }
}

/// Computes the parity of all blocks into the file; the body of the thread.
fn make(
    code: &BlockCode,
    geometry: &Geometry,
    keep: u32,
    outgoing: &mut Outgoing,
    shared: &SharedEncoding,
    dir: &Path,
) -> Result<(), NetError> {
    if keep == 0 {
        return Ok(());
    }
    let mut source = Vec::new();
    let mut parity = vec![0; keep as usize * code.symbol_len()];
    for block in 0..geometry.blocks() {
        if shared.lock().unwanted {
            return Ok(());
        }
        load_block(outgoing, geometry, block, &mut source)?;
        let failed = |error: farcast_fec::EncodeError| NetError::Parity {
            block,
            parity: 0,
            reason: error.to_string(),
        };
        code.encode(&source, 0, &mut parity).map_err(failed)?;
        let written = write_all(&shared.file, &parity, u64::from(block) * parity.len() as u64);
        written.map_err(|errno| NetError::Scratch { path: dir.into(), source: errno.into() })?;
        shared.lock().done = block + 1;
        shared.news.notify_all();
    }
    Ok(())
}

fn write_all(file: impl AsFd, mut bytes: &[u8], mut at: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match pwrite(&file, bytes, at) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => (bytes, at) = (&bytes[written..], at + written as u64),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
